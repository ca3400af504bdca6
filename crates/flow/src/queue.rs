//! A bounded queue between two stages, for objects that are not bytes (batches of entries, pieces
//! of work). A thread that pushes to a full queue is blocked, a thread that pops from an empty one
//! starves; both check for a stop every 50 ms.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Instant;

use base::failures::lock;

use crate::account::{Account, ThreadState};
use crate::cancel::{Cancel, Stopped};

/// First in, first out, with a capacity; shared by reference between threads.
#[derive(Debug)]
pub struct Queue<T> {
    inner: Mutex<Inner<T>>,
    room: Condvar,
    ready: Condvar,
    capacity: usize,
    cancel: Cancel,
}

#[derive(Debug)]
struct Inner<T> {
    items: VecDeque<T>,
    closed: bool,
    /// Threads that wait for room, and for an item: without waiting threads there is no wake-up
    /// call.
    waiting_for_room: usize,
    waiting_for_item: usize,
}

impl<T> Queue<T> {
    /// An empty queue that holds up to `capacity` items.
    pub fn new(capacity: usize, cancel: Cancel) -> Queue<T> {
        let items = VecDeque::with_capacity(capacity);
        Queue {
            inner: Mutex::new(Inner {
                items,
                closed: false,
                waiting_for_room: 0,
                waiting_for_item: 0,
            }),
            room: Condvar::new(),
            ready: Condvar::new(),
            capacity: capacity.max(1),
            cancel,
        }
    }

    /// Appends an item; waits for room.
    ///
    /// # Errors
    /// When the run is stopped.
    pub fn push(&self, item: T, account: &mut Account) -> Result<(), Stopped> {
        let mut inner = lock(&self.inner);
        if inner.items.len() >= self.capacity {
            account.switch(ThreadState::Blocked);
            while inner.items.len() >= self.capacity {
                inner.waiting_for_room += 1;
                let waited = self.cancel.wait(&self.room, inner);
                inner = self.after(waited, account, |inner| &mut inner.waiting_for_room)?;
            }
            account.switch(ThreadState::Working);
        }
        self.cancel.check()?;
        self.append(item, inner);
        Ok(())
    }

    /// Appends an item if there is room now; otherwise returns it.
    ///
    /// # Errors
    /// The item, if there is no room for it.
    pub fn try_push(&self, item: T) -> Result<(), T> {
        let inner = lock(&self.inner);
        if inner.items.len() >= self.capacity {
            return Err(item);
        }
        self.append(item, inner);
        Ok(())
    }

    fn append(&self, item: T, mut inner: MutexGuard<'_, Inner<T>>) {
        inner.items.push_back(item);
        let is_waited_for = inner.waiting_for_item > 0;
        drop(inner);
        if is_waited_for {
            self.ready.notify_one();
        }
    }

    /// Removes a thread from the count of waiting ones.
    fn after<'a>(
        &'a self,
        waited: Result<MutexGuard<'a, Inner<T>>, Stopped>,
        account: &mut Account,
        count: impl Fn(&mut Inner<T>) -> &mut usize,
    ) -> Result<MutexGuard<'a, Inner<T>>, Stopped> {
        match waited {
            Ok(mut inner) => {
                *count(&mut inner) -= 1;
                Ok(inner)
            }
            Err(stopped) => {
                *count(&mut lock(&self.inner)) -= 1;
                account.switch(ThreadState::Working);
                Err(stopped)
            }
        }
    }

    /// Takes the oldest item; waits for one. `None` when the queue is closed and empty.
    ///
    /// # Errors
    /// When the run is stopped.
    pub fn pop(&self, account: &mut Account) -> Result<Option<T>, Stopped> {
        self.pop_as(ThreadState::Starved, account)
    }

    /// The same for a thread whose wait is of another kind: it waits for those behind it.
    ///
    /// # Errors
    /// When the run is stopped.
    pub fn pop_as(
        &self,
        waiting: ThreadState,
        account: &mut Account,
    ) -> Result<Option<T>, Stopped> {
        let mut inner = lock(&self.inner);
        if inner.items.is_empty() && !inner.closed {
            account.switch(waiting);
            while inner.items.is_empty() && !inner.closed {
                inner.waiting_for_item += 1;
                let waited = self.cancel.wait(&self.ready, inner);
                inner = self.after(waited, account, |inner| &mut inner.waiting_for_item)?;
            }
            account.switch(ThreadState::Working);
        }
        self.cancel.check()?;
        let item = inner.items.pop_front();
        // Threads that fill the queue are woken when half of it is free, not for each item.
        let half_empty = inner.items.len() <= self.capacity / 2;
        let is_waited_for = inner.waiting_for_room > 0;
        drop(inner);
        if item.is_some() && half_empty && is_waited_for {
            self.room.notify_one();
        }
        Ok(item)
    }

    /// The oldest item, if there is one by `end` or soon after; also `None` when the queue is
    /// closed and empty.
    ///
    /// # Errors
    /// When the run is stopped.
    pub fn pop_until(&self, end: Instant, account: &mut Account) -> Result<Option<T>, Stopped> {
        let mut inner = lock(&self.inner);
        if inner.items.is_empty() && !inner.closed {
            account.switch(ThreadState::Starved);
            while inner.items.is_empty() && !inner.closed && Instant::now() < end {
                inner.waiting_for_item += 1;
                let waited = self.cancel.wait(&self.ready, inner);
                inner = self.after(waited, account, |inner| &mut inner.waiting_for_item)?;
            }
            account.switch(ThreadState::Working);
        }
        if inner.items.is_empty() {
            return Ok(None);
        }
        drop(inner);
        self.pop(account)
    }

    /// Ends the queue: nothing more is pushed.
    pub fn close(&self) {
        lock(&self.inner).closed = true;
        self.ready.notify_all();
    }

    /// Number of waiting items.
    pub fn len(&self) -> usize {
        lock(&self.inner).items.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
