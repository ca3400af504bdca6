//! The record of a run: the results of every run of the engine.
//!
//! One structure from the threads to the page. [`crate::account`] counts into it,
//! [`crate::bottleneck`] analyses it, `--json` prints it, and an experiment keeps its stages. Its
//! numbers are as counted; nothing in it is a judgement.

use std::borrow::Cow;
use std::fmt;
use std::os::fd::AsFd;

use device::target::TargetKind;
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::steps::StreamSteps;

/// What was run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Command {
    /// A tree into an archive.
    Backup,
    /// An archive into a tree.
    Restore,
    /// An archive read back.
    Verify,
    /// The names in an archive.
    List,
    /// A stream through the ring.
    #[default]
    Pipe,
}

/// What data come from or go to, in the user's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Endpoint {
    /// Files and directories.
    Tree,
    /// A regular file.
    #[default]
    File,
    #[serde(rename = "block device")]
    BlockDevice,
    /// A character device that is not a tape.
    #[serde(rename = "character device")]
    CharacterDevice,
    /// A pipe, named or not.
    Pipe,
    /// A socket, a terminal, or another program's file on standard output.
    Stream,
    Tape,
    /// Nothing: data are checked and dropped.
    Check,
    /// Nothing: names are printed.
    List,
}

/// The job of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StageKind {
    /// Walks the tree.
    Scan,
    /// Reads files, an archive or a stream.
    Read,
    /// Hashes the archive in its order.
    Hash,
    /// Compresses chunks.
    Compress,
    /// Writes the blocks of the ring.
    Write,
    /// Makes the index behind the data.
    Index,
    /// Decompresses chunks.
    Decompress,
    /// Parses the members of an archive.
    Parse,
    /// Creates files in a tree.
    Create,
    /// Compares contents with live files.
    Compare,
    /// Generates the data of an experiment.
    Generate,
    /// Checks the data of an experiment.
    Check,
    /// Bulk transfers on threads of their own, for any other stage.
    Io,
    /// A job that only a later version has.
    #[serde(other)]
    Other,
}

/// The times and counts of a stage. The four states are means over its threads and add up to the
/// mean wall time of a thread of the stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageReport {
    /// Its job.
    #[serde(rename = "name")]
    pub kind: StageKind,
    /// Threads that took part: the most at the same time.
    #[serde(default)]
    pub threads: u64,
    /// Seconds of doing its job, per thread.
    pub working_seconds: f64,
    /// Seconds of waiting for input, per thread.
    pub starved_seconds: f64,
    /// Seconds of waiting for room in its output, per thread.
    pub blocked_seconds: f64,
    /// Seconds of waiting for something outside all stages, per thread: [`State::Apart`].
    ///
    /// [`State::Apart`]: crate::account::ThreadState::Apart
    #[serde(default)]
    pub apart_seconds: f64,
    /// Seconds in which at least one of its threads worked. One of many threads may have all the
    /// work, and hold everything back while the mean is low.
    #[serde(default)]
    pub occupied_seconds: f64,
    /// Seconds of processor time, summed over its threads.
    #[serde(default)]
    pub processor_seconds: f64,
    /// Seconds in which its threads were ready to run but had no core, summed over its threads;
    /// zero if the kernel does not report it. They are part of the states.
    #[serde(default)]
    pub core_wait_seconds: f64,
    /// Bytes that passed through the stage.
    pub bytes: u64,
}

impl StageReport {
    /// One thread that worked, starved and was blocked for so many seconds.
    pub fn of_one_thread(kind: StageKind, states: [f64; 3]) -> StageReport {
        let [working_seconds, starved_seconds, blocked_seconds] = states;
        StageReport {
            kind,
            threads: 1,
            working_seconds,
            starved_seconds,
            blocked_seconds,
            apart_seconds: 0.0,
            occupied_seconds: working_seconds,
            processor_seconds: 0.0,
            core_wait_seconds: 0.0,
            bytes: 0,
        }
    }
}

