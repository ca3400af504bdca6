//! Time accounting: how long each stage worked, starved and was blocked.
//!
//! Every thread of a stage holds an [`Account`]. It is *working* by default; around a wait it
//! switches to *starved* (waits for input), *blocked* (waits for room in its output) or *apart*
//! (waits for something outside all stages). The four times of a thread add up to the wall time
//! between its first and its last moment, because each switch closes one interval and opens the
//! next at the same instant.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use machine::counters::processor::{ThreadSchedule, thread_ns};

use crate::run::{StageKind, StageReport};
use crate::series::{Series, StageSeries};
use crate::steps::{Keeper, Step};

/// What a thread of a stage is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// Doing its job, system calls of the job included.
    Working = 0,
    /// Waiting for input.
    Starved = 1,
    /// Waiting for room in its output.
    Blocked = 2,
    /// Waiting for something outside all stages, which is reported separately: a change of volume,
    /// or the medium that must still take what was written.
    Apart = 3,
}

/// The counters of one stage, shared by its threads.
#[derive(Debug)]
pub struct Stage {
    kind: StageKind,
    state_ns: [AtomicU64; 4],
    bytes: AtomicU64,
    /// Open accounts now, and the most at the same time: a stage whose thread is followed by
    /// another one later is a stage of one thread.
    open: AtomicU64,
    open_most: AtomicU64,
    processor_ns: AtomicU64,
    core_wait_ns: AtomicU64,
    /// Threads that work now, since when at least one does, and for how long in all.
    working: AtomicU64,
    occupied_since_ns: AtomicU64,
    occupied_ns: AtomicU64,
    start: Instant,
    /// The time series, if requested.
    series: OnceLock<Series>,
    /// The steps of a stage of one thread, if requested; and the wait that belongs to the other
    /// stage.
    steps: OnceLock<(ThreadState, Keeper)>,
    /// The state of a stage of one thread, and how long the program at its end worked while it
    /// waited.
    state: AtomicU8,
    other_end_ns: AtomicU64,
}

impl Stage {
    /// A stage with all counters at zero.
    pub fn new(kind: StageKind) -> Arc<Stage> {
        Arc::new(Stage {
            kind,
            state_ns: Default::default(),
            bytes: AtomicU64::new(0),
            open: AtomicU64::new(0),
            open_most: AtomicU64::new(0),
            processor_ns: AtomicU64::new(0),
            core_wait_ns: AtomicU64::new(0),
            working: AtomicU64::new(0),
            occupied_since_ns: AtomicU64::new(0),
            occupied_ns: AtomicU64::new(0),
            start: Instant::now(),
            series: OnceLock::new(),
            steps: OnceLock::new(),
            state: AtomicU8::new(ThreadState::Working as u8),
            other_end_ns: AtomicU64::new(0),
        })
    }

    /// Starts a time series, in intervals of which the first begins at `began`.
    pub fn keep_series(&self, began: Instant) {
        self.series.get_or_init(|| Series::new(began));
    }

    /// The time series, if kept; complete once all accounts are closed.
    pub fn series(&self) -> Option<StageSeries> {
        self.series.get().map(Series::told)
    }

    /// Starts to keep the cost of each block; time in the state `waiting` belongs to the other
    /// stage. For a stage of one thread that counts its bytes block by block.
    pub fn keep_steps(&self, waiting: ThreadState) {
        self.steps.get_or_init(|| (waiting, Keeper::new()));
    }

    /// The wait that belongs to the other stage, if steps are kept.
    pub(crate) fn steps_wait_in(&self) -> Option<ThreadState> {
        self.steps.get().map(|(waiting, _)| *waiting)
    }

    /// Whether the thread of a one-thread stage is in that state now.
    pub(crate) fn is_in(&self, state: ThreadState) -> bool {
        self.state.load(Ordering::Relaxed) == state as u8
    }

