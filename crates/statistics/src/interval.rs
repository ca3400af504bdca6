//! Confidence intervals of one sample.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, StudentsT};

use crate::unbounded;

use super::{logarithms, mean, sorted, standard_deviation};

/// A range that holds the true value in a known share of all experiments.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Lower end; null where there is none.
    #[serde(deserialize_with = "unbounded::below")]
    #[schemars(with = "Option<f64>")]
    pub low: f64,
    /// Upper end; null where there is none.
    #[serde(deserialize_with = "unbounded::above")]
    #[schemars(with = "Option<f64>")]
    pub high: f64,
}

impl Interval {
    /// Whether the value is in it, ends included.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Half of its width as a share of its middle.
    pub fn relative_half_width(&self) -> f64 {
        let middle = (self.low + self.high) / 2.0;
        if middle == 0.0 { f64::INFINITY } else { ((self.high - self.low) / 2.0 / middle).abs() }
    }

    /// The interval widened by this factor, on the scale of ratios.
    pub fn widened(self, times: f64) -> Interval {
        let middle = (self.low * self.high).sqrt();
        self.map(|end| middle * (end / middle).powf(times))
    }

    /// Applies a monotonic function to both ends.
    pub fn map(self, change: impl Fn(f64) -> f64) -> Interval {
        Interval { low: change(self.low), high: change(self.high) }
    }
}

/// The factor by which a standard error is multiplied: the two-sided quantile of Student's t.
pub fn t_factor(confidence: f64, degrees: f64) -> Option<f64> {
    let sensible = degrees > 0.0 && degrees.is_finite() && (0.0..1.0).contains(&confidence);
    let t = StudentsT::new(0.0, 1.0, degrees).ok().filter(|_| sensible)?;
    Some(t.inverse_cdf(0.5 + confidence / 2.0))
}

/// Interval of the mean (Student 1908), for values that scatter about evenly to both sides.
pub fn of_mean(values: &[f64], confidence: f64) -> Option<Interval> {
    let error = standard_deviation(values)? / (values.len() as f64).sqrt();
    let reach = t_factor(confidence, (values.len() - 1) as f64)? * error;
    let centre = mean(values)?;
    Some(Interval { low: centre - reach, high: centre + reach })
}

/// Interval of the geometric mean of positive values: Student's, on the logarithms. Exact for
/// log-normal values. For rates that scatter by a few per cent it equals that of the mean.
pub fn of_geometric_mean(values: &[f64], confidence: f64) -> Option<Interval> {
    Some(of_mean(&logarithms(values)?, confidence)?.map(f64::exp))
}

/// Interval of the median from order statistics, for any distribution. It is interpolated between
/// neighbours, so that its coverage is near the requested one also in small samples (Hettmansperger
/// and Sheather 1986). `None` if even the extremes do not reach it: below 6 values at 95 %.
pub fn of_median(values: &[f64], confidence: f64) -> Option<Interval> {
    let n = values.len();
    let half = Binomial::new(0.5, n as u64).ok()?;
    // Coverage of the interval from the d-th smallest to the d-th largest, d from 1.
    let coverage = |d: usize| 1.0 - 2.0 * half.cdf(d as u64 - 1);
    let widest_enough = (1..=n / 2).rev().find(|&d| coverage(d) >= confidence)?;
    let d = widest_enough;
    let sorted = sorted(values);
    let end = |part: f64, from: f64, to: f64| from * (1.0 - part) + to * part;
    if d + 1 > n - d - 1 {
        return Some(Interval { low: sorted[d - 1], high: sorted[n - d] });
    }
    let (wide, narrow) = (coverage(d), coverage(d + 1).max(0.0));
    let share = (wide - confidence) / (wide - narrow);
    let (d_f, n_f) = (d as f64, n as f64);
    let part = (n_f - d_f) * share / (d_f + (n_f - 2.0 * d_f) * share);
    Some(Interval {
        low: end(part, sorted[d - 1], sorted[d]),
        high: end(part, sorted[n - d], sorted[n - d - 1]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_textbooks() {
        // Student's own sleep data (1908): mean 1.58, t 95 % with 9 degrees 2.262.
        let sleep = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let interval = of_mean(&sleep, 0.95).unwrap();
        assert!((interval.low - 0.700).abs() < 1e-3, "{interval:?}");
        assert!((interval.high - 2.460).abs() < 1e-3, "{interval:?}");
        assert_eq!(of_mean(&[1.0], 0.95), None);
        let six = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(of_median(&six[..5], 0.95), None);
        let interval = of_median(&six, 0.95).unwrap();
        // Extremes cover 96.9 %, the next pair 78.1 %.
        assert!(interval.low > 1.0 && interval.low < 1.5 && interval.high > 5.5, "{interval:?}");
    }
}