impl StageReport {
    /// Adds what the same stage did in a run after this one.
    fn append(&mut self, later: &StageReport) {
        let threads = self.threads.max(later.threads).max(1) as f64;
        let (before, after) = (self.threads as f64 / threads, later.threads as f64 / threads);
        let join = |earlier: &mut f64, later: f64| *earlier = *earlier * before + later * after;
        join(&mut self.working_seconds, later.working_seconds);
        join(&mut self.starved_seconds, later.starved_seconds);
        join(&mut self.blocked_seconds, later.blocked_seconds);
        join(&mut self.apart_seconds, later.apart_seconds);
        self.threads = self.threads.max(later.threads);
        self.occupied_seconds += later.occupied_seconds;
        self.processor_seconds += later.processor_seconds;
        self.core_wait_seconds += later.core_wait_seconds;
        self.bytes += later.bytes;
    }
}

/// The results of a run. All byte counts are exact, all times are wall time. The names are part of
/// the promise of the command line: fields are added, never renamed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunReport {
    pub command: Command,
    /// Where the data came from.
    pub source: Endpoint,
    /// Where they went.
    pub target: Endpoint,
    /// Objects handled: files, directories, links, devices.
    pub members: u64,
    /// Regular files among them.
    pub files: u64,
    /// Bytes of file content read from, or written to, the tree (holes not counted).
    pub source_bytes: u64,
    /// Bytes of the archive before compression, index included.
    pub archive_bytes: u64,
    /// Bytes handed to the target (backup, pipe) or taken from the source (restore, verify).
    pub target_bytes: u64,
    /// Wall time from the first to the last moment, synchronisation of the target included.
    pub seconds: f64,
    /// Part of it spent in the final synchronisation of the target.
    pub synchronise_seconds: f64,
    /// Part of it until the target could be written, or the source read: winding a tape and reading
    /// its label, and the index of a tape that is read. No stage runs yet.
    pub ready_seconds: f64,
    /// Part of `ready_seconds` for reading; the rest is winding.
    pub label_seconds: f64,
    /// Part of it in which a tape was wound while stages ran: a source tape, to the next place
    /// needed.
    pub winding_seconds: f64,
    /// Part of it for changes of volume, which no stage can be blamed for.
    pub change_seconds: f64,
    /// The stages in the order in which data pass through them. They are written with what follows
    /// from them, which the end of a run adds.
    #[serde(skip)]
    pub stages: Vec<StageReport>,
    /// How often the last ring ran empty after its first block, so that the writer had to stop.
    pub times_ran_empty: u64,
    /// Bytes of the rings together.
    pub ring_bytes: u64,
    /// Back end of bulk input and output: `io_uring` or `pread`.
    pub engine: Cow<'static, str>,
    /// Processor cores that the run could use.
    pub cores: usize,
    /// Processor time that other programs used meanwhile, if known.
    #[serde(skip)]
    pub others_seconds: Option<f64>,
    /// Bytes that other programs moved on the disk of the source meanwhile, if known.
    #[serde(skip)]
    pub others_on_source_bytes: Option<u64>,
    /// Time in which the disk of the source had requests of any program, if known.
    #[serde(skip)]
    pub source_disk_seconds: Option<f64>,
    /// Part of that for this run's reads.
    #[serde(skip)]
    pub source_disk_own_seconds: Option<f64>,
    /// What was read in the order of a disk, if anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_order: Option<DiskOrder>,
    /// Files were read in the order of their names because that was asked for.
    #[serde(skip)]
    pub is_by_name: bool,
    /// Mean number of requests on that disk while it had any.
    #[serde(skip)]
    pub source_disk_in_flight: Option<f64>,
    /// The cost of each block, for a run with one thread at each end of one ring.
    #[serde(skip)]
    pub steps: Option<StreamSteps>,
    /// Unreadable blocks of a source tape.
    #[serde(skip)]
    pub unreadable_blocks: u64,
    /// Pieces that were compressed, each by one thread, if compression works in pieces.
    #[serde(skip)]
    pub compressed_pieces: Option<u64>,
    /// Like `others_on_source_bytes`, for the disk of the target.
    #[serde(skip)]
    pub others_on_target_bytes: Option<u64>,
    /// The user's limit on the rate, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit_bytes_per_second: Option<u64>,
    /// Compression in the form of the option (`zstd:3`, `gzip:6`, `none`).
    pub compression: String,
}

/// How files came from a disk that were read in its order, not in that of their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiskOrder {
    /// Files that were read so.
    pub files: u64,
    /// Pieces in which they lie there.
    pub pieces: u64,
    /// Ways of more than 1 MiB from one piece to the next, as they were read.
    pub jumps: u64,
    /// The same, had the files been read in the order of their names.
    pub jumps_by_name: u64,
}

