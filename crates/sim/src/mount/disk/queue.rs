//! Requests that wait for their completion time in the model.
//!
//! A thread that takes a request from the kernel hands it to the model, moves the bytes, and leaves
//! the answer here; a timer sends it at the completion time. So a few threads can have any number
//! of requests in flight. One timer sleeps for the next answer; the other takes over while the
//! first sends an answer, which for a large read means copying its bytes.
//!
//! A disk with heads chooses among the requests that wait when its arm is free. A timer wakes up
//! for that, too; only then is the completion time of the chosen request known.
//!
//! A sleep ends some microseconds late, by about the same amount each time. The timer measures
//! that, and sleeps that much shorter. A request also takes time through the kernel before it
//! arrives here, and so does its answer. [`Queue::begin`] receives that time; requests count as
//! arrived, and answers are sent, that much earlier.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::num::NonZeroU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use base::failures::lock;
use model::disk::{DiskCounters, DiskModel, DiskParameters, Operation, Ticket};

use super::tally::Tally;
use crate::speed_up::SpeedUp;

/// How time passes for a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// That many times as fast as real time.
    Times(SpeedUp),
    /// Requests take no model time.
    None,
}

/// A request that was accepted. Each must be passed to [`Queue::complete`].
pub(super) enum Arrival {
    /// Before model time starts.
    Probe {
        due: Instant,
    },
    Timed(Ticket),
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
    /// Most requests in flight at once.
    pub(super) depth_max: usize,
    /// Assumed time through the kernel and back.
    pub(super) round_trip: Duration,
}

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
    times: Times,
    state: Mutex<State>,
    /// Signals an earlier answer or choice, or the end.
    earlier: Condvar,
    /// Signals that the sleeping timer has other work.
    follow: Condvar,
    /// Signals that bytes were sent.
    room: Condvar,
}

/// The clock of the model beside that of the machine.
#[derive(Clone, Copy)]
struct Times {
    began: Instant,
    clock: Clock,
}

struct State {
    times: Times,
    model: DiskModel,
    tally: Tally,
    /// Requests that lack their answer, their completion time, or both.
    open: HashMap<Ticket, Open>,
    waiting: BinaryHeap<Waiting>,
    /// Of all answers, also of those without a completion time.
    waiting_bytes: u64,
    in_flight: usize,
    depth_max: usize,
    sleeper: Sleeper,
    /// By how much a sleep is shortened.
    correction_ns: u64,
    /// From a program's call to the arrival here, and back.
    way: Duration,
    phase: Phase,
}

/// The timer that sleeps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sleeper {
    None,
    Until(Instant),
    /// Until it is notified.
    Idle,
}

struct Open {
    /// In the time of the model.
    arrived_ns: u64,
    arrived: Instant,
    due: Option<Instant>,
    held: Option<Held>,
}

/// An answer with the bytes that it holds.
struct Held {
    bytes: u64,
    answer: Answer,
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
    /// `None` before model time starts.
    ticket: Option<Ticket>,
    held: Held,
}

