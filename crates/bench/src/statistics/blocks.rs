//! Cells in blocks: what differs between cells once the differences between repeats are taken out.
//!
//! Every repeat runs every cell once, and whatever makes a repeat slower makes all its cells
//! slower: another load on the machine, a warmer drive, another place on the medium. The logarithm
//! of a rate is taken as one number of its cell, one of its block, and scatter:
//!
//! ```text
//! ln rate = cell + block + scatter of the cell
//! ```
//!
//! (randomised complete blocks, Fisher 1935; where runs are missing, incomplete ones by least
//! squares, Yates 1936). The scatter of a cell is what is left, moderated over all cells
//! ([`moderate`]). Differences between cells are sums of runs in which the blocks cancel.

use super::interval::{Interval, t_factor};
use super::moderated::{Moderated, moderate};

/// One run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Index of its cell.
    pub cell: usize,
    /// Index of its block.
    pub block: usize,
    /// Logarithm of its rate.
    pub log: f64,
}

/// A sum of cells with weights that add up to nothing: a difference, in logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contrast {
    /// Its value.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom of that; infinite where the error is assumed.
    pub degrees: f64,
}

/// Clocks and sizes have a grain: runs that agree to the last digit would make every difference
/// certain.
const ERROR_MIN: f64 = 1e-9;

impl Contrast {
    /// By what the rate is multiplied.
    pub fn ratio(&self) -> f64 {
        self.value.exp()
    }

    /// Its interval, by Student's t.
    pub fn interval(&self, confidence: f64) -> Option<Interval> {
        // From some thousands on t is the normal distribution to every digit that is shown.
        Some(self.interval_with(t_factor(confidence, self.degrees.min(1e5))?))
    }

    /// Its interval, as many standard errors to each side.
    pub fn interval_with(&self, factor: f64) -> Interval {
        let reach = factor * self.error.max(ERROR_MIN);
        Interval { low: self.value - reach, high: self.value + reach }.map(f64::exp)
    }

    /// From its value in each of several blocks: the block is the unit, whatever happens within it.
    pub fn of_blocks(values: &[f64]) -> Option<Contrast> {
        let error = super::standard_deviation(values)? / (values.len() as f64).sqrt();
        let degrees = (values.len() - 1) as f64;
        Some(Contrast { value: super::mean(values)?, error, degrees })
    }
}

/// The runs of an experiment as cells and blocks.
#[derive(Clone, Debug)]
pub struct Fit {
    observations: Vec<Observation>,
    /// Runs of each cell, and their mean logarithm.
    cells: Vec<(f64, f64)>,
    /// Indices of the observations of each cell.
    of_cell: Vec<Vec<usize>>,
    /// A generalised inverse of the normal equations of the blocks.
    inverse: Vec<Vec<f64>>,
    scatter: Moderated,
    /// What is left of each run.
    residuals: Vec<f64>,
}

impl Fit {
    /// Fits. `None` where no cell ran in two blocks, so that nothing is known of the scatter.
    pub fn new(observations: Vec<Observation>) -> Option<Fit> {
        let count = observations.iter().map(|one| one.cell + 1).max()?;
        let blocks = observations.iter().map(|one| one.block + 1).max()?;
        let mut of_cell = vec![Vec::new(); count];
        for (index, one) in observations.iter().enumerate() {
            of_cell[one.cell].push(index);
        }
        let mean = |own: &Vec<usize>| {
            let sum: f64 = own.iter().map(|&index| observations[index].log).sum();
            (own.len() as f64, if own.is_empty() { 0.0 } else { sum / own.len() as f64 })
        };
        let cells: Vec<(f64, f64)> = of_cell.iter().map(mean).collect();
        // The normal equations of the blocks, once those of the cells are solved.
        let mut normal = vec![vec![0.0; blocks]; blocks];
        let mut right = vec![0.0; blocks];
        for (own, (runs, centre)) in of_cell.iter().zip(&cells) {
            for &index in own {
                let one = &observations[index];
                normal[one.block][one.block] += 1.0;
                right[one.block] += one.log - centre;
                for &other in own {
                    normal[one.block][observations[other].block] -= 1.0 / runs;
                }
            }
        }
        let inverse = generalised_inverse(normal);
        let levels: Vec<f64> = inverse.iter().map(|row| dot(row, &right)).collect();
        let mut fit = Fit {
            observations,
            cells,
            of_cell,
            inverse,
            scatter: Moderated::default(),
            residuals: Vec::new(),
        };
        let variances = fit.variances(&levels);
        fit.scatter = moderate(&variances)?;
        Some(fit)
    }

