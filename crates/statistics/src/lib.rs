//! The statistics of repeats, each method with its citation.
//!
//! The unit of replication is the run, never the interval inside it. Rates are positive and their
//! scatter grows with them, so most methods use their logarithms: an interval of the logarithms,
//! turned back, is one of the geometric mean, and a difference is a ratio. All functions take plain
//! numbers and return `None` if there are too few.
//!
//! `docs/design/statistics.md` explains which method is used where, and what was simulated. Besides
//! the methods there are their data and tools: [`histogram`]s of times, [`bytes_over_time`],
//! [`curve`]s through a sweep, and [`random`] numbers that a seed reproduces.
//!
//! # Map
//!
//! - [`interval`]: confidence intervals.
//! - [`ratio`]: ratios of two cells, paired or not.
//! - [`blocks`]: experiments in randomised blocks.
//! - `two_way`: runs as a table of cells and blocks.
//! - [`simultaneous`]: many comparisons at once.
//! - [`moderated`]: the scatter of many cells with few runs each.
//! - [`noncentral`]: power of a test.
//! - [`stopping`]: when there are enough repeats.
//! - [`drift`]: rates that change with time.
//! - [`series`]: the warm-up of a series, and its lasting changes.
//! - [`sample`]: whether repeats are independent and of one kind.
//! - [`outliers`]: values that are far out.
//! - [`bootstrap`]: intervals by resampling.
//! - [`sweep`]: which level of a factor to set.
//! - [`curve`]: a curve through a sweep.
//! - [`histogram`]: times in fixed memory.
//! - [`bytes_over_time`]: bytes over time in fixed memory.
//! - [`random`]: random numbers that a seed reproduces.
//! - [`unbounded`]: numbers without a bound, read from JSON.

pub mod blocks;
pub mod bootstrap;
pub mod bytes_over_time;
pub mod curve;
pub mod drift;
pub mod histogram;
pub mod interval;
pub mod moderated;
pub mod noncentral;
pub mod outliers;
pub mod random;
pub mod ratio;
pub mod sample;
pub mod series;
pub mod simultaneous;
pub mod stopping;
pub mod sweep;
mod two_way;
pub mod unbounded;

/// Arithmetic mean; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Standard deviation of a sample, with n - 1; `None` for fewer than two values.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    let centre = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

/// Geometric mean of positive values: the exponential of the mean logarithm.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    Some(mean(&logarithms(values)?)?.exp())
}

/// Harmonic mean of positive rates over equal amounts of bytes: all bytes divided by all the time,
/// which is the rate of all these runs together.
pub fn harmonic_mean(rates: &[f64]) -> Option<f64> {
    let times: Vec<f64> = rates.iter().map(|rate| 1.0 / rate).collect();
    let mean = mean(&times)?;
    (mean.is_finite() && mean > 0.0).then(|| 1.0 / mean)
}

/// Median; for an even number the mean of the middle two.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Quantile by linear interpolation between order statistics (Hyndman and Fan 1996, type 7).
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let sorted = sorted(values);
    let at = share.clamp(0.0, 1.0) * sorted.len().checked_sub(1)? as f64;
    let (below, part) = (at.floor() as usize, at.fract());
    let above = (below + 1).min(sorted.len() - 1);
    Some(sorted[below] + part * (sorted[above] - sorted[below]))
}

/// The values in order.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Natural logarithms; `None` if a value has none.
pub fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    let positive = values.iter().all(|&value| value > 0.0 && value.is_finite());
    positive.then(|| values.iter().map(|value| value.ln()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_samples() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(mean(&values), Some(5.0));
        assert!((standard_deviation(&values).unwrap() - 2.138_089_935).abs() < 1e-9);
        assert_eq!(median(&values), Some(4.5));
        assert_eq!(quantile(&values, 0.25), Some(4.0));
        assert_eq!(mean(&[]), None);
        assert_eq!(standard_deviation(&[1.0]), None);
        // 40 one way, 60 the other: 48 in all.
        assert!((harmonic_mean(&[40.0, 60.0]).unwrap() - 48.0).abs() < 1e-12);
        assert!((geometric_mean(&[1.0, 100.0]).unwrap() - 10.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
    }
}
