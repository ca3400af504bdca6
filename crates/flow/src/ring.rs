//! The ring: a stream of bytes cut into page-aligned blocks, filled out of order, drained in order.
//!
//! A [`Producer`] reserves the next bytes of the stream, in order. It gets a [`Reservation`] made
//! of [`Piece`]s, one for each block that it touches, which any thread may fill in any order. A
//! block is complete when all its bytes are committed. Blocks pass through one or more
//! [`Consumer`]s in order: each sees a block only after the previous consumer has released it, and
//! the last one frees it. So a hash stage and a writer share one ring without a copy.
//!
//! Capacity: `blocks` blocks, allocated at the start. The producer waits when all are in use, a
//! consumer waits while its next block is not complete. The safety of the spans depends on two
//! rules kept here: a byte of a slot belongs to at most one piece, and a slot is reserved again
//! only after the last [`Block`] of its earlier use is gone.
#![allow(unsafe_code)]

mod block;
mod marks;
mod region;
mod reservation;
mod waking;

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use base::failures::lock;
use base::offset::Offset;

use crate::account::{Account, ThreadState};
use crate::cancel::{Cancel, Stopped};
pub use block::Block;
use block::Lease;
pub use marks::Marks;
use region::Region;
pub use reservation::{Filler, Piece, Reservation};
use waking::{Behind, Call, Wake};

/// The stream of bytes through a ring. Only its producer knows what it contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {}

/// A place in the stream that goes through a ring.
pub type RingOffset = Offset<Ring>;

/// Size and shape of a ring.
#[derive(Clone, Copy, Debug)]
pub struct RingOptions {
    /// Bytes of a full block; a multiple of 512.
    pub block_bytes: usize,
    /// Number of blocks, at least 2.
    pub blocks: usize,
    /// Number of consumers that every block passes through, at least 1.
    pub consumers: usize,
}

#[derive(Debug)]
struct Shared {
    options: RingOptions,
    region: Arc<Region>,
    state: Mutex<Inner>,
    room: Condvar,
    ready: Vec<Condvar>,
    cancel: Cancel,
}

#[derive(Debug)]
struct Inner {
    /// Bytes of the stream reserved so far.
    reserved_bytes: u64,
    /// Length of the stream, once known.
    length_bytes: Option<u64>,
    /// Committed bytes of the blocks from `first` on.
    committed: VecDeque<usize>,
    /// Number of the first block that is not complete.
    complete: u64,
    /// For each consumer: blocks handed out, and blocks passed on to the next consumer, which all
    /// precede the first block still held.
    taken: Vec<u64>,
    passed: Vec<u64>,
    /// For each consumer: which of the blocks from `passed` on are released.
    let_go: Vec<VecDeque<bool>>,
    /// Slot of each block from number `oldest` on, `None` for freed ones. A write that others
    /// overtake keeps its block while later ones are freed, so the numbers in use may span more
    /// than the ring.
    slots: VecDeque<Option<usize>>,
    /// Number of the first block in `slots`.
    oldest: u64,
    /// Slots that hold no block, in the order in which they were freed.
    free: VecDeque<usize>,
    reuse: Reuse,
    /// Threads that wait for room, and for a block of each consumer: without waiting threads there
    /// is no wake-up call, which saves a system call for each block.
    producers_waiting: usize,
    consumers_waiting: Vec<usize>,
    /// How often the last consumer found the ring empty after its first block.
    ran_empty: u64,
}

impl Inner {
    /// Slot of a block that has begun and is not freed.
    fn slot(&self, number: u64) -> usize {
        let entry = self.slots.get((number - self.oldest) as usize);
        entry.copied().flatten().expect("a block has its slot until it is freed")
    }

    /// Blocks that have reached a consumer so far.
    fn upstream(&self, consumer: usize) -> u64 {
        match consumer {
            0 => self.complete,
            consumer => self.passed[consumer - 1],
        }
    }

    /// Records that a consumer released a block, and returns how many more the next one may take.
    fn let_go(&mut self, consumer: usize, number: u64) -> u64 {
        let (passed, let_go) = (&mut self.passed[consumer], &mut self.let_go[consumer]);
        let place = (number - *passed) as usize;
        if let_go.len() <= place {
            let_go.resize(place + 1, false);
        }
        let_go[place] = true;
        let before = *passed;
        while let_go.front() == Some(&true) {
            let_go.pop_front();
            *passed += 1;
        }
        *passed - before
    }

