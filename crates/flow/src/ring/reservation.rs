//! A producer's part of a ring: the next bytes of the stream, which any thread may fill and commit
//! in any order. Part of `ring`, whose rules keep the bytes apart.

use std::collections::VecDeque;
use std::sync::Arc;

use super::region::Span;
use super::waking::Wake;
use super::{RingOffset, Shared};

/// The next bytes of a stream, owned by the holder until they are committed.
#[derive(Debug)]
pub struct Reservation {
    pub(super) start_bytes: u64,
    pub(super) pieces: VecDeque<Piece>,
}

impl Reservation {
    /// Place of the first byte in the stream.
    pub fn start_bytes(&self) -> RingOffset {
        RingOffset::new(self.start_bytes)
    }

    /// Bytes that are not yet handed out or filled.
    pub fn remaining_bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.span.len()).sum()
    }

    /// The pieces, one for each block touched, in order.
    pub fn into_pieces(self) -> impl Iterator<Item = Piece> {
        self.pieces.into_iter()
    }

    /// Takes the first `bytes` as pieces, to be filled and committed separately.
    pub fn split_front(&mut self, bytes: usize) -> Reservation {
        let mut front = VecDeque::new();
        let mut left = bytes;
        while left > 0 {
            let piece = self.pieces.front_mut().expect("a reservation is cut inside its bounds");
            if piece.span.len() <= left {
                left -= piece.span.len();
                front.extend(self.pieces.pop_front());
            } else {
                front.push_back(piece.split_front(left));
                left = 0;
            }
        }
        let start_bytes = self.start_bytes;
        self.start_bytes += bytes as u64;
        Reservation { start_bytes, pieces: front }
    }

    /// The bytes as slices, one for each block touched.
    pub fn slices_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.pieces.iter_mut().map(|piece| &mut *piece.span)
    }

    /// The bytes as slices to read back what was filled.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().map(|piece| &*piece.span)
    }

    /// Fills the bytes from the front on.
    pub fn filler(&mut self) -> Filler<'_> {
        Filler { current: &mut [], later: self.pieces.iter_mut() }
    }

    /// Commits all bytes as filled.
    pub fn commit(self) {
        self.pieces.into_iter().for_each(Piece::commit);
    }

    /// The same, as in [`Piece::commit_unheard`].
    pub fn commit_unheard(self) {
        self.pieces.into_iter().for_each(Piece::commit_unheard);
    }
}

/// Walks over the bytes of a reservation while they are filled, once and in order.
#[derive(Debug)]
pub struct Filler<'a> {
    current: &'a mut [u8],
    later: std::collections::vec_deque::IterMut<'a, Piece>,
}

impl<'a> Filler<'a> {
    /// The next bytes in one slice, at most `limit` of them; fewer where a block ends, none at the
    /// end of the reservation.
    pub fn slice(&mut self, limit: usize) -> &'a mut [u8] {
        if self.current.is_empty()
            && let Some(piece) = self.later.next()
        {
            self.current = &mut piece.span;
        }
        let current = std::mem::take(&mut self.current);
        let (now, later) = current.split_at_mut(limit.min(current.len()));
        self.current = later;
        now
    }

    /// Copies `data` to the next bytes.
    pub fn put(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let slice = self.slice(data.len());
            assert!(!slice.is_empty(), "what is filled in fits the reservation");
            let (now, later) = data.split_at(slice.len());
            slice.copy_from_slice(now);
            data = later;
        }
    }

    /// Sets the next `bytes` to zero.
    pub fn zeros(&mut self, mut bytes: usize) {
        while bytes > 0 {
            let slice = self.slice(bytes);
            assert!(!slice.is_empty(), "what is filled in fits the reservation");
            slice.fill(0);
            bytes -= slice.len();
        }
    }
}

/// The part of a reservation that lies in one block.
#[derive(Debug)]
pub struct Piece {
    pub(super) shared: Arc<Shared>,
    pub(super) block: u64,
    pub(super) span: Span,
    pub(super) armed: bool,
}

impl Piece {
    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.span.len()
    }

    /// Whether nothing is left of the piece.
    pub fn is_empty(&self) -> bool {
        self.span.is_empty()
    }

    /// The bytes to fill.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.span
    }

    /// Cuts the first `bytes` off as a piece of its own.
    pub fn split_front(&mut self, bytes: usize) -> Piece {
        let span = self.span.split_front(bytes);
        Piece { shared: Arc::clone(&self.shared), block: self.block, span, armed: true }
    }

    /// Commits the bytes as filled.
    pub fn commit(self) {
        self.commit_and(Wake::FirstConsumer);
    }

    /// Commits the bytes and wakes no thread, since the caller will take the ready blocks as the
    /// first consumer does ([`Consumer::try_next`](super::Consumer::try_next)).
    pub fn commit_unheard(self) {
        self.commit_and(Wake::Nobody);
    }

    fn commit_and(mut self, wake: Wake) {
        self.armed = false;
        if !self.span.is_empty() {
            self.shared.commit(self.block, self.span.len(), wake);
        }
    }

    pub(crate) fn address(&self) -> *mut u8 {
        self.span.address()
    }
}

impl Drop for Piece {
    /// A piece that is dropped unfilled would leave a hole in the stream: the run is stopped, so
    /// that no consumer waits for it or reads stale bytes.
    fn drop(&mut self) {
        if self.armed && !self.span.is_empty() {
            self.shared.cancel.fail();
        }
    }
}
