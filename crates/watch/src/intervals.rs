//! From readings to intervals: what each device did between two of them.
//!
//! A device is identified by its name and its number. If the number changes, or its counters
//! restart, it has no columns for that interval, because what happened before is unknown.

use std::collections::{BTreeMap, BTreeSet};

use base::finding::Finding;
use machine::counters::disk::{DiskCounters, DiskRow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use storage::queue::Queue;

pub use super::stuck::Stuck;
use crate::Reading;
use crate::columns::Columns;
use crate::explain;
use crate::tapes::{TapeCounters, TapeInterval};

/// Maximum number of devices; further rows are ignored.
pub const DEVICES_MAX: usize = 4096;

/// A device over an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceInterval {
    pub name: String,
    /// Its number; 0:0 for hidden paths.
    pub number: (u32, u32),
    pub state: CounterState,
    /// The counters over the interval.
    pub counted: DiskCounters,
    /// The same as columns.
    pub columns: Columns,
    /// Requests in flight.
    pub in_flight: InFlight,
    /// Its queue, when it was last read.
    pub queue: Option<Queue>,
    /// The time without a finished request although some are in flight, up to the end of this
    /// interval; 0 for a device that finishes requests.
    pub stuck: Stuck,
    pub findings: Vec<Finding>,
}

/// The state of the counters of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CounterState {
    /// They count.
    Counted,
    /// The device appeared in this interval, and its counters started at 0.
    Appeared,
    /// They restarted: it is another device, or the same one came back.
    CountedAnew,
    /// They do not change, because counting is switched off (`queue/iostats` is 0, and the device
    /// obeys it).
    NotCounted,
}

/// Requests in flight over an interval, including its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InFlight {
    /// At the end.
    pub now: u32,
    /// The mean of all samples.
    pub mean: f64,
    pub most: u32,
    /// The number of samples.
    pub looks: u64,
}

/// What happened between two readings.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Its length in seconds.
    pub seconds: f64,
    /// The time of day at its end, in seconds since 1970.
    pub unix_seconds: i64,
    /// The devices, in the kernel's order.
    pub devices: Vec<DeviceInterval>,
    /// Tape drives, by name.
    pub tapes: Vec<TapeInterval>,
    /// Names of devices that have disappeared.
    pub vanished: Vec<String>,
}

/// Makes intervals of readings.
#[derive(Debug, Default)]
pub struct IntervalMaker {
    last: Option<Last>,
    devices: BTreeMap<String, Memory>,
    tapes_stuck: BTreeMap<String, Stuck>,
}

/// The reading before.
#[derive(Debug)]
struct Last {
    at_seconds: f64,
    rows: Vec<DiskRow>,
    tapes: BTreeMap<String, TapeCounters>,
}

/// State of a device between intervals.
#[derive(Debug, Default)]
struct Memory {
    queue: Option<Queue>,
    stuck: Stuck,
}

impl IntervalMaker {
    /// The interval that ends with this reading; `None` for the first one.
    pub fn next(&mut self, mut reading: Reading) -> Option<Interval> {
        reading.rows.truncate(DEVICES_MAX);
        for (name, queue) in std::mem::take(&mut reading.queues) {
            self.devices.entry(name).or_default().queue = Some(queue);
        }
        let last = self.last.take();
        let interval = last.map(|last| self.between(&last, &reading));
        let names: BTreeSet<&str> = reading.rows.iter().map(|row| row.name.as_str()).collect();
        self.devices.retain(|name, _| names.contains(name.as_str()));
        let Reading { at_seconds, rows, tapes, .. } = reading;
        self.last = Some(Last { at_seconds, rows, tapes });
        interval
    }

