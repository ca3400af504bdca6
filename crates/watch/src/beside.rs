//! A watch in the background, on its own thread, with a bounded number of readings however long it
//! takes.
//!
//! It takes four readings per second. If there are too many, every second one is dropped, then
//! three of four, and so on. Counters only grow, so the rest stays exact; samples of requests in
//! flight move to the next reading that is kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use machine::counters::CounterError;

use crate::Reading;
use crate::history::{keep_looks, take_looks};
use crate::live::{WatchedDevices, WatchedMachine};

/// Time between two readings.
const INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of readings; with one more, half are dropped.
pub const READINGS_MAX: usize = 480;
/// Maximum number of device rows in all readings, each of about 250 bytes; two readings are always
/// kept.
pub const ROWS_MAX: usize = 1 << 17;
/// Maximum number of samples of requests in flight per reading and device.
const LOOKS_MAX: usize = 16;

/// A running watch.
#[derive(Debug)]
pub struct Beside {
    began: Instant,
    stop: Arc<AtomicBool>,
    /// Until it is joined.
    thread: Option<JoinHandle<Result<Vec<Reading>, CounterError>>>,
}

impl Drop for Beside {
    /// Stops a watch that was not finished, and discards its readings.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Beside {
    /// Begins; the first reading is complete when this returns.
    ///
    /// # Errors
    /// When the kernel's counters cannot be read.
    pub fn begin(watched: WatchedDevices) -> Result<Beside, CounterError> {
        let mut machine = WatchedMachine::new(watched);
        let began = machine.began();
        let mut kept = Kept::default();
        kept.take(machine.reading(INTERVAL)?);
        let stop = Arc::new(AtomicBool::new(false));
        let stops = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            loop {
                // Read the flag first, so that the last reading is after the end.
                let is_last = stops.load(Ordering::Acquire);
                kept.take(machine.reading(INTERVAL)?);
                if is_last {
                    return Ok(kept.finish());
                }
            }
        });
        Ok(Beside { began, stop, thread: Some(thread) })
    }

    /// Ends with a last reading, which takes half a second at most. `at_seconds` of the readings
    /// counts from `origin`, and is negative before it.
    ///
    /// # Errors
    /// When the kernel's counters could not be read.
    ///
    /// # Panics
    /// When the thread panicked.
    pub fn finish(mut self, origin: Instant) -> Result<Vec<Reading>, CounterError> {
        self.stop.store(true, Ordering::Release);
        let thread = self.thread.take().expect("it is joined here and when it is dropped");
        let mut readings = thread.join().expect("looking does not panic")?;
        let earlier = origin.saturating_duration_since(self.began).as_secs_f64();
        for reading in &mut readings {
            reading.at_seconds -= earlier;
        }
        Ok(readings)
    }
}

/// The readings that are kept.
#[derive(Debug, Default)]
struct Kept {
    readings: Vec<Reading>,
    rows: usize,
    /// Samples of the readings dropped since the last one that is kept.
    left_out: Reading,
    /// Number of readings since the last one that is kept.
    since: usize,
    /// One of 2^power readings is kept.
    power: u32,
    /// The last reading, if it is not kept.
    last: Option<Reading>,
}

impl Kept {
    fn take(&mut self, reading: Reading) {
        if !self.readings.is_empty() {
            self.since += 1;
            if self.since < 1 << self.power {
                if let Some(last) = self.last.replace(reading) {
                    keep_looks(&mut self.left_out, last);
                }
                return;
            }
        }
        self.keep(reading);
        while self.readings.len() > READINGS_MAX
            || (self.rows > ROWS_MAX && self.readings.len() > 2)
        {
            self.halve();
        }
    }

    fn keep(&mut self, mut reading: Reading) {
        if let Some(last) = self.last.take() {
            keep_looks(&mut self.left_out, last);
        }
        take_looks(&mut reading, std::mem::take(&mut self.left_out));
        reading.in_flight.values_mut().for_each(bound);
        self.rows += reading.rows.len() + reading.tapes.len();
        self.readings.push(reading);
        self.since = 0;
    }

