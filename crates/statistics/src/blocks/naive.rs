//! The same fit run by run, with a matrix of all blocks: correct, but only for small experiments.

use super::super::moderated::{Moderated, moderate};
use super::{Contrast, Observation};

/// The runs of an experiment as cells and blocks.
pub struct Naive {
    observations: Vec<Observation>,
    /// Number of runs of each cell, and their mean logarithm.
    cells: Vec<(f64, f64)>,
    /// Indices of the observations of each cell.
    of_cell: Vec<Vec<usize>>,
    /// A generalised inverse of the normal equations of the blocks.
    inverse: Vec<Vec<f64>>,
    scatter: Moderated,
    /// The residual of each run.
    residuals: Vec<f64>,
}

impl Naive {
    /// Fits. `None` if no cell ran in two blocks, so that the scatter is unknown.
    pub fn new(observations: Vec<Observation>) -> Option<Naive> {
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
        // The normal equations of the blocks, after solving those of the cells.
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
        let mut fit = Naive {
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
            // The rounding residue of a cell without a second run is not a degree of freedom.
            let known = degrees > 1e-6;
            variances.push(if known { (squares / degrees, degrees) } else { (0.0, 0.0) });
        }
        variances
    }

    /// The residual of each run, in the order of the observations.
    pub fn residuals(&self) -> &[f64] {
        &self.residuals
    }

    /// The scatter that the cells have in common, as a share, and the degrees of freedom of all.
    pub fn scatter(&self) -> (f64, f64) {
        let sum: f64 = self.scatter.variances.iter().map(|(variance, _)| variance).sum();
        ((sum / self.scatter.variances.len() as f64).sqrt(), self.scatter.degrees)
    }

    /// A weighted sum of cells, with weights that add up to 0. `None` if a cell ran less than
    /// twice, or if the blocks do not cancel: cells that have no block in common.
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
        // The factors of the blocks' levels, and with them of the runs of all cells.
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
        // The common part of the cells counts once, however many cells there are.
        let own = weights.iter().zip(&self.scatter.own).filter(|(weight, _)| **weight != 0.0);
        let shared = self.scatter.prior.1 + own.map(|(_, own)| own).sum::<f64>();
        let degrees = satterthwaite.min(shared).min(self.scatter.degrees);
        Some(Contrast { value: adjusted, error: variance.sqrt(), degrees })
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Generalised inverse of a symmetric matrix without negative eigenvalues, by elimination;
/// dependent rows are skipped.
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
