//! The backup run: a tree goes into an archive.
//!
//! ```text
//! scan -> read (many) -> RING -> hash -> [compress (many) -> RING] -> write -> target
//! ```
//!
//! The scan gives entries in archive order, the readers put headers and contents into the ring at
//! the place that belongs to them, the hash stage sees the archive go by and gathers the index, and
//! the writer takes it to the target. Behind the end of the archive follows the index, an archive
//! of its own, through the same writer. The target gets its name last, after it is synchronised.

mod compressor;
mod groups;
mod hasher;
mod index;
mod pace;
mod reader;
mod spool;
mod stream;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Instant;

use archive::chunk::seek_table::SeekTableError;
use archive::chunk::{ChunkError, Compression, CompressionError};
use archive::index::IndexError;
use device::target::{Existing, Target, TargetError, TargetKind};
use flow::account::{Account, Stage};
use flow::backend::{Choice, Engine};
use flow::cancel::{Cancel, Stopped};
use flow::monitor::{Counter, Level, Monitor, Notice};
use flow::queue::Queue;
use flow::rate::RateLimit;
use flow::ring::{Consumer, Producer, RingOptions, ring};
use flow::sink::{FileSink, Sink, StreamSink, WriteError, WriteOptions, write_all};
use flow::turnstile::Turnstile;
use tree::{
    Accounts, Attributes, CaptureOptions, Capturer, FileSystems, Progress, Scan, ScanError,
};

use crate::report::RunReport;
use groups::Groups;
use hasher::{Gathered, Hasher};
use pace::Pace;
use reader::{Batch, Reader, lock};

/// What to back up, where to, and how.
#[derive(Clone, Debug)]
pub struct BackupOptions {
    /// Files and directories.
    pub sources: Vec<PathBuf>,
    /// Where the archive goes; `-` is standard output.
    pub target: OsString,
    /// What to do with a target that exists.
    pub existing: Existing,
    /// Compression of the archive.
    pub compression: Compression,
    /// Threads that compress; by default one for each core.
    pub compress_threads: Option<usize>,
    /// Threads that read small files; by default as many as keep a disk busy.
    pub read_threads: Option<usize>,
    /// Bytes of one write to the target; a multiple of 512.
    pub block_bytes: usize,
    /// Memory of the rings together.
    pub ring_bytes: usize,
    /// Share of the ring that must be full before the writer starts, and starts again after the
    /// ring ran empty.
    pub start_fill_percent: u8,
    /// Globs of what is left out.
    pub excludes: Vec<String>,
    /// Whether to enter other file systems.
    pub file_systems: FileSystems,
    /// Whether extended attributes and ACLs are archived.
    pub attributes: Attributes,
    /// Back end of bulk input and output.
    pub engine: Engine,
    /// Limit on the rate to the target.
    pub rate_limit_bytes_per_second: Option<u64>,
}

impl Default for BackupOptions {
    fn default() -> BackupOptions {
        BackupOptions {
            sources: Vec::new(),
            target: OsString::new(),
            existing: Existing::Keep,
            compression: Compression::None,
            compress_threads: None,
            read_threads: None,
            block_bytes: 1 << 20,
            ring_bytes: 64 << 20,
            start_fill_percent: 0,
            excludes: Vec::new(),
            file_systems: FileSystems::All,
            attributes: Attributes::Read,
            engine: Engine::Auto,
            rate_limit_bytes_per_second: None,
        }
    }
}

