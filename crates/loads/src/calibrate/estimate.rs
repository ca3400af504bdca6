//! A number from repeats.

use std::collections::BTreeMap;

use super::{Beside, Told};
use statistics::geometric_mean;
use statistics::interval::{Interval, of_geometric_mean};

/// Share of experiments whose intervals hold the truth.
pub(super) const CONFIDENCE: f64 = 0.95;

/// Clocks, blocks and steps have a grain: nothing is known better than to half a per cent.
const GRAIN: f64 = 0.005;

/// A value, where it lies, and how many runs say so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    pub(super) value: f64,
    pub(super) interval: Interval,
    pub(super) runs: usize,
}

/// The mean of values with the numbers of their repeats. What belongs to one repeat has its machine
/// and its minute in common, and counts as one. `None` of a single repeat, and of values that are
/// not positive.
pub(super) fn by_repeat(values: &[(u64, f64)]) -> Option<Estimate> {
    let mut repeats: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (repeat, value) in values {
        repeats.entry(*repeat).or_default().push(*value);
    }
    let means: Option<Vec<f64>> = repeats.values().map(|of_one| geometric_mean(of_one)).collect();
    let means = means?;
    let interval = of_geometric_mean(&means, CONFIDENCE)?;
    Some(Estimate { value: geometric_mean(&means)?, interval, runs: values.len() }.grained())
}

impl Estimate {
    /// With an interval that is no narrower than what can be measured.
    pub(super) fn grained(self) -> Estimate {
        let Interval { low, high } = self.interval;
        let interval = Interval {
            low: low.min(self.value * (1.0 - GRAIN)),
            high: high.max(self.value * (1.0 + GRAIN)),
        };
        Estimate { interval, ..self }
    }

    /// In another unit.
    pub(super) fn scaled(self, by: f64) -> Estimate {
        let interval = self.interval.map(|end| end * by);
        Estimate { value: self.value * by, interval, ..self }
    }

    /// As a parameter.
    pub(super) fn told(self, parameter: &'static str, from: String) -> Told {
        let Estimate { value, interval, runs } = self;
        Told { parameter, value, interval, runs, from }
    }

    /// As something else.
    pub(super) fn beside(self, data: &str) -> Beside {
        let Estimate { value, interval, runs } = self;
        Beside { data: data.to_owned(), value, interval, runs }
    }
}
