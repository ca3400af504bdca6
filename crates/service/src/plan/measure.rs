//! Measures a path as a source: its size, the rate at which a backup would read it, and how its
//! data compress.
//!
//! The rate comes from a real backup whose archive goes into a pipe and is discarded, so the same
//! code reads, encodes and hashes, with the same limits. The archive is sampled. The run ends after
//! the given time; a larger tree is then walked to the end for its size, without reading.

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
use flow::monitor::{Counter, Monitor, Notice};
use model::compressibility::Compressibility;
use runs::backup::{BackupError, BackupOptions, backup};
use tree::{
    Accounts, Attributes, Capture, CaptureOptions, Capturer, Item, Progress, Scan, ScanOptions,
};

use crate::failure::Failure;
use crate::run::EngineChoice;

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
}

/// Bytes of archive between two samples, and bytes of a sample.
const SAMPLE_EVERY_BYTES: u64 = 4 << 20;
const SAMPLE_BYTES: usize = 64 << 10;
/// Largest number of bytes kept to try compression in software.
const KEPT_BYTES_MAX: usize = 32 << 20;
const SOFTWARE: Compression = Compression::Zstd { level: 3 };
const PIPE_BYTES: usize = 1 << 20;

/// Measures.
///
/// # Errors
/// If a path does not exist, or if the user stopped it.
pub(super) fn measure(
    paths: &[PathBuf],
    seconds: u16,
    engine: EngineChoice,
    cancel: &Cancel,
) -> Result<MeasuredSource, Failure> {
    let run = read_for_a_while(paths, Duration::from_secs(u64::from(seconds)), engine, cancel)?;
    if cancel.check().is_err() {
        return Err(Failure::of("cancelled", None));
    }
    let (size_bytes, files, problems) =
        if run.is_whole { (run.source_bytes, run.files, 0) } else { walk(paths, cancel)? };
    let sample = run.sample;
    Ok(MeasuredSource {
        size_bytes,
        files,
        bytes_per_second: (run.source_bytes as f64 / run.seconds.max(1e-6)) as u64,
        read_bytes: run.source_bytes,
        seconds: run.seconds,
        drive_ratio: (sample.estimate.host_bytes() > 0).then(|| sample.estimate.ratio()),
        software: software(&sample.kept)?,
        problems,
    })
}

/// The result of the trial run.
struct Trial {
    source_bytes: u64,
    files: u64,
    seconds: f64,
    is_whole: bool,
    sample: Sample,
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
}

impl Monitor for Counts {
    fn count(&self, counter: Counter, amount: u64) {
        if counter == Counter::SourceBytes {
            self.source_bytes.fetch_add(amount, Ordering::Relaxed);
            *lock(&self.last) = Some(Instant::now());
        }
    }

    fn notice(&self, _: Notice) {}
}

fn read_for_a_while(
    paths: &[PathBuf],
    limit: Duration,
    engine: EngineChoice,
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
        engine: engine.into(),
        ..BackupOptions::default()
    };
    let cancel = Cancel::new();
    let counts = Counts::default();
    let started = Instant::now();
    let (ended, waits) = mpsc::channel::<()>();
    let (result, sample) = thread::scope(|scope| {
        let sampler = scope.spawn(move || take(taken));
        let stopper = cancel.clone();
        scope.spawn(move || {
            while waits.recv_timeout(POLL) == Err(mpsc::RecvTimeoutError::Timeout) {
                if started.elapsed() >= limit || user.check().is_err() {
                    stopper.cancel();
                }
            }
        });
        let result = backup(&options, &counts, &cancel);
        drop(ended);
        // This closes the last writer of the pipe, so that the reader ends.
        drop(given);
        (result, sampler.join())
    });
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

/// Size, number of files, and number of objects that could not be read.
fn walk(paths: &[PathBuf], cancel: &Cancel) -> Result<(u64, u64, u64), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let options = ScanOptions { stop: Arc::clone(&stop), ..ScanOptions::default() };
    let mut scan = Scan::start(paths, options).map_err(BackupError::Scan)?;
    let look = CaptureOptions { attributes: Attributes::Ignore, ..CaptureOptions::default() };
    let mut capturer = Capturer::new(look, Arc::new(Accounts::load()));
    let (mut size_bytes, mut files, mut problems) = (0u64, 0u64, 0u64);
    let mut items = Vec::new();
    loop {
        let progress = scan.next_batch(&mut items);
        for item in items.drain(..) {
            let Item::Entry(entry) = item else {
                problems += 1;
                continue;
            };
            match capturer.capture(&entry, None) {
                Ok(Capture::Object(object)) if object.member.kind == MemberKind::File => {
                    files += 1;
                    let held_bytes = object.allocated_units.saturating_mul(512);
                    size_bytes += object.member.size_bytes.min(held_bytes.max(1));
                }
                Ok(_) => {}
                Err(_) => problems += 1,
            }
        }
        if cancel.check().is_err() {
            stop.store(true, Ordering::Relaxed);
            return Err(Failure::of("cancelled", None));
        }
        if progress == Progress::End {
            return Ok((size_bytes, files, problems));
        }
    }
}
