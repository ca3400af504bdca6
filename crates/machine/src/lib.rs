//! The machine that a program runs on, as the kernel shows it in `/proc` and `/sys`.
//!
//! [`counters`] is what the kernel counts: the difference of two readings is what happened in
//! between. [`mounts`] is what is mounted where, [`open_files`] the limit of open files of this
//! process, [`processes`] facts about one process, [`threads`] what its threads are doing,
//! [`pipes`] how full the pipes between programs are, and [`programs`] finds the programs that
//! Takeup starts. A [`Machine`] is this machine or a recorded one. [`unnamed_file()`] makes a
//! temporary file on disk.
//!
//! A parser takes the text of a file, or a folder, and returns plain data. So files recorded on
//! another machine are read like those of this one:
//!
//! ```
//! use machine::counters::disk;
//!
//! let before = disk::parse(b" 8 0 sda 10 0 160 7 0 0 0 0 0 15 4294967290\n")?;
//! let after = disk::parse(b" 8 0 sda 14 0 224 9 0 0 0 0 0 18 4\n")?;
//! let counted = after[0].1.since(before[0].1);
//! assert_eq!((counted.read.requests, counted.read.bytes()), (4, 64 * 512));
//! // The kernel's sum of times has 32 bits and began again.
//! assert_eq!(counted.weighted_ms, 10);
//! # Ok::<(), machine::counters::CounterError>(())
//! ```
//!
//! Not here: the layers of storage below a path, which are `storage`'s; the sysfs folder of a tape
//! drive, which `device` finds; and what the numbers mean for a run.
//!
//! # Map
//!
//! - [`control_groups`]: what quotas took, and what limits leave.
//! - [`counters`]: what the kernel counts; two readings give what happened in between.
//! - [`mounts`]: what is mounted where.
//! - [`open_files`]: the limit of open files of this process.
//! - [`processes`]: facts about one process.
//! - [`threads`]: what its threads are doing.
//! - [`pipes`]: how full the pipes between programs are.
//! - [`programs`]: finds the programs that Takeup starts.
//! - `snapshot`: this machine, or a recorded one.
//! - [`small_file`]: a file that is read as a whole, with a limit.
//! - [`table`]: files of names, colons and values.
//! - `unnamed_file`: a temporary file on disk.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod control_groups;
pub mod counters;
pub mod mounts;
pub mod open_files;
pub mod pipes;
pub mod processes;
pub mod programs;
pub mod small_file;
mod snapshot;
pub mod table;
pub mod threads;
mod unnamed_file;

pub use snapshot::Machine;
pub use unnamed_file::{unnamed_file, unnamed_file_in};
