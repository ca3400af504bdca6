//! Batches whose content is being fetched, released in the order of their tickets.
//!
//! A reader that held a later batch would wait for its turn, with all others behind it, for one
//! that nobody has.

use std::collections::VecDeque;

use super::batch::Batch;

/// The batches, from the first that is not released.
#[derive(Debug)]
pub(super) struct InOrder<W> {
    batches: VecDeque<Fetching<W>>,
    /// Ticket of the first of them.
    first: u64,
}

#[derive(Debug)]
struct Fetching<W> {
    batch: Batch<W>,
    /// Reads of it that are not done.
    reads: usize,
}

impl<W> Default for InOrder<W> {
    fn default() -> InOrder<W> {
        InOrder { batches: VecDeque::new(), first: 0 }
    }
}

impl<W> InOrder<W> {
    /// Adds the next batch, for which so many reads are to be done.
    pub(super) fn add(&mut self, batch: Batch<W>, reads: usize) {
        if self.batches.is_empty() {
            self.first = batch.ticket;
        }
        debug_assert_eq!(batch.ticket, self.first + self.batches.len() as u64);
        self.batches.push_back(Fetching { batch, reads });
    }

    /// A read of this batch is done.
    pub(super) fn done(&mut self, ticket: u64) {
        let place = (ticket - self.first) as usize;
        self.batches[place].reads -= 1;
    }

    /// The next batch for the readers, if nothing of it is to be done.
    pub(super) fn release(&mut self) -> Option<Batch<W>> {
        self.batches.front().filter(|first| first.reads == 0)?;
        self.first += 1;
        self.batches.pop_front().map(|fetching| fetching.batch)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_waits_for_all_before_it() {
        let mut batches = InOrder::<()>::default();
        let reads = [2, 0, 1];
        for (ticket, reads) in (7..).zip(reads) {
            batches.add(Batch { ticket, works: Vec::new(), held: None }, reads);
        }
        let released = |batches: &mut InOrder<()>| -> Vec<u64> {
            std::iter::from_fn(|| batches.release()).map(|batch| batch.ticket).collect()
        };
        batches.done(9);
        batches.done(7);
        assert_eq!(released(&mut batches), [0u64; 0]);
        batches.done(7);
        assert_eq!(released(&mut batches), [7, 8, 9]);
        assert!(batches.is_empty());
        batches.add(Batch { ticket: 10, works: Vec::new(), held: None }, 0);
        assert_eq!(released(&mut batches), [10]);
    }
}
