//! Compressed bytes at hand, in one piece.
//!
//! Bytes within one block of the ring are not copied: the decompressing thread has the block on
//! loan. A chunk across two blocks is copied once, no further than its end, into memory of its own.
//! That memory is returned when the chunk is done.
//!
//! Capacity: one block and the requested bytes. The receiver of [`AtHand::take`] bounds what it
//! holds; returned memory longer than [`SPARE_BYTES_MAX`] is not kept.

use std::ops::{Deref, Range};
use std::sync::{Mutex, MutexGuard, PoisonError};

use flow::account::Account;
use flow::cancel::Stopped;
use flow::ring::{Block, Consumer};

/// Longest memory kept for the next chunk; only other programs write longer chunks.
const SPARE_BYTES_MAX: usize = 4 << 20;

/// A chunk that was cut off.
#[derive(Debug)]
pub(crate) enum Cut {
    /// As it is in the ring.
    Lies(Block, Range<usize>),
    /// Copied from several blocks.
    Joined(Vec<u8>),
}

impl Deref for Cut {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Cut::Lies(block, range) => &block[range.clone()],
            Cut::Joined(bytes) => bytes,
        }
    }
}

/// Memory for the next chunk across two blocks.
#[derive(Debug, Default)]
pub(crate) struct Spare(Mutex<Vec<Vec<u8>>>);

impl Spare {
    /// Takes back a finished chunk.
    pub fn give_back(&self, cut: Cut) {
        if let Cut::Joined(mut bytes) = cut
            && bytes.capacity() <= SPARE_BYTES_MAX
        {
            bytes.clear();
            self.lock().push(bytes);
        }
    }

    fn take(&self) -> Vec<u8> {
        self.lock().pop().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The compressed stream from the next cut on.
pub(crate) struct AtHand<'a> {
    consumer: &'a Consumer,
    spare: &'a Spare,
    /// The block taken last, which continues at `next`.
    block: Option<Block>,
    next: usize,
    /// Earlier bytes, if the stream is still in an earlier block: those from `passed` on.
    joined: Vec<u8>,
    passed: usize,
}

impl<'a> AtHand<'a> {
    /// The stream from `first` on, or from the next block.
    pub fn new(consumer: &'a Consumer, spare: &'a Spare, first: Option<Block>) -> AtHand<'a> {
        AtHand { consumer, spare, block: first, next: 0, joined: Vec::new(), passed: 0 }
    }

    /// The bytes at hand.
    pub fn bytes(&self) -> &[u8] {
        if self.joined.is_empty() { self.in_block() } else { &self.joined[self.passed..] }
    }

