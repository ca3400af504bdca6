//! Passes one file to a medium, or takes one from it, and takes its time.
//!
//! The blocks lie in a ring of `flow`, as those of a backup do, so that a run has the same
//! accounting. A generator thread fills it and this one writes; or, with no ring, one thread does
//! both in turns, as `dd` and `tar` do. Two looks at the clock for each write(2), the histogram and
//! the series are what measuring costs: below 0.2 us (`examples/measuring_cost.rs`).
//!
//! What is read back is summed up on the other side of the ring and has to be what was written.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use flow::account::{Account, Stage, State};
use flow::cancel::{Cancel, Stopped};
use flow::restart::Restart;
use flow::ring::{Block, Consumer, Producer, RingOptions, ring};
use flow::run::{StageKind, StageReport};
use flow::sink::{Sink, WriteError, WriteOptions, write_all};

use super::TapeBenchError;
use super::checksum::Checksum;
use super::job::TapeJob;
use crate::framing::Framer;
use crate::histogram::Histogram;
use crate::payload::{Payload, PayloadError};
use crate::record::Series;
use crate::series::SeriesRecorder;

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
    /// What of that the filemark took.
    pub(super) filemark_seconds: f64,
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
    /// What should be known of the data.
    pub(super) cautions: Vec<String>,
}

impl Measured {
    /// The same with all times so many times as long: those of a clock that runs as much faster.
    pub(super) fn in_time_of(mut self, clock_ratio: u32) -> Measured {
        if clock_ratio == 1 {
            return self;
        }
        let ratio = f64::from(clock_ratio);
        self.seconds *= ratio;
        self.filemark_seconds *= ratio;
        self.series.step_seconds *= ratio;
        for stage in &mut self.stages {
            stage.working_seconds *= ratio;
            stage.starved_seconds *= ratio;
            stage.blocked_seconds *= ratio;
        }
        let pairs: Vec<(u64, u64)> = self.latency.into();
        let longer = |(ns, count): (u64, u64)| (ns.saturating_mul(clock_ratio.into()), count);
        self.latency = Histogram::from(pairs.into_iter().map(longer).collect::<Vec<_>>());
        self
    }
}

/// Why a file did not pass as a whole.
#[derive(Debug)]
pub(super) enum Ended {
    /// The end of the medium came after so many bytes.
    EndOfMedium(u64),
    /// The user stopped it.
    Stopped,
    /// There was nothing to write.
    NoData(TapeBenchError),
    /// Anything else: of the drive nothing is known now.
    Failed(TapeBenchError),
}

impl From<TapeBenchError> for Ended {
    fn from(error: TapeBenchError) -> Ended {
        Ended::Failed(error)
    }
}

impl From<PayloadError> for Ended {
    fn from(error: PayloadError) -> Ended {
        Ended::NoData(error.into())
    }
}

impl From<Ended> for TapeBenchError {
    fn from(ended: Ended) -> TapeBenchError {
        match ended {
            Ended::EndOfMedium(bytes) => TapeBenchError::Full { bytes },
            Ended::Stopped => Stopped::Cancelled.into(),
            Ended::NoData(error) | Ended::Failed(error) => error,
        }
    }
}

/// Whether what is written is summed up, to be compared when it is read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Summing {
    /// It is.
    Done,
    /// It is not: nothing but the writing costs time.
    LeftOut,
}

/// Writes one file.
pub(super) fn write(
    job: &TapeJob,
    seed: u64,
    summing: Summing,
    medium: &mut dyn Medium,
    user: &Cancel,
) -> Result<Measured, Ended> {
    let payload = Payload::open(&job.data, seed)?;
    let framer = Framer::new(job.framing, job.block_bytes, payload)?;
    // A token of this run alone: the end of the medium stops its generator, not the experiment.
    let run = Cancel::new();
    let options =
        RingOptions { block_bytes: job.block_bytes, blocks: job.ring_blocks(), consumers: 1 };
    let (producer, mut consumers) = ring(options, run.clone()).map_err(no_memory)?;
    let consumer = consumers.remove(0);
    let stages = [Stage::new(StageKind::Generate), Stage::new(StageKind::Write)];
    let start = Instant::now();
    let mut sink = TimedSink {
        medium,
        user,
        summing,
        checksum: Checksum::default(),
        latency: Histogram::default(),
        series: SeriesRecorder::new(start),
        bytes: 0,
        filemark_seconds: 0.0,
        ended: None,
    };
    let mut generator = Generator { framer, blocks: job.blocks(), user };
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
        filemark_seconds: sink.filemark_seconds,
        series: sink.series.finish(seconds),
        latency: sink.latency,
        stages: stages.iter().map(|stage| stage.report()).collect(),
        memory_bytes: (options.block_bytes * options.blocks) as u64,
        checksum: sink.checksum,
        cautions: generator.framer.cautions(),
    })
}

fn no_memory(error: io::Error) -> Ended {
    Ended::NoData(TapeBenchError::Memory(error))
}

/// A thread that generates, and this one that writes.
fn side_by_side(
    generator: &mut Generator<'_>,
    sink: &mut TimedSink<'_>,
    producer: Producer,
    consumer: &Consumer,
    stages: &[Arc<Stage>; 2],
    run: &Cancel,
) -> Result<(), Ended> {
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
) -> Result<(), Ended> {
    let mut generating = stages[0].open();
    let mut writing = stages[1].open();
    writing.switch(State::Starved);
    for number in 0..generator.blocks {
        generator.one(number, &producer, &mut generating)?;
        generating.switch(State::Blocked);
        let block = match consumer.next(&mut writing) {
            Ok(Some(block)) => block,
            Ok(None) => break,
            Err(_) => return Err(Ended::Stopped),
        };
        writing.switch(State::Working);
        let bytes = block.len() as u64;
        sink.write(block, &mut writing).map_err(failed)?;
        writing.stage().add_bytes(bytes);
        if number + 1 < generator.blocks {
            writing.switch(State::Starved);
            generating.switch(State::Working);
        }
    }
    producer.finish();
    sink.finish(&mut writing).map_err(failed)
}

