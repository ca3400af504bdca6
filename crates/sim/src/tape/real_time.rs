//! A drive that takes the time that a model says, on the clock of this machine.
//!
//! The model says when a command completes; the command returns then. What the host lost in being
//! woken too late it has back at the next command, as the model's buffer has drained meanwhile, so
//! that rates do not suffer from the timer. With a speed-up, the model's clock runs that much
//! faster.
//!
//! A [`Gauge`] looks at the same model while a command waits.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::pace::{Act, Compression, Pace};
use crate::model::BILLION;
use crate::model::compressibility::Compressibility;
use crate::model::tape::counters::TapeCounters;
use crate::model::tape::parameters::TapeParameters;
use crate::model::tape::{Filemark, Motion, TapeModel};

/// What the drive makes of data when it compresses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ratio {
    /// What an LZS-like drive would, page by page.
    Measured,
    /// Always so many host bytes for each byte on the medium.
    Given(f64),
}

/// Samples of the counters from which rates are computed, one each half a second.
const SAMPLES_MAX: usize = 20;
const SAMPLE_NS: u64 = BILLION / 2;

/// A model on the clock of this machine.
pub struct RealTime {
    shared: Arc<Shared>,
    ratio: Ratio,
    compressibility: Compressibility,
}

/// A look at a drive in motion.
#[derive(Clone)]
pub struct Gauge {
    shared: Arc<Shared>,
}

/// What a [`Gauge`] sees. Times are the model's.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Since the drive was made.
    pub elapsed_ns: u64,
    /// What the tape does.
    pub motion: Motion,
    /// Native bytes in the drive's buffer.
    pub buffered_bytes: u64,
    /// Host bytes per second, over the last ten seconds of model time.
    pub host_bytes_per_second: u64,
    /// Bytes per second on the medium, over the same time.
    pub native_bytes_per_second: u64,
    /// All that was counted.
    pub counters: TapeCounters,
    /// What the model was made of.
    pub parameters: TapeParameters,
}

struct Shared {
    began: Instant,
    speed_up: u32,
    state: Mutex<State>,
    stop: Mutex<bool>,
    stopped: Condvar,
}

struct State {
    model: TapeModel,
    samples: VecDeque<Sample>,
}

#[derive(Clone, Copy)]
struct Sample {
    at_ns: u64,
    host_bytes: u128,
    native_bytes: u128,
}

impl RealTime {
    /// A drive with a cartridge on which `recorded_bytes` stand, at its beginning. Time runs
    /// `speed_up` times as fast as it does.
    pub fn new(
        parameters: TapeParameters,
        recorded_bytes: u64,
        speed_up: u32,
        ratio: Ratio,
    ) -> RealTime {
        let mut model = TapeModel::new(parameters);
        let loaded_ns = model.load(0, recorded_bytes);
        let speed_up = speed_up.max(1);
        // The cartridge was in before anybody looked.
        let before = Duration::from_nanos(loaded_ns / u64::from(speed_up));
        let now = Instant::now();
        let shared = Shared {
            began: now.checked_sub(before).unwrap_or(now),
            speed_up,
            state: Mutex::new(State { model, samples: VecDeque::new() }),
            stop: Mutex::new(false),
            stopped: Condvar::new(),
        };
        RealTime { shared: Arc::new(shared), ratio, compressibility: Compressibility::new() }
    }

    /// A look at it from elsewhere.
    pub fn gauge(&self) -> Gauge {
        Gauge { shared: Arc::clone(&self.shared) }
    }
}

impl Pace for RealTime {
    fn native_bytes(&mut self, block: &[u8], compression: Compression) -> u32 {
        let native = match (compression, self.ratio) {
            (Compression::Off, _) => return block.len() as u32,
            (Compression::On, Ratio::Measured) => self.compressibility.add(block),
            (Compression::On, Ratio::Given(ratio)) => (block.len() as f64 / ratio).round() as u64,
        };
        u32::try_from(native).unwrap_or(u32::MAX)
    }

    fn take(&mut self, act: Act) {
        let now_ns = self.shared.now_ns();
        let mut state = self.shared.state();
        let model = &mut state.model;
        let until_ns = match act {
            Act::Write { host_bytes, native_bytes } => {
                model.write(now_ns, host_bytes, native_bytes).at_ns
            }
            // What cannot be in the model's medium was not recorded in this session.
            Act::Read { host_bytes, native_bytes } => model
                .read(now_ns, host_bytes, native_bytes)
                .map_or(now_ns, |completion| completion.at_ns),
            Act::Filemark => model.filemark(now_ns, Filemark::Immediate),
            Act::Synchronise => model.synchronise(now_ns),
            Act::Locate(native_bytes) => model.locate(now_ns, native_bytes),
            Act::Load(recorded_bytes) => model.load(now_ns, recorded_bytes),
            Act::Unload => model.unload(now_ns),
        };
        if matches!(act, Act::Locate(_) | Act::Load(_)) {
            self.compressibility.jump();
        }
        state.sample();
        drop(state);
        self.shared.wait_until(until_ns);
    }
}

impl Gauge {
    /// How it is now.
    pub fn read(&self) -> Reading {
        let now_ns = self.shared.now_ns();
        let mut state = self.shared.state();
        state.model.pass(now_ns);
        state.sample();
        let (host, native) = state.rates();
        let model = &state.model;
        Reading {
            elapsed_ns: now_ns,
            motion: model.motion(),
            buffered_bytes: model.buffered_bytes(),
            host_bytes_per_second: host,
            native_bytes_per_second: native,
            counters: model.counters().clone(),
            parameters: model.parameters().clone(),
        }
    }

    /// Commands that wait, and all later ones, take no more time.
    pub fn stop(&self) {
        *self.shared.stop.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.stopped.notify_all();
    }
}

impl Shared {
    /// Model time.
    fn now_ns(&self) -> u64 {
        let real_ns = self.began.elapsed().as_nanos() as u64;
        real_ns.saturating_mul(u64::from(self.speed_up))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_until(&self, model_ns: u64) {
        let end = self.began + Duration::from_nanos(model_ns / u64::from(self.speed_up));
        let mut stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        while !*stop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            stop = self
                .stopped
                .wait_timeout(stop, left)
                .map_or_else(|poisoned| poisoned.into_inner().0, |(stop, _)| stop);
        }
    }
}

impl State {
    fn sample(&mut self) {
        let at_ns = self.model.now_ns();
        let counters = self.model.counters();
        let sample = Sample {
            at_ns,
            host_bytes: counters.host_bytes,
            native_bytes: counters.medium_nanobytes / u128::from(BILLION),
        };
        if self.samples.back().is_none_or(|last| at_ns >= last.at_ns + SAMPLE_NS) {
            if self.samples.len() == SAMPLES_MAX {
                self.samples.pop_front();
            }
            self.samples.push_back(sample);
        }
    }

    /// Rates since the oldest sample, in bytes per second of the model's time.
    fn rates(&self) -> (u64, u64) {
        let Some(oldest) = self.samples.front() else { return (0, 0) };
        let counters = self.model.counters();
        let ns = u128::from(self.model.now_ns().saturating_sub(oldest.at_ns));
        if ns == 0 {
            return (0, 0);
        }
        let native = counters.medium_nanobytes / u128::from(BILLION);
        let rate =
            |bytes: u128| u64::try_from(bytes * u128::from(BILLION) / ns).unwrap_or(u64::MAX);
        (rate(counters.host_bytes - oldest.host_bytes), rate(native - oldest.native_bytes))
    }
}
