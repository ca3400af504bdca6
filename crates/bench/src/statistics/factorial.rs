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
/// and Hunter 1978, chapter 10), with standard errors from the scatter within the cells and degrees
/// of freedom by Satterthwaite, since the cells need not scatter alike. Cells are given as
/// `[first factor][second factor]`. `None` when a cell has fewer than two runs.
pub fn two_by_two(cells: &[[&[f64]; 2]; 2], confidence: f64) -> Option<Effects> {
    let cell = |first: usize, second: usize| {
        let logs = logarithms(cells[first][second])?;
        let variance = standard_deviation(&logs)?.powi(2) / logs.len() as f64;
        Some((mean(&logs)?, variance, variance.powi(2) / (logs.len() - 1) as f64))
    };
    let all = [[cell(0, 0)?, cell(0, 1)?], [cell(1, 0)?, cell(1, 1)?]];
    let contrast = |signs: [[f64; 2]; 2], share: f64| {
        let (mut value, mut variance, mut fourth) = (0.0, 0.0, 0.0);
        for (row, row_signs) in all.iter().zip(signs) {
            for (cell, sign) in row.iter().zip(row_signs) {
                value += sign * share * cell.0;
                variance += share * share * cell.1;
                fourth += share.powi(4) * cell.2;
            }
        }
        let degrees = if fourth > 0.0 { variance * variance / fourth } else { 1.0 };
        let reach = t_factor(confidence, degrees)? * variance.sqrt();
        let interval = Interval { low: value - reach, high: value + reach }.map(f64::exp);
        Some((value.exp(), interval))
    };
    Some(Effects {
        first: contrast([[-1.0, -1.0], [1.0, 1.0]], 0.5)?,
        second: contrast([[-1.0, 1.0], [-1.0, 1.0]], 0.5)?,
        interaction: contrast([[1.0, -1.0], [-1.0, 1.0]], 1.0)?,
    })
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
}