    fn free_block(&mut self, number: u64) {
        let slot = self.slots[(number - self.oldest) as usize].take();
        self.free.extend(slot);
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.oldest += 1;
        }
    }
}

/// Makes a ring. Blocks of less than the full size occur only at the end of the stream.
///
/// # Errors
/// When the memory cannot be allocated.
pub fn ring(options: RingOptions, cancel: Cancel) -> io::Result<(Producer, Vec<Consumer>)> {
    assert!(options.blocks >= 2 && options.consumers >= 1 && options.block_bytes >= 512);
    let region = Region::new(options.block_bytes * options.blocks)?;
    let shared = Arc::new(Shared {
        options,
        region,
        state: Mutex::new(Inner {
            reserved_bytes: 0,
            length_bytes: None,
            committed: VecDeque::with_capacity(options.blocks + 1),
            complete: 0,
            taken: vec![0; options.consumers],
            passed: vec![0; options.consumers],
            let_go: vec![VecDeque::new(); options.consumers],
            slots: VecDeque::with_capacity(2 * options.blocks),
            oldest: 0,
            free: (0..options.blocks).rev().collect(),
            reuse: Reuse::Warmest,
            producers_waiting: 0,
            consumers_waiting: vec![0; options.consumers],
            ran_empty: 0,
        }),
        room: Condvar::new(),
        ready: (0..options.consumers).map(|_| Condvar::new()).collect(),
        cancel,
    });
    let consumers = (0..options.consumers)
        .map(|index| Consumer { shared: Arc::clone(&shared), index })
        .collect();
    Ok((Producer { shared, last_block: LastBlock::Short }, consumers))
}

/// What happens to a last block that the stream does not fill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LastBlock {
    /// It stays short.
    #[default]
    Short,
    /// It is filled up with zeros.
    Padded,
}

/// Which free slot the next block gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reuse {
    /// The one freed last: while the consumers keep up, a few blocks circulate in the processor's
    /// cache, and the rest of the ring is not touched before it is needed. For blocks that this
    /// processor fills.
    #[default]
    Warmest,
    /// The one freed first, for blocks that a device fills. A device writes past the caches of the
    /// processor that read the previous block, and lines that are still there must be evicted,
    /// which costs the device more than memory does (`docs/design/speed.md` has the numbers).
    Coldest,
}

/// The filling end of a ring.
#[derive(Debug)]
pub struct Producer {
    shared: Arc<Shared>,
    last_block: LastBlock,
}

impl Producer {
    /// Sets what happens to a last block that the stream does not fill. The default leaves it
    /// short.
    pub fn set_last_block(&mut self, last_block: LastBlock) {
        self.last_block = last_block;
    }

    /// Sets which slots the next blocks get.
    pub fn set_reuse(&self, reuse: Reuse) {
        lock(&self.shared.state).reuse = reuse;
    }

    /// Bytes of a full block.
    pub fn block_bytes(&self) -> usize {
        self.shared.options.block_bytes
    }

    /// Bytes that the whole ring holds.
    pub fn capacity_bytes(&self) -> u64 {
        (self.shared.options.block_bytes * self.shared.options.blocks) as u64
    }

    /// Bytes of the stream reserved so far: the place of the next reservation.
    pub fn position_bytes(&self) -> RingOffset {
        RingOffset::new(lock(&self.shared.state).reserved_bytes)
    }

    /// Reserves the next `bytes` of the stream; waits for room as long as needed.
    ///
    /// The reservation must be smaller than the ring by at least one block, or it could wait for
    /// itself.
    ///
    /// # Errors
    /// When the run is stopped.
    pub fn reserve(&self, bytes: usize, account: &mut Account) -> Result<Reservation, Stopped> {
        let limit = self.shared.options.block_bytes * (self.shared.options.blocks - 1);
        assert!(bytes <= limit, "a reservation leaves one block of the ring free");
        let mut state = self.wait(bytes, account)?;
        Ok(self.take(&mut state, bytes))
    }

