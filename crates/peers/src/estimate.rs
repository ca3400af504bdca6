//! Typical values of repeated runs and their confidence, by the methods of `statistics`.
//!
//! Runs of one round are close in time, so a ratio is formed within each round. The geometric mean
//! of such ratios and its interval are the same as Student's t on the differences of the
//! logarithms, block by block, of `docs/design/statistics.md`.

use statistics::interval::{Interval, of_geometric_mean, of_mean};
use statistics::{geometric_mean, mean};

/// Share of the experiments whose interval holds the truth.
const CONFIDENCE: f64 = 0.95;

/// A typical value and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Geometric mean; arithmetic mean of values that may be zero.
    pub typical: f64,
    /// The 95 % interval; `None` for a single value.
    pub interval: Option<Interval>,
}

impl Estimate {
    /// A value without scatter.
    pub fn exact(value: f64) -> Estimate {
        Estimate { typical: value, interval: Some(Interval { low: value, high: value }) }
    }

    /// From one value per run; `None` without values.
    pub fn of(values: &[f64]) -> Option<Estimate> {
        if let Some(typical) = geometric_mean(values) {
            return Some(Estimate { typical, interval: of_geometric_mean(values, CONFIDENCE) });
        }
        Some(Estimate { typical: mean(values)?, interval: of_mean(values, CONFIDENCE) })
    }

    /// In words.
    pub fn shown(&self, decimals: usize, unit: &str) -> String {
        let typical = format!("{:.decimals$}{unit}", self.typical);
        match self.interval {
            None => typical,
            Some(Interval { low, high }) => {
                let (low, high) = (format!("{low:.decimals$}"), format!("{high:.decimals$}"));
                if low == high { typical } else { format!("{typical} ({low} to {high})") }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use statistics::ratio;

    #[test]
    fn ratios_of_rounds_are_judged_as_within_an_experiment() {
        let rates = [(200.0, 100.0), (260.0, 120.0), (150.0, 80.0)];
        let ratios: Vec<f64> = rates.iter().map(|(a, b)| a / b).collect();
        let own = Estimate::of(&ratios).unwrap();
        let interval = own.interval.unwrap();
        let theirs = ratio::paired(&rates, CONFIDENCE).unwrap();
        assert!((own.typical - theirs.ratio).abs() < 1e-12);
        assert!((interval.low - theirs.interval.low).abs() < 1e-9, "{interval:?}");
        assert!((interval.high - theirs.interval.high).abs() < 1e-9, "{interval:?}");
    }

    #[test]
    fn one_value_has_no_interval_and_zeros_have_a_mean() {
        assert_eq!(Estimate::of(&[]), None);
        let one = Estimate::of(&[3.0]).unwrap();
        assert!((one.typical - 3.0).abs() < 1e-12 && one.interval.is_none());
        assert_eq!(one.shown(1, " x"), "3.0 x");
        assert_eq!(Estimate::of(&[0.0, 0.0]), Some(Estimate::exact(0.0)));
        let counts = Estimate::of(&[0.0, 2.0, 4.0]).unwrap();
        assert!((counts.typical - 2.0).abs() < 1e-12);
        assert_eq!(counts.shown(0, ""), "2 (-3 to 7)");
    }
}
