//! Comparisons of many cells with one: intervals that all hold the truth at once.
//!
//! If you look at eight settings and report the best one, you have looked eight times. Intervals by
//! Student's t, each right in 95 %, are then all right at once in far fewer experiments, and the
//! reported one is wrong most often.

use statrs::distribution::{ContinuousCDF, Normal};

use super::interval::t_factor;

/// Nodes of the two integrals: for smooth functions that vanish at both ends, the trapezoidal rule
/// is exact to more digits than are used.
const SCALES: u32 = 48;
const CENTRES: u32 = 18;

/// The factor of a standard error with which the intervals of `others` cells against one all hold
/// the truth at once (Dunnett 1955): the two-sided quantile of the largest of that many t values
/// that share their denominator and, through the one cell, half of their numerator. Exact for equal
/// scatter and equal numbers of runs.
pub fn dunnett_factor(confidence: f64, others: usize, degrees: f64) -> Option<f64> {
    let usual = t_factor(confidence, degrees.min(1e5))?;
    if others < 2 {
        return Some(usual);
    }
    let normal = Normal::new(0.0, 1.0).ok()?;
    let scales = scales(degrees);
    let holds = |factor: f64| -> f64 {
        let at = |&(scale, weight): &(f64, f64)| {
            weight * all_within(&normal, std::f64::consts::SQRT_2 * factor * scale, others)
        };
        scales.iter().map(at).sum()
    };
    // Bonferroni's factor is never too small. Between the two bounds the probability is nearly
    // straight, so a few steps of the Illinois method (Dowell and Jarratt 1971) are enough.
    let bonferroni = 1.0 - (1.0 - confidence) / others as f64;
    let (mut low, mut high) = (usual, t_factor(bonferroni, degrees.min(1e5))?);
    let missing = |factor: f64| (1.0 - confidence).ln() - (1.0 - holds(factor)).max(1e-12).ln();
    let (mut below, mut above) = (missing(low), missing(high));
    for _ in 0..40 {
        let at = (low * above - high * below) / (above - below);
        let value = missing(at);
        if value.abs() < 1e-8 || high - low < 1e-8 {
            return Some(at);
        }
        if value < 0.0 {
            (low, below, above) = (at, value, above / 2.0);
        } else {
            (high, above, below) = (at, value, below / 2.0);
        }
    }
    Some(high)
}

/// Values of the estimated scatter divided by the true one, each with its probability.
fn scales(degrees: f64) -> Vec<(f64, f64)> {
    if degrees > 2000.0 {
        return vec![(1.0, 1.0)];
    }
    let width = 6.5 / (2.0 * degrees).sqrt();
    let (from, to) = (-width - 12.0 / degrees, width.min(1.9));
    let node = |step: u32| {
        let log = from + (to - from) * f64::from(step) / f64::from(SCALES);
        // The density of the logarithm of chi divided by the root of its degrees, up to a constant.
        let density = degrees * log - degrees / 2.0 * ((2.0 * log).exp() - 1.0);
        (log.exp(), density.exp())
    };
    let nodes: Vec<(f64, f64)> = (0..=SCALES).map(node).collect();
    let sum: f64 = nodes.iter().map(|(_, weight)| weight).sum();
    nodes.into_iter().map(|(scale, weight)| (scale, weight / sum)).collect()
}

/// Probability that each of `count` normal values is within `reach` of one other.
fn all_within(normal: &Normal, reach: f64, count: usize) -> f64 {
    // The integrand is even in the one value, so half of the line is enough.
    let step = 6.0 / f64::from(CENTRES);
    let at = |node: u32| {
        let centre = step * f64::from(node);
        let density = (-centre * centre / 2.0).exp() / std::f64::consts::TAU.sqrt();
        let inside = normal.cdf(centre + reach) - normal.cdf(centre - reach);
        let half = if node == 0 { 0.5 } else { 1.0 };
        half * density * inside.powi(i32::try_from(count).unwrap_or(i32::MAX))
    };
    2.0 * step * (0..=CENTRES).map(at).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn factors_hold_what_they_promise() {
        let mut random = Random::new(8);
        for (others, degrees) in [(2, 2), (3, 4), (8, 6), (30, 40)] {
            let factor = dunnett_factor(0.95, others, f64::from(degrees)).unwrap();
            let mut hold = 0;
            for _ in 0..20_000 {
                let squares: f64 = (0..degrees).map(|_| random.normal().powi(2)).sum();
                let scatter = (2.0 * squares / f64::from(degrees)).sqrt();
                let one = random.normal();
                let within = |_| ((random.normal() - one) / scatter).abs() <= factor;
                hold += u32::from((0..others).all(within));
            }
            let share = f64::from(hold) / 20_000.0;
            assert!((share - 0.95).abs() < 0.006, "{others} {degrees}: {share}");
        }
    }

    /// Two-sided 5 % points for equal groups, table 2 of Dunnett (1964, "New tables for multiple
    /// comparisons with a control").
    #[test]
    fn factors_are_those_of_the_tables() {
        for (others, degrees, expected) in [
            (1, 10.0, 2.23),
            (2, 5.0, 3.03),
            (3, 10.0, 2.76),
            (5, 10.0, 2.98),
            (9, 20.0, 2.95),
            (2, 60.0, 2.27),
            (9, f64::INFINITY, 2.69),
        ] {
            let found = dunnett_factor(0.95, others, degrees).unwrap();
            assert!((found - expected).abs() < 0.02, "{others} {degrees}: {found} {expected}");
        }
    }
}
