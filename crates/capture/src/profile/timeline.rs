//! What was done over time, by what files are for: the series that a page draws.
//!
//! There are at most 256 intervals, however long a recording is, and the same ones for all classes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::time::{CELLS, Cell, Series};
use super::{Class, FileProfile};
use crate::words::is_place;

/// Most intervals.
pub const INTERVALS_MAX: usize = CELLS;

/// A recording in intervals of one length, of which the last one may be shorter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timeline {
    /// Length of an interval.
    pub interval_seconds: f64,
    /// What was done to files of each class, pipes, sockets and terminals left out.
    pub classes: Vec<ClassTimeline>,
}

/// Files of a class over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassTimeline {
    pub class: Class,
    /// As many for each class.
    pub intervals: Vec<Interval>,
}

/// What began in an interval. Bytes are those of operations that told theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    pub reads: u64,
    pub writes: u64,
    /// Bytes that reads brought.
    pub read_bytes: u64,
    /// Bytes that writes took.
    pub written_bytes: u64,
    pub syncs: u64,
    /// Reads and writes of their file in flight when one began, itself included: the mean; `None`
    /// where no operation told.
    pub depth: Option<f64>,
    pub depth_most: Option<u32>,
}

impl Timeline {
    /// One that files are added to.
    pub(super) fn gather(recorded_ns: u64) -> Gathering {
        Gathering { recorded_ns, classes: BTreeMap::new() }
    }

    /// When an interval begins, in seconds behind the beginning of the recording.
    pub fn began_seconds(&self, number: usize) -> f64 {
        number as f64 * self.interval_seconds
    }

    /// How long an interval of a recording of so many seconds is: the last one ends with it.
    pub fn length_seconds(&self, number: usize, recorded_seconds: f64) -> f64 {
        (recorded_seconds - self.began_seconds(number)).clamp(0.0, self.interval_seconds)
    }
}

/// A timeline under way.
pub(super) struct Gathering {
    recorded_ns: u64,
    classes: BTreeMap<Class, Vec<Cell>>,
}

impl Gathering {
    /// A file with what was done to it.
    pub(super) fn add(&mut self, file: &FileProfile, series: &Series) {
        if !is_place(file) {
            return;
        }
        let width_ns = Series::told_width_ns(self.recorded_ns);
        let count = usize::try_from(self.recorded_ns.div_ceil(width_ns)).unwrap_or(CELLS);
        let none = || vec![Cell::default(); count.clamp(1, CELLS)];
        series.add_to(self.classes.entry(file.class).or_insert_with(none), width_ns);
    }

    /// All of them.
    pub(super) fn finish(self) -> Timeline {
        let width_ns = Series::told_width_ns(self.recorded_ns);
        let class = |(class, cells): (Class, Vec<Cell>)| ClassTimeline {
            class,
            intervals: cells.iter().map(Interval::of).collect(),
        };
        let classes: Vec<ClassTimeline> = self.classes.into_iter().map(class).collect();
        let interval_seconds = if classes.is_empty() { 0.0 } else { width_ns as f64 / 1e9 };
        Timeline { interval_seconds, classes }
    }
}

impl Interval {
    fn of(cell: &Cell) -> Interval {
        let is_told = cell.in_flight_told > 0;
        let mean = cell.in_flight_sum as f64 / f64::from(cell.in_flight_told.max(1));
        Interval {
            reads: cell.operations[0].into(),
            writes: cell.operations[1].into(),
            read_bytes: cell.bytes[0],
            written_bytes: cell.bytes[1],
            syncs: cell.syncs.into(),
            depth: is_told.then_some(mean),
            depth_most: is_told.then_some(cell.in_flight_most),
        }
    }
}
