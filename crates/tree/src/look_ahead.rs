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
//!
//! Only as many threads work as there are processors beside the caller's, until one of them has
//! waited for the disk. Of a warm tree more threads would take the caller's processor, and the job
//! that it needs next could be that of a thread that has no turn. The caller does not wait there,
//! either: it lists another directory in the meantime.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use base::failures::lock;
use machine::counters::processor;

use crate::listing::{ListRules, Listed, ListingJob, NamesBudget};

/// Jobs for which all threads are used after one that has waited for the disk.
const JOBS_OF_ALL: usize = 64;

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
    /// It is under way. This is another, which the caller does in the meantime: to wait and to be
    /// woken would take longer.
    Meanwhile(Ticket, ListingJob),
    /// Still under way after the wait.
    UnderWay,
}

struct Shared {
    /// All threads, and those that work while none waits for the disk.
    threads: usize,
    threads_at_first: usize,
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
    /// Threads with a job.
    working: usize,
    /// Further jobs for which all threads are used, since one has waited for the disk.
    jobs_of_all: usize,
    /// What the scan waits for.
    needed: Option<Ticket>,
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
        // One is the caller's.
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let at_first = processors.saturating_sub(1).max(1);
        let shared = Arc::new(Shared {
            threads,
            threads_at_first: threads.min(at_first),
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
        let mut board = self.shared.board();
        let free = self.shared.threads_now(&board).saturating_sub(board.working);
        let awaited = jobs.len().min(free);
        board.queue.extend(jobs);
        drop(board);
        (0..awaited).for_each(|_| self.shared.queued.notify_one());
    }

    /// Moves all available results into `results`.
    pub(crate) fn collect(&self, results: &mut HashMap<Ticket, Listed>) {
        results.extend(self.shared.board().done.drain());
    }

    /// The result of a job, if available.
    pub(crate) fn take(&self, ticket: Ticket) -> Option<Listed> {
        self.shared.board().done.remove(&ticket)
    }

    /// Lists a directory on the caller's thread. With a budget it is one of another turn.
    pub(crate) fn list_here(
        &self,
        job: &ListingJob,
        buffer: &mut Vec<u8>,
        budget: Option<&NamesBudget>,
    ) -> Listed {
        self.shared.list(job, buffer, budget)
    }

    /// The result of a job, or the job itself. Waits at most `wait`.
    pub(crate) fn claim(&self, ticket: Ticket, wait: Duration) -> Claim {
        let mut board = self.shared.board();
        if let Some(at) = board.queue.iter().position(|(queued, _)| *queued == ticket)
            && let Some((_, job)) = board.queue.remove(at)
        {
            return Claim::NotBegun(job);
        }
        // With a disk at work the caller's own directory may be there before another is read.
        let may_help =
            board.jobs_of_all == 0 && board.panic.is_none() && !board.done.contains_key(&ticket);
        if may_help && let Some((other, job)) = board.queue.pop_front() {
            return Claim::Meanwhile(other, job);
        }
        board.needed = Some(ticket);
        let pending =
            |board: &mut Board| !board.done.contains_key(&ticket) && board.panic.is_none();
        let waited = self.shared.done.wait_timeout_while(board, wait, pending);
        board = waited.unwrap_or_else(PoisonError::into_inner).0;
        board.needed = None;
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

    fn threads_now(&self, board: &Board) -> usize {
        if board.jobs_of_all > 0 { self.threads } else { self.threads_at_first }
    }

    /// Lists a directory, and notes whether the disk had to be waited for.
    fn list(&self, job: &ListingJob, buffer: &mut Vec<u8>, budget: Option<&NamesBudget>) -> Listed {
        let waits = processor::thread_waits();
        let listed = job.list(&self.rules, buffer, budget);
        let has_waited = processor::thread_waits() > waits;
        let mut board = self.board();
        let were = board.jobs_of_all;
        board.jobs_of_all = if has_waited { JOBS_OF_ALL } else { were.saturating_sub(1) };
        drop(board);
        if were == 0 && has_waited {
            self.queued.notify_all();
        }
        listed
    }

    fn work(&self) {
        let mut buffer = Vec::new();
        loop {
            let board = self.board();
            let has_none = |board: &mut Board| {
                let is_free = board.working < self.threads_now(board);
                (board.queue.is_empty() || !is_free) && !board.closed
            };
            let waited = self.queued.wait_while(board, has_none);
            let mut board = waited.unwrap_or_else(PoisonError::into_inner);
            let Some((ticket, job)) = board.queue.pop_front() else { return };
            board.working += 1;
            drop(board);
            // A panic leaves only this job half done, and no other code uses it.
            let list = || self.list(&job, &mut buffer, Some(&self.budget));
            let listed = catch_unwind(AssertUnwindSafe(list));
            drop(job);
            let mut board = self.board();
            board.working -= 1;
            let is_needed = listed.is_err() || board.needed == Some(ticket);
            match listed {
                Ok(listed) => drop(board.done.insert(ticket, listed)),
                Err(panic) => board.panic = Some(panic),
            }
            drop(board);
            if is_needed {
                self.done.notify_one();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::Directory;
    use crate::listing::{Names, SourceStart};
    use crate::scan::FileSystems;

    fn started(threads: usize) -> LookAhead {
        let rules = ListRules {
            excludes: crate::Excludes::new(&[""; 0]).unwrap(),
            file_systems: FileSystems::All,
            look: crate::Look::Names,
            changed: None,
            parts: Arc::default(),
            stop: Arc::default(),
        };
        let budget = NamesBudget { held_bytes: Default::default(), bytes_max: 1 << 20 };
        LookAhead::start(threads, Arc::new(rules), Arc::new(budget)).unwrap()
    }

    fn job(index: u32) -> ListingJob {
        let root = std::fs::File::open("/").unwrap();
        let stat = rustix::fs::stat("/").unwrap();
        let names = Names::of_source(0, b"tmp".to_vec(), SourceStart::Root, c"tmp", &stat);
        ListingJob { parent: Directory::new(root.into(), names), index, wanted: None }
    }

    #[test]
    fn a_panic_of_a_thread_reaches_who_waits_for_its_job() {
        let look_ahead = started(1);
        // Index 1 does not exist: to a listing this is a defect.
        look_ahead.queue(vec![(Ticket(0), job(1))]);
        while !look_ahead.shared.board().queue.is_empty() {
            thread::yield_now();
        }
        let claim = || drop(look_ahead.claim(Ticket(0), Duration::from_secs(60)));
        assert!(catch_unwind(AssertUnwindSafe(claim)).is_err());
    }

    #[test]
    fn who_waits_lists_another_directory_unless_a_disk_is_at_work() {
        let look_ahead = started(0);
        look_ahead.queue((0..4).map(|ticket| (Ticket(ticket), job(0))).collect());
        let claim = |ticket| look_ahead.claim(Ticket(ticket), Duration::from_millis(1));
        assert!(matches!(claim(2), Claim::NotBegun(_)));
        assert!(matches!(claim(2), Claim::Meanwhile(Ticket(0), _)));
        look_ahead.shared.board().jobs_of_all = 1;
        assert!(matches!(claim(2), Claim::UnderWay));
        let listed = job(0).list(&look_ahead.shared.rules, &mut Vec::new(), None);
        look_ahead.shared.board().jobs_of_all = 0;
        look_ahead.shared.board().done.insert(Ticket(2), listed);
        assert!(matches!(claim(2), Claim::Done(_)));
        assert!(matches!(claim(2), Claim::Meanwhile(Ticket(1), _)));
        assert!(matches!(claim(2), Claim::Meanwhile(Ticket(3), _)));
        assert!(matches!(claim(2), Claim::UnderWay));
    }

    #[test]
    fn all_threads_work_only_after_one_has_waited_for_the_disk() {
        let look_ahead = started(64);
        let shared = &look_ahead.shared;
        let processors = thread::available_parallelism().unwrap().get();
        let at_first = shared.threads_now(&shared.board());
        assert!(at_first == (processors - 1).clamp(1, 64), "{at_first} of {processors}");
        shared.board().jobs_of_all = 1;
        assert_eq!(shared.threads_now(&shared.board()), 64);
    }
}
