//! A drive with the timing of a model, on the clock of this machine.
//!
//! The model has the completion time of a command; the command returns then, or a little later,
//! since a thread must be woken. The host gets that delay back: its next transfer counts as arrived
//! that much earlier. So the timer affects neither a rate that the medium limits nor one that small
//! blocks limit. With a speed-up, the model's clock runs that much faster.
//!
//! A [`Gauge`] reads the same model while a command waits.

use std::cell::Cell;
use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use base::failures::lock;

use super::pace::{Act, Compression, Pace};
use crate::speed_up::SpeedUp;
use model::BILLION;
use model::compressibility::{Compressibility, HISTORY_BYTES, PAGE_BYTES};
use model::tape::counters::TapeCounters;
use model::tape::parameters::TapeParameters;
use model::tape::{Filemark, Motion, TapeModel};

/// How well data compress in the drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ratio {
    /// Like an LZS drive, estimated from a sample of the pages.
    Measured,
    /// Always this many host bytes for each byte on the medium.
    Given(f64),
}

/// A longer delay was caused by the machine, and the host does not get it back.
const OWED_NS_MAX: u64 = 20_000_000;
/// Samples of the counters from which rates are computed, one each half second.
const SAMPLES_MAX: usize = 20;
const SAMPLE_NS: u64 = BILLION / 2;

/// A model on the clock of this machine.
pub struct RealTime {
    shared: Arc<Shared>,
    ratio: Ratio,
    sampled: Sampled,
    /// Arrival of the current command, in model time.
    began_ns: Option<u64>,
    /// Whether the last command finished after its completion time.
    is_late: bool,
    /// How much later than in the model the last transfer returned, in model time.
    owed_ns: u64,
}

/// Estimates how blocks compress, from samples: looking at every byte would take more processor
/// time than the drive takes to write it.
#[derive(Debug, Default)]
pub struct Sampled {
    compressibility: Compressibility,
    /// Bytes from the beginning of the next block to the next sample.
    next: usize,
}

/// Reads the state of a running drive.
#[derive(Clone)]
pub struct Gauge {
    shared: Arc<Shared>,
    ratio: Ratio,
}

/// The state that a [`Gauge`] reads. Times are the model's.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Time since the drive was made.
    pub elapsed_ns: u64,
    /// How many times faster than real time that time runs.
    pub speed_up: SpeedUp,
    /// The motion of the tape.
    pub motion: Motion,
    /// Native bytes in the drive's buffer.
    pub buffered_bytes: u64,
    /// Host bytes per second, over the last ten seconds of model time.
    pub host_bytes_per_second: u64,
    /// Bytes per second on the medium, over the same time.
    pub native_bytes_per_second: u64,
    pub counters: TapeCounters,
    /// The parameters of the model.
    pub parameters: TapeParameters,
    /// The compression ratio of all data, if the user set it.
    pub given_ratio: Option<f64>,
}

struct Shared {
    began: Instant,
    speed_up: SpeedUp,
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
    /// A drive at the beginning of a cartridge with `recorded_bytes` on it. Time runs `speed_up`
    /// times as fast as real time.
    pub fn new(
        parameters: TapeParameters,
        recorded_bytes: u64,
        speed_up: SpeedUp,
        ratio: Ratio,
    ) -> RealTime {
        let mut model = TapeModel::new(parameters);
        let loaded_ns = model.load(0, recorded_bytes);
        // The cartridge was loaded before the first command.
        let before = Duration::from_nanos(speed_up.ours_ns(loaded_ns));
        let now = Instant::now();
        let shared = Shared {
            began: now.checked_sub(before).unwrap_or(now),
            speed_up,
            state: Mutex::new(State { model, samples: VecDeque::new() }),
            stop: Mutex::new(false),
            stopped: Condvar::new(),
        };
        RealTime {
            shared: Arc::new(shared),
            ratio,
            sampled: Sampled::new(),
            began_ns: None,
            is_late: false,
            owed_ns: 0,
        }
    }

    /// A gauge for another thread.
    pub fn gauge(&self) -> Gauge {
        Gauge { shared: Arc::clone(&self.shared), ratio: self.ratio }
    }
}

/// A sample: a page, and before it as much history as a match can reach back.
const SAMPLE_BYTES: usize = HISTORY_BYTES + PAGE_BYTES;
/// One sample in this many bytes: a sixteenth of the pages, at other positions in each block, since
/// this is no multiple of any common block size.
const SAMPLE_EVERY_BYTES: usize = 16 * PAGE_BYTES + 4099;

impl Sampled {
    /// Nothing has passed.
    pub fn new() -> Sampled {
        Sampled::default()
    }

