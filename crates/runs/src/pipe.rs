//! The `pipe` run: a buffer between the two ends of a pipeline.
//!
//! Two stages share one ring: `read` takes data from the source, `write` passes on blocks of one
//! size. Both run at the same time, so that a source and a target that are slow in turn do not wait
//! for each other. Nothing here looks at the bytes.

use std::ffi::OsString;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use device::source::{Source, SourceError};
use device::target::{Existing, FileMode, TargetError};
use flow::account::{Account, Stage, ThreadState};
use flow::backend::{Choice, Engine};
use flow::cancel::{Cancel, Stopped};
use flow::crew::{Crew, Failure, StageFailure, cores};
use flow::monitor::{Counter, Harm, Level, Monitor, Notice};
use flow::neighbour::NeighbourWatch;
use flow::rate::RateLimit;
use flow::restart::Restart;
use flow::ring::{Consumer, LastBlock, Producer, RingOptions, ring};
use flow::run::{Command, Endpoint, RunReport, StageKind};
use flow::sink::{WriteError, WriteOptions, write_all};
use flow::source::{ReadError, read_file, read_stream};
use flow::steps::StreamSteps;
use tapeset::{TapeSetError, TapeStream};

use crate::destination::{Completed, Destination, DestinationError, Output, open_target};
use crate::expected;

/// The options of a pipe.
#[derive(Clone, Debug)]
pub struct PipeOptions {
    /// Path of the source; `-` is standard input.
    pub from: OsString,
    /// Where they go.
    pub to: Destination,
    /// Bytes of a block: what one write hands to the target.
    pub block_bytes: usize,
    /// Bytes of the ring; at least two blocks are used.
    pub ring_bytes: usize,
    /// How full the ring must be, in percent, before the writer starts, and starts again after the
    /// ring ran empty.
    pub start_fill_percent: u8,
    /// Most bytes per second that go to the target.
    pub rate_limit_bytes_per_second: Option<u64>,
    /// What happens to a last block that is not full.
    pub last_block: LastBlock,
    /// Back end for files and block devices.
    pub engine: Engine,
    /// What happens when the target exists.
    pub existing: Existing,
    /// Permissions of a target that is a file.
    pub mode: FileMode,
}

/// Smallest and largest block.
pub const BLOCK_BYTES_LIMITS: (usize, usize) = (512, 64 << 20);

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum PipeError {
    /// The options do not fit each other.
    #[error("{0}")]
    Options(String),
    /// The source cannot be opened.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The target cannot be opened, or not be completed.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The ring or the back end cannot be set up.
    #[error("cannot set up {what}")]
    SetUp { what: &'static str, source: io::Error },
    /// Reading failed.
    #[error("cannot read {object} at byte {offset_bytes}")]
    Read {
        /// Name of the source.
        object: String,
        /// Where in it.
        offset_bytes: u64,
        source: io::Error,
    },
    /// Writing failed.
    #[error("cannot write {object} at byte {offset_bytes}")]
    Write {
        /// Name of the target.
        object: String,
        /// Where in it.
        offset_bytes: u64,
        source: io::Error,
    },
    /// The tape cannot be written, or does not accept more data.
    #[error(transparent)]
    Tape(#[from] TapeSetError),
    /// The reader of the target closed it.
    #[error("the reader of {object} went away after {offset_bytes} bytes")]
    Closed {
        /// Name of the target.
        object: String,
        /// Bytes that it had received.
        offset_bytes: u64,
    },
    /// A stage cannot be started, or broke down.
    #[error(transparent)]
    Stage(#[from] StageFailure),
    /// The user stopped the run.
    #[error("cancelled after {written_bytes} bytes")]
    Cancelled {
        /// Bytes that the target had received.
        written_bytes: u64,
    },
}

/// Transfers in flight on files and block devices.
const DEPTH: usize = 8;

/// Moves everything from the source to the target and makes it durable. On a tape it begins at the
/// tape's position, and ends with a filemark that waits until everything is on the medium.
///
/// # Errors
/// See [`PipeError`]; `Tape` at the end of the medium, with what is on it.
pub fn pipe(
    options: &PipeOptions,
    monitor: &dyn Monitor,
    cancel: &Cancel,
) -> Result<RunReport, PipeError> {
    let blocks = check(options)?;
    let source = Source::open(&options.from)?;
    let engine = choose_engine(options)?;
    let mut output = open_output(options, blocks, &engine, monitor, cancel)?;
    let target = output.endpoint();
    let bulk =
        source.length_bytes.is_some() || matches!(target, Endpoint::File | Endpoint::BlockDevice);
    tell_engine(&engine, bulk, monitor);
    let run = Run { options, blocks, source: &source, engine, monitor, cancel };
    let start = Instant::now();
    let report = run.run(&mut output)?;
    let Completed { not_kept, synchronise_seconds, .. } = output.complete()?;
    if let Some(text) = not_kept {
        let object = options.to.name().as_encoded_bytes().to_vec();
        monitor.notice(Notice { level: Level::Warning(Harm::Beside), object, text });
    }
    let seconds = start.elapsed().as_secs_f64();
    Ok(RunReport { seconds, synchronise_seconds, target, ..report })
}

fn open_output<'a>(
    options: &PipeOptions,
    blocks: usize,
    engine: &Choice,
    monitor: &'a dyn Monitor,
    cancel: &Cancel,
) -> Result<Output<'a>, PipeError> {
    let path = match &options.to {
        Destination::Path(path) => path,
        Destination::Tape(tape) => {
            let (bytes, existing) = (options.block_bytes, options.existing);
            let stream = TapeStream::open(&*tape.drive, bytes, existing, monitor)?;
            return Ok(Output::Stream(stream));
        }
    };
    let target = open_target(path, options.existing, options.mode, cancel)
        .map_err(|_| PipeError::Cancelled { written_bytes: 0 })??;
    let depth = DEPTH.min(blocks / 2).max(1);
    Output::to_target(target, engine, depth, cancel)
        .map_err(|source| PipeError::SetUp { what: "writing", source })
}

fn choose_engine(options: &PipeOptions) -> Result<Choice, PipeError> {
    Choice::new(options.engine).map_err(|source| PipeError::SetUp { what: "io_uring", source })
}

/// A run with both ends open.
struct Run<'a> {
    options: &'a PipeOptions,
    blocks: usize,
    source: &'a Source,
    engine: Choice,
    monitor: &'a dyn Monitor,
    cancel: &'a Cancel,
}