fn failed(error: WriteError) -> Ended {
    Ended::Failed(error.into())
}

/// Makes the blocks of a file.
struct Generator<'a> {
    framer: Framer,
    blocks: u64,
    user: &'a Cancel,
}

impl Generator<'_> {
    fn fill(&mut self, producer: &Producer, account: &mut Account) -> Result<(), Ended> {
        for number in 0..self.blocks {
            match self.one(number, producer, account) {
                // The writer has something to tell.
                Err(Ended::Stopped) if self.user.check().is_ok() => return Ok(()),
                result => result?,
            }
        }
        producer.finish();
        Ok(())
    }

    fn one(
        &mut self,
        number: u64,
        producer: &Producer,
        account: &mut Account,
    ) -> Result<(), Ended> {
        self.user.check().map_err(|_| Ended::Stopped)?;
        let bytes = producer.block_bytes();
        let reserved = producer.reserve(bytes, account);
        let mut reservation = reserved.map_err(|_: Stopped| Ended::Stopped)?;
        let block = reservation.slices_mut().next().expect("a block is one slice");
        let filled = if number + 1 == self.blocks {
            self.framer.last_block(block)
        } else {
            self.framer.block(block)
        };
        filled?;
        reservation.commit();
        account.stage().add_bytes(bytes as u64);
        Ok(())
    }
}

/// Hands blocks to the medium and looks at the clock.
struct TimedSink<'a> {
    medium: &'a mut dyn Medium,
    user: &'a Cancel,
    summing: Summing,
    checksum: Checksum,
    latency: Histogram,
    series: SeriesRecorder,
    bytes: u64,
    filemark_seconds: f64,
    /// Why it went no further.
    ended: Option<Ended>,
}

impl TimedSink<'_> {
    fn end(&mut self, ended: Ended) -> Result<(), WriteError> {
        self.ended = Some(ended);
        Err(WriteError::Stopped(Stopped::Failed))
    }
}

impl Sink for TimedSink<'_> {
    type Error = WriteError;

    fn write(&mut self, block: Block, account: &mut Account) -> Result<(), WriteError> {
        if self.user.check().is_err() {
            return self.end(Ended::Stopped);
        }
        let begun = Instant::now();
        let taken = self.medium.write(&block, account);
        let now = Instant::now();
        match taken {
            Ok(Taken::Whole) => {}
            Ok(Taken::EndOfMedium) => return self.end(Ended::EndOfMedium(self.bytes)),
            Err(_) if self.user.check().is_err() => return self.end(Ended::Stopped),
            Err(error) => return self.end(Ended::Failed(error)),
        }
        self.latency.add(now.duration_since(begun).as_nanos() as u64);
        self.series.add(now, block.len() as u64);
        self.bytes += block.len() as u64;
        if self.summing == Summing::Done {
            self.checksum.add(&block);
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), WriteError> {
        Ok(())
    }

    fn finish(&mut self, _: &mut Account) -> Result<(), WriteError> {
        let begun = Instant::now();
        let ended = self.medium.end_file();
        self.filemark_seconds = begun.elapsed().as_secs_f64();
        ended.or_else(|error| self.end(Ended::Failed(error)))
    }
}

/// Blocks between the reader and the thread that sums up.
const READ_RING_BLOCKS: usize = 8;

/// Reads one file, up to the filemark behind it.
pub(super) fn read(
    job: &TapeJob,
    medium: &mut dyn Medium,
    user: &Cancel,
) -> Result<Measured, Ended> {
    let run = Cancel::new();
    let options =
        RingOptions { block_bytes: job.block_bytes, blocks: READ_RING_BLOCKS, consumers: 1 };
    let (producer, mut consumers) = ring(options, run.clone()).map_err(no_memory)?;
    let consumer = consumers.remove(0);
    let stages = [Stage::new(StageKind::Read), Stage::new(StageKind::Check)];
    let start = Instant::now();
    let mut latency = Histogram::default();
    let mut series = SeriesRecorder::new(start);
    let (result, checksum) = std::thread::scope(|scope| {
        let checking = scope.spawn(|| sum_up(&consumer, &mut stages[1].open()));
        let mut account = stages[0].open();
        let result = loop {
            if user.check().is_err() {
                run.fail();
                break Err(Ended::Stopped);
            }
            let mut reservation = match producer.reserve(job.block_bytes, &mut account) {
                Ok(reservation) => reservation,
                // The checking thread has ended.
                Err(stopped) => break Err(Ended::Failed(stopped.into())),
            };
            let block = reservation.slices_mut().next().expect("a block is one slice");
            let begun = Instant::now();
            match medium.read(block) {
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
        let checksum = match checking.join() {
            Ok(checksum) => checksum,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        (result, checksum)
    });
    let seconds = start.elapsed().as_secs_f64();
    result?;
    Ok(Measured {
        bytes: checksum.bytes(),
        seconds,
        filemark_seconds: 0.0,
        series: series.finish(seconds),
        latency,
        stages: stages.iter().map(|stage| stage.report()).collect(),
        memory_bytes: (options.block_bytes * options.blocks) as u64,
        checksum,
        cautions: Vec::new(),
    })
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
