//! A number of bytes that several queues share, for data that are not in a ring.
//!
//! A thread that makes an object takes a [`Loan`] for its bytes and sends it along; when the object
//! is dropped, the bytes are free again. So the sum of all objects in progress is bounded, however
//! they are spread over queues. An object larger than the whole budget goes alone: it waits until
//! nothing else is in progress.
//! A thread must not hold back objects with loans while it takes another, or it waits for itself.
//! Who takes must not hold back things with loans while it waits, or it waits for itself.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use base::failures::lock;

use crate::account::{Account, ThreadState};
use crate::cancel::{Cancel, Stopped};

/// The bytes, shared between threads.
#[derive(Debug)]
pub struct Budget {
    shared: Arc<Shared>,
    cancel: Cancel,
}

#[derive(Debug)]
struct Shared {
    capacity_bytes: usize,
    used_bytes: AtomicUsize,
    waiting: AtomicUsize,
    door: Mutex<()>,
    room: Condvar,
}

/// Bytes taken from a budget; returned when dropped.
#[derive(Debug)]
pub struct Loan {
    shared: Arc<Shared>,
    bytes: usize,
}

impl Budget {
    /// A budget that is completely free.
    pub fn new(capacity_bytes: usize, cancel: Cancel) -> Budget {
        let shared = Shared {
            capacity_bytes,
            used_bytes: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            door: Mutex::new(()),
            room: Condvar::new(),
        };
        Budget { shared: Arc::new(shared), cancel }
    }

    /// Takes `bytes` if they are free.
    pub fn try_take(&self, bytes: usize) -> Option<Loan> {
        let shared = &self.shared;
        let take = |used: usize| {
            let sum = used.saturating_add(bytes);
            (used == 0 || sum <= shared.capacity_bytes).then_some(sum)
        };
        let taken = shared.used_bytes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take);
        taken.is_ok().then(|| Loan { shared: Arc::clone(shared), bytes })
    }

    /// Takes `bytes`; waits until they are free.
    ///
    /// # Errors
    /// When the run is being stopped.
    pub fn take(&self, bytes: usize, account: &mut Account) -> Result<Loan, Stopped> {
        if let Some(loan) = self.try_take(bytes) {
            return Ok(loan);
        }
        self.shared.waiting.fetch_add(1, Ordering::SeqCst);
        account.switch(ThreadState::Blocked);
        let result = self.wait(bytes);
        self.shared.waiting.fetch_sub(1, Ordering::SeqCst);
        account.switch(ThreadState::Working);
        result
    }

    fn wait(&self, bytes: usize) -> Result<Loan, Stopped> {
        let mut door = lock(&self.shared.door);
        loop {
            if let Some(loan) = self.try_take(bytes) {
                return Ok(loan);
            }
            door = self.cancel.wait(&self.shared.room, door)?;
        }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.shared.used_bytes.fetch_sub(self.bytes, Ordering::SeqCst);
        if self.shared.waiting.load(Ordering::SeqCst) > 0 {
            // Under the lock: a thread that found nothing free before is waiting by now.
            let door = lock(&self.shared.door);
            self.shared.room.notify_all();
            drop(door);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Stage;
    use crate::run::StageKind;

    #[test]
    fn what_is_taken_never_exceeds_the_budget() {
        let budget = Budget::new(100, Cancel::new());
        let first = budget.try_take(60).unwrap();
        assert!(budget.try_take(41).is_none());
        let second = budget.try_take(40).unwrap();
        drop(first);
        assert!(budget.try_take(61).is_none());
        drop(second);
        let large = budget.try_take(1000).expect("alone it may be larger");
        assert!(budget.try_take(1).is_none());
        drop(large);
        assert!(budget.try_take(100).is_some());
    }

    #[test]
    fn who_waits_is_woken_by_what_is_given_back_and_by_a_stop() {
        let cancel = Cancel::new();
        let budget = Budget::new(10, cancel.clone());
        let stage = Stage::new(StageKind::Write);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut account = stage.open();
                    for bytes in 1..200 {
                        drop(budget.take(bytes % 12, &mut account).unwrap());
                    }
                });
            }
        });
        let _held = budget.try_take(10).unwrap();
        cancel.fail();
        assert_eq!(budget.take(1, &mut stage.open()).err(), Some(Stopped::Failed));
    }
}