    /// Waits until `bytes` could be reserved at once, and reserves nothing. A tape that stopped for
    /// a full ring starts again when it can run this far without another stop.
    ///
    /// # Errors
    /// When the run is stopped.
    pub fn wait_for_room(&self, bytes: usize, account: &mut Account) -> Result<(), Stopped> {
        self.wait(bytes, account).map(drop)
    }

    /// The same, but for at most [`POLL`](crate::cancel::POLL): for callers that must check
    /// something else, too.
    ///
    /// # Errors
    /// When the run is stopped.
    pub fn wait_a_while_for_room(
        &self,
        bytes: usize,
        account: &mut Account,
    ) -> Result<(), Stopped> {
        let state = lock(&self.shared.state);
        if self.has_room(&state, bytes) {
            return Ok(());
        }
        account.during(ThreadState::Blocked, || self.wait_once(state)).map(drop)
    }

    /// Reserves the next `bytes` if there is room now.
    pub fn try_reserve(&self, bytes: usize) -> Option<Reservation> {
        let mut state = lock(&self.shared.state);
        self.has_room(&state, bytes).then(|| self.take(&mut state, bytes))
    }

    /// Ends the stream. The last block may be shorter than the others.
    pub fn finish(&self) {
        let over_bytes = (self.position_bytes() % self.block_bytes() as u64) as usize;
        if self.last_block == LastBlock::Padded && over_bytes > 0 {
            let rest = self.try_reserve(self.block_bytes() - over_bytes);
            let mut rest = rest.expect("the rest of a block that has begun needs no new slot");
            rest.slices_mut().for_each(|slice| slice.fill(0));
            rest.commit();
        }
        self.end(0);
    }

    /// Ends the stream with the first `filled_bytes` of the last reservation, which is in one
    /// block; the rest of it is returned.
    pub fn finish_with(self, reservation: Reservation, filled_bytes: usize) {
        let unused_bytes = reservation.remaining_bytes() - filled_bytes;
        let mut pieces = reservation.into_pieces();
        let mut last = pieces.next().expect("a reservation that is cut has a piece");
        assert!(pieces.next().is_none(), "a reservation that is cut lies in one block");
        let end_bytes = self.position_bytes() - unused_bytes as u64;
        let full = end_bytes % self.block_bytes() as u64 == 0;
        if self.last_block == LastBlock::Padded && !full {
            last.bytes_mut()[filled_bytes..].fill(0);
            last.commit();
            return self.finish();
        }
        let mut filled = last.split_front(filled_bytes);
        last.armed = false;
        self.end(unused_bytes as u64);
        filled.armed = true;
        filled.commit();
    }

    /// The state, once there is room for `bytes`.
    fn wait(&self, bytes: usize, account: &mut Account) -> Result<MutexGuard<'_, Inner>, Stopped> {
        let mut state = lock(&self.shared.state);
        if !self.has_room(&state, bytes) {
            account.switch(ThreadState::Blocked);
            while !self.has_room(&state, bytes) {
                let waited = self.wait_once(state);
                state = waited.inspect_err(|_| account.switch(ThreadState::Working))?;
            }
            account.switch(ThreadState::Working);
        }
        Ok(state)
    }

    fn wait_once<'a>(
        &'a self,
        mut state: MutexGuard<'a, Inner>,
    ) -> Result<MutexGuard<'a, Inner>, Stopped> {
        state.producers_waiting += 1;
        self.shared.wake_consumers(&state);
        let waited = self.shared.cancel.wait(&self.shared.room, state);
        let mut state = waited.inspect_err(|_| lock(&self.shared.state).producers_waiting -= 1)?;
        state.producers_waiting -= 1;
        Ok(state)
    }

    fn end(&self, unused_bytes: u64) {
        let mut state = lock(&self.shared.state);
        let length_bytes = state.reserved_bytes - unused_bytes;
        state.length_bytes = Some(length_bytes);
        self.shared.advance_complete(&mut state);
        self.shared.wake_consumers(&state);
    }

    fn has_room(&self, state: &Inner, bytes: usize) -> bool {
        let options = &self.shared.options;
        let end = state.reserved_bytes + bytes as u64;
        let begun = state.reserved_bytes.div_ceil(options.block_bytes as u64);
        let needed = end.div_ceil(options.block_bytes as u64) - begun;
        needed <= state.free.len() as u64
    }

    fn take(&self, state: &mut Inner, bytes: usize) -> Reservation {
        let options = &self.shared.options;
        let block_bytes = options.block_bytes as u64;
        let start_bytes = state.reserved_bytes;
        let mut pieces = VecDeque::with_capacity(bytes / options.block_bytes + 2);
        let mut at = start_bytes;
        let end = start_bytes + bytes as u64;
        while at < end {
            let block = at / block_bytes;
            let offset = (at % block_bytes) as usize;
            if offset == 0 {
                let slot = match state.reuse {
                    Reuse::Warmest => state.free.pop_back(),
                    Reuse::Coldest => state.free.pop_front(),
                };
                let slot = slot.expect("there is room for what is taken");
                state.slots.push_back(Some(slot));
                state.committed.push_back(0);
            }
            let length = (options.block_bytes - offset).min((end - at) as usize);
            let slot = state.slot(block);
            // SAFETY: the slot is in use by this block alone, and `reserved_bytes` only grows, so
            // these bytes belong to no other piece; no `Block` of this slot is handed out before
            // this piece is committed.
            let span =
                unsafe { self.shared.region.span(slot * options.block_bytes + offset, length) };
            pieces.push_back(Piece { shared: Arc::clone(&self.shared), block, span, armed: true });
            at += length as u64;
        }
        state.reserved_bytes = end;
        Reservation { start_bytes, pieces }
    }
}

