//! Measures a path as a source: its size, the rate at which a backup would read it, and how its
//! data compress.
//!
//! The rate comes from a real backup whose archive goes into a pipe and is discarded, so the same
//! code reads, encodes and hashes, with the same limits. The archive is sampled. The run ends after
//! the given time; a larger tree is then walked to the end for its size, without reading.
//!
//! - `access`: a disk whose files are fetched in its order before any go on.

mod access;

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use archive::chunk::{ChunkCompressor, Compression};
use archive::member::MemberKind;
use base::failures::lock;
use device::target::Existing;
use flow::cancel::{Cancel, POLL, Stopped};
use flow::crew::cores;
use flow::monitor::{Counter, FetchedAhead, Monitor, Notice};
use model::compressibility::Compressibility;
use runs::backup::{BackupError, BackupOptions, ReadWindow, backup};
use runs::sweep::ReadOrder;
use tree::{
    Accounts, Attributes, Capture, CaptureOptions, Capturer, Entry, Item, Progress, Scan,
    ScanOptions,
};

use super::request::PlanRequest;
use crate::failure::Failure;
use crate::run::EngineChoice;
use access::{AheadSample, FilesAndBytes};

pub use access::MeasuredAccess;

/// What was found of the paths.
#[derive(Clone, Debug)]
pub struct MeasuredSource {
    /// Bytes of content of all files.
    pub size_bytes: u64,
    pub files: u64,
    /// Bytes of content per second.
    pub bytes_per_second: u64,
    /// Bytes of content read to find the rate.
    pub read_bytes: u64,
    /// Time of reading.
    pub seconds: f64,
    /// Compression ratio in a drive; `None` if nothing was read.
    pub drive_ratio: Option<f64>,
    /// Ratio of zstd, and its rate on all cores, in bytes a second.
    pub software: Option<(f64, u64)>,
    /// Number of objects that could not be read.
    pub problems: u64,
    /// Files are fetched in the order of the disk.
    pub access: Option<MeasuredAccess>,
}

/// Bytes of archive between two samples, and bytes of a sample.
const SAMPLE_EVERY_BYTES: u64 = 4 << 20;
const SAMPLE_BYTES: usize = 64 << 10;
/// Largest number of bytes kept to try compression in software.
const KEPT_BYTES_MAX: usize = 32 << 20;
const SOFTWARE: Compression = Compression::Zstd { level: 3 };
const PIPE_BYTES: usize = 1 << 20;
/// How long data are sampled of which nothing came through.
const SAMPLE_TIME: Duration = Duration::from_secs(2);

/// What is to be measured, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measurement<'a> {
    paths: &'a [PathBuf],
    seconds: u16,
    engine: EngineChoice,
    /// What the backup would read ahead on a disk with heads.
    read_window_bytes: Option<u64>,
}