impl Run<'_> {
    /// Moves the data, up to the last write.
    fn run(&self, output: &mut Output<'_>) -> Result<RunReport, PipeError> {
        let (options, blocks, cancel) = (self.options, self.blocks, self.cancel);
        let ring_options = RingOptions { block_bytes: options.block_bytes, blocks, consumers: 1 };
        let (mut producer, mut consumers) = ring(ring_options, cancel.clone())
            .map_err(|source| PipeError::SetUp { what: "the ring", source })?;
        producer.set_last_block(options.last_block);
        let consumer = consumers.remove(0);
        let (read, write) = (Stage::new(StageKind::Read), Stage::new(StageKind::Write));
        self.monitor.stages(&[&read, &write]);
        if let Some(length_bytes) = self.source.length_bytes {
            self.monitor.expect(expected::of_file(length_bytes));
        }
        read.keep_steps(ThreadState::Blocked);
        write.keep_steps(ThreadState::Starved);
        let target = output.target().map(|target| Arc::clone(&target.file));
        let ends = [(&read, Some(Arc::clone(&self.source.file))), (&write, target)];
        let ends = ends.into_iter().filter_map(|(stage, file)| Some((Arc::clone(stage), file?)));
        let watch = NeighbourWatch::start(ends.collect());
        let crew = Crew::<StageEnd>::new(cancel);
        let moved = crew.scope(write.kind(), |scope| {
            let reader = crew.spawn(scope, &read, |account| {
                Ok(read_source(self.source, producer, &self.engine, account, cancel)?)
            })?;
            let mut account = write.open();
            self.write(output, &consumer, &read, &mut account)?;
            drop(account);
            crew.join(reader)
        });
        drop(watch);
        let to = output.target().map_or_else(|| options.to.shown(), |target| target.name.clone());
        let from = &self.source.name;
        let source_bytes =
            crew.outcome(moved).map_err(|ended| ended.in_words(from, &to, write.bytes()))?;
        Ok(RunReport {
            source_bytes,
            archive_bytes: write.bytes(),
            target_bytes: write.bytes(),
            stages: vec![read.report(), write.report()],
            steps: Some(StreamSteps {
                read: read.steps(),
                write: write.steps(),
                ring_blocks: blocks,
                block_bytes: options.block_bytes,
            }),
            times_ran_empty: consumer.times_ran_empty(),
            ring_bytes: (blocks * options.block_bytes) as u64,
            engine: self.engine.name().into(),
            cores: cores(),
            command: Command::Pipe,
            source: Endpoint::of_file(&self.source.file),
            rate_limit_bytes_per_second: options.rate_limit_bytes_per_second,
            compression: "none".to_owned(),
            ..RunReport::default()
        })
    }

    /// The writing stage; it also counts the bytes of the reading stage.
    fn write(
        &self,
        output: &mut Output<'_>,
        consumer: &Consumer,
        read: &Stage,
        account: &mut Account,
    ) -> Result<u64, DestinationError> {
        let start_fill_blocks =
            (self.blocks * usize::from(self.options.start_fill_percent)).div_ceil(100).max(1);
        let restart = Restart::AtFill { blocks: start_fill_blocks };
        let rate_limit = self.options.rate_limit_bytes_per_second.map(RateLimit::new);
        let options = WriteOptions { start_fill_blocks, restart, rate_limit };
        let mut told_bytes = 0;
        write_all(consumer, output, options, account, self.cancel, |block| {
            let read_bytes = read.bytes();
            self.monitor.count(Counter::SourceBytes, read_bytes - told_bytes);
            told_bytes = read_bytes;
            self.monitor.count(Counter::TargetBytes, block.len() as u64);
            self.monitor.fill(consumer.fill_blocks(), self.blocks);
        })
    }
}

