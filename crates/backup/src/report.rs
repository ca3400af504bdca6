//! What a run has done: the numbers that the user sees at its end.

use flow::account::StageReport;

/// The end of a run. All byte counts are exact, all times are wall time.
#[derive(Clone, Debug, Default)]
pub struct RunReport {
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
    /// The stages in the order in which data pass through them.
    pub stages: Vec<StageReport>,
    /// How often the last ring ran empty after its first block, so that the writer had to stop.
    pub times_ran_empty: u64,
    /// Bytes of the rings together.
    pub ring_bytes: u64,
    /// Back end of bulk input and output: `io_uring` or `pread`.
    pub engine: &'static str,
    /// Processor cores that the run could use.
    pub cores: usize,
    /// What the target or source is, for the explanation: "file", "pipe", "block device" ...
    pub endpoint: &'static str,
    /// Compression as the user would write it (`zstd:3`, `gzip:6`, `none`).
    pub compression: String,
}
