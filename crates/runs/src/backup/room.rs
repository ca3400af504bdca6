//! Whether a target has room for more: a tape that nobody changes may be full long before the walk
//! ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::work::Work;
use crate::destination::Output;

/// Whether there is room for more.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// Set when what is stored from now on is dropped; `None` where that cannot be.
    is_ending: Option<Arc<AtomicBool>>,
    /// Objects that were left out then.
    left: AtomicU64,
}

impl Room {
    /// The room of a target.
    pub(super) fn of(output: &Output<'_>) -> Room {
        Room { is_ending: output.is_ending(), left: AtomicU64::new(0) }
    }

    /// Whether there is none: a medium is full, and there is no other.
    pub(super) fn is_ending(&self) -> bool {
        self.is_ending.as_ref().is_some_and(|is_ending| is_ending.load(Ordering::Acquire))
    }

    /// What of this there is room for; the rest is only named.
    pub(super) fn of_works(&self, works: Vec<Work>) -> Vec<Work> {
        if !self.is_ending() {
            return works;
        }
        works.into_iter().map(Work::without_room).collect()
    }

    /// Objects that were left out.
    pub(super) fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Counts an object for which there is none.
    pub(super) fn leave_one(&self) {
        self.left.fetch_add(1, Ordering::Relaxed);
    }
}
