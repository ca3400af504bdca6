//! Readings of this machine.
//!
//! One read of `/proc/diskstats` gives all counters. In between, requests in flight of a few
//! devices are sampled a few times: only this number shows the present state of a device. Queue
//! settings are read now and then, because each setting is a separate file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use machine::counters::CounterError;
use machine::counters::disk::{self, DiskRow};
use storage::queue::{self, Queue};

use crate::Reading;
use crate::intervals::DEVICES_MAX;
use crate::tapes;

/// Interval between samples of the requests in flight, each in the middle of it.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Number of devices to sample, the busiest ones.
const LOOKED_AT_MAX: usize = 16;
/// Queues to read with one reading. Each is a dozen files, so a few devices are read in every
/// second or third reading, and 200 within a minute.
const QUEUES_MAX: usize = 4;

/// The devices to watch.
#[derive(Clone, Debug)]
pub enum WatchedDevices {
    /// All whole disks and tape drives, including those that appear later.
    All,
    /// The devices with these names, while they exist.
    Named(BTreeSet<String>),
}

/// Repeated readings of this machine.
#[derive(Debug)]
pub struct WatchedMachine {
    watched: WatchedDevices,
    started: Instant,
    next: Option<Instant>,
    /// Whole disks, checked once for each name and number.
    disks: BTreeMap<String, (u32, u32)>,
    last: Vec<DiskRow>,
    busiest: Vec<String>,
    queues_of: Vec<String>,
}

impl WatchedMachine {
    /// Begins without a reading.
    pub fn new(watched: WatchedDevices) -> WatchedMachine {
        WatchedMachine {
            watched,
            started: Instant::now(),
            next: None,
            disks: BTreeMap::new(),
            last: Vec::new(),
            busiest: Vec::new(),
            queues_of: Vec::new(),
        }
    }

    /// The zero point of the times of readings.
    pub fn began(&self) -> Instant {
        self.started
    }

    /// The next reading: the first one at once, all others when an interval has passed since.
    ///
    /// # Errors
    /// When the kernel's counters cannot be read.
    pub fn reading(&mut self, interval: Duration) -> Result<Reading, CounterError> {
        let mut in_flight: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        if let Some(due) = self.next {
            self.look_until(due, &mut in_flight);
        }
        // A late reading does not make the next one early.
        let now = Instant::now();
        let due = self.next.unwrap_or(now) + interval;
        self.next = Some(if due > now { due } else { now + interval });
        let at_seconds = self.started.elapsed().as_secs_f64();
        let mut rows = disk::rows_now()?;
        rows.retain(|row| self.is_watched(row));
        rows.truncate(DEVICES_MAX);
        self.choose(&rows);
        let queues = self.queues(&rows);
        self.last.clone_from(&rows);
        let mut tapes = tapes::below(Path::new("/sys"));
        if let WatchedDevices::Named(names) = &self.watched {
            tapes.retain(|name, _| names.contains(name));
        }
        Ok(Reading { at_seconds, unix_seconds: unix_seconds(), rows, in_flight, queues, tapes })
    }

    fn look_until(&self, due: Instant, in_flight: &mut BTreeMap<String, Vec<u32>>) {
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left < LOOK_EVERY {
                sleep(left);
                return;
            }
            sleep(LOOK_EVERY / 2);
            for name in &self.busiest {
                if let Some(count) = queue::in_flight(name) {
                    in_flight.entry(name.clone()).or_default().push(count);
                }
            }
            sleep(LOOK_EVERY / 2);
        }
    }

    fn is_watched(&mut self, row: &DiskRow) -> bool {
        match &self.watched {
            WatchedDevices::Named(names) => names.contains(&row.name),
            WatchedDevices::All => {
                if self.disks.get(&row.name) == Some(&row.number) {
                    return true;
                }
                // Drop old names when there are too many. Do not cache a negative answer: a disk
                // appears in the counters a moment before its folder exists.
                if self.disks.len() >= DEVICES_MAX {
                    self.disks.clear();
                }
                let is_disk = queue::is_whole_disk(&row.name);
                if is_disk {
                    self.disks.insert(row.name.clone(), row.number);
                }
                is_disk
            }
        }
    }

    /// Chooses the devices with the most finished requests since the last reading, or with requests
    /// in flight.
    fn choose(&mut self, rows: &[DiskRow]) {
        let last: BTreeMap<&str, &DiskRow> =
            self.last.iter().map(|row| (row.name.as_str(), row)).collect();
        let requests = |row: &DiskRow| {
            let counters = &row.counters;
            let all = [counters.read, counters.write, counters.discard, counters.flush];
            all.iter().fold(0u64, |sum, it| sum.wrapping_add(it.requests))
        };
        let mut busy: Vec<(u64, &str)> = rows
            .iter()
            .map(|row| {
                let before = last.get(row.name.as_str()).map_or(requests(row), |it| requests(it));
                let finished = requests(row).saturating_sub(before);
                (finished.saturating_add(row.in_flight.into()), row.name.as_str())
            })
            .filter(|(requests, _)| *requests > 0)
            .collect();
        busy.sort_unstable_by(|a, b| b.cmp(a));
        busy.truncate(LOOKED_AT_MAX);
        self.busiest = busy.into_iter().map(|(_, name)| name.to_owned()).collect();
    }

    /// Queues of new devices, and of some others in turn.
    fn queues(&mut self, rows: &[DiskRow]) -> BTreeMap<String, Queue> {
        let is_same = |row: &DiskRow, last: &DiskRow| last.name == row.name;
        let is_new = |(at, row): &(usize, &DiskRow)| {
            // Usually each row is at its old position.
            let before = self.last.get(*at).filter(|last| is_same(row, last));
            let before = before.or_else(|| self.last.iter().find(|last| is_same(row, last)));
            before.is_none_or(|before| before.number != row.number)
        };
        let new = rows.iter().enumerate().filter(is_new);
        let mut names: Vec<String> = new.map(|(_, row)| row.name.clone()).collect();
        if self.queues_of.is_empty() {
            self.queues_of = rows.iter().rev().map(|row| row.name.clone()).collect();
        }
        let rest = self.queues_of.len().saturating_sub(QUEUES_MAX);
        names.extend(self.queues_of.split_off(rest));
        names.into_iter().filter_map(|name| Queue::of(&name).map(|queue| (name, queue))).collect()
    }
}

fn unix_seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_read_and_only_what_is_asked_for() {
        let all =
            WatchedMachine::new(WatchedDevices::All).reading(Duration::from_millis(1)).unwrap();
        assert!(all.rows.iter().all(|row| queue::is_whole_disk(&row.name)));
        for row in &all.rows {
            assert!(all.queues.contains_key(&row.name), "{}", row.name);
        }
        let first: BTreeSet<String> = all.rows.iter().take(1).map(|row| row.name.clone()).collect();
        let mut machine = WatchedMachine::new(WatchedDevices::Named(first.clone()));
        let before = machine.reading(Duration::from_millis(1)).unwrap();
        let after = machine.reading(Duration::from_millis(1)).unwrap();
        assert_eq!(after.rows.len(), first.len());
        assert!(after.at_seconds > before.at_seconds);
    }
}
