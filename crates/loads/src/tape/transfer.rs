//! Passes the files of a run to a medium, or takes them from it, and takes its time.
//!
//! The blocks lie in a ring of `flow`, as those of a backup do, so that a run has the same
//! accounting. A generator thread fills it and this one writes; or, with no ring, one thread does
//! both in turns, as `dd` and `tar` do. Two looks at the clock for each write(2), the histogram and
//! the series are what measuring costs: below 0.2 us (`examples/measuring_cost.rs`).
//!
//! Where a program works on a block in the thread that writes it, so does this one: Bacula's blocks
//! are copied and summed up there.
//!
//! What is read back is summed up on the other side of the ring and has to be what was written.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use flow::account::{Account, Stage, ThreadState};
use flow::cancel::{Cancel, Stopped};
use flow::restart::Restart;
use flow::ring::{Block, Consumer, Producer, RingOptions, ring};
use flow::run::{StageKind, StageReport};
use flow::sink::{Sink, WriteError, WriteOptions, write_all};
use tree::Identity;

use super::checksum::Checksum;
use super::error::TapeBenchError;
use super::job::TapeJob;
use crate::framing::{Follows, Framer, Framing};
use crate::payload::tree::{Content, Tree, TreeOptions};
use crate::payload::{Payload, PayloadError};
use statistics::bytes_over_time::Series;
use statistics::bytes_over_time::SeriesRecorder;
use statistics::histogram::Histogram;

/// What became of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It was taken.
    Whole,
    /// It was not: the end of the medium is near.
    EndOfMedium,
}

/// Where blocks go and come from, one after the other.
pub(super) trait Medium: Send {
    /// Hands over one block.
    fn write(&mut self, block: &Block, account: &mut Account) -> Result<Taken, TapeBenchError>;
    /// Ends the file, and returns when all of it is on the medium.
    fn end_file(&mut self) -> Result<(), TapeBenchError>;
    /// The next block; nothing at the end of the file.
    fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, TapeBenchError>;
}

/// What a run measured.
#[derive(Debug)]
pub(super) struct Measured {
    /// Bytes written or read.
    pub(super) bytes: u64,
    /// From the first byte to the end of the filemark behind the last.
    pub(super) seconds: f64,
    /// Files, each with a filemark behind it.
    pub(super) files: u64,
    /// What of the time the filemarks took.
    pub(super) filemark_seconds: f64,
    /// What of the time the writing thread worked on its blocks.
    pub(super) sealing_seconds: f64,
    /// Bytes over time.
    pub(super) series: Series,
    /// Of write(2) or read(2), each.
    pub(super) latency: Histogram,
    /// The stages there were.
    pub(super) stages: Vec<StageReport>,
    /// Memory of the ring.
    pub(super) memory_bytes: u64,
    /// Of the bytes, in their order.
    pub(super) checksum: Checksum,
    /// What was read of a tree.
    pub(super) tree: Option<Content>,
    /// What should be known of the data.
    pub(super) cautions: Vec<String>,
}

impl Measured {
    /// The same with all times so many times as long: those of a clock that runs as much faster.
    pub(super) fn in_time_of(mut self, ratio: f64) -> Measured {
        if ratio == 1.0 {
            return self;
        }
        self.seconds *= ratio;
        self.filemark_seconds *= ratio;
        self.sealing_seconds *= ratio;
        self.series.step_seconds *= ratio;
        for stage in &mut self.stages {
            stage.working_seconds *= ratio;
            stage.starved_seconds *= ratio;
            stage.blocked_seconds *= ratio;
            stage.apart_seconds *= ratio;
            stage.occupied_seconds *= ratio;
        }
        let pairs: Vec<(u64, u64)> = self.latency.into();
        let longer = |(ns, count): (u64, u64)| ((ns as f64 * ratio) as u64, count);
        self.latency = Histogram::from(pairs.into_iter().map(longer).collect::<Vec<_>>());
        self
    }
}

