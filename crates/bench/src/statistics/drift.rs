//! Whether a machine became slower or faster while an experiment ran.

use statrs::distribution::{ContinuousCDF, FisherSnedecor};

use super::blocks::Contrast;

/// One run of one cell at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Index of its cell.
    pub cell: usize,
    /// Its block.
    pub block: u64,
    /// When it ran, from 0 to 1.
    pub time: f64,
    /// Logarithm of its rate.
    pub log: f64,
}

/// By what the rate changes over all the time: the slope of a line through all runs, each cell with
/// a level of its own (analysis of covariance, Fisher 1932). Runs of a block may share more than
/// the line says, in which case the block is the unit: that is looked at by the F test for lack of
/// fit. `None` of fewer than three blocks.
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
        if lack.cdf(between / between_degrees / within) > 0.99 {
            return Some(of(between, between_degrees));
        }
    }
    (degrees >= 1.0).then(|| of(squares, degrees))
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
}
