//! What a recording says of each file: the profile, as it is printed, kept and made a fio job of.

use std::collections::BTreeMap;

use serde::Serialize;

use super::operation::{Asked, Engine, FileKind};

/// The profile of a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Profile {
    /// How long was recorded.
    pub seconds: f64,
    /// Files with operations, those with the most bytes first.
    pub files: Vec<FileProfile>,
    /// Events that were lost.
    pub lost_events: u64,
    /// Files beyond the limit, whose operations are in no profile.
    pub files_left_out: u64,
    /// What of this recording cannot be seen, in sentences.
    pub unseen: Vec<String>,
}

/// One file. What cannot be known is `None`, with a reason in `unknown` under the field's name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileProfile {
    /// Its path, or a name for what has none.
    pub path: Option<String>,
    /// What it is for.
    pub class: Class,
    /// What it is.
    pub kind: FileKind,
    /// The engine of most operations.
    pub engine: Engine,
    /// Operations by engine.
    pub engines: BTreeMap<Engine, u64>,
    /// Operations altogether, syncs included.
    pub calls: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Share of reads in reads and writes, 0 to 1; `None` when there are neither.
    pub read_share: Option<f64>,
    /// Bytes that reads brought.
    pub read_bytes: Option<u64>,
    /// Bytes that writes took.
    pub written_bytes: Option<u64>,
    /// Median of what reads and writes asked for.
    pub block_bytes: Option<u64>,
    /// How often each size was asked for, by reads and by writes; the most frequent sizes.
    pub block_sizes: BlockSizes,
    /// Share of reads and writes that began where the last one of their kind ended.
    pub sequential_share: Option<f64>,
    /// Share of writes that wrote at an offset that the last write began at: a log whose last
    /// block is written again until it is full.
    pub rewrite_share: Option<f64>,
    /// Share of reads and writes of bytes that were read or written before in this recording.
    pub reuse_share: Option<f64>,
    /// Opened with `O_DIRECT`.
    pub direct: Option<bool>,
    /// Each write waits until it is on the disk.
    pub synchronous: Option<bool>,
    /// Opened with `O_APPEND`.
    pub append: Option<bool>,
    /// How its data is asked to be on the disk.
    pub sync: Sync,
    /// Operations in flight as the program keeps them: what most began with, itself included.
    pub depth: Option<f64>,
    /// Threads that asked.
    pub threads: u32,
    /// Median pause of a thread between the answer to one operation and its next one here, in s.
    pub think_seconds: Option<f64>,
    /// Reads and writes for each second of the recording.
    pub operations_per_second: f64,
    /// Variance of the count in intervals of 100 ms over its mean: 1 is a Poisson process, 0 a
    /// clock.
    pub burstiness: Option<f64>,
    /// Median time of an operation that is no sync, in s.
    pub latency_seconds: Option<f64>,
    /// Its size when it was last looked at.
    pub size_bytes: Option<u64>,
    /// Calls that ended with an error.
    pub errors: u64,
    /// Why a field above is `None`, by its name.
    pub unknown: BTreeMap<&'static str, &'static str>,
    /// Counts for each 1/100 of the recording, for charts: bytes read and written.
    pub series: Vec<[u64; 2]>,
}

/// Sizes asked for, by count.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BlockSizes {
    /// Of reads: bytes and how many.
    pub read: Vec<(u64, u64)>,
    /// Of writes: bytes and how many.
    pub write: Vec<(u64, u64)>,
    /// Operations of sizes that are not listed.
    pub others: u64,
}

/// The cadence of a file's syncs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sync {
    /// The call of most of them, `none` without any.
    pub call: &'static str,
    /// How many there were.
    pub calls: u64,
    /// Median of writes between two of them; `None` with fewer than two.
    pub operations_between: Option<f64>,
    /// Median time one takes, in s.
    pub seconds: Option<f64>,
}

/// What a file is for, from its name and from what is done to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// A write-ahead log: redo log, WAL, journal.
    WriteAheadLog,
    /// Tables and indexes, or whatever is read and written in place.
    Data,
    /// For the time of a query or a run.
    Temporary,
    /// A dump or a backup: written once from front to end.
    Stream,
    /// Messages for people.
    Messages,
    /// A disk, a tape, a pipe, a socket or a terminal.
    Device,
    /// None of these.
    Other,
}

impl FileProfile {
    /// Whether `asked` is counted among its reads and writes.
    pub fn counts(asked: Asked) -> bool {
        matches!(asked, Asked::Read | Asked::Write)
    }
}
