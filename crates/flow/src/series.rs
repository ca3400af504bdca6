//! The times and bytes of a stage in each interval, for a page that shows when it worked and when
//! it waited.
//!
//! It is kept only on request ([`Stage::keep_series`]), since it costs a lock at each change of
//! state and a clock reading for each block. However long a run takes, there are at most
//! [`INTERVALS_MAX`] intervals: beyond that, each two become one.
//!
//! [`Stage::keep_series`]: crate::account::Stage::keep_series

use std::sync::Mutex;
use std::time::Instant;

use base::failures::lock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::account::ThreadState;

/// Most intervals of a series.
pub const INTERVALS_MAX: usize = 256;
/// Length of the first intervals.
const INTERVAL_NS: u64 = 10_000_000;

/// A stage over time. The times of an interval are sums over the threads of the stage; divided by
/// the length of the interval they give the number of threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageSeries {
    /// Length of an interval; the first one begins with the run.
    pub interval_seconds: f64,
    /// Seconds of doing its job.
    pub working_seconds: Vec<f64>,
    /// Seconds of waiting for input.
    pub starved_seconds: Vec<f64>,
    /// Seconds of waiting for room in its output.
    pub blocked_seconds: Vec<f64>,
    /// Seconds of waiting for something outside all stages.
    pub apart_seconds: Vec<f64>,
    /// Bytes that passed through.
    pub bytes: Vec<u64>,
}

/// A series that is being kept.
#[derive(Debug)]
pub(crate) struct Series {
    began: Instant,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    interval_ns: u64,
    intervals: Vec<Interval>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    state_ns: [u64; 4],
    bytes: u64,
}

impl Series {
    /// A series whose first interval begins at `began`.
    pub(crate) fn new(began: Instant) -> Series {
        let kept = Kept { interval_ns: INTERVAL_NS, intervals: Vec::new() };
        Series { began, kept: Mutex::new(kept) }
    }

    /// A thread was in `state` from one moment to another.
    pub(crate) fn add_time(&self, state: ThreadState, from: Instant, until: Instant) {
        let (from_ns, until_ns) = (self.nanoseconds(from), self.nanoseconds(until));
        lock(&self.kept).add_time(state, from_ns, until_ns);
    }

    /// Bytes have passed through just now.
    pub(crate) fn add_bytes(&self, bytes: u64) {
        let now_ns = self.nanoseconds(Instant::now());
        lock(&self.kept).at(now_ns).bytes += bytes;
    }

    /// The series so far.
    pub(crate) fn told(&self) -> StageSeries {
        let kept = lock(&self.kept);
        let seconds = |state: ThreadState| {
            let of = |it: &Interval| it.state_ns[state as usize] as f64 / 1e9;
            kept.intervals.iter().map(of).collect()
        };
        StageSeries {
            interval_seconds: kept.interval_ns as f64 / 1e9,
            working_seconds: seconds(ThreadState::Working),
            starved_seconds: seconds(ThreadState::Starved),
            blocked_seconds: seconds(ThreadState::Blocked),
            apart_seconds: seconds(ThreadState::Apart),
            bytes: kept.intervals.iter().map(|it| it.bytes).collect(),
        }
    }

    fn nanoseconds(&self, moment: Instant) -> u64 {
        u64::try_from(moment.saturating_duration_since(self.began).as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Kept {
    fn add_time(&mut self, state: ThreadState, mut from_ns: u64, until_ns: u64) {
        // Makes room first, so that intervals keep their length during the update.
        self.at(until_ns.saturating_sub(1));
        while from_ns < until_ns {
            let end_ns = (from_ns / self.interval_ns + 1).saturating_mul(self.interval_ns);
            let part_ns = until_ns.min(end_ns) - from_ns;
            self.at(from_ns).state_ns[state as usize] += part_ns;
            from_ns += part_ns;
        }
    }

    /// The interval of a moment; intervals before it without activity are zero.
    fn at(&mut self, moment_ns: u64) -> &mut Interval {
        while moment_ns / self.interval_ns >= INTERVALS_MAX as u64 {
            self.join();
        }
        let number = usize::try_from(moment_ns / self.interval_ns).unwrap_or(INTERVALS_MAX - 1);
        if self.intervals.len() <= number {
            self.intervals.resize(number + 1, Interval::default());
        }
        &mut self.intervals[number]
    }

    /// Merges each two intervals.
    fn join(&mut self) {
        self.interval_ns = self.interval_ns.saturating_mul(2);
        let joined = self.intervals.chunks(2).map(|pair| {
            let mut sum = pair[0];
            for second in &pair[1..] {
                sum.bytes += second.bytes;
                for (all, more) in sum.state_ns.iter_mut().zip(second.state_ns) {
                    *all += more;
                }
            }
            sum
        });
        self.intervals = joined.collect();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept() -> Kept {
        Kept { interval_ns: INTERVAL_NS, intervals: Vec::new() }
    }

    proptest! {
        /// Whatever is added, nothing is lost, no interval has more of one thread than its length,
        /// and each part is where it happened.
        #[test]
        fn all_of_it_is_kept_where_it_happened(
            parts in prop::collection::vec((0..4_usize, 1..40_000_000_000_u64, 0..999_u64), 1..60),
        ) {
            use ThreadState::{Apart, Blocked, Starved, Working};
            const STATES: [ThreadState; 4] = [Working, Starved, Blocked, Apart];
            let mut kept = kept();
            let (mut now_ns, mut sums, mut bytes) = (0, [0_u64; 4], 0);
            for (state, length_ns, passed) in parts {
                kept.add_time(STATES[state], now_ns, now_ns + length_ns);
                now_ns += length_ns;
                kept.at(now_ns - 1).bytes += passed;
                sums[state] += length_ns;
                bytes += passed;
            }
            prop_assert!(kept.intervals.len() <= INTERVALS_MAX);
            prop_assert_eq!(kept.intervals.iter().map(|it| it.bytes).sum::<u64>(), bytes);
            for (state, sum) in sums.iter().enumerate() {
                let told: u64 = kept.intervals.iter().map(|it| it.state_ns[state]).sum();
                prop_assert_eq!(told, *sum);
            }
            // One thread that is always in some state fills each interval but the last.
            let (last, others) = kept.intervals.split_last().unwrap();
            for interval in others {
                prop_assert_eq!(interval.state_ns.iter().sum::<u64>(), kept.interval_ns);
            }
            let of_last: u64 = last.state_ns.iter().sum();
            prop_assert_eq!(of_last, now_ns - kept.interval_ns * others.len() as u64);
        }
    }

    #[test]
    fn the_latest_moment_there_is_has_an_interval() {
        let mut kept = kept();
        kept.at(u64::MAX).bytes += 1;
        kept.add_time(ThreadState::Working, 0, 5);
        assert_eq!(kept.intervals[0].state_ns[0], 5);
        assert!(kept.intervals.len() <= INTERVALS_MAX);
    }
}
