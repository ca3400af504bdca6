//! A whole record: what each device did over time, and when each finding held.
//!
//! A record is read twice: once for its size, once for the numbers. If there is more than
//! [`SAMPLES_MAX`], readings are dropped, so that intervals are longer; counters only grow, so
//! longer intervals are as exact.

mod frame;
mod series;
mod spells;

use std::path::Path;
use std::time::Duration;

use base::finding::RuleId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use storage::queue::Queue;

use crate::Reading;
use crate::columns::Columns;
use crate::explain::is_worth_a_word;
use crate::intervals::{CounterState, DeviceInterval, Interval, IntervalMaker};
use crate::record::{LeftOut, RecordReader, WatchRecordError};
use crate::tapes::TapeInterval;
pub use frame::{Frame, frames};
pub use series::{POINTS_MAX, Point, PointDirection, series};
use spells::Spells;
pub use spells::{NumberRange, Spell};

/// Maximum number of intervals of devices, each of about 250 bytes.
pub const SAMPLES_MAX: u64 = 1 << 20;
/// Maximum number of times of disappearance per device.
const GONE_MAX: usize = 100;

/// The size of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecordExtent {
    pub readings: u64,
    /// Rows of devices and drives in all of them.
    pub rows: u64,
    /// From the first reading to the last one.
    pub seconds: f64,
}

impl RecordExtent {
    /// Of a file.
    ///
    /// # Errors
    /// When it cannot be read, or a line is not a reading.
    pub fn of(path: &Path) -> Result<RecordExtent, WatchRecordError> {
        let mut reader = RecordReader::open(path)?;
        let mut extent = RecordExtent::default();
        let mut first = None;
        while let Some(reading) = reader.next_reading()? {
            extent.readings += 1;
            extent.rows += (reading.rows.len() + reading.tapes.len()) as u64;
            let first = *first.get_or_insert(reading.at_seconds);
            extent.seconds = reading.at_seconds - first;
        }
        Ok(extent)
    }

    /// The mean length of an interval; 0 for a record without one.
    pub fn interval_seconds(&self) -> f64 {
        let intervals = self.readings.saturating_sub(1);
        if intervals > 0 { self.seconds / intervals as f64 } else { 0.0 }
    }

    /// How many intervals must be combined into one, so that at most [`SAMPLES_MAX`] are kept.
    pub fn joined_least(&self) -> u64 {
        self.rows.div_ceil(SAMPLES_MAX).max(1)
    }
}

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// A block device.
    Disk,
    Tape,
}

/// An interval in which a device was active.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Its end, in seconds since the beginning of the record.
    pub end_seconds: f64,
    pub seconds: f64,
    /// The columns. A tape drive merges nothing, and its columns have only reads and writes.
    pub columns: Columns,
    /// The largest sampled number of requests in flight.
    pub in_flight: u32,
    /// Whether it was busy enough for findings.
    pub is_busy: bool,
}

/// A device over the whole record.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceHistory {
    pub name: String,
    pub kind: DeviceKind,
    /// The devices below it, when they were last read.
    pub made_of: Vec<String>,
    /// The beginning of the first interval in which it was present, in seconds since the beginning
    /// of the record.
    pub since_seconds: f64,
    /// The end of the last one.
    pub until_seconds: f64,
    /// Time in which it was present and counted.
    pub seconds: f64,
    pub intervals: u64,
    /// The intervals in which it was active, in the order of time.
    pub samples: Vec<Sample>,
    /// Findings about it, in the order of their beginning.
    pub spells: Vec<Spell>,
    /// When it disappeared, in seconds since the beginning; the first hundred times.
    pub gone_seconds: Vec<f64>,
}

