//! Ratios of rates with intervals, and tests whether rates differ at all.
//!
//! A ratio of rates is a difference of their logarithms. Two independent samples are compared by
//! Welch's method, which does not assume equal scatter. Runs interleaved in blocks are compared
//! block by block, so that a drift common to both cancels.

use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

use super::blocks::Contrast;
use super::interval::{Interval, t_factor};
use super::{logarithms, mean, standard_deviation};

/// A ratio of two rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Ratio of the geometric means.
    pub ratio: f64,
    pub interval: Interval,
    /// Degrees of freedom of the standard error.
    pub degrees: f64,
    /// Two-sided probability of a ratio this far from 1 between systems that do not differ.
    pub p_value: f64,
}

impl Ratio {
    /// The same with the error multiplied by a factor, as needed if values resemble those before
    /// them ([`super::sample::widening`]).
    #[must_use]
    pub fn widened(self, times: f64, confidence: f64) -> Option<Ratio> {
        let half = (self.interval.high / self.interval.low).ln() / 2.0;
        let error = half / t_factor(confidence, self.degrees)?;
        of_difference(self.ratio.ln(), error * times, self.degrees, confidence)
    }
}

/// Ratio of `a` to `b`, two independent samples (Welch 1947, on logarithms; degrees of freedom by
/// Satterthwaite 1946). `None` if either has fewer than two values.
pub fn independent(a: &[f64], b: &[f64], confidence: f64) -> Option<Ratio> {
    let (a, b) = (logarithms(a)?, logarithms(b)?);
    let part = |values: &[f64]| {
        let variance = standard_deviation(values)?.powi(2) / values.len() as f64;
        Some((variance, variance.powi(2) / (values.len() - 1) as f64))
    };
    let ((variance_a, fourth_a), (variance_b, fourth_b)) = (part(&a)?, part(&b)?);
    let variance = variance_a + variance_b;
    let degrees = if fourth_a + fourth_b > 0.0 {
        variance.powi(2) / (fourth_a + fourth_b)
    } else {
        (a.len() + b.len() - 2) as f64
    };
    of_difference(mean(&a)? - mean(&b)?, variance.sqrt(), degrees, confidence)
}

/// Ratio of `a` to `b` in the same blocks: Student's t of the differences of their logarithms.
pub fn paired(pairs: &[(f64, f64)], confidence: f64) -> Option<Ratio> {
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (a, b) = (logarithms(&a)?, logarithms(&b)?);
    let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
    let error = standard_deviation(&differences)? / (differences.len() as f64).sqrt();
    of_difference(mean(&differences)?, error, (differences.len() - 1) as f64, confidence)
}

/// Probability that several independent effects differ this much if they are really equal: the F
/// test of their scatter against their mean squared error (Fisher 1925). Each counts alike, because
/// estimated weights would find differences too often. `None` for fewer than two.
pub fn differ(effects: &[Contrast]) -> Option<f64> {
    let values: Vec<f64> = effects.iter().map(|effect| effect.value).collect();
    let squares = standard_deviation(&values)?.powi(2);
    let errors = effects.iter().map(|effect| effect.error.max(1e-9).powi(2));
    let error = errors.sum::<f64>() / effects.len() as f64;
    let degrees = effects.iter().map(|effect| effect.degrees).fold(1e5, f64::min);
    let f = FisherSnedecor::new((effects.len() - 1) as f64, degrees).ok()?;
    Some(1.0 - f.cdf(squares / error))
}

/// p-values of a family of comparisons, each raised so that the chance of any false alarm among
/// them stays that of a single comparison (Holm 1979). The order is kept.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut least = 0.0f64;
    for (rank, &index) in order.iter().enumerate() {
        let raised = p_values[index] * (p_values.len() - rank) as f64;
        least = least.max(raised.min(1.0));
        adjusted[index] = least;
    }
    adjusted
}

fn of_difference(difference: f64, error: f64, degrees: f64, confidence: f64) -> Option<Ratio> {
    // Clocks and sizes have a resolution: values without any scatter would make every difference
    // certain.
    let error = error.max(1e-9);
    let reach = t_factor(confidence, degrees)? * error;
    let interval = Interval { low: difference - reach, high: difference + reach }.map(f64::exp);
    let t = StudentsT::new(0.0, 1.0, degrees).ok()?;
    let p_value = 2.0 * t.cdf(-(difference / error).abs());
    Some(Ratio { ratio: difference.exp(), interval, degrees, p_value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_the_difference_of_logarithms() {
        let a = [200.0, 210.0, 190.0, 205.0];
        let b = [100.0, 104.0, 97.0, 101.0];
        let both = independent(&a, &b, 0.95).unwrap();
        assert!((both.ratio - 2.0).abs() < 0.02 && both.interval.contains(2.0), "{both:?}");
        assert!(both.p_value < 1e-6);
        let back = independent(&b, &a, 0.95).unwrap();
        assert!((both.ratio * back.ratio - 1.0).abs() < 1e-12);
        assert!((both.interval.low * back.interval.high - 1.0).abs() < 1e-12);
        // A drift of a third that both have in common: pairs cancel it.
        let drifting: Vec<(f64, f64)> = (0..6)
            .map(|block| (1.0 + 0.06 * f64::from(block)) * 100.0)
            .map(|level| (1.05 * level, level))
            .collect();
        let paired = paired(&drifting, 0.95).unwrap();
        assert!((paired.ratio - 1.05).abs() < 1e-9 && paired.p_value < 1e-6);
        let (x, y): (Vec<f64>, Vec<f64>) = drifting.into_iter().unzip();
        assert!(independent(&x, &y, 0.95).unwrap().p_value > 0.3);
    }

    #[test]
    fn a_wider_interval_is_less_of_a_difference() {
        let (a, b) = ([102.0, 110.0, 99.0, 107.0], [100.0, 98.0, 97.0, 101.0]);
        let ratio = independent(&a, &b, 0.95).unwrap();
        let same = ratio.widened(1.0, 0.95).unwrap();
        assert!((same.p_value - ratio.p_value).abs() < 1e-9, "{same:?} {ratio:?}");
        let twice = ratio.widened(2.0, 0.95).unwrap();
        assert!((twice.interval.low - ratio.interval.widened(2.0).low).abs() < 1e-3);
        assert!(twice.p_value > ratio.p_value && twice.ratio == same.ratio);
    }

    #[test]
    fn holm_by_hand() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        for (value, expected) in adjusted.iter().zip(expected) {
            assert!((value - expected).abs() < 1e-12, "{adjusted:?}");
        }
        assert!(holm(&[]).is_empty());
    }
}
