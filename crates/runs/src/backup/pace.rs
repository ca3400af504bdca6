//! The number of readers that work at once.
//!
//! Reading many small files from a disk is waiting: the more readers wait at once, the busier the
//! disk. Reading them from the page cache is computing: more readers than cores only hinder each
//! other. This changes from folder to folder, so it is measured while reading. A reader that slept
//! during its batch raises the limit; one that computed, or waited for a core, lowers it.

use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use flow::account::{Account, ThreadState};
use flow::cancel::{Cancel, Stopped};
use machine::counters::processor::{ThreadSchedule, thread_ns};

use base::failures::lock;

/// Share of the time, in percent, that a reader must have slept for the limit to rise. Locks in the
/// kernel make every reader sleep a little.
const ASLEEP_PERCENT: u64 = 15;

/// Readers that work until it is known whether they wait or compute.
const AT_THE_START: usize = 8;

/// While the limit is at its lowest, one batch in this many is measured: reading the scheduler's
/// account costs 2 microseconds, a fortieth of the time for a batch of small cached files.
const MEASURED_EACH: u32 = 4;

/// Longest sleep of a reader without a permit. Up to 64 of them wait, and need not look at
/// anything: every holder of a permit notices a stop and wakes them.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// Hands out permits to work, as many as help.
#[derive(Debug)]
pub(super) struct Pace {
    state: Mutex<Permits>,
    changed: Condvar,
    lowest: usize,
    highest: usize,
    cancel: Cancel,
}

#[derive(Debug)]
struct Permits {
    limit: usize,
    used: usize,
}

/// A permit to work; returned when dropped.
#[derive(Debug)]
pub(super) struct Permit<'a> {
    pace: &'a Pace,
}

impl Pace {
    /// Between `lowest` and `highest` at once. Starts at [`AT_THE_START`]. Each reader that waits
    /// for a disk adds four, so the highest is reached after two batches of each. Cached files are
    /// read by few readers from the start, which use few blocks of the ring.
    pub(super) fn new(lowest: usize, highest: usize, cancel: Cancel) -> Pace {
        let highest = highest.max(1);
        let lowest = lowest.clamp(1, highest);
        let limit = AT_THE_START.clamp(lowest, highest);
        let state = Mutex::new(Permits { limit, used: 0 });
        Pace { state, changed: Condvar::new(), lowest, highest, cancel }
    }

    /// Waits for a permit.
    pub(super) fn enter(&self, account: &mut Account) -> Result<Permit<'_>, Stopped> {
        let mut state = lock(&self.state);
        if state.used >= state.limit {
            account.switch(ThreadState::Starved);
            while state.used >= state.limit {
                let waited = self.changed.wait_timeout(state, SLEEP_MAX);
                state = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
                self.cancel.check().inspect_err(|_| account.switch(ThreadState::Working))?;
            }
            account.switch(ThreadState::Working);
        }
        self.cancel.check()?;
        state.used += 1;
        Ok(Permit { pace: self })
    }

    /// Whether a permit may be kept for the next batch, so that no other reader is woken for work
    /// that this one can do at once.
    pub(super) fn may_stay(&self) -> bool {
        let state = lock(&self.state);
        state.used <= state.limit
    }

    /// Whether readers wait for the disk rather than compute.
    pub(super) fn is_waiting_for_disk(&self) -> bool {
        lock(&self.state).limit > self.lowest
    }

    /// Adjusts the limit to how a reader spent its time, if that was measured.
    pub(super) fn learn(&self, spent: Spent) {
        if spent.asleep_ns + spent.awake_ns == 0 {
            return;
        }
        let mut state = lock(&self.state);
        if spent.asleep_ns * 100 > (spent.asleep_ns + spent.awake_ns) * ASLEEP_PERCENT {
            state.limit = (state.limit + 4).min(self.highest);
            let room = state.limit.saturating_sub(state.used);
            drop(state);
            (0..room).for_each(|_| self.changed.notify_one());
        } else {
            state.limit = (state.limit - 1).max(self.lowest);
        }
    }
}

/// How a thread spent a stretch of time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    /// Computing, or waiting for a core.
    pub(super) awake_ns: u64,
    /// Waiting for the disk or for a lock.
    pub(super) asleep_ns: u64,
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, other: Spent) {
        self.awake_ns += other.awake_ns;
        self.asleep_ns += other.asleep_ns;
    }
}

/// Measures how its thread spends its time.
#[derive(Debug)]
pub(super) struct SleepMeter {
    /// A kernel without scheduler statistics makes every wait for a core look like sleep, and there
    /// are more readers than needed.
    schedule: ThreadSchedule,
    since: Instant,
    awake_ns: u64,
    batches: u32,
    is_measuring: bool,
}

impl SleepMeter {
    /// A meter for the calling thread.
    pub(super) fn new() -> SleepMeter {
        let schedule = ThreadSchedule::of_this_thread();
        let since = Instant::now();
        SleepMeter { schedule, since, awake_ns: 0, batches: 0, is_measuring: true }
    }

    /// Begins a batch; only some are measured unless readers wait for the disk.
    pub(super) fn next_batch(&mut self, pace: &Pace) {
        self.is_measuring =
            self.batches.is_multiple_of(MEASURED_EACH) || pace.is_waiting_for_disk();
        self.batches = self.batches.wrapping_add(1);
    }