    /// Residual variance and degrees of freedom of each cell.
    fn variances(&mut self, levels: &[f64]) -> Vec<(f64, f64)> {
        self.residuals = vec![0.0; self.observations.len()];
        let mut variances = Vec::with_capacity(self.cells.len());
        for (own, &(runs, centre)) in self.of_cell.iter().zip(&self.cells) {
            let mut share = vec![0.0; levels.len()];
            for &index in own {
                share[self.observations[index].block] += 1.0 / runs;
            }
            let shift = dot(&share, levels);
            let (mut squares, mut degrees) = (0.0, 0.0);
            for &index in own {
                let one = &self.observations[index];
                let residual = one.log - centre - (levels[one.block] - shift);
                self.residuals[index] = residual;
                squares += residual * residual;
                let away: Vec<f64> = (0..levels.len())
                    .map(|block| f64::from(u8::from(block == one.block)) - share[block])
                    .collect();
                let taken: f64 = (self.inverse.iter().zip(&away))
                    .map(|(row, away_here)| away_here * dot(row, &away))
                    .sum();
                degrees += 1.0 - 1.0 / runs - taken;
            }
            // What rounding leaves of a cell without a second run is no degree of freedom.
            let known = degrees > 1e-6;
            variances.push(if known { (squares / degrees, degrees) } else { (0.0, 0.0) });
        }
        variances
    }

    /// What is left of each run, in the order in which they were given.
    pub fn residuals(&self) -> &[f64] {
        &self.residuals
    }

    /// The scatter that the cells have in common, as a share, and degrees of freedom of all.
    pub fn scatter(&self) -> (f64, f64) {
        let sum: f64 = self.scatter.variances.iter().map(|(variance, _)| variance).sum();
        ((sum / self.scatter.variances.len() as f64).sqrt(), self.scatter.degrees)
    }

    /// Standard error of the level of a cell without what its repeats have in common, and the
    /// degrees of freedom of that. `None` of a cell that did not run.
    pub fn error(&self, cell: usize) -> Option<(f64, f64)> {
        let (runs, _) = *self.cells.get(cell)?;
        let (variance, degrees) = *self.scatter.variances.get(cell)?;
        (runs > 0.0).then(|| ((variance / runs).sqrt(), degrees.min(self.scatter.degrees)))
    }

