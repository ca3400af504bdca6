//! A timing model of a tape drive.
//!
//! Writing and reading share one model. Its main state is the *slack*: the native bytes that the
//! drive can still move before it has to stop. A write adds the host's bytes to it, a read adds the
//! bytes that the host takes; the medium under the head consumes it at the speed of the step. At
//! zero the drive has to stop and back up: its buffer is empty when writing, full when reading. The
//! host waits while the slack is more than the buffer: when writing, the buffer has no room, when
//! reading, the bytes are not there yet.
//!
//! A stopped drive starts when the buffer has filled (emptied, when reading) to the restart fill.
//! So in the steady state below the lowest step it moves `B v / (v - r)` bytes between two stops:
//! `B` the buffer, `v` the lowest step, `r` the native rate of the host. The step follows the rate
//! that the host offers while it does not have to wait, see `speed`.
//!
//! Not here: blocks, filemarks as places, the semantics of the kernel's driver, the data. An idle
//! drive keeps its buffer until a command flushes it; filemarks take no room.

pub mod counters;
pub mod generation;
pub mod maker;
mod mechanics;
pub mod media;
pub mod parameters;
pub mod reading;
mod speed;

use super::{BILLION, transfer_ns};
use crate::ModelError;
use counters::TapeCounters;
use parameters::TapeParameters;
use speed::OfferedRate;

/// Billionths of a byte.
type Nanobytes = u128;

const NANOBYTES: u128 = BILLION as u128;

/// How often a streaming drive checks whether another speed would fit better. Assumed.
const SPEED_DECISION_NS: u64 = 250_000_000;

/// How a filemark reaches the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filemark {
    /// Through the buffer; the drive keeps streaming.
    Immediate,
    /// Everything before it is on the medium when the command completes; the drive stops.
    Synchronising,
}

/// Place on the medium where a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// Far from the end.
    Normal,
    /// Behind the early warning.
    EarlyWarning,
    /// There was no room: nothing was written.
    End,
}

/// The end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// When the host may continue.
    pub at_ns: u64,
    /// Where the data ended.
    pub zone: Zone,
}

/// The motion of the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    /// It stands before the place where it will continue.
    Still,
    /// It stops and backs up.
    BackHitch {
        /// Until then.
        until_ns: u64,
    },
    /// It gathers speed.
    RunUp {
        /// Until then.
        until_ns: u64,
    },
    /// It turns at the end of a wrap.
    Turn {
        /// Until then.
        until_ns: u64,
        /// The step before and after.
        step: usize,
    },
    /// Bytes pass the head.
    Streaming {
        /// Index into the speeds.
        step: usize,
        /// When the step is checked again.
        decide_at_ns: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Writing,
    Reading,
}

/// How far to advance the time.
#[derive(Clone, Copy)]
enum Until {
    Time(u64),
    Slack(Nanobytes),
}

/// The state of a drive with a medium at a moment.
#[derive(Clone, Debug)]
pub struct TapeModel {
    parameters: TapeParameters,
    buffer: Nanobytes,
    threshold: Nanobytes,
    /// Slack at which a moving drive checks its speed at once.
    low: Nanobytes,
    wrap: Nanobytes,
    now_ns: u64,
    motion: Motion,
    direction: Direction,
    slack: Nanobytes,
    /// Position of the head, from the beginning of the medium.
    head: Nanobytes,
    /// End of what is recorded.
    recorded: Nanobytes,
    /// Whether the drive has to empty its buffer, even a nearly empty one.
    flushing: bool,
    offered: OfferedRate,
    counters: TapeCounters,
}

impl TapeModel {
    /// A drive with a blank medium, loaded, at its beginning, at time 0.
    ///
    /// Impossible values are limited, see [`TapeParameters::limited`].
    pub fn new(parameters: TapeParameters) -> TapeModel {
        let parameters = parameters.limited();
        let buffer = u128::from(parameters.buffer_bytes.value) * NANOBYTES;
        let restart = parameters.restart_fill_percent.value;
        let counters = TapeCounters::new(parameters.speeds_bytes_per_second.len());
        TapeModel {
            buffer,
            threshold: buffer * u128::from(restart) / 100,
            low: buffer * u128::from(speed::LOW_PERCENT) / 100,
            wrap: parameters.wrap_nanobytes(),
            now_ns: 0,
            motion: Motion::Still,
            direction: Direction::Writing,
            slack: 0,
            head: 0,
            recorded: 0,
            flushing: false,
            offered: OfferedRate::default(),
            counters,
            parameters,
        }
    }

