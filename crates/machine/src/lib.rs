//! The machine that a program runs on, as the kernel shows it in `/proc` and `/sys`.
//!
//! [`counters`] is what the kernel counts: looked at twice, the difference is what happened in
//! between. [`mounts`] is what is mounted where, [`open_files`] how many this process may have
//! open, [`processes`] what is known of one process, [`threads`] what its threads are in, [`pipes`]
//! how full those between programs are, and [`programs`] where those are that Takeup starts. A
//! [`Machine`] is this one or one that was recorded, [`unnamed_file()`] a place on its disk for
//! what is not needed after the run.
//!
//! A parser takes the text of a file, or a folder, and gives plain data, so that what was recorded
//! on another machine is read as this one's is:
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
//! Not here: the layers of storage below a path, which are `storage`'s; which folder of sysfs a
//! tape drive has, which `device` finds; and what any of the numbers mean for a run.
//!
//! # Map
//!
//! - [`counters`]: what the kernel counts; two looks give what happened in between.
//! - [`mounts`]: what is mounted where.
//! - [`open_files`]: how many files this process may have open.
//! - [`processes`]: what is known of one process.
//! - [`threads`]: what its threads are in.
//! - [`pipes`]: how full the pipes between programs are.
//! - [`programs`]: where the programs are that Takeup starts.
//! - `snapshot`: this machine, or one that was recorded.
//! - [`small_file`]: a file that is read as a whole, with a limit.
//! - [`table`]: files of names, colons and values.
//! - `unnamed_file`: a place on the disk for what is not needed after the run.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

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
pub use unnamed_file::unnamed_file;
