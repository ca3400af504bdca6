//! The threads that list directories before their turn comes.
//!
//! Listing a cold directory takes a few dependent reads of the disk, so a cold walk is fast only
//! with several under way. The threads know nothing of the order: they take jobs from a queue and
//! put results on a board. Only the scan decides which jobs and how many are queued, and takes the
//! result it needs next. If no thread has begun that job, the scan takes it back and does it
//! itself, so that a warm walk never waits for a thread to wake up.
//!
//! Queue and board together hold at most the look-ahead's number of directories: the scan queues
//! no more. Threads block when the queue is empty; the scan blocks, for a limited time, when the
//! job it needs is under way.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use base::failures::lock;

use crate::listing::{ListRules, Listed, ListingJob, NamesBudget};

pub(crate) struct LookAhead {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// Names a queued job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ticket(pub(crate) u64);

/// The state of a job that is needed now.
pub(crate) enum Claim {
    Done(Listed),
    /// No thread has begun it: the caller has to do it.
    NotBegun(ListingJob),
    /// Still under way after the wait.
    UnderWay,
}

struct Shared {
    board: Mutex<Board>,
    queued: Condvar,
    done: Condvar,
    rules: Arc<ListRules>,
    budget: Arc<NamesBudget>,
}

#[derive(Default)]
struct Board {
    queue: VecDeque<(Ticket, ListingJob)>,
    done: HashMap<Ticket, Listed>,
    closed: bool,
    /// The panic of a thread, whose job will never finish.
    panic: Option<Box<dyn Any + Send>>,
}

impl LookAhead {
    pub(crate) fn start(
        threads: usize,
        rules: Arc<ListRules>,
        budget: Arc<NamesBudget>,
    ) -> io::Result<LookAhead> {
        let shared = Arc::new(Shared {
            board: Mutex::default(),
            queued: Condvar::new(),
            done: Condvar::new(),
            rules,
            budget,
        });
        let mut look_ahead = LookAhead { shared, threads: Vec::new() };
        for number in 0..threads {
            let shared = Arc::clone(&look_ahead.shared);
            let builder = thread::Builder::new().name(format!("scan-{number}"));
            look_ahead.threads.push(builder.spawn(move || shared.work())?);
        }
        Ok(look_ahead)
    }

    /// Queues jobs in the order in which they will be needed.
    pub(crate) fn queue(&self, jobs: Vec<(Ticket, ListingJob)>) {
        let count = jobs.len();
        self.shared.board().queue.extend(jobs);
        match count {
            0 => {}
            1 => self.shared.queued.notify_one(),
            _ => self.shared.queued.notify_all(),
        }
    }

    /// Moves all available results into `results`.
    pub(crate) fn collect(&self, results: &mut HashMap<Ticket, Listed>) {
        results.extend(self.shared.board().done.drain());
    }

    /// The result of a job, if available.
    pub(crate) fn take(&self, ticket: Ticket) -> Option<Listed> {
        self.shared.board().done.remove(&ticket)
    }

    /// The result of a job, or the job itself. Waits at most `wait`.
    pub(crate) fn claim(&self, ticket: Ticket, wait: Duration) -> Claim {
        let mut board = self.shared.board();
        if let Some(at) = board.queue.iter().position(|(queued, _)| *queued == ticket)
            && let Some((_, job)) = board.queue.remove(at)
        {
            return Claim::NotBegun(job);
        }
        let pending =
            |board: &mut Board| !board.done.contains_key(&ticket) && board.panic.is_none();
        let waited = self.shared.done.wait_timeout_while(board, wait, pending);
        board = waited.unwrap_or_else(PoisonError::into_inner).0;
        if let Some(panic) = board.panic.take() {
            drop(board);
            // As a join would: a panic of a thread is a panic of the scan.
            resume_unwind(panic);
        }
        board.done.remove(&ticket).map_or(Claim::UnderWay, Claim::Done)
    }
}

impl Drop for LookAhead {
    fn drop(&mut self) {
        {
            let mut board = self.shared.board();
            board.closed = true;
            board.queue.clear();
        }
        self.shared.queued.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn board(&self) -> MutexGuard<'_, Board> {
        // No code that can panic runs under the lock.
        lock(&self.board)
    }

    fn work(&self) {
        let mut buffer = Vec::new();
        loop {
            let board = self.board();
            let waited =
                self.queued.wait_while(board, |board| board.queue.is_empty() && !board.closed);
            let mut board = waited.unwrap_or_else(PoisonError::into_inner);
            let Some((ticket, job)) = board.queue.pop_front() else { return };
            drop(board);
            // A panic leaves only this job half done, and no other code uses it.
            let list = || job.list(&self.rules, &mut buffer, Some(&self.budget));
            let listed = catch_unwind(AssertUnwindSafe(list));
            drop(job);
            let mut board = self.board();
            match listed {
                Ok(listed) => drop(board.done.insert(ticket, listed)),
                Err(panic) => board.panic = Some(panic),
            }
            drop(board);
            self.done.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::Directory;
    use crate::listing::{Names, SourceStart};
    use crate::scan::FileSystems;

    #[test]
    fn a_panic_of_a_thread_reaches_who_waits_for_its_job() {
        let rules = ListRules {
            excludes: crate::Excludes::new(&[""; 0]).unwrap(),
            file_systems: FileSystems::All,
            look: crate::Look::Names,
            changed: None,
            stop: Arc::default(),
        };
        let budget = NamesBudget { held_bytes: Default::default(), bytes_max: 1 << 20 };
        let look_ahead = LookAhead::start(1, Arc::new(rules), Arc::new(budget)).unwrap();
        let root = std::fs::File::open("/").unwrap();
        let stat = rustix::fs::stat("/").unwrap();
        let names = Names::of_source(0, b"tmp".to_vec(), SourceStart::Root, c"tmp", &stat);
        // Index 1 does not exist: to a listing this is a defect.
        let job = ListingJob { parent: Directory::new(root.into(), names), index: 1, wanted: None };
        look_ahead.queue(vec![(Ticket(0), job)]);
        while !look_ahead.shared.board().queue.is_empty() {
            thread::yield_now();
        }
        let claim = || drop(look_ahead.claim(Ticket(0), Duration::from_secs(60)));
        assert!(catch_unwind(AssertUnwindSafe(claim)).is_err());
    }
}
