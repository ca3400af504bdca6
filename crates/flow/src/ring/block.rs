//! A consumer's part of a ring: a complete block, until it is released. Part of `ring`, whose rules
//! keep the bytes apart.

use std::ops::Deref;
use std::sync::Arc;

use base::failures::lock;

use super::region::Span;
use super::{RingOffset, Shared};

/// A complete block on loan to a consumer; clones share the loan.
#[derive(Clone, Debug)]
pub struct Block(Arc<Lease>);

/// The consumer's hold on the ring until the last clone of its block is gone.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) shared: Arc<Shared>,
    pub(super) consumer: usize,
    pub(super) number: u64,
    pub(super) position_bytes: u64,
    pub(super) span: Span,
}

impl Block {
    pub(super) fn new(lease: Lease) -> Block {
        Block(Arc::new(lease))
    }

    /// Number of the block in the stream, from 0.
    pub fn number(&self) -> u64 {
        self.0.number
    }

    /// Place of its first byte in the stream.
    pub fn position_bytes(&self) -> RingOffset {
        RingOffset::new(self.0.position_bytes)
    }

    pub(crate) fn address(&self) -> *const u8 {
        self.0.span.address()
    }
}

impl Deref for Block {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0.span
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        if self.consumer + 1 == self.shared.options.consumers {
            state.free_block(self.number);
            let is_waited_for = state.producers_waiting > 0;
            drop(state);
            if is_waited_for {
                self.shared.room.notify_all();
            }
        } else {
            let blocks = state.let_go(self.consumer, self.number);
            self.shared.wake_consumer(self.consumer + 1, state, blocks);
        }
    }
}