/// Why a file did not pass as a whole.
#[derive(Debug)]
pub(super) enum TransferEnd {
    /// The end of the medium came after so many bytes.
    EndOfMedium(u64),
    /// The user stopped it.
    Stopped,
    /// There was nothing to write.
    NoData(TapeBenchError),
    /// Anything else: of the drive nothing is known now.
    Failed(TapeBenchError),
}

impl From<TapeBenchError> for TransferEnd {
    fn from(error: TapeBenchError) -> TransferEnd {
        TransferEnd::Failed(error)
    }
}

impl From<PayloadError> for TransferEnd {
    fn from(error: PayloadError) -> TransferEnd {
        TransferEnd::NoData(error.into())
    }
}

impl From<TransferEnd> for TapeBenchError {
    fn from(ended: TransferEnd) -> TapeBenchError {
        match ended {
            TransferEnd::EndOfMedium(bytes) => TapeBenchError::Full { bytes },
            TransferEnd::Stopped => Stopped::Cancelled.into(),
            TransferEnd::NoData(error) | TransferEnd::Failed(error) => error,
        }
    }
}

/// Whether what is written is summed up, to be compared when it is read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Summing {
    Done,
    /// It is not: nothing but the writing costs time.
    LeftOut,
}

/// What a run writes.
pub(super) struct Load<'a> {
    /// The cell.
    pub(super) job: &'a TapeJob,
    /// Of data that are made.
    pub(super) seed: u64,
    /// The target, where it is a file: no part of a tree that is written to it.
    pub(super) output: Option<Identity>,
    /// Whether it is summed up.
    pub(super) summing: Summing,
}

impl Load<'_> {
    fn framer(&self) -> Result<Framer, PayloadError> {
        let TapeJob { data, framing, block_bytes, read_block_bytes, .. } = self.job;
        let layout = self.job.layout();
        let Some(path) = data.tree(*read_block_bytes) else {
            return Framer::new(*framing, *block_bytes, Payload::open(data, self.seed)?, layout);
        };
        let options = TreeOptions {
            wanted: framing.wanted(),
            read_block_bytes: *read_block_bytes,
            output: self.output,
        };
        Framer::of_tree(*framing, *block_bytes, Tree::open(path, options)?, layout)
    }
}

/// Writes the files of a run. `files` is how many of them have ended, however the run does.
pub(super) fn write(
    load: &Load<'_>,
    medium: &mut dyn Medium,
    user: &Cancel,
    files: &mut u32,
) -> Result<Measured, TransferEnd> {
    let job = load.job;
    let framer = load.framer()?;
    // A token of this run alone: the end of the medium stops its generator, not the experiment.
    let run = Cancel::new();
    let options =
        RingOptions { block_bytes: job.block_bytes, blocks: job.ring_blocks(), consumers: 1 };
    let (producer, mut consumers) = ring(options, run.clone()).map_err(no_memory)?;
    let consumer = consumers.remove(0);
    let stages = [Stage::new(StageKind::Generate), Stage::new(StageKind::Write)];
    let sealer = Sealer::of(job)?;
    let start = Instant::now();
    let mut sink = TimedSink {
        medium,
        user,
        summing: load.summing,
        sealer,
        file_blocks: job.layout().file_blocks,
        blocks_in_file: 0,
        files,
        checksum: Checksum::default(),
        latency: Histogram::default(),
        series: SeriesRecorder::new(start),
        bytes: 0,
        filemark_seconds: 0.0,
        ended: None,
    };
    let mut generator = Generator { framer, user };
    let result = match job.ring_bytes {
        0 => in_turns(&mut generator, &mut sink, producer, &consumer, &stages),
        _ => side_by_side(&mut generator, &mut sink, producer, &consumer, &stages, &run),
    };
    let seconds = start.elapsed().as_secs_f64();
    if let Some(ended) = sink.ended {
        return Err(ended);
    }
    result?;
    Ok(Measured {
        bytes: sink.bytes,
        seconds,
        files: u64::from(*sink.files),
        filemark_seconds: sink.filemark_seconds,
        sealing_seconds: sink.sealer.as_ref().map_or(0.0, |sealer| sealer.seconds),
        series: sink.series.finish(seconds),
        latency: sink.latency,
        stages: stages.iter().map(|stage| stage.report()).collect(),
        memory_bytes: (options.block_bytes * options.blocks) as u64,
        checksum: sink.checksum,
        tree: generator.framer.read_of_tree(),
        cautions: generator.framer.cautions(),
    })
}

