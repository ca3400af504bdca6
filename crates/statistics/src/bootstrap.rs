//! Intervals by resampling, for statistics whose distribution is unknown.

use statrs::distribution::{ContinuousCDF, Normal};

use super::interval::Interval;
use super::{quantile, sorted};
use crate::random::Random;

/// Percentile interval (Efron 1979): the middle share of the statistic over resamples.
pub fn percentile(
    values: &[f64],
    statistic: impl Fn(&[f64]) -> f64,
    options: BootstrapOptions,
) -> Option<Interval> {
    let draws = resample(values, &statistic, options)?;
    let tail = (1.0 - options.confidence) / 2.0;
    Some(Interval { low: quantile(&draws, tail)?, high: quantile(&draws, 1.0 - tail)? })
}

/// BCa interval (Efron 1987, "Better bootstrap confidence intervals"): the percentile interval,
/// corrected for bias and for a spread that changes with the value. The acceleration comes from the
/// jackknife.
pub fn bca(
    values: &[f64],
    statistic: impl Fn(&[f64]) -> f64,
    options: BootstrapOptions,
) -> Option<Interval> {
    let draws = resample(values, &statistic, options)?;
    let observed = statistic(values);
    let below = draws.iter().filter(|&&draw| draw < observed).count() as f64;
    let equal = draws.iter().filter(|&&draw| draw == observed).count() as f64;
    let share = (below + equal / 2.0) / draws.len() as f64;
    let normal = Normal::new(0.0, 1.0).ok()?;
    let edge = 0.5 / draws.len() as f64;
    let bias = normal.inverse_cdf(share.clamp(edge, 1.0 - edge));
    let acceleration = acceleration(values, &statistic);
    let tail = (1.0 - options.confidence) / 2.0;
    let corrected = |tail: f64| {
        let z = bias + normal.inverse_cdf(tail);
        normal.cdf(bias + z / (1.0 - acceleration * z))
    };
    let (low, high) = (corrected(tail), corrected(1.0 - tail));
    Some(Interval { low: quantile(&draws, low)?, high: quantile(&draws, high)? })
}

/// Parameters of the resampling.
#[derive(Clone, Copy, Debug)]
pub struct BootstrapOptions {
    /// Share of experiments whose interval holds the true value.
    pub confidence: f64,
    /// Number of resamples; thousands, because the ends are in the tails.
    pub resamples: usize,
    /// Seed, so that the same data give the same interval.
    pub seed: u64,
}

impl Default for BootstrapOptions {
    fn default() -> BootstrapOptions {
        BootstrapOptions { confidence: 0.95, resamples: 4000, seed: 1 }
    }
}

/// The statistic of each resample, sorted. `None` for fewer than two values.
fn resample(
    values: &[f64],
    statistic: &impl Fn(&[f64]) -> f64,
    options: BootstrapOptions,
) -> Option<Vec<f64>> {
    if values.len() < 2 {
        return None;
    }
    let mut random = Random::new(options.seed);
    let mut sample = values.to_vec();
    let mut draw = || {
        sample.iter_mut().for_each(|place| *place = values[random.below(values.len())]);
        statistic(&sample)
    };
    let draws: Vec<f64> = (0..options.resamples.max(100)).map(|_| draw()).collect();
    Some(sorted(&draws))
}

fn acceleration(values: &[f64], statistic: &impl Fn(&[f64]) -> f64) -> f64 {
    let without = |left_out: usize| {
        let rest: Vec<f64> =
            values.iter().enumerate().filter(|(i, _)| *i != left_out).map(|(_, v)| *v).collect();
        statistic(&rest)
    };
    let parts: Vec<f64> = (0..values.len()).map(without).collect();
    let centre = parts.iter().sum::<f64>() / parts.len() as f64;
    let power =
        |exponent: i32| parts.iter().map(|part| (centre - part).powi(exponent)).sum::<f64>();
    let spread = power(2);
    if spread > 0.0 { power(3) / (6.0 * spread.powf(1.5)) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mean;

    #[test]
    fn a_symmetric_sample_has_a_symmetric_interval() {
        let values: Vec<f64> = (-10..=10).map(f64::from).collect();
        let mean = |sample: &[f64]| mean(sample).unwrap();
        for interval in [
            percentile(&values, mean, BootstrapOptions::default()).unwrap(),
            bca(&values, mean, BootstrapOptions::default()).unwrap(),
        ] {
            // Normal approximation: 1.96 * 6.055 / sqrt(21) = 2.59 with the variance of the sample.
            assert!((interval.low + 2.59).abs() < 0.2, "{interval:?}");
            assert!((interval.high - 2.59).abs() < 0.2, "{interval:?}");
        }
        assert_eq!(bca(&[1.0], mean, BootstrapOptions::default()), None);
        let same = bca(&[3.0; 5], mean, BootstrapOptions::default()).unwrap();
        assert_eq!((same.low, same.high), (3.0, 3.0));
    }
}