    /// Writes a block that arrives at `now_ns` and takes `compressed_bytes` on the medium.
    pub fn write(&mut self, now_ns: u64, host_bytes: u64, compressed_bytes: u64) -> Completion {
        let arrives_ns = self.arrive(now_ns, host_bytes);
        self.run(Until::Time(arrives_ns));
        self.turn_to(Direction::Writing);
        let native = u128::from(compressed_bytes) * NANOBYTES;
        let end = self.head + self.slack + native;
        let capacity = u128::from(self.parameters.capacity_bytes.value) * NANOBYTES;
        if end > capacity {
            return Completion { at_ns: self.now_ns, zone: Zone::End };
        }
        self.offered.add(native, self.now_ns);
        self.counters.host_bytes += u128::from(host_bytes);
        self.counters.compressed_bytes += u128::from(compressed_bytes);
        self.slack += native;
        self.wait_for_buffer();
        let early = u128::from(self.parameters.early_warning_bytes.value) * NANOBYTES;
        let zone = if end + early > capacity { Zone::EarlyWarning } else { Zone::Normal };
        Completion { at_ns: self.now_ns, zone }
    }

    /// Reads a block that takes `compressed_bytes` on the medium; the drive reads ahead.
    ///
    /// Fails without moving the tape if fewer bytes are recorded.
    pub fn read(
        &mut self,
        now_ns: u64,
        host_bytes: u64,
        compressed_bytes: u64,
    ) -> Result<Completion, ModelError> {
        let native = u128::from(compressed_bytes) * NANOBYTES;
        self.run(Until::Time(now_ns));
        self.turn_to(Direction::Reading);
        let position = self.position();
        if position + native > self.recorded {
            let position_bytes = whole(position);
            return Err(ModelError::EndOfData { position_bytes });
        }
        self.offered.add(native, self.now_ns);
        self.counters.host_bytes += u128::from(host_bytes);
        self.counters.compressed_bytes += u128::from(compressed_bytes);
        self.slack += native;
        self.wait_for_buffer();
        let at_ns = self.arrive(self.now_ns, host_bytes);
        self.run(Until::Time(at_ns));
        Ok(Completion { at_ns, zone: Zone::Normal })
    }

    /// Writes a filemark; returns when the command completes.
    pub fn filemark(&mut self, now_ns: u64, kind: Filemark) -> u64 {
        let arrives_ns = self.arrive(now_ns, 0);
        self.run(Until::Time(arrives_ns));
        self.turn_to(Direction::Writing);
        if kind == Filemark::Synchronising {
            self.flush();
        }
        self.now_ns
    }

    /// Writes out the buffer and stops; does nothing if the buffer is empty.
    pub fn synchronise(&mut self, now_ns: u64) -> u64 {
        self.run(Until::Time(now_ns));
        if self.direction == Direction::Writing && self.slack > 0 {
            self.flush();
        }
        self.now_ns
    }

    /// Winds to the beginning of the medium.
    pub fn rewind(&mut self, now_ns: u64) -> u64 {
        self.locate(now_ns, 0)
    }

    /// Winds to a place, in native bytes from the beginning; at most to the end of the recorded
    /// data.
    pub fn locate(&mut self, now_ns: u64, native_bytes: u64) -> u64 {
        self.synchronise(now_ns);
        let target = (u128::from(native_bytes) * NANOBYTES).min(self.recorded);
        let from = self.parameters.longitudinal_ns(self.head);
        let to = self.parameters.longitudinal_ns(target);
        let settle_ns = if target == self.head { 0 } else { self.parameters.settle_ns.value };
        let took_ns = from.abs_diff(to) + settle_ns;
        self.counters.wind_ns += took_ns;
        self.counters.winds += u64::from(took_ns > 0);
        self.stand_at(target, took_ns);
        self.now_ns
    }

    /// Inserts a cartridge with `recorded_bytes` native bytes, positioned at its beginning.
    pub fn load(&mut self, now_ns: u64, recorded_bytes: u64) -> u64 {
        self.run(Until::Time(now_ns));
        self.recorded = u128::from(recorded_bytes) * NANOBYTES;
        self.stand_at(0, self.parameters.load_ns.value);
        self.now_ns
    }

    /// Rewinds and removes the cartridge.
    pub fn unload(&mut self, now_ns: u64) -> u64 {
        let rewound_ns = self.rewind(now_ns);
        self.run(Until::Time(rewound_ns + self.parameters.unload_ns.value));
        self.now_ns
    }

