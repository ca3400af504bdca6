//! The runs: backup, restore, list, verify and pipe, each put together from stages of `flow`.
//!
//! A run takes an options structure, a [`flow::monitor::Monitor`] that it reports to, and a
//! [`flow::cancel::Cancel`]; it returns a [`flow::run::RunReport`] or an error. Nothing here prints
//! or knows an option.
//!
//! # Map
//!
//! - [`summary`]: the end of a run as one document.
//! - [`verdict`]: whether the run succeeded, and its counts.
//! - [`explanation`]: what limited a run, in words.
//! - [`rules`]: the rules of limits and of streaming.
//! - [`streaming`]: whether the drive streamed.
//! - [`run_record`]: a run in a file, with its stages over time.
//! - [`backup`]: the backup run.
//! - [`restore`]: the restore run.
//! - [`verify`]: the verify run.
//! - [`list`]: the list run.
//! - [`pipe`]: a stream from one place to another.
//! - [`origin`]: where an archive is read from: a path or a tape.
//! - [`destination`]: where a run writes to: a path or a tape.
//! - [`read`]: the reading stages that list, restore and verify share.
//! - [`sweep`]: files that are read in the order of the disk.
//! - [`selection`]: which members `PATH...` means.
//! - [`report`]: the record of a run, and what a tape adds to it.
//! - `echoes`: keeps the first failure of a run apart from its consequences.
//! - `expected`: how many bytes a run will move, and what says so.
//! - `past_cache`: reads a file past the page cache as long as that works.
//! - `spool`: bytes that are needed again at the end.
//! - `warnings`: warnings that are kept for the index.

pub mod backup;
pub mod destination;
mod expected;
pub mod explanation;
pub mod list;
pub mod origin;
mod past_cache;
pub mod pipe;
pub mod read;
pub mod report;
pub mod restore;
pub mod rules;
pub mod run_record;
pub mod selection;
mod spool;
pub mod streaming;
pub mod summary;
pub mod sweep;
pub mod verdict;
pub mod verify;
mod warnings;

#[cfg(test)]
mod echoes;
