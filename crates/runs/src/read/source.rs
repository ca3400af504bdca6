//! The `read` stage for sources with reads at any offset: several reads are in flight, and an
//! unreadable place is a [`Gap`] instead of the end.
//!
//! `flow::source::read_file` gives up at the first error, as a backup must. Reading an archive
//! needs everything around the bad place: the failed block is read again in small steps, and what
//! fails then is left as zeros and entered as a gap. A pipe cannot be read around a bad place, and
//! goes through `flow::source::read_stream`.

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use archive::stream::{Stored, StoredOffset};
use flow::account::Account;
use flow::backend::{Memory, TransferRequest};
use flow::in_flight::{InFlight, Transfer};
use flow::ring::{Piece, Producer, Reuse};
use flow::source::ReadError;

use base::interruptible::read_exact_at;
use flow::gaps::{Gap, Gaps};

use crate::past_cache::PastCache;

/// Bytes of a second attempt at an unreadable place: one page.
const STEP_BYTES: usize = 4096;
/// Unreadable steps after which the source counts as broken: 16 MiB.
const BAD_STEPS_MAX: usize = 4096;

/// What a reading thread works with.
pub(crate) struct SourceReader<'a> {
    pub file: &'a Arc<OwnedFd>,
    pub past_cache: PastCache,
    /// Ranges to read, in this order: the whole source, or parts of it.
    pub ranges: Vec<Range<StoredOffset>>,
    pub in_flight: &'a mut InFlight,
    /// Set when the reader needs no more; the stream then ends early.
    pub stop: &'a AtomicBool,
    pub gaps: &'a Gaps<Stored>,
    pub bad_steps: usize,
}

