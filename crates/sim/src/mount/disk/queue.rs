//! Requests that wait until the model says that they are complete.
//!
//! Whoever takes a request from the kernel has the model say when it is complete, moves its bytes,
//! and leaves the answer here; a timer gives it when its time has come. So any number of requests
//! is under way at once with a handful of threads. One timer sleeps for the next answer; the other
//! goes on while the first one gives an answer, which for a large read is the copying of its bytes.
//!
//! A sleep ends some microseconds late, by an amount that is about the same each time. The timer
//! learns it, and sleeps that much shorter. A request has also been on its way through the kernel
//! before it comes here, and its answer will be: [`Queue::begin`] is told how long that takes, and
//! takes a request as come that much earlier and gives the answer that much earlier.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io;
use std::num::NonZeroU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use base::failures::lock;
use model::disk::{DiskCounters, DiskModel, DiskParameters};

use crate::speed_up::SpeedUp;

/// How time passes for a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// That many times as fast as on the wall.
    Times(SpeedUp),
    /// Requests take what they take.
    None,
}

/// What a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Read { offset: u64, bytes: u64 },
    Write { offset: u64, bytes: u64 },
    Flush,
    Discard { offset: u64 },
}

/// A request that the model knows of. Each has to be handed to [`Queue::complete`].
pub(super) struct Arrival {
    due: Instant,
    number: u64,
}

/// What is done when the time has come.
type Answer = Box<dyn FnOnce() + Send>;

/// What was seen so far. Times are the model's.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) parameters: DiskParameters,
    pub(super) clock: Clock,
    pub(super) counters: DiskCounters,
    pub(super) tally: Tally,
    pub(super) in_flight: usize,
    /// What is taken as the way through the kernel and back.
    pub(super) round_trip: Duration,
    /// From the first request to the end of the last one.
    pub(super) span_ns: u64,
}

/// Counters that the model does not keep.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
    pub(super) depth_max: usize,
    /// Sum of the requests' times from call to completion.
    pub(super) response_ns: u64,
    /// Time with at least one request under way.
    pub(super) busy_ns: u64,
    /// Answers that came later than [`LATE_NS`], and by how much in all.
    pub(super) late: u64,
    pub(super) late_ns: u64,
    first_ns: Option<u64>,
    busy_until_ns: u64,
}

/// An answer that is later than that is counted.
pub(super) const LATE_NS: u64 = 1_000_000;
/// Bytes of answers that wait; whoever brings more waits.
const WAITING_BYTES_MAX: u64 = 256 << 20;
const TIMERS: usize = 2;
/// What a request takes until time begins: long enough for everything to fall asleep meanwhile, as
/// it does when a disk is waited for.
pub(super) const PROBE: Duration = Duration::from_micros(500);
/// No sleep is shortened by more.
const CORRECTION_NS_MAX: u64 = 200_000;
const CORRECTION_STEP_NS: u64 = 2000;
/// Nothing that takes longer is believed to be the way through the kernel alone.
const ROUND_TRIP_MAX: Duration = Duration::from_micros(200);

/// The requests of one disk.
pub(super) struct Queue {
    shared: Arc<Shared>,
}

struct Shared {
    began: Instant,
    clock: Clock,
    state: Mutex<State>,
    /// There is an answer that is due earlier, or the end.
    earlier: Condvar,
    /// The timer that slept has something else to do.
    follow: Condvar,
    /// Bytes are answered.
    room: Condvar,
}

struct State {
    model: DiskModel,
    tally: Tally,
    waiting: BinaryHeap<Waiting>,
    waiting_bytes: u64,
    in_flight: usize,
    arrivals: u64,
    somebody_sleeps: bool,
    /// What a sleep is shortened by.
    correction_ns: u64,
    /// From a program's call to the arrival here, and back.
    way: Duration,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Every answer waits for [`PROBE`], and nothing is counted.
    Before,
    Timed,
    /// Answers no longer wait.
    Hurried,
    Ended,
}

struct Waiting {
    due: Instant,
    number: u64,
    bytes: u64,
    answer: Answer,
}

impl Ord for Waiting {
    /// The greatest is the first that is due.
    fn cmp(&self, other: &Waiting) -> Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}