    /// Adds time in which the program at its end worked while the stage waited.
    pub(crate) fn other_end_worked(&self, time: Duration) {
        self.other_end_ns.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// The cost of each block, if kept.
    pub fn steps(&self) -> Vec<Step> {
        self.steps.get().map(|(_, keeper)| keeper.steps()).unwrap_or_default()
    }

    /// Opens the account of one thread, which is working from this moment on. Call it on the thread
    /// itself, since its processor time is read when the account closes.
    pub fn open(self: &Arc<Stage>) -> Account {
        crate::trap::pass(self.kind);
        let open = self.open.fetch_add(1, Ordering::AcqRel) + 1;
        self.open_most.fetch_max(open, Ordering::AcqRel);
        let now = Instant::now();
        self.begin_work(now);
        Account {
            stage: Arc::clone(self),
            state: ThreadState::Working,
            since: now,
            processor_ns_at_start: thread_ns(),
            core_wait_ns_at_start: ThreadSchedule::of_this_thread().waited_ns(),
        }
    }

    /// One more thread works. Two threads that cross here may misplace a few nanoseconds between
    /// them; the error does not accumulate, since each change sets the start anew.
    fn begin_work(&self, now: Instant) {
        if self.working.fetch_add(1, Ordering::AcqRel) == 0 {
            self.occupied_since_ns.store(self.nanoseconds(now), Ordering::Release);
        }
    }

    fn end_work(&self, now: Instant) {
        if self.working.fetch_sub(1, Ordering::AcqRel) == 1 {
            let since_ns = self.occupied_since_ns.load(Ordering::Acquire);
            let occupied_ns = self.nanoseconds(now).saturating_sub(since_ns);
            self.occupied_ns.fetch_add(occupied_ns, Ordering::Relaxed);
        }
    }

    fn nanoseconds(&self, now: Instant) -> u64 {
        now.duration_since(self.start).as_nanos() as u64
    }

    /// The job of the stage.
    pub fn kind(&self) -> StageKind {
        self.kind
    }

    /// Counts bytes that passed through.
    pub fn add_bytes(&self, bytes: u64) {
        crate::trap::pass(self.kind);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(series) = self.series.get() {
            series.add_bytes(bytes);
        }
        if let Some((waiting, keeper)) = self.steps.get()
            && bytes > 0
        {
            let waited_ns = self.state_ns[*waiting as usize].load(Ordering::Relaxed);
            keeper.add(waited_ns, self.other_end_ns.load(Ordering::Relaxed));
        }
    }

    /// Bytes that have passed through so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The counts so far; complete once all accounts are closed.
    pub fn report(&self) -> StageReport {
        let threads = self.open_most.load(Ordering::Relaxed);
        let seconds = |state: ThreadState| {
            self.state_ns[state as usize].load(Ordering::Relaxed) as f64
                / 1e9
                / threads.max(1) as f64
        };
        StageReport {
            kind: self.kind,
            threads,
            working_seconds: seconds(ThreadState::Working),
            starved_seconds: seconds(ThreadState::Starved),
            blocked_seconds: seconds(ThreadState::Blocked),
            apart_seconds: seconds(ThreadState::Apart),
            occupied_seconds: self.occupied_ns.load(Ordering::Relaxed) as f64 / 1e9,
            processor_seconds: self.processor_ns.load(Ordering::Relaxed) as f64 / 1e9,
            core_wait_seconds: self.core_wait_ns.load(Ordering::Relaxed) as f64 / 1e9,
            bytes: self.bytes(),
        }
    }
}

/// The account of one thread; closed when dropped.
#[derive(Debug)]
pub struct Account {
    stage: Arc<Stage>,
    state: ThreadState,
    since: Instant,
    processor_ns_at_start: u64,
    core_wait_ns_at_start: u64,
}

impl Account {
    /// Runs `wait` in the given state and returns to the state before it.
    pub fn during<T>(&mut self, state: ThreadState, wait: impl FnOnce() -> T) -> T {
        let before = self.state;
        self.switch(state);
        let result = wait();
        self.switch(before);
        result
    }