fn no_memory(error: io::Error) -> TransferEnd {
    TransferEnd::NoData(TapeBenchError::Memory(error))
}

/// A thread that generates, and this one that writes.
fn side_by_side(
    generator: &mut Generator<'_>,
    sink: &mut TimedSink<'_>,
    producer: Producer,
    consumer: &Consumer,
    stages: &[Arc<Stage>; 2],
    run: &Cancel,
) -> Result<(), TransferEnd> {
    std::thread::scope(|scope| {
        let generating = scope.spawn(|| {
            let result = generator.fill(&producer, &mut stages[0].open());
            if result.is_err() {
                run.fail();
            }
            // Dropped here, behind the end of the stream.
            drop(producer);
            result
        });
        let mut account = stages[1].open();
        let options = WriteOptions {
            start_fill_blocks: 1,
            restart: Restart::AtFill { blocks: 1 },
            rate_limit: None,
        };
        let written = write_all(consumer, sink, options, &mut account, run, |_| {});
        if written.is_err() {
            run.fail();
        }
        drop(account);
        let generated = match generating.join() {
            Ok(generated) => generated,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        generated?;
        written.map(drop).map_err(failed)
    })
}

/// One thread that generates a block, writes it, and generates the next one.
fn in_turns(
    generator: &mut Generator<'_>,
    sink: &mut TimedSink<'_>,
    producer: Producer,
    consumer: &Consumer,
    stages: &[Arc<Stage>; 2],
) -> Result<(), TransferEnd> {
    let mut generating = stages[0].open();
    let mut writing = stages[1].open();
    writing.switch(ThreadState::Starved);
    loop {
        let follows = generator.one(&producer, &mut generating)?;
        generating.switch(ThreadState::Blocked);
        let block = match consumer.next(&mut writing) {
            Ok(Some(block)) => block,
            Ok(None) => break,
            Err(_) => return Err(TransferEnd::Stopped),
        };
        writing.switch(ThreadState::Working);
        let bytes = block.len() as u64;
        sink.write(block, &mut writing).map_err(failed)?;
        writing.stage().add_bytes(bytes);
        if follows == Follows::Nothing {
            break;
        }
        writing.switch(ThreadState::Starved);
        generating.switch(ThreadState::Working);
    }
    producer.finish();
    sink.finish(&mut writing).map_err(failed)
}

fn failed(error: WriteError) -> TransferEnd {
    TransferEnd::Failed(error.into())
}

/// Makes the blocks of a run.
struct Generator<'a> {
    framer: Framer,
    user: &'a Cancel,
}

impl Generator<'_> {
    fn fill(&mut self, producer: &Producer, account: &mut Account) -> Result<(), TransferEnd> {
        loop {
            match self.one(producer, account) {
                // The writer has something to tell.
                Err(TransferEnd::Stopped) if self.user.check().is_ok() => return Ok(()),
                Err(ended) => return Err(ended),
                Ok(Follows::More) => {}
                Ok(Follows::Nothing) => break,
            }
        }
        producer.finish();
        Ok(())
    }

    fn one(&mut self, producer: &Producer, account: &mut Account) -> Result<Follows, TransferEnd> {
        self.user.check().map_err(|_| TransferEnd::Stopped)?;
        let bytes = producer.block_bytes();
        let reserved = producer.reserve(bytes, account);
        let mut reservation = reserved.map_err(|_: Stopped| TransferEnd::Stopped)?;
        let block = reservation.slices_mut().next().expect("a block is one slice");
        let follows = self.framer.block(block)?;
        reservation.commit();
        account.stage().add_bytes(bytes as u64);
        Ok(follows)
    }
}

