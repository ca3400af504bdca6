//! What a run has done: the numbers that the user sees at its end.

use device::tape::generation::Generation;
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
    /// What only a tape has to tell.
    pub tape: Option<TapeReport>,
}

/// What a backup to tape has done.
#[derive(Clone, Debug, Default)]
pub struct TapeReport {
    /// The drive.
    pub device: String,
    /// Id of the set, 32 hexadecimal digits.
    pub set: String,
    /// Generation of the first medium, if its density code is one of LTO's.
    pub generation: Option<&'static Generation>,
    /// Bytes of every block.
    pub block_bytes: u64,
    /// Length from which on segments were closed, in bytes of the archive.
    pub segment_bytes: u64,
    /// File on the first medium at which the set begins.
    pub file_number: u32,
    /// Volumes of the set.
    pub volumes: u32,
    /// Segments, that of the index included.
    pub segments: u32,
    /// Blocks written, labels included.
    pub blocks: u64,
    /// Filemarks written.
    pub filemarks: u64,
    /// Time that the drive took for writes, where the kernel counts it.
    pub drive_write_ns: Option<u64>,
    /// Time of the last filemark, which waits until everything is on the medium.
    pub synchronise_seconds: f64,
    /// Time from the first label on, until everything was on the medium.
    pub seconds: f64,
    /// Part of it for changes of volume.
    pub change_seconds: f64,
}
