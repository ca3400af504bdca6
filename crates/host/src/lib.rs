//! The machine that a program runs on, as the kernel shows it in `/proc` and `/sys`.
//!
//! [`counters`] is what the kernel counts: looked at twice, the difference is what happened in
//! between. [`layers`] is the storage below a path, [`stack`] all that is to be told of it layer by
//! layer, of this or a recorded [`machine`], [`queue`] how the queue of a block device is set,
//! [`settings`] what of the kernel can be set, [`mounts`] what is mounted where, [`open_files`] how
//! many this process may have open, [`processes`] what is told of one process, [`programs`] where
//! those are that we start, [`threads`] what its threads are in, and [`pipes`] how full those
//! between programs are.
//! [`unnamed_file()`] is a place on its disk for what nobody needs behind the run.
//!
//! A parser takes the text of a file, or a folder, and gives plain data, so that what was recorded
//! on another machine is read as this one's is:
//!
//! ```
//! use host::counters::disk;
//!
//! let before = disk::parse(b" 8 0 sda 10 0 160 7 0 0 0 0 0 15 4294967290\n")?;
//! let after = disk::parse(b" 8 0 sda 14 0 224 9 0 0 0 0 0 18 4\n")?;
//! let counted = after[0].1.since(before[0].1);
//! assert_eq!((counted.read.requests, counted.read.bytes()), (4, 64 * 512));
//! // The kernel's sum of times has 32 bits and began again.
//! assert_eq!(counted.weighted_ms, 10);
//! # Ok::<(), host::counters::CounterError>(())
//! ```
//!
//! Not here: which folder of sysfs a tape drive has, which is found by who opens it (`device`), and
//! what any of the numbers mean for a run.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod counters;
mod disk_watch;
pub mod layers;
pub mod machine;
pub mod mounts;
pub mod open_files;
pub mod pipes;
pub mod processes;
pub mod programs;
pub mod queue;
pub mod settings;
pub mod small_file;
pub mod stack;
mod table;
pub mod threads;
mod unnamed_file;

pub use disk_watch::{DiskTime, DiskWatch};
pub use unnamed_file::unnamed_file;
