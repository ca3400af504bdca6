//! Reads a stream as a cell says, and takes its time.
//!
//! One thread for each reader; it fills blocks of a ring and takes them out again at once, as a
//! consumer that does nothing would. Two looks at the clock for each block, the histogram and the
//! series are what measuring costs: below 0.2 us (`examples/measuring_cost.rs`).

use std::collections::HashMap;
use std::io::ErrorKind;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use flow::account::{Account, Stage};
use flow::backend::{Choice, Engine as FlowEngine, Memory, TransferRequest};
use flow::cancel::Cancel;
use flow::in_flight::{Failure, InFlight};
use flow::ring::{Consumer, Producer, RingOptions, ring};
use flow::run::{StageKind, StageReport};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::error::ReadBenchError;
use super::mapped::Mapping;
use super::reading::{Engine, Reading};
use statistics::bytes_over_time::SeriesRecorder;
use statistics::histogram::Histogram;

/// What a run measured.
#[derive(Debug)]
pub struct Measured {
    /// Bytes read.
    pub bytes: u64,
    /// From the first request to the last answer.
    pub seconds: f64,
    pub series: statistics::bytes_over_time::Series,
    /// From each request to its answer.
    pub latency: Histogram,
    /// The one stage there is.
    pub stages: Vec<StageReport>,
    /// Memory of the buffers.
    pub memory_bytes: u64,
}

impl From<Failure> for ReadBenchError {
    fn from(Failure { offset_bytes, source }: Failure) -> ReadBenchError {
        match source.kind() {
            ErrorKind::UnexpectedEof => ReadBenchError::Ended { offset_bytes },
            _ => ReadBenchError::Read { offset_bytes, source },
        }
    }
}

/// How closely a run is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watching {
    /// Latencies and series, as every experiment does.
    InFull,
    /// Bytes and the time of the whole, to know what the rest costs (`examples/measuring_cost.rs`).
    BytesOnly,
}

/// Reads `length_bytes` from the start, in whole blocks, with one reader for each file.
pub fn read(
    reading: &Reading,
    files: &[OwnedFd],
    length_bytes: u64,
    watched: Watching,
    cancel: &Cancel,
) -> Result<Measured, ReadBenchError> {
    read_range(reading, files, 0..length_bytes, watched, cancel)
}

/// Reads a range of the files, in whole blocks, with one reader for each file. Read(2) and mappings
/// begin at the start of a file whatever the range.
pub fn read_range(
    reading: &Reading,
    files: &[OwnedFd],
    range: Range<u64>,
    watched: Watching,
    cancel: &Cancel,
) -> Result<Measured, ReadBenchError> {
    let block = reading.block_bytes as u64;
    let length_bytes = range.end.saturating_sub(range.start);
    let blocks = length_bytes / block;
    if blocks == 0 {
        return Err(ReadBenchError::LessThanABlock { length_bytes, block_bytes: block });
    }
    let start_bytes = range.start;
    let shared = Shared { reading, start_bytes, blocks, next: AtomicU64::new(0), watched, cancel };
    let stage = Stage::new(StageKind::Read);
    let readers: Result<Vec<Reader<'_>>, ReadBenchError> =
        files.iter().map(|file| Reader::new(&shared, file)).collect();
    let readers = readers?;
    let start = Instant::now();
    let results: Vec<Result<Taken, ReadBenchError>> = std::thread::scope(|scope| {
        let one = |reader: Reader<'_>, stage: &Arc<Stage>| {
            let mut account = stage.open();
            reader.run(start, &mut account)
        };
        let mut readers = readers.into_iter();
        let mine = readers.next();
        let others: Vec<_> = readers
            .map(|reader| {
                let stage = &stage;
                scope.spawn(move || one(reader, stage))
            })
            .collect();
        let mine = mine.map(|reader| one(reader, &stage));
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        mine.into_iter().chain(others.into_iter().map(join)).collect()
    });
    let seconds = start.elapsed().as_secs_f64();
    let mut all = Taken::new(start);
    for taken in results {
        all.merge(&taken?);
    }
    let ring_bytes = reading.blocks() * reading.block_bytes * files.len();
    Ok(Measured {
        bytes: all.bytes,
        seconds,
        series: all.series.finish(seconds),
        latency: all.latency,
        stages: vec![stage.report()],
        memory_bytes: ring_bytes as u64,
    })
}

struct Shared<'a> {
    reading: &'a Reading,
    start_bytes: u64,
    blocks: u64,
    /// The next block that no reader has taken.
    next: AtomicU64,
    watched: Watching,
    cancel: &'a Cancel,
}

impl Shared<'_> {
    /// The time, where it is wanted.
    fn now(&self) -> Option<Instant> {
        (self.watched == Watching::InFull).then(Instant::now)
    }

    /// Offset of the next block of the stream, until there is none.
    fn take(&self) -> Option<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let offset = || self.start_bytes + number * self.reading.block_bytes as u64;
        (number < self.blocks).then(offset)
    }
}

/// What one reader counted.
struct Taken {
    bytes: u64,
    latency: Histogram,
    series: SeriesRecorder,
}

impl Taken {
    fn new(start: Instant) -> Taken {
        Taken { bytes: 0, latency: Histogram::default(), series: SeriesRecorder::new(start) }
    }

    /// Counts a block whose request was made at `begun`, if anybody looked at the clock then.
    fn add(&mut self, begun: Option<Instant>, bytes: usize) {
        self.bytes += bytes as u64;
        if let Some(begun) = begun {
            let ended = Instant::now();
            self.latency.add(ended.duration_since(begun).as_nanos() as u64);
            self.series.add(ended, bytes as u64);
        }
    }

