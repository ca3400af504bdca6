//! What block devices do, and what the numbers mean.
//!
//! [`live`] reads this machine and [`record`] reads a file, both as [`Reading`]s. [`intervals`]
//! computes intervals with the [`columns`] of `iostat -x`, and [`explain`] explains them with
//! [`rules`]. [`history`] is a whole record, and [`compare`] compares two. Everything after a
//! reading is independent of the machine, so that a record gives the same words as a live watch.
//!
//! Not here: printing, which the command does.
//!
//! # Map
//!
//! - [`live`]: readings of this machine.
//! - [`record`]: readings in a file.
//! - [`lines`]: its lines.
//! - [`beside`]: readings while something else runs.
//! - [`intervals`]: from readings to intervals.
//! - `stuck`: how long a device has finished no request.
//! - [`columns`]: the columns of `iostat -x`.
//! - [`tapes`]: the same columns of tape drives.
//! - [`explain`]: what an interval means.
//! - [`rules`]: the rules for that.
//! - [`history`]: a whole record.
//! - [`compare`]: a comparison of two records, with confidence intervals.
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

/// All counters at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Seconds since a zero point that all readings of a watch share, by a monotonic clock.
    pub at_seconds: f64,
    /// The time of day, in seconds since 1970.
    pub unix_seconds: i64,
    /// All watched devices, in the kernel's order.
    pub rows: Vec<DiskRow>,
    /// Samples of the requests in flight since the previous reading, by device.
    pub in_flight: BTreeMap<String, Vec<u32>>,
    /// Queues that were read with this reading, by device.
    pub queues: BTreeMap<String, Queue>,
    /// Tape drives, by name.
    pub tapes: BTreeMap<String, TapeCounters>,
}