    /// Bytes that `block` takes on the medium, at least one unless it is empty.
    pub fn add(&mut self, block: &[u8]) -> u32 {
        if block.is_empty() {
            return 0;
        }
        let mut sampled_bytes = 0;
        let mut native_bytes = 0;
        let mut at = self.next.min(block.len().saturating_sub(SAMPLE_BYTES));
        while sampled_bytes == 0 || at + SAMPLE_BYTES <= block.len() {
            let sample = &block[at..block.len().min(at + SAMPLE_BYTES)];
            let history = sample.len().saturating_sub(PAGE_BYTES).min(HISTORY_BYTES);
            let (history, page) = sample.split_at(history);
            self.compressibility.jump();
            self.compressibility.add(history);
            native_bytes += self.compressibility.add(page);
            sampled_bytes += page.len() as u64;
            at += SAMPLE_EVERY_BYTES;
        }
        self.next = at.saturating_sub(block.len()) % SAMPLE_EVERY_BYTES;
        let native = native_bytes * block.len() as u64 / sampled_bytes.max(1);
        u32::try_from(native).unwrap_or(u32::MAX).max(1)
    }
}

impl Pace for RealTime {
    fn begin(&mut self) {
        self.began_ns = Some(self.shared.now_ns());
    }

    fn is_late(&self) -> bool {
        self.is_late
    }

    fn native_bytes(&mut self, block: &[u8], compression: Compression) -> u32 {
        let native = match (compression, self.ratio) {
            (Compression::Off, _) => return block.len() as u32,
            (Compression::On, Ratio::Measured) => return self.sampled.add(block),
            (Compression::On, Ratio::Given(ratio)) => (block.len() as f64 / ratio).round() as u64,
        };
        u32::try_from(native).unwrap_or(u32::MAX)
    }

    fn reaching_ns(&self, from_bytes: u64, to_bytes: u64) -> u64 {
        self.shared.state().model.parameters().reaching_ns(from_bytes, to_bytes)
    }

    fn take(&mut self, act: Act) {
        let began_ns = self.began_ns.take().filter(|_| act.is_transfer());
        let owed_ns = if act.is_transfer() { self.owed_ns } else { 0 };
        let now_ns = began_ns.unwrap_or_else(|| self.shared.now_ns()).saturating_sub(owed_ns);
        let mut state = self.shared.state();
        let model = &mut state.model;
        let until_ns = match act {
            Act::Write { host_bytes, native_bytes } => {
                model.write(now_ns, host_bytes, native_bytes).at_ns
            }
            // Data that are not in the model's medium were recorded in an earlier session.
            Act::Read { host_bytes, native_bytes } => model
                .read(now_ns, host_bytes, native_bytes)
                .map_or(now_ns, |completion| completion.at_ns),
            Act::Filemark => model.filemark(now_ns, Filemark::Immediate),
            Act::Synchronise => model.synchronise(now_ns),
            Act::Locate(native_bytes) => model.locate(now_ns, native_bytes),
            Act::Load(recorded_bytes) => model.load(now_ns, recorded_bytes),
            Act::Unload => model.unload(now_ns),
        };
        state.sample();
        drop(state);
        let outset = self.shared.wait_until(until_ns);
        let owed_max_ns = self.shared.speed_up.there_ns(OWED_NS_MAX);
        self.owed_ns = self.shared.now_ns().saturating_sub(until_ns).min(owed_max_ns);
        // Owed time makes the next transfers due earlier: the drive is late until all of it is paid
        // back.
        self.is_late = outset == Outset::Late;
    }
}

impl Gauge {
    /// The current state.
    pub fn read(&self) -> Reading {
        let now_ns = self.shared.now_ns();
        let mut state = self.shared.state();
        state.model.pass(now_ns);
        state.sample();
        let (host, native) = state.rates();
        let model = &state.model;
        Reading {
            elapsed_ns: now_ns,
            speed_up: self.shared.speed_up,
            motion: model.motion(),
            buffered_bytes: model.buffered_bytes(),
            host_bytes_per_second: host,
            native_bytes_per_second: native,
            counters: model.counters().clone(),
            parameters: model.parameters().clone(),
            given_ratio: match self.ratio {
                Ratio::Measured => None,
                Ratio::Given(ratio) => Some(ratio),
            },
        }
    }

    /// Commands that wait, and all later ones, take no more time.
    pub fn stop(&self) {
        *lock(&self.shared.stop) = true;
        self.shared.stopped.notify_all();
    }
}

impl Shared {
    /// Model time.
    fn now_ns(&self) -> u64 {
        let real_ns = self.began.elapsed().as_nanos() as u64;
        self.speed_up.there_ns(real_ns)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn wait_until(&self, model_ns: u64) -> Outset {
        wake_in_time();
        let end = self.began + Duration::from_nanos(self.speed_up.ours_ns(model_ns));
        let outset = if Instant::now() > end { Outset::Late } else { Outset::InTime };
        let mut stop = lock(&self.stop);
        while !*stop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            stop = self
                .stopped
                .wait_timeout(stop, left)
                .map_or_else(|poisoned| poisoned.into_inner().0, |(stop, _)| stop);
        }
        outset
    }
}

