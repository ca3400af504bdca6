//! What block devices are doing, and what the numbers mean.
//!
//! [`live`] looks at this machine and [`record`] keeps what was seen, each as [`Reading`]s;
//! [`intervals`] makes intervals of them, each with the [`columns`] of `iostat -x`, and [`explain`]
//! says what they mean, by [`rules`]; [`history`] is a whole record at once, and [`compare`] two of
//! them. Nothing behind a reading looks at the machine, so that what was recorded is reported in
//! the same words as what happens now.
//!
//! Not here: how any of it is printed, which is the command's.
//!
//! # Map
//!
//! - [`live`]: readings of this machine.
//! - [`record`]: readings in a file.
//! - [`lines`]: its lines.
//! - [`beside`]: readings of a time that something else takes.
//! - [`intervals`]: from readings to intervals.
//! - `stuck`: how long a device has had requests and ended none.
//! - [`columns`]: the columns of `iostat -x`.
//! - [`tapes`]: the same columns of tape drives.
//! - [`explain`]: what an interval means.
//! - [`rules`]: by which rules.
//! - [`history`]: a whole record at once.
//! - [`compare`]: two records, with intervals.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod beside;
pub mod columns;
pub mod compare;
pub mod explain;
pub mod history;
pub mod intervals;
pub mod lines;
pub mod live;
pub mod record;
pub mod rules;
mod stuck;
pub mod tapes;

use std::collections::BTreeMap;

use machine::counters::disk::DiskRow;
use storage::queue::Queue;

use crate::tapes::TapeCounters;

/// What was seen at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Since some moment that all readings of a watch share, in seconds of a clock that is never
    /// set.
    pub at_seconds: f64,
    /// The time of day, in seconds since 1970.
    pub unix_seconds: i64,
    /// All devices that are watched, in the kernel's order.
    pub rows: Vec<DiskRow>,
    /// Requests in flight, looked at between the reading before and this one, by device.
    pub in_flight: BTreeMap<String, Vec<u32>>,
    /// Queues that were looked at with this reading, by device.
    pub queues: BTreeMap<String, Queue>,
    /// Tape drives, by name.
    pub tapes: BTreeMap<String, TapeCounters>,
}
