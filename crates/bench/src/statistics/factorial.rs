//! Two factors at two levels each: what each does, and whether they work together.

use super::interval::{Interval, t_factor};
use super::{logarithms, mean, standard_deviation};

/// Effects as ratios of rates, each with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effects {
    /// By what the first factor's second level multiplies the rate, on average over the second
    /// factor.
    pub first: (f64, Interval),
    /// The same of the second factor.
    pub second: (f64, Interval),
    /// How much larger the first factor's effect is at the second level of the second factor than
    /// at its first level; 1 where they do not work together.
    pub interaction: (f64, Interval),
}

/// Main effects and interaction of a 2 x 2 design on logarithms of rates (Yates 1937; Box, Hunter
/// and Hunter 1978, chapter 10), each a [`contrast`]. Cells are given as
/// `[first factor][second factor]`. `None` when a cell has fewer than two runs.
pub fn two_by_two(cells: &[[&[f64]; 2]; 2], confidence: f64) -> Option<Effects> {
    let of = |signs: [[f64; 2]; 2], share: f64| {
        let terms = cells.iter().flatten().zip(signs.as_flattened());
        let terms: Vec<(f64, &[f64])> = terms.map(|(rates, sign)| (sign * share, *rates)).collect();
        contrast(&terms, confidence)
    };
    Some(Effects {
        first: of([[-1.0, -1.0], [1.0, 1.0]], 0.5)?,
        second: of([[-1.0, 1.0], [-1.0, 1.0]], 0.5)?,
        interaction: of([[1.0, -1.0], [-1.0, 1.0]], 1.0)?,
    })
}

/// A weighted sum of the mean logarithms of cells, turned back into a ratio, with its interval: the
/// standard error comes from the scatter within the cells and the degrees of freedom from
/// Satterthwaite (1946), since the cells need not scatter alike. With weights that add up to 0 it
/// is by what one group of cells is faster than another one, each cell counting alike. `None` when
/// a cell has fewer than two runs or a rate that is not positive.
pub fn contrast(terms: &[(f64, &[f64])], confidence: f64) -> Option<(f64, Interval)> {
    let (mut value, mut variance, mut fourth) = (0.0, 0.0, 0.0);
    for (weight, rates) in terms {
        let logs = logarithms(rates)?;
        let own = standard_deviation(&logs)?.powi(2) / logs.len() as f64;
        value += weight * mean(&logs)?;
        variance += weight * weight * own;
        fourth += weight.powi(4) * own.powi(2) / (logs.len() - 1) as f64;
    }
    let degrees = if fourth > 0.0 { variance * variance / fourth } else { 1.0 };
    let reach = t_factor(confidence, degrees)? * variance.sqrt();
    let interval = Interval { low: value - reach, high: value + reach }.map(f64::exp);
    Some((value.exp(), interval))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn effects_that_were_put_in_come_out() {
        let mut random = Random::new(9);
        let mut runs = |level: f64| -> Vec<f64> {
            (0..8).map(|_| level * (0.01 * random.normal()).exp()).collect()
        };
        // Larger blocks: x 1.1 with random data, x 1.3 with zeros; zeros x 5 with small blocks.
        let (a, b, c, d) = (runs(50.0), runs(250.0), runs(55.0), runs(325.0));
        let effects = two_by_two(&[[&a, &b], [&c, &d]], 0.99).unwrap();
        assert!(effects.first.1.contains((1.1f64 * 1.3).sqrt()), "{effects:?}");
        assert!(effects.second.1.contains((5.0f64 * 325.0 / 55.0).sqrt()), "{effects:?}");
        assert!(effects.interaction.1.contains(1.3 / 1.1), "{effects:?}");
        assert!(!effects.interaction.1.contains(1.0), "{effects:?}");
        assert_eq!(two_by_two(&[[&a[..1], &b], [&c, &d]], 0.95), None);
    }

    /// Six pairs of cells with three runs each: the usual size of a main effect.
    #[test]
    fn intervals_of_a_main_effect_hold_the_truth() {
        let mut random = Random::new(11);
        let (mut held, rounds) = (0, 2000);
        for _ in 0..rounds {
            let mut runs = |level: f64, scatter: f64| -> Vec<f64> {
                (0..3).map(|_| level * (scatter * random.normal()).exp()).collect()
            };
            let cells: Vec<(Vec<f64>, Vec<f64>)> = (1..=6)
                .map(|size| f64::from(size) * 40.0)
                .map(|level| (runs(level * 1.02, 0.03), runs(level, 0.01)))
                .collect();
            let terms: Vec<(f64, &[f64])> = cells
                .iter()
                .flat_map(|(a, b)| [(1.0 / 6.0, &a[..]), (-1.0 / 6.0, &b[..])])
                .collect();
            held += usize::from(contrast(&terms, 0.95).unwrap().1.contains(1.02));
        }
        let share = held as f64 / f64::from(rounds);
        assert!((0.935..0.97).contains(&share), "{share}");
    }
}
