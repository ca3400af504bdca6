//! Samples of `/proc` for processes whose calls cannot be recorded: without the rights, in a
//! container, or on a kernel without such events.
//!
//! A [`Sampler`] reads the open files of processes and their children again and again: the position
//! of each file (proc_pid_fdinfo(5)), how it was opened, its size; and the kernel's counters of
//! each process (proc_pid_io(5)). Samples cannot show calls, their sizes and their order: the
//! document has the fields of a recording, with `null` and a reason for these.
//!
//! [`profile`](super::profile) makes profiles of calls. No job for fio can be made from samples.

mod members;
mod movement;
mod sampler;
#[cfg(test)]
mod tests;
mod words;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::operation::FileKind;
use super::profile::Class;

pub use sampler::Sampler;
pub use words::{findings, unseen};

/// What the kernel counts of processes (proc_pid_io(5), proc_pid_stat(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Calls that read: of files, pipes, sockets and terminals. Requests of rings and of libaio
    /// are not among them.
    pub read_calls: u64,
    /// What they brought.
    pub read_bytes: u64,
    pub write_calls: u64,
    /// What they took.
    pub written_bytes: u64,
    /// What devices were asked to read: ahead, and for mapped files and requests of rings too.
    pub device_read_bytes: u64,
    /// What devices were given or will be, counted as pages become dirty.
    pub device_written_bytes: u64,
    /// What of that was given up before it was written.
    pub cancelled_bytes: u64,
    /// Pages of memory or of mapped files that had to be waited for.
    pub major_faults: u64,
}

/// Samples of processes.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// Time from the first sample to the last.
    pub seconds: f64,
    /// Number of samples.
    pub looks: u64,
    /// The processes that were met.
    pub processes: u64,
    /// What all of them did, at least: the time between the last sample and the end of a process is
    /// missing if no sampled process waited for it.
    pub totals: Totals,
    /// Open files that were met, those whose position moved most first.
    pub files: Vec<SampledFile>,
    /// Files beyond the limit.
    pub files_left_out: u64,
    /// A ring of io_uring was open.
    pub has_rings: bool,
    /// Processes of other users, which could not be sampled.
    pub refused: u64,
}

/// A file that at least one sample found open.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledFile {
    pub path: String,
    /// What it is for, if its name or kind says so.
    pub class: Option<Class>,
    pub kind: FileKind,
    /// Opened for reading.
    pub reads: bool,
    /// Opened for writing.
    pub writes: bool,
    /// Opened with `O_DIRECT`; `None` if it was opened with and without.
    pub direct: Option<bool>,
    /// Opened with `O_SYNC` or `O_DSYNC`.
    pub synchronous: Option<bool>,
    /// Opened with `O_APPEND`.
    pub append: Option<bool>,
    /// Its size at the last sample.
    pub size_bytes: Option<u64>,
    /// How much it grew between the first and the last sample.
    pub grown_bytes: Option<u64>,
    /// Its positions; `None` of what has none, as pipes.
    pub position: Option<Position>,
    /// Processes that had it open.
    pub processes: u64,
}

/// How the positions of a file moved between samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Position {
    /// How far they moved on, at least: read, written or skipped. What several passed at the same
    /// time counts once, since copies of a descriptor share one position.
    pub forward_bytes: u64,
    /// Number of samples in which a position had moved forward.
    pub forward: u64,
    /// Number of samples in which a position had moved back.
    pub backward: u64,
}

impl SampledFile {
    /// How far its positions moved on.
    pub fn forward_bytes(&self) -> u64 {
        self.position.map_or(0, |position| position.forward_bytes)
    }

    /// What it was opened for: `reading`, `writing` or `both`.
    pub fn opened_for(&self) -> Option<&'static str> {
        match (self.reads, self.writes) {
            (true, true) => Some("both"),
            (true, false) => Some("reading"),
            (false, true) => Some("writing"),
            (false, false) => None,
        }
    }

    /// Whether it is a file or a disk, where data stay.
    pub fn is_place(&self) -> bool {
        matches!(self.kind, FileKind::Regular | FileKind::BlockDevice)
    }
}