    fn in_block(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], |block| &block[self.next..])
    }

    /// Takes more of the source, up to `wanted_bytes` in all if it must be copied; false at its
    /// end.
    pub fn grow(&mut self, wanted_bytes: usize, account: &mut Account) -> Result<bool, Stopped> {
        if self.joined.is_empty() && !self.in_block().is_empty() {
            let mut joined = self.spare.take();
            joined.extend_from_slice(self.in_block());
            (self.joined, self.passed) = (joined, 0);
            self.next += self.in_block().len();
        }
        if self.in_block().is_empty() {
            (self.block, self.next) = (None, 0);
            self.block = self.consumer.next(account)?;
            if self.block.is_none() || self.joined.is_empty() {
                return Ok(self.block.is_some());
            }
        }
        if let Some(block) = &self.block {
            let missing = wanted_bytes.saturating_sub(self.joined.len() - self.passed);
            let to = block.len().min(self.next.saturating_add(missing.max(1)));
            self.joined.extend_from_slice(&block[self.next..to]);
            self.next = to;
        }
        Ok(true)
    }

    /// Continues after the first `bytes` of what is at hand.
    pub fn pass(&mut self, bytes: usize) {
        if self.joined.is_empty() {
            self.next += bytes;
            return;
        }
        self.passed += bytes;
        let left = self.joined.len() - self.passed;
        if left <= self.next {
            // The rest of it is in the block as well.
            self.next -= left;
            self.passed = 0;
            self.joined.clear();
        }
    }

    /// Cuts off the first `bytes` of what is at hand, and continues after them.
    pub fn take(&mut self, bytes: usize) -> Cut {
        if self.joined.is_empty() {
            let range = self.next..self.next + bytes;
            self.next = range.end;
            return self
                .block
                .clone()
                .map_or_else(|| Cut::Joined(Vec::new()), |block| Cut::Lies(block, range));
        }
        let left = self.joined.len() - self.passed - bytes;
        if self.passed == 0 && left <= self.next {
            self.next -= left;
            self.joined.truncate(bytes);
            return Cut::Joined(std::mem::take(&mut self.joined));
        }
        let mut cut = self.spare.take();
        cut.extend_from_slice(&self.joined[self.passed..self.passed + bytes]);
        self.pass(bytes);
        Cut::Joined(cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::account::Stage;
    use flow::cancel::Cancel;
    use flow::ring::{RingOptions, ring};
    use flow::run::StageKind;
    use proptest::prelude::*;

    /// One thing that is done with the stream.
    #[derive(Clone, Debug)]
    enum Step {
        /// Makes this many bytes be at hand, at once or one by one, and cuts them off.
        Cut(usize, usize),
        /// As before, but for fewer bytes than there are then.
        CutLess(usize, usize),
        /// Skips this many of those that are at hand.
        Pass(usize),
        /// More is taken, whatever is at hand.
        Grow(usize),
    }

    const BLOCK: usize = 512;

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (1..3 * BLOCK, 1..BLOCK).prop_map(|(bytes, by)| Step::Cut(bytes, by)),
            (1..3 * BLOCK, 1..BLOCK).prop_map(|(bytes, less)| Step::CutLess(bytes, less)),
            (1..2 * BLOCK).prop_map(Step::Pass),
            prop_oneof![Just(usize::MAX), 1..3 * BLOCK].prop_map(Step::Grow),
        ];
        proptest::collection::vec(step, 1..60)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn what_is_cut_is_the_stream(length in 0usize..40 * BLOCK, steps in steps()) {
            let stream: Vec<u8> = (0..length).map(|at| (at ^ (at >> 8)) as u8).collect();
            let options = RingOptions { block_bytes: BLOCK, blocks: 42, consumers: 1 };
            let (producer, consumers) = ring(options, Cancel::new()).unwrap();
            let mut account = Stage::new(StageKind::Read).open();
            let mut reservation = producer.reserve(length, &mut account).unwrap();
            reservation.filler().put(&stream);
            reservation.commit();
            producer.finish();
            let spare = Spare::default();
            let mut at_hand = AtHand::new(&consumers[0], &spare, None);
            let mut at = 0;
            for step in steps {
                match step {
                    Step::Cut(bytes, by) | Step::CutLess(bytes, by) => {
                        let bytes = bytes.min(length - at);
                        while at_hand.bytes().len() < bytes {
                            let wanted = bytes.min(at_hand.bytes().len() + by);
                            prop_assert!(at_hand.grow(wanted, &mut account).unwrap());
                        }
                        let less = if matches!(step, Step::CutLess(..)) { by } else { 0 };
                        let cut = at_hand.take(bytes.saturating_sub(less));
                        prop_assert_eq!(&cut[..], &stream[at..at + bytes.saturating_sub(less)]);
                        at += cut.len();
                        spare.give_back(cut);
                    }
                    Step::Pass(bytes) => {
                        let bytes = bytes.min(at_hand.bytes().len());
                        at_hand.pass(bytes);
                        at += bytes;
                    }
                    Step::Grow(wanted) => {
                        let before = at_hand.bytes().len();
                        let more = at_hand.grow(wanted, &mut account).unwrap();
                        prop_assert_eq!(more, at_hand.bytes().len() > before);
                        prop_assert!(more || at + before == length);
                    }
                }
                let here = at_hand.bytes().len();
                prop_assert_eq!(at_hand.bytes(), &stream[at..at + here]);
            }
            prop_assert!(spare.lock().iter().all(|bytes| bytes.capacity() <= SPARE_BYTES_MAX));
        }
    }
}
