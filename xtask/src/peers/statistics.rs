//! Medians, and how far to trust them.
//!
//! Runs of one round stand close in time, so a ratio is formed within each round and the median of
//! these ratios is reported. Its spread is a percentile bootstrap interval (Efron and Tibshirani,
//! "An Introduction to the Bootstrap", 1993, chapter 13) from five rounds on, and the plain range
//! below that, where a bootstrap would promise more than so few runs can hold.

use super::random::Generator;

/// A middle value and its spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Median.
    pub median: f64,
    /// Lower end of the spread.
    pub low: f64,
    /// Upper end of the spread.
    pub high: f64,
    /// Number of values it is made from.
    pub count: usize,
}

const BOOTSTRAP_FROM: usize = 5;
const RESAMPLES: usize = 4000;

/// Median of `values`, which must not be NaN; `None` if there are none.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// Median with its spread: a 95 % interval from five values on, else the range.
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    let median_value = median(values)?;
    let (low, high) = if values.len() >= BOOTSTRAP_FROM {
        bootstrap_interval(values)
    } else {
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &value| {
            (low.min(value), high.max(value))
        })
    };
    Some(Estimate { median: median_value, low, high, count: values.len() })
}

fn bootstrap_interval(values: &[f64]) -> (f64, f64) {
    // The same runs give the same interval.
    let mut generator = Generator::new(95, values.len() as u64);
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let sample: Vec<f64> = (0..values.len())
                .map(|_| values[generator.below(values.len() as u64) as usize])
                .collect();
            median(&sample)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let tail = RESAMPLES / 40;
    (medians[tail], medians[RESAMPLES - 1 - tail])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_few_values() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0]), Some(5.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
    }

    #[test]
    fn few_values_give_their_range() {
        let estimate = estimate(&[2.0, 1.0, 4.0]).unwrap();
        assert_eq!((estimate.median, estimate.low, estimate.high), (2.0, 1.0, 4.0));
    }

    #[test]
    fn intervals_hold_the_true_median_about_as_often_as_they_say() {
        let mut generator = Generator::new(5, 5);
        let trials = 300;
        let held = (0..trials)
            .filter(|_| {
                let values: Vec<f64> = (0..15).map(|_| 10.0 + generator.normal()).collect();
                let estimate = estimate(&values).unwrap();
                estimate.low <= 10.0 && 10.0 <= estimate.high
            })
            .count();
        let percent = held * 100 / trials;
        assert!((88..=100).contains(&percent), "{percent}");
    }
}
