//! Requests that wait for their completion time in the model.
//!
//! A thread that takes a request from the kernel gets its completion time from the model, moves the
//! bytes, and leaves the answer here; a timer sends it at that time. So a few threads can have any
//! number of requests in flight. One timer sleeps for the next answer; the other takes over while
//! the first sends an answer, which for a large read means copying its bytes.
//!
//! A sleep ends some microseconds late, by about the same amount each time. The timer measures
//! that, and sleeps that much shorter. A request also takes time through the kernel before it
//! arrives here, and so does its answer. [`Queue::begin`] receives that time; requests count as
//! arrived, and answers are sent, that much earlier.

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
    /// That many times as fast as real time.
    Times(SpeedUp),
    /// Requests take no model time.
    None,
}

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Read { offset: u64, bytes: u64 },
    Write { offset: u64, bytes: u64 },
    Flush,
    Discard { offset: u64 },
}

/// A request that the model has accepted. Each must be passed to [`Queue::complete`].
pub(super) struct Arrival {
    due: Instant,
    number: u64,
}

/// What to do at the completion time.
type Answer = Box<dyn FnOnce() + Send>;

/// The counts so far. Times are the model's.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) parameters: DiskParameters,
    pub(super) clock: Clock,
    pub(super) counters: DiskCounters,
    pub(super) tally: Tally,
    pub(super) in_flight: usize,
    /// Assumed time through the kernel and back.
    pub(super) round_trip: Duration,
    /// From the first request to the end of the last one.
    pub(super) span_ns: u64,
}

/// Counters that the model does not have.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
    pub(super) depth_max: usize,
    /// Sum of the requests' times from call to completion.
    pub(super) response_ns: u64,
    /// Time with at least one request in flight.
    pub(super) busy_ns: u64,
    /// Answers later than [`LATE_NS`], and their total delay.
    pub(super) late: u64,
    pub(super) late_ns: u64,
    first_ns: Option<u64>,
    busy_until_ns: u64,
}

/// A later answer is counted as late.
pub(super) const LATE_NS: u64 = 1_000_000;
/// Most bytes of waiting answers; a thread that adds more waits.
const WAITING_BYTES_MAX: u64 = 256 << 20;
const TIMERS: usize = 2;
/// Time of a request before model time starts: long enough for all threads to fall asleep, as they
/// do while a disk works.
pub(super) const PROBE: Duration = Duration::from_micros(500);
/// Most by which a sleep is shortened.
const CORRECTION_NS_MAX: u64 = 200_000;
const CORRECTION_STEP_NS: u64 = 2000;
/// Longest time that is attributed to the way through the kernel.
const ROUND_TRIP_MAX: Duration = Duration::from_micros(200);

/// The requests of one disk.
pub(super) struct Queue {
    shared: Arc<Shared>,
}

struct Shared {
    began: Instant,
    clock: Clock,
    state: Mutex<State>,
    /// Signals an earlier answer, or the end.
    earlier: Condvar,
    /// Signals that the sleeping timer has other work.
    follow: Condvar,
    /// Signals that bytes were sent.
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
    /// By how much a sleep is shortened.
    correction_ns: u64,
    /// From a program's call to the arrival here, and back.
    way: Duration,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Every answer takes [`PROBE`], and nothing is counted.
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
    /// The greatest is the first one due.
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
    /// A disk without requests so far. Until [`Queue::begin`] every answer takes [`PROBE`], and
    /// nothing is counted.
    ///
    /// # Errors
    /// When no thread can be started.
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

    /// Starts the model time. A call and its answer take `round_trip` through the kernel, which is
    /// not the disk's time.
    pub(super) fn begin(&self, round_trip: Duration) {
        let mut state = self.shared.lock();
        state.way = round_trip.min(ROUND_TRIP_MAX) / 2;
        state.phase = Phase::Timed;
    }

    /// Accepts a request. Requests come in the order of their arrival, from any thread.
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

    /// Sends the answer at its time. `bytes` is the memory that the answer holds; if too much
    /// waits, the caller waits.
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

    /// Ends the waiting of answers.
    pub(super) fn hurry(&self) {
        self.shared.enter(Phase::Hurried);
    }

    /// The current state.
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
        // Requests come in order, so the busy time ends with the last one to complete.
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

    /// What is due now, or the time until something is; `None` if nothing waits.
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

    /// Adjusts to an uninterrupted sleep that ended this late. Steps of fixed size lead to the
    /// median, which a few outliers do not move.
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

    /// The loop of a timer.
    fn answer_in_time(&self) {
        be_a_device();
        // By default the kernel adds up to 50 us to a sleep (prctl(2), PR_SET_TIMERSLACK).
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

/// Gives this thread and those that it starts the priority of a device, and keeps them from waiting
/// for memory that only they can free. Without the privileges nothing changes.
pub(super) fn be_a_device() {
    crate::mount::serve_at_once();
    // They write what the kernel evicts when it is short of memory (prctl(2), PR_SET_IO_FLUSHER). A
    // tape is not mounted.
    let _ = rustix::process::configure_io_flusher_behavior(true);
}
