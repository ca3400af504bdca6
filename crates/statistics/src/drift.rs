//! Detects whether a machine became slower or faster during an experiment.

use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

use super::blocks::{Contrast, Fit, Observation};

/// With this few degrees of freedom between blocks, a line cannot be distinguished from chance.
const FEW_DEGREES: f64 = 3.0;

/// Probability that, without a drift, the runs within the blocks agree by chance with a drift seen
/// between the blocks.
const AGREES_BY_LUCK: f64 = 0.2;

/// One run of one cell at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Index of its cell.
    pub cell: usize,
    pub block: u64,
    /// Time of the run, from 0 to 1.
    pub time: f64,
    /// Logarithm of its rate.
    pub log: f64,
}

/// The factor by which the rate changes over the whole time: the slope of a line through all runs,
/// each cell with a level of its own (analysis of covariance, Fisher 1932). Runs of a block may
/// have more in common than the line; then the block is the unit. The F test for lack of fit
/// decides that. Three or four blocks often lie on a line by chance. So with few blocks the machine
/// must also drift within its blocks, where only time distinguishes the runs, once cell and block
/// are removed. `None` for fewer than three blocks.
pub fn trend(moments: &[Moment]) -> Option<Contrast> {
    let cells = moments.iter().map(|moment| moment.cell + 1).max()?;
    let mut sums = vec![(0.0, 0.0, 0.0); cells];
    for moment in moments {
        let (count, time, log) = &mut sums[moment.cell];
        (*count, *time, *log) = (*count + 1.0, *time + moment.time, *log + moment.log);
    }
    let centred = |moment: &Moment| {
        let (count, time, log) = sums[moment.cell];
        (moment.time - time / count, moment.log - log / count)
    };
    let points: Vec<(f64, f64)> = moments.iter().map(centred).collect();
    let spread: f64 = points.iter().map(|(time, _)| time * time).sum();
    let value = points.iter().map(|(time, log)| time * log).sum::<f64>() / spread;
    let mut blocks: std::collections::BTreeMap<u64, (f64, f64)> = Default::default();
    let mut squares = 0.0;
    for (moment, (time, log)) in moments.iter().zip(&points) {
        let residual = log - value * time;
        squares += residual * residual;
        let block = blocks.entry(moment.block).or_default();
        *block = (block.0 + 1.0, block.1 + residual);
    }
    if blocks.len() < 3 || spread <= 0.0 {
        return None;
    }
    let known = sums.iter().filter(|(count, ..)| *count > 0.0).count() as f64;
    let degrees = moments.len() as f64 - known - 1.0;
    let between: f64 = blocks.values().map(|(count, sum)| sum * sum / count).sum();
    let between_degrees = blocks.len() as f64 - 2.0;
    let within_degrees = degrees - between_degrees;
    let of = |squares: f64, degrees: f64| Contrast {
        value,
        error: (squares / degrees / spread).sqrt(),
        degrees,
    };
    if within_degrees >= 1.0 {
        let within = (squares - between).max(1e-18) / within_degrees;
        let lack = FisherSnedecor::new(between_degrees, within_degrees).ok()?;
        let is_no_line = lack.cdf(between / between_degrees / within) > 0.99;
        let is_luck = || between_degrees < FEW_DEGREES && !drifts_within(moments, value);
        if is_no_line || is_luck() {
            return Some(of(between, between_degrees));
        }
    }
    (degrees >= 1.0).then(|| of(squares, degrees))
}

/// Whether the runs within the blocks have a slope of that sign, once cells and blocks are removed
/// from rates and times alike (Frisch and Waugh 1933). Blocks of one run have no slope, and do not
/// contradict.
fn drifts_within(moments: &[Moment], slope: f64) -> bool {
    let blocks: std::collections::BTreeSet<u64> = moments.iter().map(|one| one.block).collect();
    let places: std::collections::BTreeMap<u64, usize> = blocks.into_iter().zip(0..).collect();
    let place = |moment: &Moment| places[&moment.block];
    let left = |value: fn(&Moment) -> f64| {
        let observation =
            |one: &Moment| Observation { cell: one.cell, block: place(one), log: value(one) };
        Fit::new(moments.iter().map(observation).collect())
    };
    let (Some(times), Some(logs)) = (left(|one| one.time), left(|one| one.log)) else {
        return true;
    };
    let pairs = || times.residuals().iter().zip(logs.residuals());
    let spread: f64 = times.residuals().iter().map(|time| time * time).sum();
    let (_, degrees) = logs.scatter();
    if spread < 1e-9 || degrees < 2.0 {
        return true;
    }
    let within = pairs().map(|(time, log)| time * log).sum::<f64>() / spread;
    let squares: f64 = pairs().map(|(time, log)| (log - within * time).powi(2)).sum();
    let error = (squares / (degrees - 1.0) / spread).sqrt().max(1e-12);
    let t = StudentsT::new(0.0, 1.0, degrees - 1.0);
    t.is_ok_and(|t| 1.0 - t.cdf(within * slope.signum() / error) < AGREES_BY_LUCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_put_in_comes_out() {
        let mut moments = Vec::new();
        for block in 0..4u64 {
            for cell in 0..3usize {
                let time = (3 * block + cell as u64) as f64 / 12.0;
                let grain = 0.001 * (((7 * block + 3 * cell as u64) % 5) as f64 - 2.0);
                moments.push(Moment { cell, block, time, log: cell as f64 - 0.3 * time + grain });
            }
        }
        let found = trend(&moments).unwrap();
        assert!((found.value + 0.3).abs() < 0.01, "{found:?}");
        assert!(found.interval(0.99).unwrap().high < 0.8, "{found:?}");
        assert_eq!(trend(&moments[..6]), None);
    }

    #[test]
    fn three_repeats_that_lie_on_a_line_by_luck_are_no_drift() {
        let moments = |slope_within: f64| -> Vec<Moment> {
            let of = |number: u64| {
                let (block, place) = (number / 6, number % 6);
                // Another order of the cells in each block.
                let cell = ((place * [1, 5, 1][block as usize] + block) % 6) as usize;
                let grain = 0.004 * (((5 * number) % 7) as f64 - 3.0);
                let within = slope_within * (place as f64 - 2.5) / 18.0;
                let log = -0.1 * block as f64 + within + grain;
                Moment { cell, block, time: number as f64 / 18.0, log }
            };
            (0..18).map(of).collect()
        };
        let is_told =
            |moments: &[Moment]| !trend(moments).unwrap().interval(0.99).unwrap().contains(1.0);
        assert!(is_told(&moments(-0.3)), "falls within the repeats, too");
        assert!(!is_told(&moments(0.0)), "repeats that differ");
        assert!(!is_told(&moments(0.3)), "rises within the repeats");
    }
}