/// What a program does with a block in the thread that writes it.
struct Sealer {
    framing: Framing,
    /// Memory for the blocks that come of it.
    producer: Producer,
    consumer: Consumer,
    seconds: f64,
}

/// One block is written while no other is filled; a ring has two at the least.
const SEALED_BLOCKS: usize = 2;

impl Sealer {
    /// Where the framing has anything to do there.
    fn of(job: &TapeJob) -> Result<Option<Sealer>, TransferEnd> {
        if !job.framing.is_sealed() {
            return Ok(None);
        }
        let options =
            RingOptions { block_bytes: job.block_bytes, blocks: SEALED_BLOCKS, consumers: 1 };
        let (producer, mut consumers) = ring(options, Cancel::new()).map_err(no_memory)?;
        let consumer = consumers.remove(0);
        Ok(Some(Sealer { framing: job.framing, producer, consumer, seconds: 0.0 }))
    }

    /// The block that goes to the medium. The one before it is done with.
    fn seal(&mut self, filled: &Block, account: &mut Account) -> Result<Block, Stopped> {
        let begun = Instant::now();
        let mut reservation = self.producer.reserve(filled.len(), account)?;
        let block = reservation.slices_mut().next().expect("a block is one slice");
        self.framing.seal(filled, block);
        reservation.commit();
        let sealed = self.consumer.next(account)?.expect("it was committed a moment ago");
        self.seconds += begun.elapsed().as_secs_f64();
        Ok(sealed)
    }
}

/// Hands blocks to the medium and looks at the clock.
struct TimedSink<'a> {
    medium: &'a mut dyn Medium,
    user: &'a Cancel,
    summing: Summing,
    sealer: Option<Sealer>,
    /// Blocks of a file on the medium.
    file_blocks: u64,
    blocks_in_file: u64,
    /// Those that have ended.
    files: &'a mut u32,
    checksum: Checksum,
    latency: Histogram,
    series: SeriesRecorder,
    bytes: u64,
    filemark_seconds: f64,
    /// Why it went no further.
    ended: Option<TransferEnd>,
}

impl TimedSink<'_> {
    fn end(&mut self, ended: TransferEnd) -> Result<(), WriteError> {
        self.ended = Some(ended);
        Err(WriteError::Stopped(Stopped::Failed))
    }

    /// Waits for the medium, which is nothing that the writing thread does.
    fn end_file(&mut self, account: &mut Account) -> Result<(), WriteError> {
        account.switch(ThreadState::Apart);
        let begun = Instant::now();
        let ended = self.medium.end_file();
        self.filemark_seconds += begun.elapsed().as_secs_f64();
        account.switch(ThreadState::Working);
        self.blocks_in_file = 0;
        match ended {
            Ok(()) => {
                *self.files += 1;
                Ok(())
            }
            Err(error) => self.end(TransferEnd::Failed(error)),
        }
    }
}

impl Sink for TimedSink<'_> {
    type Error = WriteError;

    fn write(&mut self, block: Block, account: &mut Account) -> Result<(), WriteError> {
        if self.user.check().is_err() {
            return self.end(TransferEnd::Stopped);
        }
        if self.blocks_in_file == self.file_blocks {
            self.end_file(account)?;
        }
        let block = match &mut self.sealer {
            Some(sealer) => sealer.seal(&block, account)?,
            None => block,
        };
        let begun = Instant::now();
        let taken = self.medium.write(&block, account);
        let now = Instant::now();
        match taken {
            Ok(Taken::Whole) => {}
            Ok(Taken::EndOfMedium) => return self.end(TransferEnd::EndOfMedium(self.bytes)),
            Err(_) if self.user.check().is_err() => return self.end(TransferEnd::Stopped),
            Err(error) => return self.end(TransferEnd::Failed(error)),
        }
        self.latency.add(now.duration_since(begun).as_nanos() as u64);
        self.series.add(now, block.len() as u64);
        self.bytes += block.len() as u64;
        self.blocks_in_file += 1;
        if self.summing == Summing::Done {
            self.checksum.add(&block);
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), WriteError> {
        Ok(())
    }

    fn finish(&mut self, account: &mut Account) -> Result<(), WriteError> {
        self.end_file(account)
    }
}