impl Shared {
    fn wake_consumers(&self, state: &Inner) {
        for (ready, waiting) in self.ready.iter().zip(&state.consumers_waiting) {
            if *waiting > 0 {
                ready.notify_all();
            }
        }
    }

    /// Wakes as many of a consumer's threads as there are new blocks, and all at the end of the
    /// stream. Releases the state first: a woken thread needs it at once, and would sleep again.
    fn wake_consumer(&self, index: usize, state: MutexGuard<'_, Inner>, blocks: u64) {
        let waiting = state.consumers_waiting[index];
        let behind = if self.all_ready(index, &state) { Behind::Nothing } else { Behind::More };
        drop(state);
        match Call::after(waiting, blocks, behind) {
            Call::Nobody => {}
            Call::One => self.ready[index].notify_one(),
            Call::All => self.ready[index].notify_all(),
        }
    }

    /// Whether all blocks of the stream have reached a consumer.
    fn all_ready(&self, index: usize, state: &Inner) -> bool {
        let full = self.options.block_bytes as u64;
        state.length_bytes.is_some_and(|length| state.upstream(index) >= length.div_ceil(full))
    }

    fn commit(&self, block: u64, bytes: usize, wake: Wake) {
        let mut state = lock(&self.state);
        let index = (block - state.complete) as usize;
        state.committed[index] += bytes;
        if index == 0 {
            let blocks = self.advance_complete(&mut state);
            if wake == Wake::FirstConsumer {
                self.wake_consumer(0, state, blocks);
            }
        }
    }

    /// Moves `complete` over all complete blocks, and returns how many these were.
    fn advance_complete(&self, state: &mut Inner) -> u64 {
        let before = state.complete;
        while let Some(&committed) = state.committed.front() {
            let full = self.options.block_bytes;
            let start = state.complete * full as u64;
            let whole = match state.length_bytes {
                Some(length) if start >= length => break,
                Some(length) => full.min((length - start) as usize),
                None => full,
            };
            if committed < whole {
                break;
            }
            state.committed.pop_front();
            state.complete += 1;
        }
        state.complete - before
    }
}

/// A draining end of a ring. Several threads may share one, and release their blocks in any order:
/// the next consumer gets a block when it and all earlier ones are released.
#[derive(Debug)]
pub struct Consumer {
    shared: Arc<Shared>,
    index: usize,
}

impl Consumer {
    /// The next block, or `None` at the end of the stream.
    ///
    /// # Errors
    /// When the run is stopped.
    pub fn next(&self, account: &mut Account) -> Result<Option<Block>, Stopped> {
        self.next_filled(1, account)
    }