    /// Begins a stretch.
    pub(super) fn start(&mut self) {
        if self.is_measuring {
            self.awake_ns = self.awake_ns_of_thread();
            self.since = Instant::now();
        }
    }

    /// How the thread spent the time since the start of the stretch; `None` if not measured.
    pub(super) fn spent(&self) -> Spent {
        if !self.is_measuring {
            return Spent::default();
        }
        let wall_ns = self.since.elapsed().as_nanos() as u64;
        // The kernel's numbers may be missing once, and the sum is smaller then.
        let awake_ns = self.awake_ns_of_thread().saturating_sub(self.awake_ns).min(wall_ns);
        Spent { awake_ns, asleep_ns: wall_ns - awake_ns }
    }

    fn awake_ns_of_thread(&self) -> u64 {
        thread_ns() + self.schedule.waited_ns()
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.pace.state);
        state.used -= 1;
        let may_go = state.used < state.limit;
        drop(state);
        if self.pace.cancel.check().is_err() {
            self.pace.changed.notify_all();
        } else if may_go {
            self.pace.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::account::Stage;
    use flow::run::StageKind;

    #[test]
    fn the_limit_follows_what_the_readers_see() {
        let pace = Pace::new(2, 32, Cancel::new());
        assert!(pace.is_waiting_for_disk());
        assert_eq!(lock(&pace.state).limit, 8);
        (0..6).for_each(|_| pace.learn(Spent { awake_ns: 30, asleep_ns: 70 }));
        assert_eq!(lock(&pace.state).limit, 32);
        (0..40).for_each(|_| pace.learn(Spent { awake_ns: 95, asleep_ns: 5 }));
        assert_eq!(lock(&pace.state).limit, 2);
        assert!(!pace.is_waiting_for_disk());
        (0..3).for_each(|_| pace.learn(Spent { awake_ns: 30, asleep_ns: 70 }));
        assert_eq!(lock(&pace.state).limit, 14);
        (0..40).for_each(|_| pace.learn(Spent { awake_ns: 30, asleep_ns: 70 }));
        assert_eq!(lock(&pace.state).limit, 32);
    }

    #[test]
    fn sleep_is_told_from_work() {
        let mut meter = SleepMeter::new();
        meter.start();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let spent = meter.spent();
        assert!(spent.asleep_ns > 15_000_000, "{spent:?}");
        meter.start();
        let mut number = 1u64;
        while meter.since.elapsed().as_millis() < 20 {
            number = std::hint::black_box(number.wrapping_mul(3));
        }
        let spent = meter.spent();
        assert!(spent.awake_ns > spent.asleep_ns, "{spent:?}");
    }

    #[test]
    fn only_some_batches_are_measured_while_nobody_waits() {
        // Not whether it slept: a wait for a core between two readings of the clocks can be longer.
        let spin = |meter: &mut SleepMeter, pace: &Pace| {
            meter.next_batch(pace);
            meter.start();
            std::thread::sleep(Duration::from_micros(100));
            let spent = meter.spent();
            spent.asleep_ns + spent.awake_ns > 0
        };
        let (mut meter, waiting) = (SleepMeter::new(), Pace::new(1, 8, Cancel::new()));
        assert!((0..8).all(|_| spin(&mut meter, &waiting)));
        let computing = Pace::new(2, 2, Cancel::new());
        let measured = (0..16).filter(|_| spin(&mut meter, &computing)).count();
        assert_eq!(measured, 4);
        // An unmeasured stretch changes nothing.
        computing.learn(Spent::default());
        waiting.learn(Spent::default());
        assert_eq!(lock(&waiting.state).limit, 8);
    }

    #[test]
    fn a_stop_reaches_everybody_who_waits_for_a_permit() {
        let cancel = Cancel::new();
        let pace = Pace::new(1, 1, cancel.clone());
        let held = pace.enter(&mut Stage::new(StageKind::Read).open()).unwrap();
        std::thread::scope(|scope| {
            let wait = || pace.enter(&mut Stage::new(StageKind::Read).open()).is_err();
            let waiting: Vec<_> = (0..8).map(|_| scope.spawn(wait)).collect();
            cancel.cancel();
            drop(held);
            assert!(waiting.into_iter().all(|thread| thread.join().unwrap()));
        });
    }

    #[test]
    fn a_permit_is_kept_until_the_limit_falls() {
        let pace = Pace::new(1, 2, Cancel::new());
        let mut account = Stage::new(StageKind::Read).open();
        let [_one, _two] = [(); 2].map(|()| pace.enter(&mut account).unwrap());
        assert!(pace.may_stay());
        pace.learn(Spent { awake_ns: 95, asleep_ns: 5 });
        assert!(!pace.may_stay());
    }

    #[test]
    fn no_more_than_the_limit_work_at_once() {
        let pace = Pace::new(2, 2, Cancel::new());
        let at_once = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    let mut account = Stage::new(StageKind::Read).open();
                    for _ in 0..200 {
                        let permit = pace.enter(&mut account).unwrap();
                        let now = at_once.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        assert!(now < 2);
                        at_once.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                        drop(permit);
                    }
                });
            }
        });
    }
}
