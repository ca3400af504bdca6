//! Order for parallel work: tickets pass one after the other.
//!
//! Workers take numbered tasks and finish them in any order. What must happen in the order of the
//! numbers (a place in the archive, a place in the output) happens between [`Turnstile::enter`] and
//! [`Turn::pass`]. Waiting tickets sleep on a few separate condition variables, so that a turn
//! wakes its successor and not all others.
//!
//! A turn whose work failed, or panicked, is never passed on: whoever came next would go on with
//! what is half done, and what it finds there would hide the failure.

use std::sync::{Condvar, Mutex};

use base::failures::lock;

use crate::account::{Account, ThreadState};
use crate::cancel::{Cancel, Stopped};

const DOORS: usize = 64;

/// Lets tickets 0, 1, 2, ... pass in this order.
#[derive(Debug)]
pub struct Turnstile {
    queue: Mutex<Tickets>,
    doors: [Condvar; DOORS],
    cancel: Cancel,
}

#[derive(Debug)]
struct Tickets {
    next: u64,
    /// How many wait at each door: an empty door needs no wake-up call.
    waiting: [usize; DOORS],
}

/// The turn. Dropped without being passed on, it stops the run: no later ticket passes.
#[derive(Debug)]
#[must_use = "who has the turn passes it on"]
pub struct Turn<'a> {
    turnstile: &'a Turnstile,
    is_passed: bool,
}

impl Turnstile {
    /// A turnstile at ticket 0.
    pub fn new(cancel: Cancel) -> Turnstile {
        let queue = Mutex::new(Tickets { next: 0, waiting: [0; DOORS] });
        Turnstile { queue, doors: std::array::from_fn(|_| Condvar::new()), cancel }
    }

    /// Waits until all lower tickets have passed. The wait counts as `waiting`.
    ///
    /// # Errors
    /// When the run is stopped.
    pub fn enter(
        &self,
        ticket: u64,
        account: &mut Account,
        waiting: ThreadState,
    ) -> Result<Turn<'_>, Stopped> {
        let mut queue = lock(&self.queue);
        if queue.next != ticket {
            account.switch(waiting);
            let door = ticket as usize % DOORS;
            while queue.next != ticket {
                queue.waiting[door] += 1;
                queue = match self.cancel.wait(&self.doors[door], queue) {
                    Ok(queue) => queue,
                    Err(stopped) => {
                        lock(&self.queue).waiting[door] -= 1;
                        account.switch(ThreadState::Working);
                        return Err(stopped);
                    }
                };
                queue.waiting[door] -= 1;
            }
            account.switch(ThreadState::Working);
        }
        Ok(Turn { turnstile: self, is_passed: false })
    }
}

impl Turn<'_> {
    /// Lets the next ticket pass: the work in order is complete.
    pub fn pass(mut self) {
        self.is_passed = true;
        let mut queue = lock(&self.turnstile.queue);
        queue.next += 1;
        let door = queue.next as usize % DOORS;
        let is_waited_for = queue.waiting[door] > 0;
        // A woken thread needs the lock at once.
        drop(queue);
        if is_waited_for {
            // Tickets that share a door differ by 64: wake all of them, of which only one
            // continues.
            self.turnstile.doors[door].notify_all();
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.is_passed {
            self.turnstile.cancel.fail();
        }
    }
}
