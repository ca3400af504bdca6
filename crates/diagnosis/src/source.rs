//! What is there to read, and how fast it can be read.
//!
//! All of it only reads. What the page cache holds of a part is dropped before a trial, and what
//! the trial read after it, so that memory is not measured; who needs these parts reads them again.

mod dropped;
pub mod sample;
mod small;
mod stream;
mod tree;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flow::cancel::Cancel;
use machine::counters::processor::ProcessorClock;
use storage::layers::Storage;

use crate::chain::{SmallFiles, Stream};
use sample::Sample;

pub use dropped::{Dropped, drop_source};
pub use stream::plain_rate;
pub use tree::{LARGE_BYTES, Tree};

/// What was found of a source.
#[derive(Clone, Debug, Default)]
pub struct Found {
    pub tree: Tree,
    pub stream: Option<Stream>,
    pub reads_as: ReadsAs,
    pub small: Option<SmallFiles>,
    /// Some of its data, to try compressors on.
    pub sample: Sample,
    /// Bytes that the trials read.
    pub read_bytes: u64,
    /// Share of the trials' files that was in the page cache before.
    pub cached_share: f64,
    /// Processors that others used meanwhile.
    pub others_cores: f64,
    /// Share of the time in which the disks were busy for others before the trials.
    pub busy_before: f64,
    /// What could not be found out, and why.
    pub unknown: Vec<String>,
}

/// How the program of the line reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadsAs {
    /// What it reads at once.
    pub piece_bytes: u64,
    /// Whether it tells the kernel that it reads in order (`POSIX_FADV_SEQUENTIAL`), which doubles
    /// the read-ahead: `cp`, `cat` and `xz` do, tar, dd, gzip, zstd, pv, mbuffer do not (traced).
    pub is_told_sequential: bool,
}

impl ReadsAs {
    /// A program that reads pieces of this size.
    pub fn of(program: &str, piece_bytes: u64) -> ReadsAs {
        ReadsAs { piece_bytes, is_told_sequential: matches!(program, "cp" | "cat" | "xz") }
    }
}

/// Why nothing was found.
#[derive(Debug)]
pub enum SourceError {
    /// The path cannot be looked at.
    Inspect { path: PathBuf, source: std::io::Error },
    /// There is nothing to read below it.
    Empty { path: PathBuf },
    /// The user stopped it.
    Cancelled,
}

impl std::fmt::Display for SourceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SourceError::Inspect { path, .. } => write!(f, "cannot read {}", path.display()),
            SourceError::Empty { path } => {
                write!(f, "{}: no file with data to read", path.display())
            }
            SourceError::Cancelled => f.write_str("cancelled"),
        }
    }
}

impl std::error::Error for SourceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SourceError::Inspect { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Shares of the time that is given: the walk, large files, small files, the sample. Trials of
/// compressors come on top.
const WALK_SHARE: f64 = 0.25;
const STREAM_SHARE: f64 = 0.5;
const SMALL_SHARE: f64 = 0.2;
const SAMPLE_SHARE: f64 = 0.05;
/// How long the disks are looked at before anything is read.
const LOOK: Duration = Duration::from_millis(300);

/// Looks at sources for as long as is given. What is read one by one is read as the program
/// of the line reads it.
///
/// # Errors
/// When a path cannot be looked at, there is nothing to read, or the user stopped it.
pub fn look(
    paths: &[PathBuf],
    reads_as: ReadsAs,
    budget: Duration,
    cancel: &Cancel,
) -> Result<Found, SourceError> {
    let first = paths.first().map_or_else(|| Path::new("."), PathBuf::as_path);
    let storage = Storage::of(first).ok();
    let before = Disks::look(storage.as_ref());
    std::thread::sleep(LOOK);
    let busy_before = before.busy_share(&Disks::look(storage.as_ref()));
    let tree = tree::walk(paths, budget.mul_f64(WALK_SHARE), cancel)?;
    if tree.bytes() == 0 {
        return Err(SourceError::Empty { path: first.to_owned() });
    }
    let mut found = Found { tree, busy_before, reads_as, ..Found::default() };
    let kernel = stream::Kernel {
        window_bytes: storage.as_ref().and_then(|it| it.read_ahead_bytes().ok().flatten()),
        request_bytes_max: storage.as_ref().and_then(stream::request_bytes_max),
    };
    let begun = Instant::now();
    let processors = ProcessorClock::start();
    stream::look(&mut found, kernel, budget.mul_f64(STREAM_SHARE), cancel);
    small::look(&mut found, reads_as.piece_bytes, budget.mul_f64(SMALL_SHARE), cancel);
    sample::look(&mut found, budget.mul_f64(SAMPLE_SHARE), cancel);
    if cancel.check().is_err() {
        return Err(SourceError::Cancelled);
    }
    let seconds = begun.elapsed().as_secs_f64().max(1e-3);
    let others = processors.and_then(|clock| clock.others_seconds()).unwrap_or(0.0);
    found.others_cores = others / seconds;
    Ok(found)
}

/// Counters of the disks below a path.
struct Disks {
    counters: Option<machine::counters::disk::DiskCounters>,
    at: Instant,
}

impl Disks {
    fn look(storage: Option<&Storage>) -> Disks {
        Disks { counters: storage.and_then(Storage::counters), at: Instant::now() }
    }

    fn busy_share(&self, later: &Disks) -> f64 {
        let (Some(now), Some(before)) = (later.counters, self.counters) else { return 0.0 };
        let passed = (later.at - self.at).as_secs_f64() * 1000.0;
        (now.since(before).busy_ms as f64 / passed.max(1.0)).min(1.0)
    }
}
