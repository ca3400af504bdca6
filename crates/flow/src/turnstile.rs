//! Order out of parallel work: tickets pass one after the other.
//!
//! Workers take numbered tasks and finish them in any order; what must happen in the order of the
//! numbers (a place in the archive, a place in the output) happens between [`Turnstile::enter`] and
//! the end of the [`Turn`]. Waiting tickets sleep on a few separate condition variables, so that a
//! turn wakes its successor and not the whole crowd.

use std::sync::{Condvar, Mutex};

use failures::lock;

use crate::account::{Account, State};
use crate::cancel::{Cancel, Stopped};

const DOORS: usize = 64;

/// Lets tickets 0, 1, 2, ... pass in this order.
#[derive(Debug)]
pub struct Turnstile {
    next: Mutex<u64>,
    doors: [Condvar; DOORS],
    cancel: Cancel,
}

/// The right to be the one whose turn it is; passed on when dropped.
#[derive(Debug)]
pub struct Turn<'a> {
    turnstile: &'a Turnstile,
}

impl Turnstile {
    /// A turnstile at ticket 0.
    pub fn new(cancel: Cancel) -> Turnstile {
        Turnstile { next: Mutex::new(0), doors: std::array::from_fn(|_| Condvar::new()), cancel }
    }

    /// Waits until all lower tickets have passed. `waiting` is how the wait is accounted.
    ///
    /// # Errors
    /// When the run is stopped.
    pub fn enter(
        &self,
        ticket: u64,
        account: &mut Account,
        waiting: State,
    ) -> Result<Turn<'_>, Stopped> {
        let mut next = lock(&self.next);
        if *next != ticket {
            account.switch(waiting);
            while *next != ticket {
                let door = &self.doors[ticket as usize % DOORS];
                next = self.cancel.wait(door, next).inspect_err(|_| {
                    account.switch(State::Working);
                })?;
            }
            account.switch(State::Working);
        }
        Ok(Turn { turnstile: self })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut next = lock(&self.turnstile.next);
        *next += 1;
        let door = *next as usize % DOORS;
        // Who is woken wants it at once.
        drop(next);
        // Tickets that share a door differ by 64: wake all of them, only one of which goes on.
        self.turnstile.doors[door].notify_all();
    }
}