    /// Enters a state; the time since the last switch belongs to the state before.
    pub fn switch(&mut self, state: ThreadState) {
        crate::trap::pass(self.stage.kind);
        self.enter(state);
    }

    fn enter(&mut self, state: ThreadState) {
        let now = Instant::now();
        let elapsed_ns = now.duration_since(self.since).as_nanos() as u64;
        self.stage.state_ns[self.state as usize].fetch_add(elapsed_ns, Ordering::Relaxed);
        if let Some(series) = self.stage.series.get() {
            series.add_time(self.state, self.since, now);
        }
        match (self.state, state) {
            (ThreadState::Working, ThreadState::Working) => {}
            (ThreadState::Working, _) => self.stage.end_work(now),
            (_, ThreadState::Working) => self.stage.begin_work(now),
            _ => {}
        }
        self.stage.state.store(state as u8, Ordering::Relaxed);
        self.state = state;
        self.since = now;
    }

    /// The stage whose account this is.
    pub fn stage(&self) -> &Arc<Stage> {
        &self.stage
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.enter(ThreadState::Working);
        self.stage.end_work(self.since);
        let used_ns = thread_ns().saturating_sub(self.processor_ns_at_start);
        self.stage.processor_ns.fetch_add(used_ns, Ordering::Relaxed);
        let waited_ns =
            ThreadSchedule::of_this_thread().waited_ns().saturating_sub(self.core_wait_ns_at_start);
        self.stage.core_wait_ns.fetch_add(waited_ns, Ordering::Relaxed);
        self.stage.open.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_one_after_the_other_are_one_thread() {
        let stage = Stage::new(StageKind::Write);
        for _ in 0..3 {
            let mut account = stage.open();
            account.during(ThreadState::Starved, || std::thread::sleep(Duration::from_millis(2)));
        }
        let report = stage.report();
        assert_eq!(report.threads, 1);
        assert!((report.occupied_seconds - report.working_seconds).abs() < 1e-6, "{report:?}");
        assert!(report.starved_seconds >= 0.006, "{report:?}");
    }

    #[test]
    fn a_series_adds_up_to_the_report() {
        let stage = Stage::new(StageKind::Read);
        assert_eq!(stage.series(), None);
        stage.keep_series(Instant::now());
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut account = stage.open();
                    account.during(ThreadState::Starved, || {
                        std::thread::sleep(Duration::from_millis(15));
                    });
                    stage.add_bytes(7);
                });
            }
        });
        let (report, series) = (stage.report(), stage.series().unwrap());
        let threads = report.threads as f64;
        let starved: f64 = series.starved_seconds.iter().sum();
        assert!((starved - report.starved_seconds * threads).abs() < 1e-9, "{series:?}");
        assert!(series.starved_seconds.len() > 1, "{series:?}");
        let working: f64 = series.working_seconds.iter().sum();
        assert!((working - report.working_seconds * threads).abs() < 1e-9, "{series:?}");
        assert_eq!(series.bytes.iter().sum::<u64>(), 21);
    }

    #[test]
    fn the_states_of_a_thread_add_up_to_its_wall_time() {
        let stage = Stage::new(StageKind::Read);
        let before = Instant::now();
        let mut account = stage.open();
        let inside = Instant::now();
        account.during(ThreadState::Starved, || std::thread::sleep(Duration::from_millis(5)));
        account.during(ThreadState::Blocked, || std::thread::sleep(Duration::from_millis(3)));
        let least = inside.elapsed().as_secs_f64();
        drop(account);
        let wall = before.elapsed().as_secs_f64();
        let report = stage.report();
        let sum = report.working_seconds + report.starved_seconds + report.blocked_seconds;
        assert!(report.starved_seconds >= 0.005 && report.blocked_seconds >= 0.003);
        // Other load of the machine does not matter.
        assert!(least <= sum && sum <= wall, "{least} to {sum} of {wall}");
    }
}
