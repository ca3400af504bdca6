//! A position in the stream of blocks; hands out the bytes from there on as leases.
//!
//! Only a unit across two blocks is copied. A [`Slice`] keeps its block on loan until it is
//! dropped, so content can be passed to other threads where it is in the ring.

use std::collections::VecDeque;
use std::ops::{Deref, Range};
use std::sync::Arc;

use archive::header::{UNIT_BYTES, Unit};
use archive::stream::{Archive, ArchiveOffset};
use flow::account::Account;
use flow::cancel::Stopped;
use flow::ring::{Block, Consumer};

use super::block_check::{BlockCheck, KeptChecksums};
use flow::gaps::{Gap, Gaps};

/// Memory that holds a slice.
#[derive(Clone, Debug)]
pub(crate) enum Lease {
    Ring(Block),
    /// A part of one.
    Part(Block, Range<usize>),
    /// Memory of its own.
    Memory(Arc<Vec<u8>>),
}

impl Deref for Lease {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Lease::Ring(block) => block,
            Lease::Part(block, range) => &block[range.clone()],
            Lease::Memory(bytes) => bytes,
        }
    }
}

/// Leased bytes of the stream.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    lease: Lease,
    from: usize,
    to: usize,
}

impl Deref for Slice {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.lease[self.from..self.to]
    }
}

/// The source of the blocks.
pub(crate) trait Supply {
    /// The next bytes, `None` at the end. Never empty.
    fn next(&mut self, account: &mut Account) -> Result<Option<Lease>, Stopped>;
    /// Bytes of the archive skipped between the last two leases, which no selected member needs.
    fn jumped_bytes(&self) -> u64 {
        0
    }
    /// Where the stream begins in its archive, known when its index arrives.
    fn begins_bytes(&self) -> ArchiveOffset {
        ArchiveOffset::START
    }
    /// Skips up to `bytes` of the stream if that is cheap. Returns how many were skipped.
    fn pass_over(&mut self, bytes: u64) -> u64;
    /// Whether `next` would wait.
    fn would_wait(&self) -> bool;
}

/// Blocks from a ring.
pub(crate) struct RingSupply {
    pub first: Option<Block>,
    pub consumer: Consumer,
}

impl RingSupply {
    /// The next block, `None` at the end. Never empty.
    pub fn next_block(&mut self, account: &mut Account) -> Result<Option<Block>, Stopped> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        Ok(self.consumer.next(account)?.filter(|block| !block.is_empty()))
    }
}

impl Supply for RingSupply {
    fn next(&mut self, account: &mut Account) -> Result<Option<Lease>, Stopped> {
        Ok(self.next_block(account)?.map(Lease::Ring))
    }

    fn pass_over(&mut self, _: u64) -> u64 {
        0
    }

    fn would_wait(&self) -> bool {
        self.first.is_none() && self.consumer.fill_blocks() == 0
    }
}

/// Blocks from a ring, checked with their checksums.
pub(crate) struct CheckedSupply {
    pub supply: RingSupply,
    pub check: Arc<BlockCheck>,
    /// Bytes so far.
    pub position_bytes: ArchiveOffset,
}

impl Supply for CheckedSupply {
    fn next(&mut self, account: &mut Account) -> Result<Option<Lease>, Stopped> {
        let lease = self.supply.next(account)?;
        if let Some(bytes) = &lease {
            self.check.update(self.position_bytes, bytes);
            self.position_bytes += bytes.len() as u64;
        }
        Ok(lease)
    }

    fn pass_over(&mut self, _: u64) -> u64 {
        0
    }

    fn would_wait(&self) -> bool {
        self.supply.would_wait()
    }
}

/// Blocks from a ring, whose checksums are kept.
pub(crate) struct KeepingSupply {
    pub supply: RingSupply,
    pub checksums: Arc<KeptChecksums>,
}

impl Supply for KeepingSupply {
    fn next(&mut self, account: &mut Account) -> Result<Option<Lease>, Stopped> {
        let lease = self.supply.next(account)?;
        if let Some(bytes) = &lease {
            self.checksums.update(bytes.clone());
        }
        Ok(lease)
    }

    fn pass_over(&mut self, _: u64) -> u64 {
        0
    }

    fn would_wait(&self) -> bool {
        self.supply.would_wait()
    }
}

/// The next unit. A unit is copied once from here to the decoder; boxing it would cost more.
#[allow(clippy::large_enum_variant)]
pub(crate) enum NextUnit {
    /// A whole unit; the cursor is behind it.
    Unit(Unit),
    /// A gap starts before the unit ends; the cursor did not move.
    Gap(Gap<Archive>),
    /// The stream ends with these bytes, fewer than a unit; the cursor is behind them.
    End(Vec<u8>),
}

