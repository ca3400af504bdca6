//! The last intervals of a watch, with a number each, from 0 on.
//!
//! Whole intervals are large, so only a few are kept if there are many devices; more of the values
//! for graphs are kept.

use std::collections::{BTreeMap, VecDeque};

use watch::intervals::{DeviceInterval, Interval};

/// Maximum number of devices in all kept intervals together, each of about a kilobyte.
const DEVICES_KEPT: usize = 20_000;
/// Minimum number of kept intervals, however many devices there are.
const INTERVALS_MIN: usize = 8;
/// Number of kept samples per device.
const SAMPLES_KEPT: usize = 256;

/// The quantity of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quantity {
    /// Bytes read and written, in kB/s of 1024 bytes.
    #[default]
    Throughput,
    /// Requests of all kinds per second.
    Requests,
    /// Mean time of a read or write in milliseconds.
    Await,
    /// Requests in flight on average.
    QueueLength,
    /// `%util`.
    Busy,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Quantity; 5] = [
        Quantity::Throughput,
        Quantity::Requests,
        Quantity::Await,
        Quantity::QueueLength,
        Quantity::Busy,
    ];

    /// Its name above a graph.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::Throughput => "kB/s",
            Quantity::Requests => "req/s",
            Quantity::Await => "await",
            Quantity::QueueLength => "aqu-sz",
            Quantity::Busy => "%util",
        }
    }

    /// The next one; after the last one, the first.
    #[must_use]
    pub fn next(self) -> Quantity {
        let at = Quantity::ALL.iter().position(|it| *it == self).unwrap_or(0);
        Quantity::ALL[(at + 1) % Quantity::ALL.len()]
    }

    /// Its value.
    pub fn of(self, device: &DeviceInterval) -> f64 {
        let columns = &device.columns;
        let (read, write) = (&columns.read, &columns.write);
        match self {
            Quantity::Throughput => read.kib_per_second + write.kib_per_second,
            Quantity::Requests => {
                read.requests_per_second
                    + write.requests_per_second
                    + columns.discard.requests_per_second
                    + columns.flushes_per_second
            }
            Quantity::Await => await_ms(device),
            Quantity::QueueLength => columns.queue_length,
            Quantity::Busy => columns.busy_percent,
        }
    }
}

/// Mean latency of reads and writes together, in milliseconds; 0 without requests.
pub(crate) fn await_ms(device: &DeviceInterval) -> f64 {
    let (read, write) = (&device.counted.read, &device.counted.write);
    let requests = read.requests.saturating_add(write.requests);
    let time_ms = f64::from(read.time_ms) + f64::from(write.time_ms);
    if requests == 0 { 0.0 } else { time_ms / requests as f64 }
}

/// The intervals that are kept.
#[derive(Debug, Default)]
pub struct Timeline {
    kept: VecDeque<Interval>,
    devices: usize,
    next: u64,
    samples: BTreeMap<String, VecDeque<Sample>>,
}

/// A sample of one device in one interval.
#[derive(Clone, Copy, Debug)]
struct Sample {
    number: u64,
    values: [f32; Quantity::ALL.len()],
    was_busy: bool,
}

impl Timeline {
    /// A timeline whose first interval has this number.
    pub fn from(number: u64) -> Timeline {
        Timeline { next: number, ..Timeline::default() }
    }

    /// Adds an interval, and drops old ones if there is no room.
    pub fn push(&mut self, interval: Interval) {
        let number = self.next;
        self.next += 1;
        for device in &interval.devices {
            // Single precision is enough for a graph.
            #[allow(clippy::cast_possible_truncation)]
            let values = Quantity::ALL.map(|quantity| quantity.of(device) as f32);
            let samples = self.samples.entry(device.name.clone()).or_default();
            samples.push_back(Sample { number, values, was_busy: device.is_busy() });
            if samples.len() > SAMPLES_KEPT {
                samples.pop_front();
            }
        }
        self.devices += interval.devices.len();
        self.kept.push_back(interval);
        while self.devices > DEVICES_KEPT && self.kept.len() > INTERVALS_MIN {
            self.devices -= self.kept.pop_front().map_or(0, |it| it.devices.len());
        }
        let oldest = number.saturating_sub(SAMPLES_KEPT as u64);
        self.samples.retain(|_, samples| samples.back().is_some_and(|it| it.number >= oldest));
    }

    /// The number of the first kept interval.
    pub fn first(&self) -> u64 {
        self.next - self.kept.len() as u64
    }

    /// The number of the next interval.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// An interval, if it is still kept.
    pub fn get(&self, number: u64) -> Option<&Interval> {
        let at = number.checked_sub(self.first())?;
        self.kept.get(usize::try_from(at).ok()?)
    }

    /// Values of a device in at most this many intervals up to this one, the last value last; 0
    /// where it was absent.
    pub(crate) fn values(
        &self,
        device: &str,
        quantity: Quantity,
        upto: u64,
        count: usize,
    ) -> Vec<f32> {
        let count = count.min(SAMPLES_KEPT);
        let begin = (upto + 1).saturating_sub(count as u64);
        let mut values = vec![0.0; count];
        let index = Quantity::ALL.iter().position(|it| *it == quantity).unwrap_or(0);
        for sample in self.samples.get(device).into_iter().flatten() {
            if (begin..=upto).contains(&sample.number) {
                let from_end = usize::try_from(upto - sample.number).unwrap_or(count);
                if let Some(place) = count.checked_sub(from_end + 1) {
                    values[place] = sample.values[index];
                }
            }
        }
        values
    }

    /// Whether a device was active in its kept samples up to this interval.
    pub(crate) fn was_busy(&self, device: &str, upto: u64) -> bool {
        let samples = self.samples.get(device);
        samples.into_iter().flatten().any(|sample| sample.number <= upto && sample.was_busy)
    }
}