/// A record.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// The time of day at its beginning, in seconds since 1970.
    pub began_unix_seconds: i64,
    pub seconds: f64,
    /// Its intervals, after some were combined.
    pub intervals: u64,
    /// The shortest and the longest of them, in seconds: after a delay of the watch, one interval
    /// is much longer than the others.
    pub lengths_seconds: (f64, f64),
    /// How many were combined into one.
    pub joined: u64,
    /// Whether its last line was incomplete.
    pub is_cut: bool,
    /// Readings that were skipped because they are impossible: the first ones, and their number.
    pub left_out: (Vec<LeftOut>, u64),
    /// All devices, in the order in which they were seen first.
    pub devices: Vec<DeviceHistory>,
}

/// A device that is being read, with its open findings.
struct Gathered {
    device: DeviceHistory,
    spells: Spells,
}

impl History {
    /// From a file; this many intervals are combined into one.
    ///
    /// # Errors
    /// When it cannot be read, or a line is not a reading.
    pub fn read(path: &Path, joined: u64) -> Result<History, WatchRecordError> {
        let mut reader = RecordReader::open(path)?;
        let history = History::of(|| reader.next_reading(), joined)?;
        let left_out = (reader.left_out().to_vec(), reader.left_out_count());
        Ok(History { is_cut: reader.is_cut(), left_out, ..history })
    }

    /// From readings, until there are no more; this many intervals are combined into one.
    ///
    /// # Errors
    /// Those of the readings.
    pub fn of<E>(
        mut readings: impl FnMut() -> Result<Option<Reading>, E>,
        joined: u64,
    ) -> Result<History, E> {
        let joined = joined.max(1);
        let mut watch = IntervalMaker::default();
        let mut history = History {
            began_unix_seconds: 0,
            seconds: 0.0,
            intervals: 0,
            lengths_seconds: (0.0, 0.0),
            joined,
            is_cut: false,
            left_out: (Vec::new(), 0),
            devices: Vec::new(),
        };
        let mut gathered: Vec<Gathered> = Vec::new();
        let mut left_out = Reading::default();
        let mut number = 0;
        while let Some(mut reading) = readings()? {
            if number == 0 {
                history.began_unix_seconds = reading.unix_seconds;
            }
            let is_kept = number % joined == 0;
            number += 1;
            if !is_kept {
                // Samples of dropped readings belong to the interval around them.
                keep_looks(&mut left_out, reading);
                continue;
            }
            take_looks(&mut reading, std::mem::take(&mut left_out));
            if let Some(interval) = watch.next(reading) {
                let (shortest, longest) = history.lengths_seconds;
                history.lengths_seconds = match history.intervals {
                    0 => (interval.seconds, interval.seconds),
                    _ => (shortest.min(interval.seconds), longest.max(interval.seconds)),
                };
                history.seconds += interval.seconds;
                history.intervals += 1;
                gather(&mut gathered, &interval, history.seconds);
            }
        }
        let finished = gathered.into_iter().map(|one| {
            let spells = one.spells.finish();
            DeviceHistory { spells, ..one.device }
        });
        history.devices = finished.collect();
        Ok(history)
    }

    /// The device of that name.
    pub fn device(&self, name: &str) -> Option<&DeviceHistory> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// The time of day this many seconds after the beginning, in seconds since 1970.
    pub fn unix_seconds(&self, seconds: f64) -> i64 {
        let behind = Duration::try_from_secs_f64(seconds.round()).unwrap_or_default();
        self.began_unix_seconds.saturating_add_unsigned(behind.as_secs())
    }
}

impl DeviceHistory {
    /// The time in which it was busy enough for findings.
    pub fn busy_seconds(&self) -> f64 {
        self.samples.iter().filter(|it| it.is_busy).map(|it| it.seconds).sum()
    }

    /// The number of intervals with a finding of this rule.
    pub fn spoken(&self, rule: &RuleId) -> u64 {
        self.spells.iter().filter(|it| it.finding.rule == *rule).map(|it| it.spoken).sum()
    }
}

/// Adds the samples of dropped readings before it to a reading.
pub(crate) fn take_looks(reading: &mut Reading, looks: Reading) {
    for (name, queue) in looks.queues {
        reading.queues.entry(name).or_insert(queue);
    }
    for (name, mut seen) in looks.in_flight {
        seen.extend(reading.in_flight.remove(&name).unwrap_or_default());
        reading.in_flight.insert(name, seen);
    }
}