/// Reads the stream from front to back.
pub(crate) struct Cursor<'a> {
    supply: Box<dyn Supply + 'a>,
    /// Taken from the supply, not yet passed.
    segments: VecDeque<Slice>,
    position_bytes: ArchiveOffset,
    /// Offset of the end of the last block taken.
    taken_bytes: ArchiveOffset,
    /// Offset at which the last jump ended, and the sum of all jumps.
    landed_bytes: ArchiveOffset,
    jumped_bytes: u64,
    gaps: Gaps<Archive>,
    /// The first gap at or behind the position, once known.
    gap: Option<Gap<Archive>>,
    ended: bool,
}

impl<'a> Cursor<'a> {
    pub fn new(supply: Box<dyn Supply + 'a>, gaps: Gaps<Archive>) -> Cursor<'a> {
        let segments = VecDeque::new();
        Cursor {
            supply,
            segments,
            position_bytes: ArchiveOffset::START,
            taken_bytes: ArchiveOffset::START,
            landed_bytes: ArchiveOffset::START,
            jumped_bytes: 0,
            gaps,
            gap: None,
            ended: false,
        }
    }

    /// Bytes of the stream so far, without jumps.
    pub fn passed_bytes(&self) -> u64 {
        self.position_bytes.bytes() - self.jumped_bytes
    }

    /// Where the stream begins in its archive, known when its index arrives.
    pub fn begins_bytes(&self) -> ArchiveOffset {
        self.supply.begins_bytes()
    }

    /// Offset of the next byte.
    pub fn position_bytes(&self) -> ArchiveOffset {
        self.position_bytes
    }

    /// Whether asking for more bytes would wait.
    pub fn would_wait(&self) -> bool {
        self.segments.is_empty() && !self.ended && self.supply.would_wait()
    }

    /// Takes another block; false at the end of the stream.
    fn take_more(&mut self, account: &mut Account) -> Result<bool, Stopped> {
        if self.ended {
            return Ok(false);
        }
        let Some(lease) = self.supply.next(account)? else {
            self.ended = true;
            return Ok(false);
        };
        let jumped_bytes = self.supply.jumped_bytes();
        if jumped_bytes > 0 {
            self.taken_bytes += jumped_bytes;
            self.position_bytes += jumped_bytes;
            self.jumped_bytes += jumped_bytes;
            self.landed_bytes = self.taken_bytes;
        }
        let to = lease.len();
        self.taken_bytes += to as u64;
        self.segments.push_back(Slice { lease, from: 0, to });
        Ok(true)
    }

    /// Bytes at hand from the position on, at least one; empty at the end of the stream.
    pub fn rest(&mut self, account: &mut Account) -> Result<&[u8], Stopped> {
        if self.segments.is_empty() {
            self.take_more(account)?;
        }
        Ok(self.segments.front().map_or(&[], |front| &**front))
    }

    /// The first gap that begins within the next `bytes`, if what is at hand has one. A seam at the
    /// position itself counts until [`Cursor::leave_gap`].
    pub fn gap_within(&mut self, bytes: u64) -> Option<&Gap<Archive>> {
        let end_bytes = self.position_bytes.saturating_add(bytes.max(1));
        let landed_bytes = self.landed_bytes;
        let left_out = |gap: &Gap<Archive>| gap.length_bytes > 0 && gap.end_bytes() <= landed_bytes;
        if self.gap.as_ref().is_none_or(left_out) {
            let known_bytes = if self.ended { ArchiveOffset::MAX } else { self.taken_bytes };
            self.gap = loop {
                let gap = self.gaps.take_before(known_bytes);
                if !gap.as_ref().is_some_and(left_out) {
                    break gap;
                }
            };
        }
        self.gap.as_ref().filter(|gap| gap.start_bytes < end_bytes)
    }

    /// Forgets the current gap once the position is at its end.
    pub fn leave_gap(&mut self) {
        if self.gap.as_ref().is_some_and(|gap| gap.end_bytes() <= self.position_bytes) {
            self.gap = None;
        }
    }

    /// Passes `bytes` of what `rest` returned.
    pub fn advance(&mut self, bytes: usize) {
        let Some(front) = self.segments.front_mut() else { return };
        front.from += bytes.min(front.to - front.from);
        self.position_bytes += bytes as u64;
        if front.from == front.to {
            self.segments.pop_front();
        }
    }

    /// Takes up to `bytes_max` of what is at hand as a lease.
    pub fn take(&mut self, bytes_max: u64, account: &mut Account) -> Result<Slice, Stopped> {
        self.rest(account)?;
        let Some(front) = self.segments.front() else {
            return Ok(Slice { lease: Lease::Memory(Arc::default()), from: 0, to: 0 });
        };
        let bytes = ((front.to - front.from) as u64).min(bytes_max) as usize;
        let slice = Slice { lease: front.lease.clone(), from: front.from, to: front.from + bytes };
        self.advance(bytes);
        Ok(slice)
    }

    /// Skips up to `bytes` if the supply can do so without reading them.
    pub fn jump(&mut self, bytes: u64) -> u64 {
        if !self.segments.is_empty() || self.ended {
            return 0;
        }
        let passed = self.supply.pass_over(bytes);
        self.position_bytes += passed;
        self.taken_bytes += passed;
        passed
    }

    /// Skips `bytes`, gaps and jumps included: fewer at the end of the stream, more where a jump
    /// leads further on.
    pub fn pass_over(&mut self, bytes: u64, account: &mut Account) -> Result<(), Stopped> {
        let target_bytes = self.position_bytes.saturating_add(bytes);
        while self.position_bytes < target_bytes {
            self.jump(target_bytes - self.position_bytes);
            let here = self.rest(account)?.len() as u64;
            if here == 0 {
                break;
            }
            self.advance(here.min(target_bytes.saturating_since(self.position_bytes)) as usize);
        }
        Ok(())
    }

    /// Passes the rest, so that the thread that fills the stream can finish.
    pub fn drain(&mut self, account: &mut Account) -> Result<(), Stopped> {
        self.segments.clear();
        while self.take_more(account)? {
            self.segments.clear();
        }
        Ok(())
    }

    /// Puts passed bytes back, in front of what is at hand.
    pub fn unread(&mut self, bytes: Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        self.position_bytes -= bytes.len() as u64;
        let to = bytes.len();
        self.segments.push_front(Slice { lease: Lease::Memory(Arc::new(bytes)), from: 0, to });
    }

    /// The next unit.
    pub fn next_unit(&mut self, account: &mut Account) -> Result<NextUnit, Stopped> {
        if self.rest(account)?.len() >= UNIT_BYTES {
            if let Some(gap) = self.gap_within(UNIT_BYTES as u64) {
                return Ok(NextUnit::Gap(gap.clone()));
            }
            let rest = self.rest(account)?;
            let unit = *rest.first_chunk::<UNIT_BYTES>().expect("there are enough bytes");
            self.advance(UNIT_BYTES);
            return Ok(NextUnit::Unit(unit));
        }
        let (mut unit, mut filled) = ([0; UNIT_BYTES], 0);
        while filled < UNIT_BYTES {
            let rest = self.rest(account)?;
            let here = rest.len().min(UNIT_BYTES - filled);
            unit[filled..filled + here].copy_from_slice(&rest[..here]);
            self.advance(here);
            filled += here;
            if here == 0 {
                break;
            }
        }
        let start_bytes = self.position_bytes - filled as u64;
        self.position_bytes = start_bytes;
        let gap = self.gap_within(UNIT_BYTES as u64).cloned();
        self.position_bytes += filled as u64;
        match gap {
            Some(gap) => {
                self.unread(unit[..filled].to_vec());
                Ok(NextUnit::Gap(gap))
            }
            None if filled == UNIT_BYTES => Ok(NextUnit::Unit(unit)),
            None => Ok(NextUnit::End(unit[..filled].to_vec())),
        }
    }
}

#[cfg(test)]
mod tests {
    use flow::account::Stage;
    use flow::cancel::Cancel;
    use flow::ring::{RingOptions, ring};
    use flow::run::StageKind;

    use super::*;

    #[test]
    fn a_ring_says_when_the_next_block_is_not_there_yet() {
        let options = RingOptions { block_bytes: 512, blocks: 4, consumers: 1 };
        let (producer, mut consumers) = ring(options, Cancel::new()).unwrap();
        let mut supply = RingSupply { first: None, consumer: consumers.remove(0) };
        let mut account = Stage::new(StageKind::Parse).open();
        assert!(supply.would_wait());
        for byte in [1, 2] {
            let mut reservation = producer.try_reserve(512).unwrap();
            reservation.filler().put(&[byte; 512]);
            reservation.commit();
        }
        assert!(!supply.would_wait());
        supply.first = supply.next_block(&mut account).unwrap();
        assert!(!supply.would_wait());
        for byte in [1, 2] {
            assert_eq!(supply.next_block(&mut account).unwrap().unwrap()[0], byte);
        }
        assert!(supply.would_wait());
    }
}