    /// The next block. If none is ready, waits until `start_fill_blocks` are, or the producer waits
    /// for room, or the stream ends: a writer whose ring ran empty starts again only when it can
    /// run for a while.
    ///
    /// # Errors
    /// When the run is stopped.
    pub fn next_filled(
        &self,
        start_fill_blocks: usize,
        account: &mut Account,
    ) -> Result<Option<Block>, Stopped> {
        let mut state = lock(&self.shared.state);
        if self.ready_blocks(&state) == 0 && !self.at_end(&state) {
            if state.taken[self.index] > 0 && self.is_last() {
                state.ran_empty += 1;
            }
            state = self.wait(state, start_fill_blocks, account)?;
        }
        self.shared.cancel.check()?;
        Ok(self.take(&mut state))
    }

    fn take(&self, state: &mut Inner) -> Option<Block> {
        if self.ready_blocks(state) == 0 {
            return None;
        }
        let number = state.taken[self.index];
        state.taken[self.index] += 1;
        Some(self.block(number, state))
    }

    /// The next block if it is ready now.
    ///
    /// # Errors
    /// When the run is stopped.
    pub fn try_next(&self) -> Result<Option<Block>, Stopped> {
        let mut state = lock(&self.shared.state);
        self.shared.cancel.check()?;
        Ok(self.take(&mut state))
    }

    /// Waits until this many blocks are ready, or the producer waits for room, or the stream ends.
    ///
    /// # Errors
    /// When the run is being stopped.
    pub fn wait_filled(&self, blocks: usize, account: &mut Account) -> Result<(), Stopped> {
        let state = lock(&self.shared.state);
        self.wait(state, blocks, account).map(drop)
    }

    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, Inner>,
        blocks: usize,
        account: &mut Account,
    ) -> Result<MutexGuard<'a, Inner>, Stopped> {
        account.switch(ThreadState::Starved);
        while !self.may_start(&state, blocks as u64) {
            state.consumers_waiting[self.index] += 1;
            let waited = self.shared.cancel.wait(&self.shared.ready[self.index], state);
            state = match waited {
                Ok(state) => state,
                Err(stopped) => {
                    lock(&self.shared.state).consumers_waiting[self.index] -= 1;
                    account.switch(ThreadState::Working);
                    return Err(stopped);
                }
            };
            state.consumers_waiting[self.index] -= 1;
        }
        account.switch(ThreadState::Working);
        Ok(state)
    }

    /// Blocks that are ready to be taken.
    pub fn fill_blocks(&self) -> usize {
        self.ready_blocks(&lock(&self.shared.state)) as usize
    }

    /// How often the writer found the ring empty after its first block.
    pub fn times_ran_empty(&self) -> u64 {
        lock(&self.shared.state).ran_empty
    }

    /// Number of blocks of the ring.
    pub fn capacity_blocks(&self) -> usize {
        self.shared.options.blocks
    }

    /// Bytes of a full block.
    pub fn block_bytes(&self) -> usize {
        self.shared.options.block_bytes
    }

    fn is_last(&self) -> bool {
        self.index + 1 == self.shared.options.consumers
    }

    fn block(&self, number: u64, state: &Inner) -> Block {
        let full = self.shared.options.block_bytes;
        let position_bytes = number * full as u64;
        let length = match state.length_bytes {
            Some(length) => full.min((length - position_bytes) as usize),
            None => full,
        };
        let slot = state.slot(number);
        // SAFETY: all bytes of the block are committed, so no piece of it is left; consumers only
        // read, and the slot stays in use until the last consumer's block is gone.
        let span = unsafe { self.shared.region.span(slot * full, length) };
        Block::new(Lease {
            shared: Arc::clone(&self.shared),
            consumer: self.index,
            number,
            position_bytes,
            span,
        })
    }

    fn ready_blocks(&self, state: &Inner) -> u64 {
        state.upstream(self.index) - state.taken[self.index]
    }

    fn at_end(&self, state: &Inner) -> bool {
        let full = self.shared.options.block_bytes as u64;
        state.length_bytes.is_some_and(|length| state.taken[self.index] >= length.div_ceil(full))
    }

    fn may_start(&self, state: &Inner, start_fill_blocks: u64) -> bool {
        let all_ready = self.shared.all_ready(self.index, state);
        let ready = self.ready_blocks(state);
        all_ready || ready >= start_fill_blocks || (ready > 0 && state.producers_waiting > 0)
    }
}