fn check(options: &PipeOptions) -> Result<usize, PipeError> {
    let (smallest, largest) = BLOCK_BYTES_LIMITS;
    if !(smallest..=largest).contains(&options.block_bytes)
        || !options.block_bytes.is_multiple_of(512)
    {
        return Err(PipeError::Options(format!(
            "invalid block size {}: it must be a multiple of 512 from {smallest} to {largest}",
            options.block_bytes
        )));
    }
    if options.start_fill_percent > 100 {
        let percent = options.start_fill_percent;
        return Err(PipeError::Options(format!("invalid start fill {percent} %: at most 100 %")));
    }
    Ok((options.ring_bytes / options.block_bytes).max(2))
}

fn tell_engine(engine: &Choice, bulk: bool, monitor: &dyn Monitor) {
    let text = if bulk {
        format!("engine: {}", engine.reason)
    } else {
        "engine: read and write, since both ends are streams".to_owned()
    };
    monitor.notice(Notice { level: Level::Detail, object: Vec::new(), text });
}

fn read_source(
    source: &Source,
    producer: Producer,
    engine: &Choice,
    account: &mut Account,
    cancel: &Cancel,
) -> Result<u64, ReadError> {
    match source.length_bytes {
        Some(length_bytes) if length_bytes > 0 => {
            let mut in_flight = engine
                .open_reads(DEPTH, &source.file)
                .map_err(|source| ReadError::Read { offset_bytes: 0, source })?;
            read_file(&source.file, 0, length_bytes, producer, &mut in_flight, account)
        }
        // Files of /proc and /sys report a size of 0.
        _ => read_stream(&source.file, producer, account, cancel),
    }
}

/// Why one of the stages ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StageEnd {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] DestinationError),
    #[error(transparent)]
    Stage(#[from] StageFailure),
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl Failure for StageEnd {
    fn is_echo(&self) -> bool {
        matches!(
            self,
            StageEnd::Read(ReadError::Stopped(_))
                | StageEnd::Write(DestinationError::Path(WriteError::Stopped(_)))
                | StageEnd::Write(DestinationError::Tape(TapeSetError::Stopped(_)))
                | StageEnd::Stopped(_)
        )
    }
}

impl StageEnd {
    /// Adds the names of the two ends.
    fn in_words(self, from: &str, to: &str, written_bytes: u64) -> PipeError {
        let object = to.to_owned();
        match self {
            StageEnd::Stopped(_)
            | StageEnd::Read(ReadError::Stopped(_))
            | StageEnd::Write(DestinationError::Path(WriteError::Stopped(_)))
            | StageEnd::Write(DestinationError::Tape(TapeSetError::Stopped(_))) => {
                PipeError::Cancelled { written_bytes }
            }
            StageEnd::Write(DestinationError::Path(WriteError::Write { offset_bytes, source })) => {
                match source.kind() {
                    io::ErrorKind::BrokenPipe => PipeError::Closed { object, offset_bytes },
                    _ => PipeError::Write { object, offset_bytes, source },
                }
            }
            StageEnd::Write(DestinationError::Tape(error)) => PipeError::Tape(error),
            StageEnd::Read(ReadError::Read { offset_bytes, source }) => {
                PipeError::Read { object: from.to_owned(), offset_bytes, source }
            }
            StageEnd::Stage(failure) => PipeError::Stage(failure),
        }
    }
}