impl Ord for Waiting {
    /// The greatest is the first one due.
    fn cmp(&self, other: &Waiting) -> Ordering {
        (other.due, other.ticket).cmp(&(self.due, self.ticket))
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
        let times = Times { began: Instant::now(), clock };
        let state = State {
            times,
            model: DiskModel::new(parameters),
            tally: Tally::default(),
            open: HashMap::new(),
            waiting: BinaryHeap::new(),
            waiting_bytes: 0,
            in_flight: 0,
            depth_max: 0,
            sleeper: Sleeper::None,
            correction_ns: 0,
            way: Duration::ZERO,
            phase: Phase::Before,
        };
        let shared = Arc::new(Shared {
            times,
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
    pub(super) fn arrive(&self, operation: Operation) -> Arrival {
        let mut state = self.shared.lock();
        let arrived = Instant::now();
        state.in_flight += 1;
        if state.phase == Phase::Before {
            return Arrival::Probe { due: arrived + self.shared.times.probe() };
        }
        state.depth_max = state.depth_max.max(state.in_flight);
        let arrived_ns = state.model_ns(arrived);
        let ticket = state.model.arrive(arrived_ns, operation);
        state.tally.arrived(operation, arrived_ns);
        state.open.insert(ticket, Open { arrived_ns, arrived, due: None, held: None });
        if state.phase == Phase::Timed && self.shared.times.clock != Clock::None {
            state.advance(arrived_ns);
        } else {
            state.advance(u64::MAX);
        }
        self.shared.wake(state);
        Arrival::Timed(ticket)
    }

    /// Sends the answer at its time. `bytes` is the memory that the answer holds; if too much
    /// waits, the caller waits.
    pub(super) fn complete(&self, arrival: Arrival, bytes: u64, answer: Answer) {
        let mut state = self.shared.lock();
        while state.waiting_bytes + bytes > WAITING_BYTES_MAX && state.waiting_bytes > 0 {
            state = self.shared.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let (ticket, due) = match arrival {
            Arrival::Probe { due } => (None, Some(due)),
            Arrival::Timed(ticket) => {
                (Some(ticket), state.open.get(&ticket).and_then(|open| open.due))
            }
        };
        let now = Instant::now();
        if !state.waits() || due.is_some_and(|due| due <= now) {
            if let Some(ticket) = ticket {
                state.open.remove(&ticket);
            }
            state.answered(due.unwrap_or(now));
            drop(state);
            return answer();
        }
        state.waiting_bytes += bytes;
        let held = Held { bytes, answer };
        match (ticket, due) {
            (Some(ticket), None) => {
                if let Some(open) = state.open.get_mut(&ticket) {
                    open.held = Some(held);
                }
            }
            (ticket, due) => {
                if let Some(ticket) = ticket {
                    state.open.remove(&ticket);
                }
                state.waiting.push(Waiting { due: due.unwrap_or(now), ticket, held });
            }
        }
        self.shared.wake(state);
    }

    /// Ends the waiting of answers.
    pub(super) fn hurry(&self) {
        self.shared.enter(Phase::Hurried);
    }

    /// The current state.
    pub(super) fn reading(&self) -> Reading {
        let state = self.shared.lock();
        Reading {
            parameters: state.model.parameters().clone(),
            clock: self.shared.times.clock,
            counters: state.model.counters(),
            tally: state.tally,
            in_flight: state.in_flight,
            depth_max: state.depth_max,
            round_trip: 2 * state.way,
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.shared.enter(Phase::Ended);
    }
}

impl State {
    /// Whether answers wait for their time.
    fn waits(&self) -> bool {
        matches!(self.phase, Phase::Before | Phase::Timed)
    }

    /// The time of the model when a program made the call that is here at `now`.
    fn model_ns(&self, now: Instant) -> u64 {
        self.times.model_ns(now.checked_sub(self.way).unwrap_or(now))
    }

    /// Lets the time of the model pass; answers whose completion time that shows get it.
    fn advance(&mut self, until_ns: u64) {
        for completion in self.model.advance(until_ns) {
            let ticket = completion.ticket;
            let Some(open) = self.open.get_mut(&ticket) else { continue };
            self.tally.completed(open.arrived_ns, completion.done_ns);
            let due = match self.times.clock {
                Clock::Times(times) => {
                    let ns = times.ours_ns(completion.done_ns.saturating_sub(open.arrived_ns));
                    open.arrived + Duration::from_nanos(ns).saturating_sub(2 * self.way)
                }
                Clock::None => open.arrived,
            };
            open.due = Some(due);
            if let Some(held) = open.held.take() {
                self.open.remove(&ticket);
                self.waiting.push(Waiting { due, ticket: Some(ticket), held });
            }
        }
    }

    fn answered(&mut self, due: Instant) {
        self.in_flight -= 1;
        self.tally.answered(nanoseconds(Instant::now().saturating_duration_since(due)));
    }

    /// When the model can serve the next request: all that arrived until then are here.
    fn choice_at(&self) -> Option<Instant> {
        let next_ns = self.model.next_ns()?;
        match self.times.clock {
            Clock::Times(times) => {
                let ours = Duration::from_nanos(times.ours_ns(next_ns));
                Some(self.times.began + ours + self.way)
            }
            Clock::None => None,
        }
    }

    /// When there is something to do.
    fn wake_at(&self) -> Option<Instant> {
        let answer = self.waiting.peek().map(|first| first.due);
        answer.into_iter().chain(self.choice_at()).min()
    }

    /// What is due now, or the time until something is; `None` if nothing waits.
    fn next(&mut self) -> Next {
        let mut now = Instant::now();
        while let Some(choice) = self.choice_at()
            && choice <= now
        {
            let until_ns = self.model_ns(now).max(self.model.next_ns().unwrap_or(0));
            self.advance(until_ns);
            now = Instant::now();
        }
        let correction = Duration::from_nanos(self.correction_ns);
        let waits = self.waits();
        if let Some(first) = self.waiting.peek()
            && (!waits || first.due.saturating_duration_since(now) <= correction)
            && let Some(waiting) = self.waiting.pop()
        {
            return Next::Now(waiting);
        }
        // An answer has to be in time. A choice may be late by as much: a command goes before.
        let answer = self.waiting.peek().map(|first| first.due - correction);
        match answer.into_iter().chain(self.choice_at()).min() {
            Some(at) => Next::In(at.saturating_duration_since(now)),
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

    fn enter(&self, phase: Phase) {
        let mut state = self.lock();
        if state.phase != Phase::Ended {
            state.phase = phase;
        }
        state.advance(u64::MAX);
        drop(state);
        self.earlier.notify_all();
        self.follow.notify_all();
    }

    /// Wakes a timer if there is something to do before it would wake up.
    fn wake(&self, state: MutexGuard<'_, State>) {
        let (wake_at, sleeper) = (state.wake_at(), state.sleeper);
        drop(state);
        let Some(wake_at) = wake_at else { return };
        match sleeper {
            Sleeper::None => self.follow.notify_one(),
            Sleeper::Until(until) if until <= wake_at => {}
            Sleeper::Until(_) | Sleeper::Idle => self.earlier.notify_one(),
        }
    }

    /// The loop of a timer.
    fn answer_in_time(&self) {
        be_a_device();
        // By default the kernel adds up to 50 us to a sleep (prctl(2), PR_SET_TIMERSLACK).
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut state = self.lock();
        loop {
            if state.sleeper != Sleeper::None {
                state = self.follow.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            match state.next() {
                Next::Now(waiting) => {
                    let Held { bytes, answer } = waiting.held;
                    state.answered(waiting.due);
                    state.waiting_bytes -= bytes;
                    let more = state.wake_at().is_some();
                    drop(state);
                    if more {
                        self.follow.notify_one();
                    }
                    if bytes > 0 {
                        self.room.notify_all();
                    }
                    answer();
                    state = self.lock();
                }
                Next::In(time) => {
                    let end = Instant::now() + time;
                    state.sleeper = state.wake_at().map_or(Sleeper::Idle, Sleeper::Until);
                    let woken = self.earlier.wait_timeout(state, time);
                    let (woken, timeout) = woken.unwrap_or_else(PoisonError::into_inner);
                    state = woken;
                    state.sleeper = Sleeper::None;
                    if timeout.timed_out() {
                        state.learn(Instant::now().saturating_duration_since(end));
                    }
                }
                Next::Nothing if state.phase == Phase::Ended => return,
                Next::Nothing => {
                    state.sleeper = Sleeper::Idle;
                    let woken = self.earlier.wait(state);
                    state = woken.unwrap_or_else(PoisonError::into_inner);
                    state.sleeper = Sleeper::None;
                }
            }
        }
    }
}

impl Times {
    fn model_ns(self, now: Instant) -> u64 {
        let ours_ns = nanoseconds(now.saturating_duration_since(self.began));
        match self.clock {
            Clock::Times(times) => times.there_ns(ours_ns),
            Clock::None => ours_ns,
        }
    }

    fn probe(self) -> Duration {
        match self.clock {
            Clock::Times(_) => PROBE,
            Clock::None => Duration::ZERO,
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