impl RunReport {
    /// Adds a run that followed this one, as parts of a larger one: counts and times. What is no
    /// sum stays as it was.
    pub fn append(&mut self, later: &RunReport) {
        self.members += later.members;
        self.files += later.files;
        self.source_bytes += later.source_bytes;
        self.archive_bytes += later.archive_bytes;
        self.target_bytes += later.target_bytes;
        self.seconds += later.seconds;
        self.synchronise_seconds += later.synchronise_seconds;
        self.ready_seconds += later.ready_seconds;
        self.label_seconds += later.label_seconds;
        self.winding_seconds += later.winding_seconds;
        self.change_seconds += later.change_seconds;
        self.times_ran_empty += later.times_ran_empty;
        self.unreadable_blocks += later.unreadable_blocks;
        self.ring_bytes = self.ring_bytes.max(later.ring_bytes);
        for stage in &later.stages {
            match self.stages.iter_mut().find(|own| own.kind == stage.kind) {
                Some(own) => own.append(stage),
                None => self.stages.push(stage.clone()),
            }
        }
    }
}

impl RunReport {
    /// The end of the run that is no tree: what the user chose, and what differs between runs.
    pub fn endpoint(&self) -> Endpoint {
        match self.command {
            Command::Backup | Command::Pipe => self.target,
            Command::Restore | Command::Verify | Command::List => self.source,
        }
    }

    /// Bytes of content by wall time; zero for a run that took no time.
    pub fn bytes_per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.source_bytes as f64 / self.seconds } else { 0.0 }
    }
}

impl Command {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Command::Backup => "backup",
            Command::Restore => "restore",
            Command::Verify => "verify",
            Command::List => "list",
            Command::Pipe => "pipe",
        }
    }
}

impl Endpoint {
    /// The kind of an open file; a directory is a tree.
    pub fn of_file(file: impl AsFd) -> Endpoint {
        let Ok(status) = rustix::fs::fstat(file) else { return Endpoint::Stream };
        match FileType::from_raw_mode(status.st_mode) {
            FileType::Directory => Endpoint::Tree,
            FileType::Fifo => Endpoint::Pipe,
            FileType::CharacterDevice => Endpoint::CharacterDevice,
            FileType::BlockDevice => Endpoint::BlockDevice,
            FileType::Socket | FileType::Unknown => Endpoint::Stream,
            FileType::RegularFile | FileType::Symlink => Endpoint::File,
        }
    }

    /// As in a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Endpoint::Tree => "tree",
            Endpoint::File => "file",
            Endpoint::BlockDevice => "block device",
            Endpoint::CharacterDevice => "character device",
            Endpoint::Pipe => "pipe",
            Endpoint::Stream => "stream",
            Endpoint::Tape => "tape",
            Endpoint::Check => "check",
            Endpoint::List => "list",
        }
    }
}

impl From<TargetKind> for Endpoint {
    fn from(kind: TargetKind) -> Endpoint {
        match kind {
            TargetKind::File => Endpoint::File,
            TargetKind::BlockDevice => Endpoint::BlockDevice,
            TargetKind::CharacterDevice => Endpoint::CharacterDevice,
            TargetKind::Pipe => Endpoint::Pipe,
            TargetKind::Stream => Endpoint::Stream,
        }
    }
}

impl StageKind {
    /// As in sentences, tables and names of threads.
    pub fn name(self) -> &'static str {
        match self {
            StageKind::Scan => "scan",
            StageKind::Read => "read",
            StageKind::Hash => "hash",
            StageKind::Compress => "compress",
            StageKind::Write => "write",
            StageKind::Index => "index",
            StageKind::Decompress => "decompress",
            StageKind::Parse => "parse",
            StageKind::Create => "create",
            StageKind::Compare => "compare",
            StageKind::Generate => "generate",
            StageKind::Check => "check",
            StageKind::Io => "io",
            StageKind::Other => "other",
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl fmt::Display for StageKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_the_content() {
        let run = RunReport { source_bytes: 300, seconds: 1.5, ..RunReport::default() };
        assert_eq!(run.bytes_per_second(), 200.0);
        assert_eq!(RunReport { seconds: 0.0, ..run }.bytes_per_second(), 0.0);
    }
}