impl SourceReader<'_> {
    /// Reads the ranges into the ring, one after the other. Returns whether all were read past the
    /// page cache.
    pub fn read(mut self, producer: Producer, account: &mut Account) -> Result<bool, ReadError> {
        if self.past_cache.is_on() {
            producer.set_reuse(Reuse::Coldest);
        }
        let mut asked = 0u64;
        let block_bytes = producer.block_bytes() as u64;
        let mut ranges = std::mem::take(&mut self.ranges).into_iter();
        let mut range = ranges.next();
        loop {
            while !self.in_flight.is_full() {
                let Some(left) = &mut range else { break };
                if self.stop.load(Ordering::Acquire) {
                    range = None;
                    break;
                }
                if left.is_empty() {
                    range = ranges.next();
                    continue;
                }
                // No request spans two blocks, which would split it.
                let bytes = (left.end - left.start).min(block_bytes - asked % block_bytes) as usize;
                let reservation = self.in_flight.reserve(&producer, bytes, account)?;
                let Some(reservation) = reservation else { break };
                for piece in reservation.into_pieces() {
                    let offset_bytes = left.start;
                    left.start += piece.len() as u64;
                    asked += piece.len() as u64;
                    let memory = Memory::Fill(piece);
                    let operation = TransferRequest::new(self.file, offset_bytes.bytes(), memory);
                    self.in_flight.begin(operation)?;
                }
            }
            let Some(done) = self.in_flight.wait()? else {
                producer.finish();
                return Ok(self.past_cache.is_on());
            };
            if self.past_cache.is_refused(&done.result) {
                self.in_flight.begin(done.operation)?;
                continue;
            }
            account.stage().add_bytes(done.done_bytes() as u64);
            self.complete(done)?;
        }
    }

    fn complete(&mut self, done: Transfer) -> Result<(), ReadError> {
        let Transfer { operation, result } = done;
        let TransferRequest { offset_bytes, done_bytes, memory, .. } = operation;
        let mut piece = memory.into_piece();
        match result {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                let length_bytes = (piece.len() - done_bytes) as u64;
                let why = "the source became shorter while it was read".to_owned();
                piece.bytes_mut()[done_bytes..].fill(0);
                self.gaps.enter(Gap {
                    start_bytes: StoredOffset::new(offset_bytes),
                    length_bytes,
                    why,
                });
            }
            Err(error) => self.salvage(&mut piece, offset_bytes, done_bytes, &error)?,
        }
        piece.commit();
        Ok(())
    }

    /// Reads a piece step by step; `offset_bytes` is the offset of `done_bytes`.
    fn salvage(
        &mut self,
        piece: &mut Piece,
        offset_bytes: u64,
        done_bytes: usize,
        first: &io::Error,
    ) -> Result<(), ReadError> {
        self.past_cache.leave();
        let mut at = offset_bytes;
        for step in piece.bytes_mut()[done_bytes..].chunks_mut(STEP_BYTES) {
            if let Err(source) = read_exact_at(self.file, step, at) {
                step.fill(0);
                self.bad_steps += 1;
                if self.bad_steps > BAD_STEPS_MAX {
                    return Err(ReadError::Read { offset_bytes: at, source });
                }
                let why = format!("cannot be read: {first}");
                let (start_bytes, length_bytes) = (StoredOffset::new(at), step.len() as u64);
                self.gaps.enter(Gap { start_bytes, length_bytes, why });
            }
            at += step.len() as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::account::Stage;
    use flow::backend::{Backend, Completion, ThreadBackend};
    use flow::cancel::Cancel;
    use flow::ring::{RingOptions, ring};
    use flow::run::StageKind;
    use std::io::Write;

    /// Reads of the first file through the threads, but for one place that fails.
    struct Failing {
        inner: ThreadBackend,
        good: Arc<OwnedFd>,
        bad_bytes: u64,
    }

    impl Backend for Failing {
        fn name(&self) -> &'static str {
            "failing"
        }
        fn depth(&self) -> usize {
            self.inner.depth()
        }
        fn in_flight(&self) -> usize {
            self.inner.in_flight()
        }
        fn submit(&mut self, operation: TransferRequest) -> io::Result<()> {
            self.inner.submit(TransferRequest { file: Arc::clone(&self.good), ..operation })
        }
        fn wait(&mut self) -> io::Result<Completion> {
            let mut done = self.inner.wait()?;
            if done.operation.offset_bytes == self.bad_bytes {
                done.result = Err(io::Error::from_raw_os_error(5));
            }
            Ok(done)
        }
    }

    /// The second attempt goes through a descriptor that cannot be read from at all.
    #[test]
    fn an_unreadable_block_is_a_gap_and_the_rest_is_read() {
        const BLOCK: usize = 8192;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("source");
        let content: Vec<u8> = (0..10 * BLOCK + 100).map(|at| (at / 7) as u8).collect();
        std::fs::File::create(&path).unwrap().write_all(&content).unwrap();
        let good = Arc::new(OwnedFd::from(std::fs::File::open(&path).unwrap()));
        let file =
            Arc::new(OwnedFd::from(std::fs::OpenOptions::new().write(true).open(&path).unwrap()));
        let bad_bytes = 3 * BLOCK as u64;
        let inner = ThreadBackend::new(2).unwrap();
        let mut in_flight = InFlight::new(Box::new(Failing { inner, good, bad_bytes }));
        let options = RingOptions { block_bytes: BLOCK, blocks: 16, consumers: 1 };
        let (producer, consumers) = ring(options, Cancel::new()).unwrap();
        let (gaps, stop) = (Gaps::default(), AtomicBool::new(false));
        let mut account = Stage::new(StageKind::Read).open();
        let reader = SourceReader {
            file: &file,
            past_cache: PastCache::choose(&file, &[], 0, 512),
            ranges: [0..BLOCK as u64, BLOCK as u64..content.len() as u64]
                .map(StoredOffset::range)
                .to_vec(),
            in_flight: &mut in_flight,
            stop: &stop,
            gaps: &gaps,
            bad_steps: 0,
        };
        reader.read(producer, &mut account).unwrap();
        let mut found = Vec::new();
        while let Some(block) = consumers[0].next(&mut account).unwrap() {
            found.extend_from_slice(&block);
        }
        let mut expected = content;
        expected[3 * BLOCK..4 * BLOCK].fill(0);
        assert!(found == expected);
        let gap = gaps.take_before(StoredOffset::MAX).unwrap();
        assert_eq!((gap.start_bytes.bytes(), gap.length_bytes), (bad_bytes, BLOCK as u64));
        assert!(gap.why.contains("cannot be read"), "{}", gap.why);
        assert_eq!(gaps.take_before(StoredOffset::MAX), None);
    }
}