/// Blocks between the reader and the thread that sums up.
const READ_RING_BLOCKS: usize = 8;

/// Reads the files of a run, up to the filemark behind the last byte that was written.
pub(super) fn read(
    job: &TapeJob,
    written_bytes: u64,
    medium: &mut dyn Medium,
    user: &Cancel,
) -> Result<Measured, TransferEnd> {
    let run = Cancel::new();
    let options =
        RingOptions { block_bytes: job.block_bytes, blocks: READ_RING_BLOCKS, consumers: 1 };
    let (producer, consumers) = ring(options, run.clone()).map_err(no_memory)?;
    let stages = [Stage::new(StageKind::Read), Stage::new(StageKind::Check)];
    let start = Instant::now();
    let mut latency = Histogram::default();
    let mut series = SeriesRecorder::new(start);
    let mut progress = Progress::default();
    let (result, checksum) = std::thread::scope(|scope| {
        let checking = scope.spawn(|| sum_up(&consumers[0], &mut stages[1].open()));
        let mut account = stages[0].open();
        let result = loop {
            if user.check().is_err() {
                run.fail();
                break Err(TransferEnd::Stopped);
            }
            let mut reservation = match producer.reserve(job.block_bytes, &mut account) {
                Ok(reservation) => reservation,
                // The checking thread has ended.
                Err(stopped) => break Err(TransferEnd::Failed(stopped.into())),
            };
            let block = reservation.slices_mut().next().expect("a block is one slice");
            let begun = Instant::now();
            match next_block(block, &mut progress, written_bytes, medium) {
                Ok(Some(bytes)) if bytes == job.block_bytes => {
                    let now = Instant::now();
                    latency.add(now.duration_since(begun).as_nanos() as u64);
                    series.add(now, bytes as u64);
                    account.stage().add_bytes(bytes as u64);
                    reservation.commit();
                }
                Ok(None) => {
                    producer.finish_with(reservation, 0);
                    break Ok(());
                }
                Ok(Some(bytes)) => {
                    let wanted_bytes = job.block_bytes;
                    break Err(TapeBenchError::OtherBlock { bytes, wanted_bytes }.into());
                }
                Err(error) => break Err(error.into()),
            }
        };
        drop(account);
        let checksum = checking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (result, checksum)
    });
    let seconds = start.elapsed().as_secs_f64();
    result?;
    Ok(Measured {
        bytes: checksum.bytes(),
        seconds,
        files: progress.files,
        filemark_seconds: 0.0,
        sealing_seconds: 0.0,
        series: series.finish(seconds),
        latency,
        stages: stages.iter().map(|stage| stage.report()).collect(),
        memory_bytes: (options.block_bytes * options.blocks) as u64,
        checksum,
        tree: None,
        cautions: Vec::new(),
    })
}

/// How far reading has come.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    bytes: u64,
    /// Bytes at the last filemark.
    bytes_at_filemark: u64,
    files: u64,
}

/// The next block of the run, whatever filemarks are in between. Nothing behind its last byte, or
/// where there is nothing behind a filemark.
fn next_block(
    block: &mut [u8],
    progress: &mut Progress,
    written_bytes: u64,
    medium: &mut dyn Medium,
) -> Result<Option<usize>, TapeBenchError> {
    loop {
        if let Some(bytes) = medium.read(block)? {
            progress.bytes += bytes as u64;
            return Ok(Some(bytes));
        }
        progress.files += 1;
        if progress.bytes >= written_bytes || progress.bytes == progress.bytes_at_filemark {
            return Ok(None);
        }
        progress.bytes_at_filemark = progress.bytes;
    }
}

fn sum_up(consumer: &Consumer, account: &mut Account) -> Checksum {
    let mut checksum = Checksum::default();
    // A reader that failed has the reason.
    while let Ok(Some(block)) = consumer.next(account) {
        checksum.add(&block);
        account.stage().add_bytes(block.len() as u64);
    }
    checksum
}