    /// A weighted sum of cells, the weights adding up to 0. `None` where a cell ran less than
    /// twice, or where the blocks do not cancel: cells that have no block in common.
    pub fn contrast(&self, terms: &[(f64, usize)]) -> Option<Contrast> {
        let mut weights = vec![0.0; self.cells.len()];
        for &(weight, cell) in terms {
            *weights.get_mut(cell)? += weight;
        }
        let mut missed = vec![0.0; self.inverse.len()];
        let mut value = 0.0;
        for (cell, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
            let (runs, centre) = self.cells[cell];
            if runs < 2.0 {
                return None;
            }
            value += weight * centre;
            for &index in &self.of_cell[cell] {
                missed[self.observations[index].block] += weight / runs;
            }
        }
        // How the levels of the blocks enter, and with them the runs of all cells.
        let mixed: Vec<f64> = self.inverse.iter().map(|row| dot(row, &missed)).collect();
        let mut left_over = vec![0.0; mixed.len()];
        let (mut variance, mut fourth) = (0.0, 0.0);
        let mut adjusted = value;
        for (cell, own) in self.of_cell.iter().enumerate().filter(|(_, own)| !own.is_empty()) {
            let (runs, centre) = self.cells[cell];
            let blocks = || own.iter().map(|&index| self.observations[index].block);
            let typical = blocks().map(|block| mixed[block]).sum::<f64>() / runs;
            let mut squares = 0.0;
            for &index in own {
                let one = &self.observations[index];
                let factor = weights[cell] / runs - mixed[one.block] + typical;
                left_over[one.block] += factor;
                squares += factor * factor;
                adjusted -= mixed[one.block] * (one.log - centre);
            }
            let (own_variance, degrees) = self.scatter.variances[cell];
            let part = squares * own_variance;
            variance += part;
            fourth += part * part / degrees;
        }
        let size: f64 = weights.iter().map(|weight| weight.abs()).sum();
        if left_over.iter().any(|rest| rest.abs() > 1e-6 * size) {
            return None;
        }
        let satterthwaite = if fourth > 0.0 { variance * variance / fourth } else { f64::INFINITY };
        // What the cells have in common counts once, however many of them there are.
        let own = weights.iter().zip(&self.scatter.own).filter(|(weight, _)| **weight != 0.0);
        let shared = self.scatter.prior.1 + own.map(|(_, own)| own).sum::<f64>();
        let degrees = satterthwaite.min(shared).min(self.scatter.degrees);
        Some(Contrast { value: adjusted, error: variance.sqrt(), degrees })
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Of a symmetric matrix without negative eigenvalues, by elimination; what depends on the rest is
/// passed over.
fn generalised_inverse(mut matrix: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let n = matrix.len();
    let scale = (0..n).map(|at| matrix[at][at]).fold(0.0, f64::max);
    let mut used = vec![false; n];
    // The sweep operator (Goodnight 1979).
    for pivot in 0..n {
        let diagonal = matrix[pivot][pivot];
        if diagonal <= 1e-9 * scale {
            continue;
        }
        used[pivot] = true;
        let row: Vec<f64> = matrix[pivot].iter().map(|value| value / diagonal).collect();
        for at in (0..n).filter(|&at| at != pivot) {
            let factor = matrix[at][pivot];
            for (value, part) in matrix[at].iter_mut().zip(&row) {
                *value -= factor * part;
            }
            matrix[at][pivot] = -factor / diagonal;
        }
        matrix[pivot] = row;
        matrix[pivot][pivot] = 1.0 / diagonal;
    }
    for (at, row) in matrix.iter_mut().enumerate() {
        for (other, value) in row.iter_mut().enumerate() {
            if !(used[at] && used[other]) {
                *value = 0.0;
            }
        }
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn one(cell: usize, block: usize, log: f64) -> Observation {
        Observation { cell, block, log }
    }

    #[test]
    fn of_two_cells_it_is_the_paired_t() {
        let pairs = [(5.2, 5.0), (5.6, 5.3), (4.9, 4.8), (5.5, 5.35)];
        let runs = pairs
            .iter()
            .enumerate()
            .flat_map(|(block, &(a, b))| [one(0, block, a), one(1, block, b)])
            .collect();
        let found = Fit::new(runs).unwrap().contrast(&[(1.0, 0), (-1.0, 1)]).unwrap();
        let differences: Vec<f64> = pairs.iter().map(|(a, b)| a - b).collect();
        let expected = Contrast::of_blocks(&differences).unwrap();
        assert!((found.value - expected.value).abs() < 1e-12, "{found:?} {expected:?}");
        assert!((found.error - expected.error).abs() < 1e-12, "{found:?} {expected:?}");
        assert!((found.degrees - 3.0).abs() < 1e-9, "{found:?}");
    }

    /// Numbers of the textbook way: the mean of a cell that misses a block is not its adjusted one.
    #[test]
    fn a_missing_run_does_not_make_a_difference() {
        let mut runs = Vec::new();
        for (block, shift) in [0.0, 0.3, -0.2, 0.1].into_iter().enumerate() {
            for (cell, level) in [1.0, 1.1, 1.3].into_iter().enumerate() {
                if (cell, block) != (1, 1) {
                    runs.push(one(cell, block, level + shift));
                }
            }
        }
        let fit = Fit::new(runs).unwrap();
        let found = fit.contrast(&[(1.0, 1), (-1.0, 0)]).unwrap();
        assert!((found.value - 0.1).abs() < 1e-9 && found.error < 1e-6, "{found:?}");
        assert!(fit.residuals().iter().all(|rest| rest.abs() < 1e-9));
    }

    #[test]
    fn cells_without_a_common_block_are_not_compared() {
        let runs = vec![
            one(0, 0, 1.0),
            one(1, 0, 1.1),
            one(0, 1, 1.2),
            one(1, 1, 1.2),
            one(2, 2, 2.0),
            one(3, 2, 2.2),
            one(2, 3, 2.1),
            one(3, 3, 2.1),
        ];
        let fit = Fit::new(runs).unwrap();
        assert!(fit.contrast(&[(1.0, 0), (-1.0, 1)]).is_some());
        assert_eq!(fit.contrast(&[(1.0, 0), (-1.0, 2)]), None);
        assert!(Fit::new(vec![one(0, 0, 1.0), one(1, 0, 2.0)]).is_none());
    }

    #[test]
    fn residual_degrees_are_those_of_the_model() {
        let mut random = Random::new(3);
        let mut runs = Vec::new();
        for cell in 0..6 {
            for block in 0..4 {
                runs.push(one(cell, block, random.normal()));
            }
        }
        let full = Fit::new(runs.clone()).unwrap();
        assert!((full.scatter().1 - 15.0).abs() < 1e-9, "{:?}", full.scatter());
        runs.truncate(22);
        let missing = Fit::new(runs).unwrap();
        assert!((missing.scatter().1 - 13.0).abs() < 1e-9, "{:?}", missing.scatter());
    }
}
