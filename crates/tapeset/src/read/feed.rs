//! From tape blocks into the blocks of a ring.
//!
//! A tape block is read straight into the ring if it fits the rest of a ring block, otherwise
//! through a buffer. Behind a full ring a drive stops once its own buffer is full, too, and then
//! has to reposition. So it starts again only when half of the ring is free: few long stops instead
//! of many short ones.

use archive::stream::{Stored, StoredOffset};
use flow::account::Account;
use flow::cancel::Stopped;
use flow::ring::{Producer, Reservation, RingOffset};

use flow::gaps::{Gap, Gaps};

/// Fills a ring from its front.
pub(super) struct Feed<'a> {
    producer: Producer,
    pub account: &'a mut Account,
    gaps: &'a Gaps<Stored>,
    /// The block that is being filled.
    reservation: Option<Reservation>,
    filled_bytes: usize,
    /// Where it begins.
    before_bytes: RingOffset,
    /// How often the ring was full.
    pub ring_was_full: u64,
}

impl<'a> Feed<'a> {
    pub fn new(producer: Producer, account: &'a mut Account, gaps: &'a Gaps<Stored>) -> Feed<'a> {
        let (reservation, filled_bytes, before_bytes, ring_was_full) =
            (None, 0, RingOffset::START, 0);
        Feed { producer, account, gaps, reservation, filled_bytes, before_bytes, ring_was_full }
    }

    /// Offset of the next byte in the stream.
    pub fn position_bytes(&self) -> RingOffset {
        self.before_bytes + self.filled_bytes as u64
    }

    /// Room for `bytes` in one piece, if the rest of the block has it. [`Feed::commit`] sets how
    /// many of them were filled.
    pub fn room(&mut self, bytes: usize) -> Result<Option<&mut [u8]>, Stopped> {
        self.begin_block()?;
        let (block_bytes, filled_bytes) = (self.producer.block_bytes(), self.filled_bytes);
        if block_bytes - filled_bytes < bytes {
            return Ok(None);
        }
        let reservation = self.reservation.as_mut();
        let slice = reservation.and_then(|reservation| reservation.slices_mut().next());
        Ok(slice.map(|slice| &mut slice[filled_bytes..filled_bytes + bytes]))
    }

    /// Commits the first `bytes` of what [`Feed::room`] returned.
    pub fn commit(&mut self, bytes: usize) {
        self.filled_bytes += bytes;
        self.account.stage().add_bytes(bytes as u64);
        if self.filled_bytes == self.producer.block_bytes()
            && let Some(reservation) = self.reservation.take()
        {
            self.before_bytes += self.filled_bytes as u64;
            self.filled_bytes = 0;
            reservation.commit();
        }
    }

    /// Copies bytes.
    pub fn put(&mut self, mut bytes: &[u8]) -> Result<(), Stopped> {
        while !bytes.is_empty() {
            self.begin_block()?;
            let room_bytes = self.producer.block_bytes() - self.filled_bytes;
            let (now, later) = bytes.split_at(bytes.len().min(room_bytes));
            if let Some(room) = self.room(now.len())? {
                room.copy_from_slice(now);
            }
            self.commit(now.len());
            bytes = later;
        }
        Ok(())
    }

    /// Puts zeros in place of `bytes` missing bytes, from `start_bytes` of the stream on.
    pub fn put_gap(
        &mut self,
        start_bytes: StoredOffset,
        bytes: u64,
        why: String,
    ) -> Result<(), Stopped> {
        const ZEROS: &[u8] = &[0; 64 << 10];
        if bytes == 0 {
            return Ok(());
        }
        self.gaps.enter(Gap { start_bytes, length_bytes: bytes, why });
        let mut left = bytes;
        while left > 0 {
            let now = left.min(ZEROS.len() as u64);
            self.put(&ZEROS[..now as usize])?;
            left -= now;
        }
        Ok(())
    }

    /// Ends the stream.
    pub fn finish(self) {
        match self.reservation {
            Some(reservation) => self.producer.finish_with(reservation, self.filled_bytes),
            None => self.producer.finish(),
        }
    }

    fn begin_block(&mut self) -> Result<(), Stopped> {
        if self.reservation.is_some() {
            return Ok(());
        }
        let block_bytes = self.producer.block_bytes();
        self.reservation = Some(match self.producer.try_reserve(block_bytes) {
            Some(reservation) => reservation,
            None => {
                self.ring_was_full += 1;
                let half_bytes = (self.producer.capacity_bytes() / 2) as usize;
                self.producer.wait_for_room(half_bytes.max(block_bytes), self.account)?;
                self.producer.reserve(block_bytes, self.account)?
            }
        });
        Ok(())
    }
}
