//! Bytes over time in fixed memory: when there are too many steps, their length doubles.

use std::time::Instant;

use serde::{Deserialize, Serialize};

/// Most steps kept; a longer run has longer steps.
const STEPS_MAX: usize = 1024;
const FIRST_STEP_NS: u64 = 5_000_000;

/// Bytes over time in steps of equal length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Length of a step.
    pub step_seconds: f64,
    /// Bytes in each step; the last one ends with the run.
    pub bytes: Vec<u64>,
}

impl Series {
    /// The rates of the complete steps.
    pub fn rates(&self) -> Vec<f64> {
        let whole = self.bytes.len().saturating_sub(1);
        self.bytes[..whole].iter().map(|&bytes| bytes as f64 / self.step_seconds).collect()
    }
}

/// Counts bytes as they come.
#[derive(Clone, Debug)]
pub struct SeriesRecorder {
    start: Instant,
    step_ns: u64,
    bytes: Vec<u64>,
}

impl SeriesRecorder {
    /// A series that begins at `start`.
    pub fn new(start: Instant) -> SeriesRecorder {
        SeriesRecorder { start, step_ns: FIRST_STEP_NS, bytes: Vec::with_capacity(STEPS_MAX) }
    }

    /// Counts bytes that arrived at `now`.
    pub fn add(&mut self, now: Instant, bytes: u64) {
        let since_ns = now.duration_since(self.start).as_nanos() as u64;
        while since_ns / self.step_ns >= STEPS_MAX as u64 {
            self.coarsen();
        }
        let step = (since_ns / self.step_ns) as usize;
        if self.bytes.len() <= step {
            self.bytes.resize(step + 1, 0);
        }
        self.bytes[step] += bytes;
    }

    /// Adds the counts of another recorder with the same start.
    pub fn merge(&mut self, other: &SeriesRecorder) {
        let mut other = other.clone();
        while self.step_ns < other.step_ns {
            self.coarsen();
        }
        while other.step_ns < self.step_ns {
            other.coarsen();
        }
        if self.bytes.len() < other.bytes.len() {
            self.bytes.resize(other.bytes.len(), 0);
        }
        self.bytes.iter_mut().zip(&other.bytes).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// The series of a run of this length, including empty steps at its end.
    pub fn finish(mut self, seconds: f64) -> Series {
        let step_seconds = self.step_ns as f64 / 1e9;
        let steps = ((seconds / step_seconds).ceil() as usize).min(STEPS_MAX);
        if self.bytes.len() < steps {
            self.bytes.resize(steps, 0);
        }
        Series { step_seconds, bytes: self.bytes }
    }

    fn coarsen(&mut self) {
        self.step_ns *= 2;
        self.bytes = self.bytes.chunks(2).map(|pair| pair.iter().sum()).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    proptest! {
        #[test]
        fn no_byte_is_lost(
            adds in prop::collection::vec((0u64..40_000, 1u64..1000, any::<bool>()), 1..60),
        ) {
            let start = Instant::now();
            let mut both = [SeriesRecorder::new(start), SeriesRecorder::new(start)];
            let mut naive = SeriesRecorder::new(start);
            let mut total = 0;
            for (milliseconds, bytes, which) in adds {
                let now = start + Duration::from_millis(milliseconds);
                both[usize::from(which)].add(now, bytes);
                naive.add(now, bytes);
                total += bytes;
            }
            let [mut first, second] = both;
            first.merge(&second);
            prop_assert_eq!(&first.bytes, &naive.bytes);
            prop_assert_eq!(first.step_ns, naive.step_ns);
            let series = first.finish(40.0);
            prop_assert_eq!(series.bytes.iter().sum::<u64>(), total);
            prop_assert!(series.bytes.len() <= STEPS_MAX);
        }
    }
}