/// Tells the kernel, once for each thread, to wake it on time and not up to 50 us later
/// (`PR_SET_TIMERSLACK`, prctl(2)): a command of a drive takes no longer than that, and with small
/// blocks the delays add up.
fn wake_in_time() {
    thread_local! {
        static ASKED: Cell<bool> = const { Cell::new(false) };
    }
    if !ASKED.replace(true) {
        // Without it the drive is slower with small blocks, but not wrong.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    }
}

/// The state of a command whose work is done, so that only its time is left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outset {
    /// It had to wait.
    InTime,
    /// Its completion time had passed.
    Late,
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

    /// Rates since the oldest sample, in bytes per second of model time.
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

#[cfg(test)]
mod tests {
    use super::*;
    use model::tape::generation::Generation;
    use model::tape::parameters::TapeParameters;

    /// Stretches of noise, zeros and text, of lengths unrelated to the samples.
    fn mixed() -> Vec<u8> {
        let mut state = 7_u64;
        let mut data = Vec::new();
        while data.len() < 8 << 20 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let bytes = 1000 + (state >> 33) as usize % 50_000;
            match state >> 62 {
                0 => data.resize(data.len() + bytes, 0),
                1 => {
                    data.extend(b"a line of text and then another one\n".iter().cycle().take(bytes))
                }
                _ => data.extend((0..bytes).map(|_| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    (state >> 24) as u8
                })),
            }
        }
        data
    }

    #[test]
    fn a_sample_stands_for_the_whole() {
        let data = mixed();
        let mut compressibility = Compressibility::new();
        let whole = compressibility.add(&data);
        for block_bytes in [512, 10_240, 65_536, 1 << 20, 8 << 20] {
            let mut sampled = Sampled::new();
            let estimate: u64 =
                data.chunks(block_bytes).map(|block| u64::from(sampled.add(block))).sum();
            let percent = estimate * 100 / whole;
            assert!((85..=125).contains(&percent), "{percent} % in blocks of {block_bytes}");
        }
        assert_eq!(Sampled::new().add(&[]), 0);
        assert!(Sampled::new().add(&[1]) >= 1);
    }

    #[test]
    fn commands_wait_until_they_are_told_not_to() {
        let parameters = TapeParameters::of(&Generation::all()[6]);
        let mut pace = RealTime::new(parameters, 0, SpeedUp::ONE, Ratio::Measured);
        let gauge = pace.gauge();
        let unloading = std::thread::spawn(move || pace.take(Act::Unload));
        gauge.stop();
        // An unload would take a quarter of a minute.
        unloading.join().unwrap();
        let reading = gauge.read();
        assert_eq!(reading.counters.host_bytes, 0);
        assert_eq!(reading.buffered_bytes, 0);
    }

    #[test]
    fn lateness_is_made_up_for() {
        let mut parameters = TapeParameters::of(&Generation::all()[6]);
        // A millisecond for each command.
        parameters.set("command_overhead_ns", 1_000_000);
        let mut pace = RealTime::new(parameters, 0, SpeedUp::ONE, Ratio::Measured);
        let mut write = |before: Duration| {
            pace.begin();
            std::thread::sleep(before);
            pace.take(Act::Write { host_bytes: 512, native_bytes: 512 });
            pace.is_late()
        };
        assert!(write(Duration::from_millis(15)), "it should have been back long ago");
        // However late it was, this many commands pay it back.
        assert!((0..200).any(|_| !write(Duration::ZERO)));
    }

    #[test]
    fn the_gauge_counts_what_passes() {
        let parameters = TapeParameters::of(&Generation::all()[6]);
        let mut pace = RealTime::new(parameters, 0, SpeedUp::times(1_000_000), Ratio::Given(2.0));
        let gauge = pace.gauge();
        for _ in 0..10 {
            let native_bytes = u64::from(pace.native_bytes(&[0; 4096], Compression::On));
            assert_eq!(native_bytes, 2048);
            pace.take(Act::Write { host_bytes: 4096, native_bytes });
        }
        pace.take(Act::Filemark);
        pace.take(Act::Synchronise);
        let reading = gauge.read();
        assert_eq!(reading.counters.host_bytes, 40_960);
        assert_eq!(reading.counters.compressed_bytes, 20_480);
        assert_eq!(reading.counters.medium_nanobytes, 20_480 * u128::from(BILLION));
        assert_eq!(reading.buffered_bytes, 0);
        assert_eq!(reading.motion, Motion::Still);
    }
}