impl<'a> Measurement<'a> {
    pub(super) fn of(request: &PlanRequest, paths: &'a [PathBuf]) -> Measurement<'a> {
        Measurement {
            paths,
            seconds: request.source.measure_seconds,
            engine: request.engine,
            read_window_bytes: request.source.read_window_bytes,
        }
    }
}

/// Measures.
///
/// # Errors
/// If a path does not exist, or if the user stopped it.
pub(super) fn measure(what: &Measurement<'_>, cancel: &Cancel) -> Result<MeasuredSource, Failure> {
    let limit = Duration::from_secs(u64::from(what.seconds));
    let run = read_for_a_while(what, what.paths, Way { limit, order: ReadOrder::Auto }, cancel)?;
    if cancel.check().is_err() {
        return Err(Failure::of("cancelled", None));
    }
    let access = MeasuredAccess::of(&run.samples);
    let mut seconds = run.seconds;
    let (mut walked, mut sample) = (Walked::default(), run.sample);
    if run.is_whole {
        walked.all = FilesAndBytes { files: run.files, bytes: run.source_bytes };
    } else {
        let ring_bytes = BackupOptions::default().ring_bytes as u64;
        let window = ReadWindow::of_run(what.read_window_bytes, ring_bytes);
        walked = walk(what.paths, window.file_bytes_max, cancel)?;
        seconds *= walked.all.bytes as f64 / run.source_bytes.max(1) as f64;
        if let Some(forecast) = access::forecast(&run.samples, walked.small(), walked.large) {
            let alone = forecast.large_bytes_alone / walked.large.bytes.max(1) as f64;
            seconds = forecast.seconds + alone * large_seconds(what, &walked, cancel)?;
        }
        if access.is_some() && sample.kept.is_empty() {
            // Nothing came through: what was fetched is in the page cache.
            let way = Way { limit: SAMPLE_TIME, order: ReadOrder::Name };
            sample = read_for_a_while(what, what.paths, way, cancel)?.sample;
        }
    }
    let fetched_bytes = run.samples.last().map_or(0, |last| last.ahead.fetched_bytes);
    Ok(MeasuredSource {
        size_bytes: walked.all.bytes,
        files: walked.all.files,
        bytes_per_second: (walked.all.bytes as f64 / seconds.max(1e-6)) as u64,
        read_bytes: run.source_bytes.max(fetched_bytes),
        seconds: run.seconds,
        drive_ratio: (sample.estimate.host_bytes() > 0).then(|| sample.estimate.ratio()),
        software: software(&sample.kept)?,
        problems: walked.problems,
        access,
    })
}

/// Seconds of the files that are too large to be fetched ahead: some of them are read for a while.
fn large_seconds(what: &Measurement<'_>, walked: &Walked, cancel: &Cancel) -> Result<f64, Failure> {
    if walked.large_paths.is_empty() {
        return Ok(0.0);
    }
    let limit = Duration::from_secs(u64::from(what.seconds)).div_f64(2.0);
    let way = Way { limit, order: ReadOrder::Name };
    let run = read_for_a_while(what, &walked.large_paths, way, cancel)?;
    Ok(walked.large.bytes as f64 * run.seconds / run.source_bytes.max(1) as f64)
}

/// How a trial run reads.
#[derive(Clone, Copy, Debug)]
struct Way {
    limit: Duration,
    order: ReadOrder,
}

/// The result of the trial run.
struct Trial {
    source_bytes: u64,
    files: u64,
    seconds: f64,
    is_whole: bool,
    sample: Sample,
    /// What was fetched in the order of the disk; empty if nothing was.
    samples: Vec<AheadSample>,
}

struct Sample {
    estimate: Compressibility,
    kept: Vec<u8>,
}

/// Counts bytes and ignores warnings: the backup itself will report them.
#[derive(Default)]
struct Counts {
    source_bytes: AtomicU64,
    last: Mutex<Option<Instant>>,
    ahead: Mutex<FetchedAhead>,
}

impl Counts {
    /// What was fetched ahead by now; `None` if nothing is.
    fn sample(&self, started: Instant) -> Option<AheadSample> {
        let ahead = *lock(&self.ahead);
        let seconds = started.elapsed().as_secs_f64();
        let through_bytes = self.source_bytes.load(Ordering::Relaxed);
        (ahead.files > 0).then_some(AheadSample { seconds, ahead, through_bytes })
    }
}

impl Monitor for Counts {
    fn count(&self, counter: Counter, amount: u64) {
        if counter == Counter::SourceBytes {
            self.source_bytes.fetch_add(amount, Ordering::Relaxed);
            *lock(&self.last) = Some(Instant::now());
        }
    }

    fn notice(&self, _: Notice) {}