    fn merge(&mut self, other: &Taken) {
        self.bytes += other.bytes;
        self.latency.merge(&other.latency);
        self.series.merge(&other.series);
    }
}

enum Way {
    /// read(2) where the descriptor stands.
    Read,
    /// pread(2).
    Pread,
    Mapped(Mapping),
    InFlight(InFlight),
}

struct Reader<'a> {
    shared: &'a Shared<'a>,
    file: Arc<OwnedFd>,
    way: Way,
    producer: Producer,
    consumer: Consumer,
}

impl<'a> Reader<'a> {
    fn new(shared: &'a Shared<'a>, file: &OwnedFd) -> Result<Reader<'a>, ReadBenchError> {
        let reading = shared.reading;
        let file = file.try_clone().map_err(ReadBenchError::Descriptor)?;
        let failed = |engine| move |source| ReadBenchError::Engine { engine, source };
        let engine = |engine| Choice::new(engine).map_err(failed("io_uring"));
        let way = match (reading.engine, reading.depth, reading.readers) {
            (Engine::Sync, _, 1) => Way::Read,
            (Engine::Sync, ..) | (Engine::Psync, 1, _) => Way::Pread,
            (Engine::Mmap, ..) => {
                let length = shared.blocks * reading.block_bytes as u64;
                Way::Mapped(Mapping::new(&file, length).map_err(failed("mmap"))?)
            }
            (Engine::Psync, ..) => Way::InFlight(
                engine(FlowEngine::Threads)?.open(reading.depth).map_err(failed("threads"))?,
            ),
            (Engine::IoUring, ..) => Way::InFlight(
                engine(FlowEngine::IoUring)?
                    .open_for(reading.depth, &file)
                    .map_err(failed("io_uring"))?,
            ),
        };
        let options = RingOptions {
            block_bytes: reading.block_bytes,
            blocks: reading.blocks(),
            consumers: 1,
        };
        let (producer, mut consumers) =
            ring(options, shared.cancel.clone()).map_err(ReadBenchError::Memory)?;
        let consumer = consumers.remove(0);
        Ok(Reader { shared, file: Arc::new(file), way, producer, consumer })
    }

    fn run(mut self, start: Instant, account: &mut Account) -> Result<Taken, ReadBenchError> {
        let mut taken = Taken::new(start);
        match std::mem::replace(&mut self.way, Way::Read) {
            Way::InFlight(in_flight) => self.keep_in_flight(in_flight, &mut taken, account)?,
            way => self.one_by_one(&way, &mut taken, account)?,
        }
        Ok(taken)
    }

    fn one_by_one(
        &self,
        way: &Way,
        taken: &mut Taken,
        account: &mut Account,
    ) -> Result<(), ReadBenchError> {
        let block = self.shared.reading.block_bytes;
        while let Some(offset) = self.shared.take() {
            let mut reservation = self.producer.reserve(block, account)?;
            let bytes = reservation.slices_mut().next().expect("a block is one slice");
            let begun = self.shared.now();
            match way {
                Way::Mapped(mapping) => mapping.copy(offset, bytes),
                Way::Read => fill(offset, bytes, |bytes, _| rustix::io::read(&self.file, bytes))?,
                _ => fill(offset, bytes, |bytes, at| {
                    base::interruptible::read_at(&self.file, bytes, at)
                })?,
            }
            taken.add(begun, block);
            account.stage().add_bytes(block as u64);
            reservation.commit();
            self.drain(account)?;
        }
        Ok(())
    }

    fn keep_in_flight(
        &self,
        mut in_flight: InFlight,
        taken: &mut Taken,
        account: &mut Account,
    ) -> Result<(), ReadBenchError> {
        let block = self.shared.reading.block_bytes;
        let mut begun: HashMap<u64, Instant> = HashMap::with_capacity(in_flight.depth());
        let mut next = self.shared.take();
        loop {
            while let Some(offset) = next.filter(|_| !in_flight.is_full()) {
                let Some(reservation) = self.producer.try_reserve(block) else { break };
                let piece = reservation.into_pieces().next().expect("a block is one piece");
                if let Some(now) = self.shared.now() {
                    begun.insert(offset, now);
                }
                let operation = TransferRequest::new(&self.file, offset, Memory::Fill(piece));
                in_flight.begin(operation)?;
                next = self.shared.take();
            }
            let Some(done) = in_flight.wait_whole()? else { return Ok(()) };
            taken.add(begun.remove(&done.start_bytes()), block);
            account.stage().add_bytes(block as u64);
            done.into_piece().commit();
            self.drain(account)?;
        }
    }

    /// Takes every block that is complete and gives it back.
    fn drain(&self, account: &mut Account) -> Result<(), ReadBenchError> {
        while self.consumer.fill_blocks() > 0 {
            self.consumer.next(account)?;
        }
        Ok(self.shared.cancel.check()?)
    }
}

/// Reads until `bytes` are full.
fn fill(
    offset: u64,
    bytes: &mut [u8],
    read: impl Fn(&mut [u8], u64) -> Result<usize, Errno>,
) -> Result<(), ReadBenchError> {
    let mut filled = 0;
    while filled < bytes.len() {
        let offset_bytes = offset + filled as u64;
        match read(&mut bytes[filled..], offset_bytes) {
            Ok(0) => return Err(ReadBenchError::Ended { offset_bytes }),
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(ReadBenchError::Read { offset_bytes, source: error.into() }),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