impl Queue {
    /// A disk that nobody asked for anything yet. Until [`Queue::begin`] every answer takes
    /// [`PROBE`], and nothing is counted.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub(super) fn new(parameters: DiskParameters, clock: Clock) -> io::Result<Queue> {
        let state = State {
            model: DiskModel::new(parameters),
            tally: Tally::default(),
            waiting: BinaryHeap::new(),
            waiting_bytes: 0,
            in_flight: 0,
            arrivals: 0,
            somebody_sleeps: false,
            correction_ns: 0,
            way: Duration::ZERO,
            phase: Phase::Before,
        };
        let shared = Arc::new(Shared {
            began: Instant::now(),
            clock,
            state: Mutex::new(state),
            earlier: Condvar::new(),
            follow: Condvar::new(),
            room: Condvar::new(),
        });
        for number in 0..TIMERS {
            let shared = Arc::clone(&shared);
            let timer = thread::Builder::new().name(format!("disk-timer-{number}"));
            timer.spawn(move || shared.answer_in_time())?;
        }
        Ok(Queue { shared })
    }

    /// From now on requests take time. A call and its answer are on their way for `round_trip`,
    /// which is not the disk's.
    pub(super) fn begin(&self, round_trip: Duration) {
        let mut state = self.shared.lock();
        state.way = round_trip.min(ROUND_TRIP_MAX) / 2;
        state.phase = Phase::Timed;
    }

    /// A request has come. Requests come in the order of their arrival, from any thread.
    pub(super) fn arrive(&self, asked: Asked) -> Arrival {
        let mut state = self.shared.lock();
        let now = Instant::now();
        if state.phase == Phase::Before {
            state.in_flight += 1;
            return Arrival { due: now + self.shared.probe(), number: 0 };
        }
        let came = now.checked_sub(state.way).unwrap_or(now);
        let now_ns = self.shared.model_ns(came);
        let done_ns = match asked {
            Asked::Read { offset, bytes } | Asked::Write { offset, bytes } => {
                state.model.submit(now_ns, offset, bytes)
            }
            Asked::Flush => state.model.flush(now_ns),
            Asked::Discard { offset } => state.model.discard(now_ns, offset),
        };
        state.count(asked, now_ns, done_ns);
        let due = match self.shared.clock {
            Clock::Times(times) => {
                let time = Duration::from_nanos(times.ours_ns(done_ns - now_ns));
                now + time.saturating_sub(2 * state.way)
            }
            Clock::None => now,
        };
        Arrival { due, number: state.arrivals }
    }

    /// Gives the answer when it is time. `bytes` is what the answer holds in memory; when too much
    /// waits, the caller does.
    pub(super) fn complete(&self, arrival: Arrival, bytes: u64, answer: Answer) {
        let mut state = self.shared.lock();
        while state.waiting_bytes + bytes > WAITING_BYTES_MAX && state.waiting_bytes > 0 {
            state = self.shared.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let Arrival { due, number } = arrival;
        let waits = matches!(state.phase, Phase::Before | Phase::Timed);
        if !waits || due <= Instant::now() {
            state.answered(due);
            drop(state);
            return answer();
        }
        let first = state.waiting.peek().is_none_or(|next| due < next.due);
        state.waiting_bytes += bytes;
        state.waiting.push(Waiting { due, number, bytes, answer });
        let timer = if state.somebody_sleeps { &self.shared.earlier } else { &self.shared.follow };
        drop(state);
        if first {
            timer.notify_one();
        }
    }

    /// From now on answers do not wait.
    pub(super) fn hurry(&self) {
        self.shared.enter(Phase::Hurried);
    }

    /// How it is.
    pub(super) fn reading(&self) -> Reading {
        let state = self.shared.lock();
        let now_ns = self.shared.model_ns(Instant::now());
        let first_ns = state.tally.first_ns.unwrap_or(now_ns);
        Reading {
            parameters: state.model.parameters().clone(),
            clock: self.shared.clock,
            counters: state.model.counters(),
            tally: state.tally,
            in_flight: state.in_flight,
            round_trip: 2 * state.way,
            span_ns: state.tally.busy_until_ns.saturating_sub(first_ns),
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.shared.enter(Phase::Ended);
    }
}

impl State {
    fn count(&mut self, asked: Asked, now_ns: u64, done_ns: u64) {
        self.arrivals += 1;
        self.in_flight += 1;
        let tally = &mut self.tally;
        match asked {
            Asked::Read { bytes, .. } => {
                tally.reads += 1;
                tally.read_bytes += bytes;
            }
            Asked::Write { bytes, .. } => {
                tally.writes += 1;
                tally.written_bytes += bytes;
            }
            Asked::Flush | Asked::Discard { .. } => {}
        }
        tally.depth_max = tally.depth_max.max(self.in_flight);
        tally.response_ns += done_ns - now_ns;
        tally.first_ns.get_or_insert(now_ns);
        // Requests come in order, so what is busy ends where the last one that ends does.
        tally.busy_ns += done_ns.saturating_sub(now_ns.max(tally.busy_until_ns));
        tally.busy_until_ns = tally.busy_until_ns.max(done_ns);
    }

    fn answered(&mut self, due: Instant) {
        self.in_flight -= 1;
        let late_ns = nanoseconds(Instant::now().saturating_duration_since(due));
        if late_ns > LATE_NS {
            self.tally.late += 1;
            self.tally.late_ns += late_ns;
        }
    }

    /// What is due now, or the time until something is; none when nothing waits.
    fn next(&mut self) -> Next {
        let Some(first) = self.waiting.peek() else {
            return Next::Nothing;
        };
        let left_ns = nanoseconds(first.due.saturating_duration_since(Instant::now()));
        let waits = matches!(self.phase, Phase::Before | Phase::Timed);
        if waits && left_ns > self.correction_ns {
            return Next::In(Duration::from_nanos(left_ns - self.correction_ns));
        }
        match self.waiting.pop() {
            Some(waiting) => Next::Now(waiting),
            None => Next::Nothing,
        }
    }

    /// A sleep that was not interrupted ended so much later than it was to. Steps of one size lead
    /// to the median, which those few do not move that were late as something else ran.
    fn learn(&mut self, late: Duration) {
        self.correction_ns = if nanoseconds(late) > self.correction_ns {
            (self.correction_ns + CORRECTION_STEP_NS).min(CORRECTION_NS_MAX)
        } else {
            self.correction_ns.saturating_sub(CORRECTION_STEP_NS)
        };
    }
}

enum Next {
    Now(Waiting),
    In(Duration),
    Nothing,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn model_ns(&self, now: Instant) -> u64 {
        let ours_ns = nanoseconds(now.saturating_duration_since(self.began));
        match self.clock {
            Clock::Times(times) => times.there_ns(ours_ns),
            Clock::None => ours_ns,
        }
    }

    fn probe(&self) -> Duration {
        match self.clock {
            Clock::Times(_) => PROBE,
            Clock::None => Duration::ZERO,
        }
    }

    fn enter(&self, phase: Phase) {
        let mut state = self.lock();
        if state.phase != Phase::Ended {
            state.phase = phase;
        }
        drop(state);
        self.earlier.notify_all();
        self.follow.notify_all();
    }

    /// A timer's life.
    fn answer_in_time(&self) {
        be_a_device();
        // The kernel otherwise adds up to 50 us to a sleep (prctl(2), PR_SET_TIMERSLACK).
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut state = self.lock();
        loop {
            if state.somebody_sleeps {
                state = self.follow.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            match state.next() {
                Next::Now(waiting) => {
                    state.answered(waiting.due);
                    state.waiting_bytes -= waiting.bytes;
                    let more = !state.waiting.is_empty();
                    drop(state);
                    if more {
                        self.follow.notify_one();
                    }
                    if waiting.bytes > 0 {
                        self.room.notify_all();
                    }
                    (waiting.answer)();
                    state = self.lock();
                }
                Next::In(time) => {
                    state.somebody_sleeps = true;
                    let end = Instant::now() + time;
                    let woken = self.earlier.wait_timeout(state, time);
                    let (woken, timeout) = woken.unwrap_or_else(PoisonError::into_inner);
                    state = woken;
                    state.somebody_sleeps = false;
                    if timeout.timed_out() {
                        state.learn(Instant::now().saturating_duration_since(end));
                    }
                }
                Next::Nothing if state.phase == Phase::Ended => return,
                Next::Nothing => {
                    state.somebody_sleeps = true;
                    let woken = self.earlier.wait(state);
                    state = woken.unwrap_or_else(PoisonError::into_inner);
                    state.somebody_sleeps = false;
                }
            }
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Makes this thread and those that it starts serve as a device does: at once, and without waiting
/// for memory that only they can free. Without the privileges it does without.
pub(super) fn be_a_device() {
    crate::mount::serve_at_once();
    // They write what the kernel gets rid of when it is short of memory (prctl(2),
    // PR_SET_IO_FLUSHER). A tape is not mounted.
    let _ = rustix::process::configure_io_flusher_behavior(true);
}
