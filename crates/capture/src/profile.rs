//! What a recording says of each file: the profile, as it is printed, kept and made a fio job of.

pub mod class;
mod gathered;
mod known_words;
mod order;
mod profiler;
mod tally;
#[cfg(test)]
mod tests;
mod time;
pub mod timeline;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::profiler::{ProfileLimits, Profiler};
use self::timeline::Timeline;
use super::operation::{Asked, Engine, FileKind};

/// The profile of a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// How long was recorded.
    pub seconds: f64,
    /// Files with operations, those with the most bytes first.
    pub files: Vec<FileProfile>,
    /// Events that were lost.
    pub lost_events: u64,
    /// Files beyond the limit, whose operations are in no profile.
    pub files_left_out: u64,
    pub operations_left_out: u64,
    /// What of this recording cannot be seen, in sentences.
    pub unseen: Vec<String>,
    /// What was done over time.
    pub timeline: Timeline,
    /// What it cost, where that was so much that it had to be measured.
    pub cost: Option<Cost>,
}

/// The cost of a recording, for the recorded processes and for the recorder.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Events for each second; a call has two.
    pub events_per_second: f64,
    /// What one adds to a call, in s, as measured with calls of our own behind the recording.
    pub event_seconds: f64,
    /// Processor time of the recorder, in s.
    pub recorder_seconds: f64,
}

/// One file, whatever it was opened as, and how often. What cannot be known is `None`, with a
/// reason in `unknown` under the field's name.
///
/// Operations that ended with an error are in `calls` and `errors` and nowhere else. A sum is
/// `None` as soon as one of its operations did not tell; one that had not ended adds nothing. A
/// share or a median is of those that told, if these were 9 in 10 or more of all that it is about,
/// and `None` otherwise; `known_share` has what they were where some did not tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileProfile {
    /// Its path, or a name for what has none.
    pub path: Option<String>,
    pub class: Class,
    pub kind: FileKind,
    /// The engine of most reads and writes; a sync goes by its own call whatever they go by.
    pub engine: Engine,
    /// Reads and writes by engine.
    pub engines: BTreeMap<Engine, u64>,
    /// Operations altogether, syncs included.
    pub calls: u64,
    pub reads: u64,
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
    /// Share of reads and writes that began where one of the last few of their kind ended, so that
    /// several parallel readers, or requests that end out of order, are sequential as well.
    pub sequential_share: Option<f64>,
    /// Share of writes that began within what the last write wrote: a log whose last block is
    /// written again until it is full.
    pub rewrite_share: Option<f64>,
    /// Share of reads and writes whose first byte was read or written before in this recording;
    /// from a sample of the places in a file where there are many.
    pub reuse_share: Option<f64>,
    /// Opened with `O_DIRECT`.
    pub direct: Option<bool>,
    /// Each write waits until it is on the disk.
    pub synchronous: Option<bool>,
    /// Opened with `O_APPEND`.
    pub append: Option<bool>,
    /// How its data are synced to the disk.
    pub sync: Sync,
    /// Reads and writes in flight as the program keeps them: 9 in 10 began with so many at most,
    /// themselves included.
    pub depth: Option<f64>,
    /// Threads that asked.
    pub threads: u32,
    /// Median pause of a thread between the answer to one operation here, a sync too, and its next
    /// read or write here, in s.
    pub think_seconds: Option<f64>,
    /// Reads and writes for each second of the recording.
    pub operations_per_second: f64,
    /// Variance of the count in intervals of 100 ms over its mean: 1 is a Poisson process, 0 a
    /// clock.
    pub burstiness: Option<f64>,
    /// Median time of an operation that is no sync, in s.
    pub latency_seconds: Option<f64>,
    /// Its size at the last lookup.
    pub size_bytes: Option<u64>,
    /// Calls that ended with an error.
    pub errors: u64,
    /// Why a field above is `None`, by its name.
    #[serde(deserialize_with = "known_words::reasons")]
    pub unknown: BTreeMap<&'static str, &'static str>,
    /// On what share of the operations a field above rests, by its name, where that is below 1.
    #[serde(deserialize_with = "known_words::shares")]
    pub known_share: BTreeMap<&'static str, f64>,
    /// Counts for each 1/100 of the recording, for charts: bytes read and written.
    pub series: Vec<[u64; 2]>,
    /// Where reads and writes began.
    #[serde(default)]
    pub places: Places,
}

/// How often reads and writes began in which part of a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Places {
    /// Bytes of a part.
    pub cell_bytes: u64,
    /// Where a part begins, and how often, of those where any did. Of direct requests of libaio
    /// and io_uring these are places on the device.
    pub counts: Vec<(u64, u64)>,
}

/// Sizes asked for, by count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockSizes {
    /// Of reads: bytes and how many.
    pub read: Vec<(u64, u64)>,
    /// Of writes: bytes and how many.
    pub write: Vec<(u64, u64)>,
    /// Operations of sizes that are not listed.
    pub others: u64,
}

/// A word of a fixed list: reading a record maps its words to those of the list.
pub type Word = &'static str;

/// The cadence of a file's syncs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sync {
    /// The call of most of them, `none` without any.
    #[serde(deserialize_with = "known_words::call")]
    pub call: Word,
    /// Number of syncs.
    pub calls: u64,
    /// Median of the writes between two syncs; `None` with fewer than two syncs. Writes before the
    /// first and after the last sync are left out.
    pub operations_between: Option<f64>,
    /// The 10 % and 90 % quantiles of the writes between two syncs: far apart where syncs come in
    /// bunches.
    #[serde(default)]
    pub operations_range: Option<[f64; 2]>,
    /// Writes for each of them, over the whole recording.
    #[serde(default)]
    pub operations_mean: Option<f64>,
    /// Median time one takes, in s.
    pub seconds: Option<f64>,
}

/// What a file is for, from its name and its use.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// A write-ahead log: redo log, WAL, journal.
    WriteAheadLog,
    /// Tables and indexes, or whatever is read and written in place.
    Data,
    /// For the time of a query or a run.
    Temporary,
    /// A dump, a backup or what goes into one: written or read once from front to end.
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