    /// Lets time pass without a request.
    pub fn pass(&mut self, now_ns: u64) {
        self.run(Until::Time(now_ns));
    }

    /// The moment that the model has reached.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// The motion of the tape at that moment.
    pub fn motion(&self) -> Motion {
        self.motion
    }

    /// Native bytes in the buffer: not yet on the medium, or read ahead.
    pub fn buffered_bytes(&self) -> u64 {
        match self.direction {
            Direction::Writing => whole(self.slack),
            Direction::Reading => whole(self.buffer.saturating_sub(self.slack)),
        }
    }

    /// Native bytes from the beginning to the host's position.
    pub fn position_bytes(&self) -> u64 {
        whole(self.position())
    }

    /// Native bytes that are recorded, without those in the buffer.
    pub fn recorded_bytes(&self) -> u64 {
        whole(self.recorded)
    }

    /// The counters so far.
    pub fn counters(&self) -> &TapeCounters {
        &self.counters
    }

    /// The parameters of the model.
    pub fn parameters(&self) -> &TapeParameters {
        &self.parameters
    }

    /// When a command with this many bytes has passed the interface.
    fn arrive(&self, now_ns: u64, host_bytes: u64) -> u64 {
        let transfer = transfer_ns(host_bytes, self.parameters.host_bytes_per_second.value);
        now_ns.max(self.now_ns) + self.parameters.command_overhead_ns.value + transfer
    }

    /// Writing after reading drops what was read ahead and backs up to the host's position. Reading
    /// after writing empties the buffer first.
    fn turn_to(&mut self, direction: Direction) {
        if self.direction == direction {
            return;
        }
        match direction {
            Direction::Writing => {
                let position = self.position();
                if position != self.head || self.motion != Motion::Still {
                    self.back_hitch();
                }
                self.head = position;
                self.recorded = position;
                self.slack = 0;
            }
            Direction::Reading => {
                if self.slack > 0 {
                    self.flush();
                }
                self.slack = self.buffer;
            }
        }
        self.direction = direction;
        self.offered = OfferedRate::starting(self.now_ns);
    }

    /// The host's position, which is ahead of the head when it writes and behind it when it reads.
    fn position(&self) -> Nanobytes {
        match self.direction {
            Direction::Writing => self.head + self.slack,
            Direction::Reading => self.head - self.buffer.saturating_sub(self.slack),
        }
    }

    fn stand_at(&mut self, place: Nanobytes, took_ns: u64) {
        self.head = place;
        self.slack = 0;
        self.direction = Direction::Writing;
        self.motion = Motion::Still;
        self.now_ns += took_ns;
        self.offered = OfferedRate::starting(self.now_ns);
    }

    fn flush(&mut self) {
        let began_ns = self.now_ns;
        self.flushing = true;
        self.run(Until::Slack(0));
        self.flushing = false;
        self.counters.host_blocked_ns += self.now_ns - began_ns;
        self.motion = Motion::Still;
        self.counters.synchronisations += 1;
        self.counters.synchronise_ns += self.parameters.synchronise_ns.value;
        self.now_ns += self.parameters.synchronise_ns.value;
        self.offered = OfferedRate::starting(self.now_ns);
    }

    fn wait_for_buffer(&mut self) {
        self.offered.pause(self.now_ns);
        let began_ns = self.now_ns;
        self.run(Until::Slack(self.buffer));
        self.counters.host_blocked_ns += self.now_ns - began_ns;
        self.offered.go_on(self.now_ns);
        let fill = self.buffered_bytes();
        self.counters.buffer_bytes_most = self.counters.buffer_bytes_most.max(fill);
    }

    /// Advances to a time, or until the slack is no more than requested.
    fn run(&mut self, until: Until) {
        loop {
            let limit_ns = match until {
                Until::Time(time) if time <= self.now_ns => return,
                Until::Slack(most) if self.slack <= most => return,
                Until::Time(time) => time,
                Until::Slack(_) => u64::MAX,
            };
            match self.motion {
                Motion::Still if self.starts() => self.start(),
                // While a slack is waited for, the drive moves, so this waits for a time.
                Motion::Still => {
                    self.counters.still_ns += limit_ns - self.now_ns;
                    self.now_ns = limit_ns;
                }
                Motion::Streaming { step, decide_at_ns } => {
                    self.stream(step, decide_at_ns, until, limit_ns);
                }
                Motion::BackHitch { until_ns }
                | Motion::RunUp { until_ns }
                | Motion::Turn { until_ns, .. } => self.pass_motion(until_ns.min(limit_ns), until),
            }
        }
    }