    fn between(&mut self, last: &Last, reading: &Reading) -> Interval {
        let seconds = (reading.at_seconds - last.at_seconds).max(0.0);
        let earlier: BTreeMap<&str, &DiskRow> =
            last.rows.iter().map(|row| (row.name.as_str(), row)).collect();
        let device = |row: &DiskRow| {
            let memory = self.devices.entry(row.name.clone()).or_default();
            let looks = reading.in_flight.get(&row.name).map_or(&[][..], Vec::as_slice);
            memory.device(row, earlier.get(row.name.as_str()).copied(), seconds, looks)
        };
        let devices: Vec<DeviceInterval> = reading.rows.iter().map(device).collect();
        let names: BTreeSet<&str> = reading.rows.iter().map(|row| row.name.as_str()).collect();
        let is_gone = |row: &&DiskRow| !names.contains(row.name.as_str());
        let disks = last.rows.iter().filter(is_gone).map(|row| row.name.clone());
        let drives = last.tapes.keys().filter(|name| !reading.tapes.contains_key(*name));
        let vanished = disks.chain(drives.cloned()).collect();
        let tape = |(name, now): (&String, &TapeCounters)| {
            let stuck = self.tapes_stuck.get(name).copied().unwrap_or_default();
            TapeInterval::between(name, last.tapes.get(name), now, seconds, stuck)
        };
        let tapes: Vec<TapeInterval> = reading.tapes.iter().map(tape).collect();
        self.tapes_stuck = tapes.iter().map(|it| (it.device.clone(), it.stuck)).collect();
        Interval { seconds, unix_seconds: reading.unix_seconds, devices, tapes, vanished }
    }
}

impl Memory {
    fn device(
        &mut self,
        row: &DiskRow,
        earlier: Option<&DiskRow>,
        seconds: f64,
        looks: &[u32],
    ) -> DeviceInterval {
        let (state, counted) = self.counted(row, earlier);
        let columns = Columns::of(&counted, seconds);
        let finished = [counted.read, counted.write, counted.discard, counted.flush];
        let is_stuck = state == CounterState::Counted
            && row.in_flight > 0
            && earlier.is_some_and(|earlier| earlier.in_flight > 0)
            && finished.iter().all(|direction| direction.requests == 0);
        self.stuck = if is_stuck {
            Stuck { intervals: self.stuck.intervals + 1, seconds: self.stuck.seconds + seconds }
        } else {
            Stuck::default()
        };
        let mut device = DeviceInterval {
            name: row.name.clone(),
            number: row.number,
            state,
            counted,
            columns,
            in_flight: InFlight::of(looks, row.in_flight),
            queue: self.queue.clone(),
            stuck: self.stuck,
            findings: Vec::new(),
        };
        device.findings = explain::findings(&device, seconds);
        device
    }

    fn counted(&self, row: &DiskRow, earlier: Option<&DiskRow>) -> (CounterState, DiskCounters) {
        let is_off = |queue: &Queue| {
            !queue.is_counted(&row.name) && (queue.has_requests() || !has_moved(row, earlier))
        };
        if self.queue.as_ref().is_some_and(is_off) {
            return (CounterState::NotCounted, DiskCounters::default());
        }
        let Some(earlier) = earlier else { return (CounterState::Appeared, row.counters) };
        let same = (earlier.number == row.number)
            .then(|| row.counters.since_the_same(earlier.counters))
            .flatten();
        match same {
            Some(counted) => (CounterState::Counted, counted),
            None => (CounterState::CountedAnew, DiskCounters::default()),
        }
    }
}

/// Whether reads, writes or discards were counted: by a device that passes bios on, whatever its
/// setting promises. Flushes of a queue of requests are counted even where the setting is off
/// (block/blk-flush.c, `flush_end_io`).
fn has_moved(row: &DiskRow, earlier: Option<&DiskRow>) -> bool {
    let moved = |counters: DiskCounters| (counters.read, counters.write, counters.discard);
    earlier.is_some_and(|earlier| moved(earlier.counters) != moved(row.counters))
}

impl InFlight {
    fn of(looks: &[u32], now: u32) -> InFlight {
        let all = || looks.iter().copied().chain([now]);
        let count = looks.len() as u64 + 1;
        let sum: u64 = all().map(u64::from).sum();
        InFlight {
            now,
            mean: sum as f64 / count as f64,
            most: all().max().unwrap_or(0),
            looks: count,
        }
    }
}

impl DeviceInterval {
    /// Whether there was any activity: a request that finished, was merged, or is in flight.
    pub fn is_busy(&self) -> bool {
        let counted = &self.counted;
        let all = [counted.read, counted.write, counted.discard, counted.flush];
        all.iter().any(|it| it.requests > 0 || it.merges > 0) || self.in_flight.most > 0
    }
}