/// Keeps the samples of a dropped reading.
pub(crate) fn keep_looks(kept: &mut Reading, reading: Reading) {
    kept.queues.extend(reading.queues);
    for (name, seen) in reading.in_flight {
        kept.in_flight.entry(name).or_default().extend(seen);
    }
    for row in reading.rows {
        if row.in_flight > 0 {
            kept.in_flight.entry(row.name).or_default().push(row.in_flight);
        }
    }
}

fn gather(gathered: &mut Vec<Gathered>, interval: &Interval, end_seconds: f64) {
    let seconds = interval.seconds;
    for seen in &interval.devices {
        let one = of_name(gathered, &seen.name, DeviceKind::Disk, end_seconds - seconds);
        one.device.until_seconds = end_seconds;
        if let Some(queue) = &seen.queue {
            take_layers(&mut one.device, queue);
        }
        let is_counted = matches!(seen.state, CounterState::Counted | CounterState::Appeared);
        one.count(is_counted, seconds);
        if is_counted && seen.is_busy() {
            one.device.samples.push(disk_sample(seen, end_seconds, seconds));
        }
        let bytes = seen.columns.read.kib_per_second + seen.columns.write.kib_per_second;
        one.spells.hear(&seen.findings, end_seconds, seconds, bytes);
    }
    for seen in &interval.tapes {
        let one = of_name(gathered, &seen.device, DeviceKind::Tape, end_seconds - seconds);
        one.device.until_seconds = end_seconds;
        one.count(!seen.is_new, seconds);
        if !seen.is_new && seen.is_busy() {
            one.device.samples.push(tape_sample(seen, end_seconds, seconds));
        }
        let bytes = seen.read.kib_per_second + seen.write.kib_per_second;
        one.spells.hear(&seen.findings, end_seconds, seconds, bytes);
    }
    for name in &interval.vanished {
        if let Some(one) = gathered.iter_mut().find(|one| one.device.name == *name)
            && one.device.gone_seconds.len() < GONE_MAX
        {
            one.device.gone_seconds.push(end_seconds);
        }
    }
}

/// The device of that name; a new one if there is none.
fn of_name<'a>(
    gathered: &'a mut Vec<Gathered>,
    name: &str,
    kind: DeviceKind,
    since_seconds: f64,
) -> &'a mut Gathered {
    let at = gathered.iter().position(|one| one.device.name == name && one.device.kind == kind);
    let at = at.unwrap_or_else(|| {
        let device = DeviceHistory {
            name: name.to_owned(),
            kind,
            made_of: Vec::new(),
            since_seconds,
            until_seconds: since_seconds,
            seconds: 0.0,
            intervals: 0,
            samples: Vec::new(),
            spells: Vec::new(),
            gone_seconds: Vec::new(),
        };
        gathered.push(Gathered { device, spells: Spells::default() });
        gathered.len() - 1
    });
    &mut gathered[at]
}

fn take_layers(device: &mut DeviceHistory, queue: &Queue) {
    if device.made_of != queue.made_of {
        device.made_of.clone_from(&queue.made_of);
    }
}

impl Gathered {
    fn count(&mut self, is_counted: bool, seconds: f64) {
        if is_counted {
            self.device.seconds += seconds;
            self.device.intervals += 1;
        }
    }
}

fn disk_sample(seen: &DeviceInterval, end_seconds: f64, seconds: f64) -> Sample {
    Sample {
        end_seconds,
        seconds,
        columns: seen.columns,
        in_flight: seen.in_flight.most,
        is_busy: is_worth_a_word(seen, seconds),
    }
}

fn tape_sample(seen: &TapeInterval, end_seconds: f64, seconds: f64) -> Sample {
    Sample {
        end_seconds,
        seconds,
        columns: seen.columns(),
        in_flight: u32::try_from(seen.in_flight).unwrap_or(u32::MAX),
        is_busy: seen.read.per_second + seen.write.per_second > 0.0,
    }
}