    fn starts(&self) -> bool {
        let enough = self.slack >= self.threshold || (self.flushing && self.slack > 0);
        enough && (self.direction == Direction::Writing || self.head < self.recorded)
    }

    fn start(&mut self) {
        let until_ns = self.now_ns + self.parameters.run_up_ns.value;
        self.motion = Motion::RunUp { until_ns };
    }

    /// Time in which no tape passes the head.
    fn pass_motion(&mut self, to_ns: u64, until: Until) {
        let passed_ns = to_ns - self.now_ns;
        if matches!(until, Until::Slack(_)) {
            self.counters.lost_ns += passed_ns;
        }
        self.now_ns = to_ns;
        match self.motion {
            Motion::BackHitch { until_ns } => {
                self.counters.back_hitch_ns += passed_ns;
                if until_ns == to_ns {
                    self.motion = Motion::Still;
                }
            }
            Motion::RunUp { until_ns } => {
                self.counters.back_hitch_ns += passed_ns;
                if until_ns == to_ns {
                    let step = self.best_step(0);
                    self.stream_from(step);
                }
            }
            Motion::Turn { until_ns, step } => {
                self.counters.turn_ns += passed_ns;
                if until_ns == to_ns {
                    self.stream_from(step);
                }
            }
            Motion::Still | Motion::Streaming { .. } => {}
        }
    }

    fn stream_from(&mut self, step: usize) {
        let decide_at_ns = self.now_ns + SPEED_DECISION_NS;
        self.motion = Motion::Streaming { step, decide_at_ns };
    }

    /// Tape passes the head until the next event.
    fn stream(&mut self, step: usize, decide_at_ns: u64, until: Until, limit_ns: u64) {
        let speed = u128::from(self.parameters.speeds_bytes_per_second[step].max(1));
        let mut room = self.slack.min(self.wrap - self.head % self.wrap);
        if self.direction == Direction::Reading {
            room = room.min(self.recorded - self.head);
        }
        let wanted = match until {
            Until::Slack(most) => room.min(self.slack - most),
            Until::Time(_) => room,
        };
        let needs_ns = |bytes: Nanobytes| u64::try_from(bytes.div_ceil(speed)).unwrap_or(u64::MAX);
        let mut decide_at_ns = decide_at_ns;
        if step > 0 && !self.flushing && self.slack > self.low {
            let low_at_ns = self.now_ns.saturating_add(needs_ns(self.slack - self.low));
            decide_at_ns = decide_at_ns.min(low_at_ns);
        }
        let to_ns = self.now_ns.saturating_add(needs_ns(wanted)).min(decide_at_ns).min(limit_ns);
        let passed_ns = to_ns - self.now_ns;
        let moved = (u128::from(passed_ns) * speed).min(room);
        self.now_ns = to_ns;
        self.slack -= moved;
        self.head += moved;
        self.counters.medium_nanobytes += moved;
        self.counters.step_ns[step] += passed_ns;
        if self.direction == Direction::Writing {
            self.recorded = self.head;
        }
        if self.slack == 0 {
            self.run_dry();
        } else if self.direction == Direction::Reading && self.head == self.recorded {
            self.motion = Motion::Still;
        } else if moved > 0 && self.head.is_multiple_of(self.wrap) {
            self.counters.turns += 1;
            let until_ns = self.now_ns + self.parameters.wrap_turn_ns.value;
            self.motion = Motion::Turn { until_ns, step };
        } else if to_ns >= decide_at_ns {
            let step = self.best_step(step);
            self.stream_from(step);
        }
    }

    /// Nothing to write, or no room to read into.
    fn run_dry(&mut self) {
        if self.flushing { self.motion = Motion::Still } else { self.back_hitch() }
    }

    fn back_hitch(&mut self) {
        self.counters.back_hitches += 1;
        let until_ns = self.now_ns + self.parameters.back_hitch_ns.value;
        self.motion = Motion::BackHitch { until_ns };
    }

    fn best_step(&self, current: usize) -> usize {
        let speeds = &self.parameters.speeds_bytes_per_second;
        if self.flushing {
            return speeds.len() - 1;
        }
        let fill_percent = (self.slack * 100 / self.buffer).min(100) as u8;
        speed::best_step(speeds, current, self.offered.rate(self.now_ns), fill_percent)
    }
}

fn whole(nanobytes: Nanobytes) -> u64 {
    u64::try_from(nanobytes / NANOBYTES).unwrap_or(u64::MAX)
}
