//! Scatter of many cells with few runs each: each cell's own estimate, combined with that of all.
//!
//! Three runs show almost nothing about the scatter of a cell, but thirty cells with three runs
//! each show a lot about the scatter of such cells. Smyth (2004, "Linear models and empirical Bayes
//! methods", the method of `limma`) combines the two. The variances of the cells are assumed to
//! come from a scaled inverse chi-squared distribution. Its location and width are estimated from
//! all of them, and each cell's variance is moved towards it as far as the width suggests. If the
//! cells scatter alike, the result is one pooled variance; if not, each keeps most of its own.

use statrs::function::gamma::digamma;

use super::{mean, median};

/// Variances, each with its degrees of freedom.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moderated {
    /// The variance of each cell and its degrees of freedom.
    pub variances: Vec<(f64, f64)>,
    /// Those of its own.
    pub own: Vec<f64>,
    /// The common variance and its degrees of freedom.
    pub prior: (f64, f64),
    /// Degrees of freedom of all residuals: no sum of these variances has more.
    pub degrees: f64,
}

/// Moderates variances with their degrees of freedom. A cell without any gets the common variance.
/// `None` if no cell has any.
pub fn moderate(variances: &[(f64, f64)]) -> Option<Moderated> {
    let degrees: f64 = variances.iter().map(|(_, degrees)| degrees).sum();
    if degrees < 0.5 {
        return None;
    }
    let pooled = variances.iter().map(|(variance, own)| variance * own).sum::<f64>() / degrees;
    let prior = prior(variances).unwrap_or((pooled, f64::INFINITY));
    let moderated = |&(variance, own): &(f64, f64)| {
        if prior.1.is_infinite() {
            return (pooled, degrees);
        }
        let both = prior.1 + own;
        ((prior.1 * prior.0 + own * variance) / both, both.min(degrees))
    };
    Some(Moderated {
        variances: variances.iter().map(moderated).collect(),
        own: variances.iter().map(|(_, own)| *own).collect(),
        prior,
        degrees,
    })
}

/// With fewer degrees of freedom, a cell is ignored in the estimate of how cells scatter.
const DEGREES_MIN: f64 = 0.5;

/// The cells are assumed to differ more than they seem to, by this many standard errors. With few
/// cells of few runs each, cells with unlike scatter look alike half of the time, and without this
/// the intervals would cover the truth in 91 %.
const CAREFUL: f64 = 1.5;

/// The common variance and its degrees of freedom, from the first two moments of the logarithms of
/// the variances (Smyth 2004, section 6.2). `None` if these differ by no more than chance explains:
/// then all cells have the same variance.
fn prior(variances: &[(f64, f64)]) -> Option<(f64, f64)> {
    let known: Vec<&(f64, f64)> =
        variances.iter().filter(|(_, degrees)| *degrees >= DEGREES_MIN).collect();
    let middle = median(&known.iter().map(|(variance, _)| *variance).collect::<Vec<_>>())?;
    if known.len() < 3 || middle <= 0.0 {
        return None;
    }
    // A variance of zero, by chance or by the resolution of a clock, has no logarithm.
    let logs: Vec<f64> = known
        .iter()
        .map(|(variance, degrees)| {
            let half = degrees / 2.0;
            variance.max(1e-5 * middle).ln() - digamma(half) + half.ln()
        })
        .collect();
    let centre = mean(&logs)?;
    let squares: f64 = logs.iter().map(|log| (log - centre).powi(2)).sum();
    let chance = mean(&known.iter().map(|(_, own)| trigamma(own / 2.0)).collect::<Vec<_>>())?;
    let count = (known.len() - 1) as f64;
    let excess = squares / count - chance + CAREFUL * chance * (2.0 / count).sqrt();
    if excess <= 0.0 {
        return None;
    }
    let half = inverse_trigamma(excess);
    Some(((centre + digamma(half) - half.ln()).exp(), 2.0 * half))
}

/// The second derivative of ln gamma: recurrence up to 10, then its asymptotic series (Abramowitz
/// and Stegun 1964, 6.4.6 and 6.4.12).
fn trigamma(x: f64) -> f64 {
    let (mut x, mut sum) = (x, 0.0);
    while x < 10.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let series = 1.0 / 6.0 - square * (1.0 / 30.0 - square * (1.0 / 42.0 - square / 30.0));
    sum + 1.0 / x + square / 2.0 + square / x * series
}

/// The argument for which [`trigamma`], which falls from infinity to 0, has this value.
fn inverse_trigamma(value: f64) -> f64 {
    let (mut low, mut high) = (1e-4f64, 1e6f64);
    for _ in 0..100 {
        let middle = (low * high).sqrt();
        if trigamma(middle) > value {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low * high).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn the_functions_are_those_of_the_tables() {
        // Abramowitz and Stegun 1964, table 6.1: trigamma(1) = pi^2/6, trigamma(1/2) = pi^2/2.
        let pi = std::f64::consts::PI;
        assert!((trigamma(1.0) - pi * pi / 6.0).abs() < 1e-12);
        assert!((trigamma(0.5) - pi * pi / 2.0).abs() < 1e-11);
        assert!((trigamma(2.0) - (pi * pi / 6.0 - 1.0)).abs() < 1e-12);
        for value in [0.01, 0.5, 1.0, 20.0] {
            assert!((trigamma(inverse_trigamma(value)) / value - 1.0).abs() < 1e-9, "{value}");
        }
    }

    #[test]
    fn a_prior_that_was_put_in_comes_out() {
        let mut random = Random::new(5);
        let mut chi = |degrees: usize| -> f64 {
            (0..degrees).map(|_| random.normal().powi(2)).sum::<f64>() / degrees as f64
        };
        // Variances from a prior of 8 degrees around 4, each seen with 4 degrees.
        let cells: Vec<(f64, f64)> = (0..4000).map(|_| (4.0 / chi(8) * chi(4), 4.0)).collect();
        let found = moderate(&cells).unwrap();
        assert!((found.prior.0 / 4.0 - 1.0).abs() < 0.05, "{:?}", found.prior);
        assert!((6.0..11.0).contains(&found.prior.1), "{:?}", found.prior);
        let (variance, degrees) = found.variances[0];
        let (prior, own) = (found.prior, cells[0]);
        let by_hand = (prior.1 * prior.0 + 4.0 * own.0) / (prior.1 + 4.0);
        assert!((variance - by_hand).abs() < 1e-12 && (degrees - prior.1 - 4.0).abs() < 1e-12);
    }

    #[test]
    fn what_scatters_alike_is_pooled_and_nothing_is_nothing() {
        let alike = moderate(&[(1.0, 2.0), (3.0, 2.0), (9.0, 0.0)]).unwrap();
        assert!(alike.prior.1.is_infinite());
        assert!(alike.variances.iter().all(|&found| found == (2.0, 4.0)));
        assert_eq!(moderate(&[(0.0, 0.0)]), None);
        assert_eq!(moderate(&[]), None);
    }
}