/// Why a backup did not come to its end. Nothing of it is under the target's name then.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A source is not there, or a glob is none.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// The target cannot be opened or completed.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The target would replace what is backed up.
    #[error("{target} is also the source")]
    TargetIsSource {
        /// The target.
        target: String,
    },
    /// The target does not take more data.
    #[error("cannot write to {target}")]
    Write {
        /// The target.
        target: String,
        /// Why.
        source: WriteError,
    },
    /// Sizes of block and ring do not fit each other.
    #[error("a ring of {ring_bytes} bytes is too small for blocks of {block_bytes} bytes")]
    RingTooSmall {
        /// Asked for.
        ring_bytes: usize,
        /// Bytes of one block, or of one chunk of compression.
        block_bytes: usize,
    },
    /// A block size that is no multiple of 512.
    #[error("a block size of {block_bytes} bytes is not a multiple of 512")]
    BlockSize {
        /// Asked for.
        block_bytes: usize,
    },
    /// The memory of a ring cannot be had.
    #[error("cannot allocate the ring")]
    Ring(#[source] io::Error),
    /// A thread cannot be started.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
    /// The back end for bulk input and output fails.
    #[error("bulk input fails")]
    Engine(#[source] io::Error),
    /// The temporary file of the index fails.
    #[error("cannot keep the index in a temporary file")]
    Spool(#[source] io::Error),
    /// The index cannot be written.
    #[error("cannot write the index")]
    Index(#[source] IndexError),
    /// The seek table cannot be written.
    #[error("cannot write the seek table")]
    SeekTable(#[source] SeekTableError),
    /// The compression is not one we have.
    #[error(transparent)]
    Compression(CompressionError),
    /// A chunk cannot be compressed.
    #[error("cannot compress")]
    Compress(#[source] ChunkError),
    /// The run was stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Threads that read when the user does not say how many: what it takes to keep a solid-state disk
/// busy with small files. On a cold tree of 100,000 files 32 threads were five times as fast as
/// one and 64 no faster.
const READ_THREADS: usize = 32;
/// Most batches that wait for a reader.
const BATCHES_WAITING: usize = 64;
/// Objects of a batch where readers wait for the disk.
const BATCH_ITEMS_WHEN_WAITING: usize = 16;
/// Bytes of one reservation at most, unless the ring is small.
const GROUP_BYTES_MAX: usize = 8 << 20;
/// Blocks of the ring that the index goes through.
const INDEX_BLOCKS: usize = 4;
/// Writes in flight to a file or block device.
const WRITE_DEPTH: usize = 4;

/// Backs up. Returns what was done; warnings went to the monitor.
///
/// # Errors
/// See [`BackupError`].
pub fn backup(
    options: &BackupOptions,
    monitor: &dyn Monitor,
    cancel: &Cancel,
) -> Result<RunReport, BackupError> {
    let started = Instant::now();
    let sizes = RingSizes::new(options)?;
    let engine = Choice::new(options.engine).map_err(BackupError::Engine)?;
    detail(monitor, format!("bulk input and output: {}", engine.reason));
    let stop_scan = Arc::new(AtomicBool::new(false));
    let scan = start_scan(options, &stop_scan, monitor)?;
    let replaced = check_target_is_no_source(options)?;
    let target = Target::open(&options.target, options.existing)?;
    let run = Run {
        options,
        monitor,
        cancel,
        engine: &engine,
        sizes,
        failure: Mutex::new(None),
        stages: Stages::new(),
        replaced,
        output: target.identity().map(|(device, inode)| tree::Identity { device, inode }),
    };
    let mut sink = run.sink(&target)?;
    let result = run.archive(scan, sink.as_mut());
    stop_scan.store(true, Ordering::Relaxed);
    let done = run.outcome(result)?;
    drop(sink);
    let endpoint = endpoint(&target);
    let synchronising = Instant::now();
    target.complete()?;
    Ok(RunReport {
        members: done.members,
        files: done.files,
        source_bytes: done.source_bytes,
        archive_bytes: done.archive_bytes,
        target_bytes: done.target_bytes,
        seconds: started.elapsed().as_secs_f64(),
        synchronise_seconds: synchronising.elapsed().as_secs_f64(),
        stages: run.stage_reports(),
        times_ran_empty: done.times_ran_empty,
        ring_bytes: sizes.bytes(),
        engine: engine.name(),
        cores: cores(),
        endpoint,
        compression: options.compression.to_string(),
    })
}

fn endpoint(target: &Target) -> &'static str {
    match target.kind {
        TargetKind::File => "file",
        TargetKind::BlockDevice => "block device",
        TargetKind::CharacterDevice => "character device",
        TargetKind::Pipe => "pipe",
        TargetKind::Stream => "stream",
    }
}

/// Sizes of the rings, checked.
#[derive(Clone, Copy, Debug)]
struct RingSizes {
    archive: RingOptions,
    /// The ring behind compression, if there is any.
    output: Option<RingOptions>,
}

impl RingSizes {
    fn new(options: &BackupOptions) -> Result<RingSizes, BackupError> {
        let block_bytes = options.block_bytes;
        if block_bytes == 0 || !block_bytes.is_multiple_of(512) || block_bytes > u32::MAX as usize {
            return Err(BackupError::BlockSize { block_bytes });
        }
        let too_small =
            |block_bytes| BackupError::RingTooSmall { ring_bytes: options.ring_bytes, block_bytes };
        let sized = |bytes: usize, block_bytes, consumers| match bytes / block_bytes {
            0..4 => Err(too_small(block_bytes)),
            blocks => Ok(RingOptions { block_bytes, blocks, consumers }),
        };
        if options.compression == Compression::None {
            let archive = sized(options.ring_bytes, block_bytes, 2)?;
            return Ok(RingSizes { archive, output: None });
        }
        // Chunks need room in front of the compressors, of which each holds one; what comes out
        // is smaller.
        let output_bytes = (options.ring_bytes / 4).max(4 * block_bytes);
        let archive_bytes = options.ring_bytes.saturating_sub(output_bytes);
        let archive = sized(archive_bytes, options.compression.chunk_bytes(), 2)?;
        Ok(RingSizes { archive, output: Some(sized(output_bytes, block_bytes, 1)?) })
    }

    fn bytes(&self) -> u64 {
        let bytes = |ring: &RingOptions| (ring.block_bytes * ring.blocks) as u64;
        bytes(&self.archive) + self.output.as_ref().map_or(0, bytes)
    }
}

fn start_scan(
    options: &BackupOptions,
    stop: &Arc<AtomicBool>,
    monitor: &dyn Monitor,
) -> Result<Scan, BackupError> {
    let scan = Scan::start(
        &options.sources,
        tree::ScanOptions {
            excludes: tree::Excludes::new(&options.excludes)?,
            file_systems: options.file_systems,
            stop: Arc::clone(stop),
            ..Default::default()
        },
    )?;
    for stripped in scan.stripped() {
        let prefix = String::from_utf8_lossy(&stripped.prefix).into_owned();
        let source = stripped.source.display();
        detail(monitor, format!("{prefix:?} is left off the names of {source} in the archive"));
    }
    Ok(scan)
}

/// A target that is itself a source would be replaced by its own archive. Returns the identity of
/// a file that the target will replace.
fn check_target_is_no_source(
    options: &BackupOptions,
) -> Result<Option<tree::Identity>, BackupError> {
    if options.target == "-" {
        return Ok(None);
    }
    let Ok(existing) = tree::identity_of_path(options.target.as_ref()) else { return Ok(None) };
    let same = |source: &PathBuf| tree::identity_of_path(source).is_ok_and(|it| it == existing);
    if options.sources.iter().any(same) {
        let target = options.target.to_string_lossy().into_owned();
        return Err(BackupError::TargetIsSource { target });
    }
    Ok(Some(existing))
}

fn detail(monitor: &dyn Monitor, text: String) {
    monitor.notice(Notice { level: Level::Detail, object: Vec::new(), text });
}

/// The accounts of all stages.
struct Stages {
    scan: Arc<Stage>,
    read: Arc<Stage>,
    hash: Arc<Stage>,
    compress: Arc<Stage>,
    write: Arc<Stage>,
}

impl Stages {
    fn new() -> Stages {
        Stages {
            scan: Stage::new("scan"),
            read: Stage::new("read"),
            hash: Stage::new("hash"),
            compress: Stage::new("compress"),
            write: Stage::new("write"),
        }
    }
}

/// A run under way.
struct Run<'a> {
    options: &'a BackupOptions,
    monitor: &'a dyn Monitor,
    cancel: &'a Cancel,
    engine: &'a Choice,
    sizes: RingSizes,
    stages: Stages,
    /// The first failure of a stage; the others stop because of it.
    failure: Mutex<Option<BackupError>>,
    replaced: Option<tree::Identity>,
    output: Option<tree::Identity>,
}

/// What is known when everything has been handed to the target.
#[derive(Debug, Default)]
struct Done {
    members: u64,
    files: u64,
    source_bytes: u64,
    archive_bytes: u64,
    target_bytes: u64,
    times_ran_empty: u64,
}

impl Run<'_> {
    fn sink(&self, target: &Target) -> Result<Box<dyn Sink>, BackupError> {
        let file = Arc::clone(&target.file);
        Ok(match target.kind {
            TargetKind::File | TargetKind::BlockDevice => {
                let backend = self.engine.open(WRITE_DEPTH).map_err(BackupError::Engine)?;
                Box::new(FileSink::new(file, backend))
            }
            _ => Box::new(StreamSink::new(file, self.cancel.clone())),
        })
    }

    /// Writes the archive and the index behind it.
    fn archive(&self, scan: Scan, sink: &mut dyn Sink) -> Result<Done, BackupError> {
        let chunks = Mutex::new(compressor::Chunks::new());
        let (gathered, written, times_ran_empty) = self.data_segment(scan, sink, &chunks)?;
        let chunks = std::mem::take(&mut *lock(&chunks));
        let mut done = Done {
            members: gathered.files.1.records,
            files: gathered.regular_files,
            source_bytes: gathered.source_bytes,
            archive_bytes: gathered.archive_bytes,
            target_bytes: written,
            times_ran_empty,
        };
        let (index_bytes, index_written) = self.index_segment(gathered, chunks, sink)?;
        done.archive_bytes += index_bytes;
        done.target_bytes += index_written;
        Ok(done)
    }

    /// The stages of the archive itself, from scan to write.
    fn data_segment(
        &self,
        scan: Scan,
        sink: &mut dyn Sink,
        chunks: &Mutex<compressor::Chunks>,
    ) -> Result<(Gathered, u64, u64), BackupError> {
        let groups = Groups::default();
        let (producer, to_hash, after_hash) = self.archive_ring()?;
        let output = match self.sizes.output {
            Some(options) => {
                let (producer, mut consumers) =
                    ring(options, self.cancel.clone()).map_err(BackupError::Ring)?;
                Some((producer, consumers.pop().expect("a ring has a consumer")))
            }
            None => None,
        };
        let to_write = output.as_ref().map_or(&after_hash, |(_, consumer)| consumer);
        let turnstile = Turnstile::new(self.cancel.clone());
        std::thread::scope(|scope| {
            let hash = self.spawn(scope, &self.stages.hash, |account| {
                Hasher::new(&groups, self.options.block_bytes).run(&to_hash, account)
            })?;
            let write = self
                .spawn(scope, &self.stages.write, |account| self.write(to_write, sink, account))?;
            let mut compress = Vec::new();
            if let Some((producer, _)) = &output {
                let shared = compressor::Shared {
                    consumer: &after_hash,
                    producer,
                    turnstile: &turnstile,
                    compression: self.options.compression,
                    chunks,
                };
                for _ in 0..self.compress_threads() {
                    let shared = shared.clone();
                    compress.push(self.spawn(scope, &self.stages.compress, move |account| {
                        compressor::run(&shared, account)
                    })?);
                }
            }
            self.read_tree(scan, &producer, &groups)?;
            producer.finish();
            let gathered = self.join(hash)?;
            for thread in compress {
                self.join(thread)?;
            }
            if let Some((producer, _)) = &output {
                producer.finish();
            }
            let written = self.join(write)?;
            Ok((gathered, written, to_write.times_ran_empty()))
        })
    }

    fn archive_ring(&self) -> Result<(Producer, Consumer, Consumer), BackupError> {
        let (producer, mut consumers) =
            ring(self.sizes.archive, self.cancel.clone()).map_err(BackupError::Ring)?;
        let (Some(second), Some(first)) = (consumers.pop(), consumers.pop()) else {
            unreachable!("the ring was made with two consumers")
        };
        Ok((producer, first, second))
    }

    /// Scan and read: fills the ring with the archive up to its end mark.
    fn read_tree(
        &self,
        scan: Scan,
        producer: &Producer,
        groups: &Groups,
    ) -> Result<(), BackupError> {
        let read_threads = self.options.read_threads.unwrap_or(READ_THREADS).max(1);
        let group_limit = producer.capacity_bytes() as usize / 8;
        let shared = reader::Shared {
            batches: Queue::new(BATCHES_WAITING, self.cancel.clone()),
            turnstile: Turnstile::new(self.cancel.clone()),
            producer,
            groups,
            links: Default::default(),
            monitor: self.monitor,
            pace: Pace::new(cores(), read_threads, self.cancel.clone()),
            engine: self.engine,
            replaced: self.replaced,
            group_bytes_max: group_limit.clamp(4096, GROUP_BYTES_MAX),
        };
        let capture = CaptureOptions { attributes: self.options.attributes, output: self.output };
        let accounts = Arc::new(Accounts::load());
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for _ in 0..read_threads {
                let capturer = Capturer::new(capture, Arc::clone(&accounts));
                let shared = &shared;
                threads.push(self.spawn(scope, &self.stages.read, move |account| {
                    Reader::new(shared, account, capturer).run()
                })?);
            }
            let mut account = self.stages.scan.open();
            let scanned = scan_all(scan, &shared, &mut account, self.cancel);
            shared.batches.close();
            drop(account);
            for thread in threads {
                self.join(thread)?;
            }
            scanned
        })?;
        let mut mark = Vec::new();
        archive::encode::encode_end_of_archive(&mut mark);
        let mut account = self.stages.read.open();
        compressor::put(producer, &mark, &mut account)?;
        self.monitor.count(Counter::ArchiveBytes, mark.len() as u64);
        Ok(())
    }

    /// The index behind the archive, through a small ring of its own.
    fn index_segment(
        &self,
        gathered: Gathered,
        chunks: compressor::Chunks,
        sink: &mut dyn Sink,
    ) -> Result<(u64, u64), BackupError> {
        let options = RingOptions {
            block_bytes: self.options.block_bytes,
            blocks: INDEX_BLOCKS,
            consumers: 1,
        };
        let (producer, mut consumers) =
            ring(options, self.cancel.clone()).map_err(BackupError::Ring)?;
        let consumer = consumers.pop().expect("a ring has a consumer");
        let (compression, block_bytes) = (self.options.compression, self.options.block_bytes);
        std::thread::scope(|scope| {
            let write = self.spawn(scope, &self.stages.write, |account| {
                let written = self.write(&consumer, sink, account)?;
                sink.finish().map_err(|source| self.write_error(source))?;
                Ok(written)
            })?;
            let index = self.spawn(scope, &self.stages.hash, move |account| {
                index::write(gathered, chunks, compression, block_bytes, producer, account)
            })?;
            Ok((self.join(index)?, self.join(write)?))
        })
    }

    fn write(
        &self,
        consumer: &Consumer,
        sink: &mut dyn Sink,
        account: &mut Account,
    ) -> Result<u64, BackupError> {
        let percent = usize::from(self.options.start_fill_percent.min(100));
        let options = WriteOptions {
            start_fill_blocks: (consumer.capacity_blocks() * percent / 100).max(1),
            rate_limit: self.options.rate_limit_bytes_per_second.map(RateLimit::new),
        };
        write_all(consumer, sink, options, account, self.cancel, |block| {
            self.monitor.count(Counter::TargetBytes, block.len() as u64);
            self.monitor.fill(consumer.fill_blocks(), consumer.capacity_blocks());
        })
        .map_err(|source| self.write_error(source))
    }

    fn write_error(&self, source: WriteError) -> BackupError {
        match source {
            WriteError::Stopped(stopped) => BackupError::Stopped(stopped),
            source => {
                let target = match self.options.target.to_string_lossy() {
                    dash if dash == "-" => "standard output".to_owned(),
                    path => path.into_owned(),
                };
                BackupError::Write { target, source }
            }
        }
    }

    fn compress_threads(&self) -> usize {
        self.options.compress_threads.unwrap_or_else(cores).max(1)
    }

    /// Starts a thread of a stage. If the thread fails, the run stops and the error is kept.
    fn spawn<'scope, 'env, T: Send + 'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, 'env>,
        stage: &Arc<Stage>,
        work: impl FnOnce(&mut Account) -> Result<T, BackupError> + Send + 'scope,
    ) -> Result<ScopedJoinHandle<'scope, Option<T>>, BackupError> {
        let stage = Arc::clone(stage);
        std::thread::Builder::new()
            .name(format!("takeup-{}", stage.name()))
            .spawn_scoped(scope, move || {
                let mut account = stage.open();
                // A panic is a defect of ours: stop the others, so that it is seen at the join.
                let guard = StopOnPanic(self.cancel);
                let result = work(&mut account);
                drop(guard);
                self.keep_failure(result)
            })
            .map_err(|error| {
                self.cancel.fail();
                BackupError::Thread(error)
            })
    }

    fn keep_failure<T>(&self, result: Result<T, BackupError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                let mut failure = lock(&self.failure);
                let is_echo = matches!(error, BackupError::Stopped(_));
                if failure.is_none()
                    || matches!(*failure, Some(BackupError::Stopped(_))) && !is_echo
                {
                    *failure = Some(error);
                }
                self.cancel.fail();
                None
            }
        }
    }

    /// Waits for a thread. After a failure anywhere the caller leaves with `Stopped`.
    fn join<T>(&self, thread: ScopedJoinHandle<'_, Option<T>>) -> Result<T, BackupError> {
        match thread.join() {
            Ok(Some(value)) => Ok(value),
            Ok(None) => Err(BackupError::Stopped(Stopped::Failed)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// The error that stopped the run, if one did.
    fn outcome(&self, result: Result<Done, BackupError>) -> Result<Done, BackupError> {
        let result = result.map_err(|error| {
            let kept = lock(&self.failure).take();
            match error {
                BackupError::Stopped(_) => kept.unwrap_or(error),
                error => error,
            }
        });
        match (result, self.cancel.check()) {
            // A cancel makes other stages fail; it is the cause.
            (Err(_), Err(Stopped::Cancelled)) => Err(BackupError::Stopped(Stopped::Cancelled)),
            (result, _) => result,
        }
    }

    fn stage_reports(&self) -> Vec<flow::account::StageReport> {
        let stages = &self.stages;
        let all = [&stages.scan, &stages.read, &stages.hash, &stages.compress, &stages.write];
        let reports = all.into_iter().map(|stage| stage.report());
        reports.filter(|report| report.threads > 0).collect()
    }
}

struct StopOnPanic<'a>(&'a Cancel);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail();
        }
    }
}

/// Draws the entries from the scan and hands them on in numbered batches.
fn scan_all(
    mut scan: Scan,
    shared: &reader::Shared<'_>,
    account: &mut Account,
    cancel: &Cancel,
) -> Result<(), BackupError> {
    let mut ticket = 0;
    loop {
        cancel.check()?;
        let mut items = Vec::with_capacity(tree::BATCH_ITEMS_MAX);
        let progress = scan.next_batch(&mut items);
        // Where readers wait for the disk, smaller batches keep more of them busy.
        let size = match shared.pace.is_waiting_for_disk() {
            true => BATCH_ITEMS_WHEN_WAITING,
            false => tree::BATCH_ITEMS_MAX,
        };
        while !items.is_empty() {
            let later = items.split_off(items.len().min(size));
            shared.batches.push(Batch { ticket, items }, account)?;
            ticket += 1;
            items = later;
        }
        match progress {
            Progress::More => {}
            Progress::End => return Ok(()),
            Progress::Stopped => return Err(BackupError::Stopped(Stopped::Failed)),
        }
    }
}

/// Processor cores that this process may use.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