    fn fetched_ahead(&self, ahead: FetchedAhead) {
        let mut known = lock(&self.ahead);
        if (ahead.files, ahead.fetched_pieces) >= (known.files, known.fetched_pieces) {
            *known = ahead;
        }
    }
}

fn read_for_a_while(
    what: &Measurement<'_>,
    paths: &[PathBuf],
    way: Way,
    user: &Cancel,
) -> Result<Trial, Failure> {
    let (taken, given) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(|error| Failure::of(format!("cannot make a pipe: {error}"), None))?;
    // A smaller pipe is slower, but works.
    let _ = rustix::pipe::fcntl_setpipe_size(&given, PIPE_BYTES);
    let options = BackupOptions {
        sources: paths.to_vec(),
        target: format!("/proc/self/fd/{}", given.as_raw_fd()).into(),
        existing: Existing::Replace,
        engine: what.engine.into(),
        read_order: way.order,
        read_window_bytes: what
            .read_window_bytes
            .map(|it| usize::try_from(it).unwrap_or(usize::MAX)),
        ..BackupOptions::default()
    };
    let cancel = Cancel::new();
    let counts = Counts::default();
    let started = Instant::now();
    let (ended, waits) = mpsc::channel::<()>();
    let counts_now = &counts;
    let (result, sample, mut samples) = thread::scope(|scope| {
        let sampler = scope.spawn(move || take(taken));
        let stopper = cancel.clone();
        let watcher = scope.spawn(move || {
            let mut samples = Vec::new();
            while waits.recv_timeout(POLL) == Err(mpsc::RecvTimeoutError::Timeout) {
                samples.extend(counts_now.sample(started));
                if started.elapsed() >= way.limit || user.check().is_err() {
                    stopper.cancel();
                }
            }
            samples
        });
        let result = backup(&options, &counts, &cancel);
        drop(ended);
        // This closes the last writer of the pipe, so that the reader ends.
        drop(given);
        (result, sampler.join(), watcher.join().unwrap_or_default())
    });
    samples.extend(counts.sample(started));
    let sample = sample.map_err(|_| Failure::of("sampling failed", None))?;
    let last = counts.last.into_inner().unwrap_or_else(PoisonError::into_inner);
    let read_seconds = last.map_or(started.elapsed(), |last| last - started).as_secs_f64();
    let (is_whole, files) = match result {
        Ok(report) => (true, report.run.files),
        Err(BackupError::Stopped(Stopped::Cancelled)) => (false, 0),
        Err(error) => return Err(error.into()),
    };
    Ok(Trial {
        source_bytes: counts.source_bytes.into_inner(),
        files,
        seconds: read_seconds,
        is_whole,
        sample,
        samples,
    })
}

/// Reads the pipe to its end, and samples a part of the data.
fn take(pipe: OwnedFd) -> Sample {
    let mut sample = Sample { estimate: Compressibility::new(), kept: Vec::new() };
    let mut file = File::from(pipe);
    let mut buffer = vec![0; PIPE_BYTES];
    let (mut passed_bytes, mut next_at_bytes) = (0u64, 0u64);
    // An error ends the pipe, too.
    while let Ok(bytes @ 1..) = file.read(&mut buffer) {
        if passed_bytes >= next_at_bytes {
            let part = &buffer[..bytes.min(SAMPLE_BYTES)];
            sample.estimate.jump();
            sample.estimate.add(part);
            let room = KEPT_BYTES_MAX - sample.kept.len();
            sample.kept.extend_from_slice(&part[..part.len().min(room)]);
            next_at_bytes = passed_bytes + SAMPLE_EVERY_BYTES;
        }
        passed_bytes += bytes as u64;
    }
    sample
}

/// Ratio of zstd on the sample, and its rate on one core times the cores.
fn software(sample: &[u8]) -> Result<Option<(f64, u64)>, Failure> {
    if sample.is_empty() {
        return Ok(None);
    }
    let failed = |error: &dyn std::fmt::Display| Failure::of(format!("zstd: {error}"), None);
    let mut compressor = ChunkCompressor::new(SOFTWARE).map_err(|error| failed(&error))?;
    let mut out = Vec::new();
    let (mut compressed_bytes, started) = (0, Instant::now());
    for chunk in sample.chunks(SOFTWARE.chunk_bytes()) {
        compressor.compress(chunk, &mut out).map_err(|error| failed(&error))?;
        compressed_bytes += out.len();
    }
    let seconds = started.elapsed().as_secs_f64().max(1e-6);
    let rate = sample.len() as f64 / seconds * cores() as f64;
    let ratio = sample.len() as f64 / compressed_bytes.max(1) as f64;
    Ok(Some((ratio, rate as u64)))
}

/// What a walk finds.
#[derive(Default)]
struct Walked {
    all: FilesAndBytes,
    /// Files that are too large to be fetched ahead, and some of them.
    large: FilesAndBytes,
    large_paths: Vec<PathBuf>,
    /// Every so many of them is among these.
    large_step: u64,
    /// Objects that could not be read.
    problems: u64,
}

/// Most large files whose paths are kept.
const LARGE_PATHS: usize = 64;

impl Walked {
    fn small(&self) -> FilesAndBytes {
        FilesAndBytes {
            files: self.all.files - self.large.files,
            bytes: self.all.bytes - self.large.bytes,
        }
    }

    fn add(&mut self, bytes: u64, fetched_bytes_max: u64, path: impl FnOnce() -> Option<PathBuf>) {
        self.all.files += 1;
        self.all.bytes += bytes;
        if bytes <= fetched_bytes_max {
            return;
        }
        if self.large_paths.len() == LARGE_PATHS {
            let mut number = 0;
            self.large_paths.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.large_step *= 2;
        }
        self.large_step = self.large_step.max(1);
        if self.large.files.is_multiple_of(self.large_step) {
            self.large_paths.extend(path());
        }
        self.large.files += 1;
        self.large.bytes += bytes;
    }
}

/// Where a file is now: an entry knows only its name in the archive.
fn path_of(entry: &Entry) -> Option<PathBuf> {
    let (file, _) = entry.open_file().ok()?;
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
}

/// Goes through all files, without reading them.
fn walk(paths: &[PathBuf], fetched_bytes_max: u64, cancel: &Cancel) -> Result<Walked, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let options = ScanOptions { stop: Arc::clone(&stop), ..ScanOptions::default() };
    let mut scan = Scan::start(paths, options).map_err(BackupError::Scan)?;
    let look = CaptureOptions { attributes: Attributes::Ignore, ..CaptureOptions::default() };
    let mut capturer = Capturer::new(look, Arc::new(Accounts::load()));
    let mut walked = Walked::default();
    let mut items = Vec::new();
    loop {
        let progress = scan.next_batch(&mut items);
        for item in items.drain(..) {
            let Item::Entry(entry) = item else {
                walked.problems += 1;
                continue;
            };
            match capturer.capture(&entry, None) {
                Ok(Capture::Object(object)) if object.member.kind == MemberKind::File => {
                    let held_bytes = object.allocated_units.saturating_mul(512);
                    let bytes = object.member.size_bytes.min(held_bytes.max(1));
                    walked.add(bytes, fetched_bytes_max, || path_of(&entry));
                }
                Ok(_) => {}
                Err(_) => walked.problems += 1,
            }
        }
        if cancel.check().is_err() {
            stop.store(true, Ordering::Relaxed);
            return Err(Failure::of("cancelled", None));
        }
        if progress == Progress::End {
            return Ok(walked);
        }
    }
}