    /// Drops every second reading; samples after the last one that stays go to the next one.
    fn halve(&mut self) {
        let all = std::mem::take(&mut self.readings);
        self.rows = 0;
        self.since = 0;
        for (number, mut reading) in all.into_iter().enumerate() {
            if let Some(before) = self.last.take() {
                keep_looks(&mut self.left_out, before);
            }
            if number % 2 == 1 {
                self.last = Some(reading);
                self.since = 1 << self.power;
            } else {
                take_looks(&mut reading, std::mem::take(&mut self.left_out));
                reading.in_flight.values_mut().for_each(bound);
                self.rows += reading.rows.len() + reading.tapes.len();
                self.readings.push(reading);
                self.since = 0;
            }
        }
        self.power += 1;
    }

    /// All readings that are kept, and the last one.
    fn finish(mut self) -> Vec<Reading> {
        if let Some(last) = self.last.take() {
            self.keep(last);
        }
        self.readings
    }
}

/// Bounds the number of samples, and keeps the largest one.
fn bound(looks: &mut Vec<u32>) {
    let most = looks.iter().copied().max().unwrap_or(0);
    while looks.len() > LOOKS_MAX {
        let mut number = 0;
        looks.retain(|_| {
            number += 1;
            number % 2 == 1
        });
    }
    if !looks.contains(&most)
        && let Some(last) = looks.last_mut()
    {
        *last = most;
    }
}

#[cfg(test)]
mod tests {
    use machine::counters::disk::DiskRow;

    use super::*;

    fn reading(number: u32, devices: usize, looks: &[u32]) -> Reading {
        let text = format!("8 0 sda {number} 0 0 0 0 0 0 0 0 0 0");
        let row = machine::counters::disk::rows(text.as_bytes()).unwrap().remove(0);
        let named = |at: usize| DiskRow { name: format!("d{at}"), ..row.clone() };
        Reading {
            at_seconds: f64::from(number),
            rows: (0..devices).map(named).collect(),
            in_flight: [("d0".to_owned(), looks.to_vec())].into(),
            ..Reading::default()
        }
    }

    /// The first and the last reading stay, those between have equal distances, and the largest
    /// number of requests in flight is not lost.
    #[test]
    fn however_long_it_takes_there_are_so_many() {
        for (count, devices) in [(1, 1), (480, 1), (481, 1), (482, 1), (5000, 1), (900, 1000)] {
            let mut kept = Kept::default();
            for number in 0..count {
                let seen = if number == count / 3 { 77 } else { 1 };
                kept.take(reading(number, devices, &[seen]));
            }
            let readings = kept.finish();
            let rows: usize = readings.iter().map(|it| it.rows.len()).sum();
            // The last reading may be one more.
            assert!(readings.len() <= READINGS_MAX + 1 && rows <= ROWS_MAX + devices, "{count}");
            let times: Vec<f64> = readings.iter().map(|it| it.at_seconds).collect();
            assert_eq!((times[0], *times.last().unwrap()), (0.0, f64::from(count - 1)));
            let steps: Vec<f64> = times.windows(2).map(|it| it[1] - it[0]).collect();
            if let Some((last, others)) = steps.split_last() {
                assert!(others.iter().all(|it| *it == others[0] && it >= last), "{steps:?}");
            }
            let seen = readings.iter().flat_map(|it| &it.in_flight["d0"]);
            assert_eq!(seen.copied().max(), Some(77), "{count}");
            assert!(readings.iter().all(|it| it.in_flight["d0"].len() <= LOOKS_MAX));
        }
    }

    #[test]
    fn looks_are_behind_the_beginning_and_the_end() {
        let beside = Beside::begin(WatchedDevices::Named(["no such".to_owned()].into())).unwrap();
        let origin = Instant::now();
        thread::sleep(Duration::from_millis(10));
        let took = origin.elapsed().as_secs_f64();
        let readings = beside.finish(origin).unwrap();
        assert!(readings[0].at_seconds <= 0.0, "{readings:?}");
        assert!(readings.last().unwrap().at_seconds >= took, "{readings:?}");
    }

    /// After a failure, no thread goes on.
    #[test]
    fn what_is_not_finished_ends() {
        let stop = {
            let beside = Beside::begin(WatchedDevices::All).unwrap();
            Arc::clone(&beside.stop)
        };
        assert!(stop.load(Ordering::Acquire));
        assert_eq!(Arc::strong_count(&stop), 1, "the thread has the other one");
    }
}
