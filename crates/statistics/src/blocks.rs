//! Experiments in blocks: differences between cells, without the differences between repeats.
//!
//! Every repeat runs every cell once, and a cause that makes a repeat slower makes all its cells
//! slower: another load on the machine, a warmer drive, another place on the medium. The logarithm
//! of a rate is modelled as a number of its cell, a number of its block, and scatter:
//!
//! ```text
//! ln rate = cell + block + scatter of the cell
//! ```
//!
//! (randomised complete blocks, Fisher 1935; with missing runs, incomplete ones by least squares,
//! Yates 1936; solved by [`TwoWay`]). The scatter of a cell is the residual, moderated over all
//! cells ([`moderate`]). Differences between cells are sums of runs in which the blocks cancel.

use std::collections::BTreeMap;

use super::interval::{Interval, t_factor};
use super::moderated::{Moderated, moderate};
use super::two_way::{RunGroup, TwoWay};

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

/// A sum of cells with weights that add up to zero: a difference, in logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contrast {
    pub value: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom of the standard error; infinite if the error is assumed.
    pub degrees: f64,
}

/// Clocks and sizes have a resolution: runs that agree to the last digit would make every
/// difference certain.
const ERROR_MIN: f64 = 1e-9;

impl Contrast {
    /// The ratio of the rates.
    pub fn ratio(&self) -> f64 {
        self.value.exp()
    }

    /// Its interval, by Student's t.
    pub fn interval(&self, confidence: f64) -> Option<Interval> {
        // From some thousands of degrees on, t equals the normal distribution in every digit shown.
        Some(self.interval_with(t_factor(confidence, self.degrees.min(1e5))?))
    }

    /// Its interval, this many standard errors to each side.
    pub fn interval_with(&self, factor: f64) -> Interval {
        let reach = factor * self.error.max(ERROR_MIN);
        Interval { low: self.value - reach, high: self.value + reach }.map(f64::exp)
    }

    /// From its value in each of several blocks. The block is the unit, whatever the scatter within
    /// it.
    pub fn of_blocks(values: &[f64]) -> Option<Contrast> {
        let error = super::standard_deviation(values)? / (values.len() as f64).sqrt();
        let degrees = (values.len() - 1) as f64;
        Some(Contrast { value: super::mean(values)?, error, degrees })
    }
}

/// The runs of an experiment as cells and blocks.
#[derive(Clone, Debug)]
pub struct Fit {
    /// Number of runs of each cell, and their mean logarithm.
    cells: Vec<(f64, f64)>,
    table: TwoWay,
    smaller: Smaller,
    /// For each element of the smaller side: the sum, over its runs, of the distance from the mean
    /// of the run's element of the larger side.
    right: Vec<f64>,
    scatter: Moderated,
    /// Per group, if the cells are the larger side: the sum of the cells' variances, and the sum of
    /// the squared variances divided by their degrees of freedom.
    group_sums: Vec<(f64, f64)>,
    /// The residual of each run.
    residuals: Vec<f64>,
}

/// Which side has fewer elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Smaller {
    Cells,
    Blocks,
}

impl Smaller {
    /// The elements of a run: first of the smaller side, then of the larger one.
    fn sides(self, run: &Observation) -> (usize, usize) {
        match self {
            Smaller::Cells => (run.cell, run.block),
            Smaller::Blocks => (run.block, run.cell),
        }
    }
}

/// The factors of the runs in a sum of cells.
struct Sum {
    value: f64,
    /// For each cell in the sum, the squares of the factors of its runs.
    squares: Vec<(usize, f64)>,
    /// The squares of the factors of a run of each group, if the cells are the larger side.
    of_groups: Vec<f64>,
    /// The largest share of a block or a cell that does not cancel.
    left_over: f64,
}

impl Fit {
    /// Fits. `None` if no cell ran in two blocks, so that the scatter is unknown.
    pub fn new(observations: Vec<Observation>) -> Option<Fit> {
        let count = observations.iter().map(|one| one.cell + 1).max()?;
        let blocks = observations.iter().map(|one| one.block + 1).max()?;
        let smaller = if count <= blocks { Smaller::Cells } else { Smaller::Blocks };
        let of_cell = means(count, observations.iter().map(|one| (one.cell, one.log)));
        let of_larger = match smaller {
            Smaller::Cells => means(blocks, observations.iter().map(|one| (one.block, one.log))),
            Smaller::Blocks => of_cell.clone(),
        };
        let table = TwoWay::new(observations.iter().map(|one| smaller.sides(one)));
        let mut right = vec![0.0; table.small_count()];
        for one in &observations {
            let (small, large) = smaller.sides(one);
            right[small] += one.log - of_larger[large].1;
        }
        let levels = table.solve(&right);
        let typical: Vec<f64> = table.groups().iter().map(|group| group.mean(&levels)).collect();
        let residual = |one: &Observation| {
            let (small, large) = smaller.sides(one);
            one.log - of_larger[large].1 - (levels[small] - typical[table.group_index(large)])
        };
        let residuals: Vec<f64> = observations.iter().map(residual).collect();
        let mut squares = vec![0.0; count];
        for (one, residual) in observations.iter().zip(&residuals) {
            squares[one.cell] += residual * residual;
        }
        let degrees = degrees(&table, smaller, count);
        // The rounding residue of a cell without a second run is not a degree of freedom.
        let variance = |(squares, degrees): (&f64, &f64)| {
            if *degrees > 1e-6 { (squares / degrees, *degrees) } else { (0.0, 0.0) }
        };
        let variances: Vec<(f64, f64)> = squares.iter().zip(&degrees).map(variance).collect();
        let scatter = moderate(&variances)?;
        let group_sums = group_sums(&table, smaller, &scatter);
        Some(Fit { cells: of_cell, table, smaller, right, scatter, group_sums, residuals })
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

    /// Standard error of the level of a cell, without what its repeats have in common, and its
    /// degrees of freedom. `None` if the cell did not run.
    pub fn error(&self, cell: usize) -> Option<(f64, f64)> {
        let (runs, _) = *self.cells.get(cell)?;
        let (variance, degrees) = *self.scatter.variances.get(cell)?;
        (runs > 0.0).then(|| ((variance / runs).sqrt(), degrees.min(self.scatter.degrees)))
    }

    /// A weighted sum of cells, with weights that add up to 0. `None` if a cell ran less than
    /// twice, or if the blocks do not cancel: cells that have no block in common.
    pub fn contrast(&self, terms: &[(f64, usize)]) -> Option<Contrast> {
        let mut weights: BTreeMap<usize, f64> = BTreeMap::new();
        for &(weight, cell) in terms {
            self.cells.get(cell)?;
            *weights.entry(cell).or_default() += weight;
        }
        weights.retain(|_, weight| *weight != 0.0);
        if weights.keys().any(|&cell| self.cells[cell].0 < 2.0) {
            return None;
        }
        let sum = match self.smaller {
            Smaller::Cells => self.sum_over_few_cells(&weights),
            Smaller::Blocks => self.sum_over_few_blocks(&weights),
        };
        let size: f64 = weights.values().map(|weight| weight.abs()).sum();
        if sum.left_over > 1e-6 * size {
            return None;
        }
        let (mut variance, mut fourth) = (0.0, 0.0);
        for &(cell, squares) in &sum.squares {
            let (own_variance, degrees) = self.scatter.variances[cell];
            let part = squares * own_variance;
            variance += part;
            fourth += part * part / degrees;
        }
        for (index, &squares) in sum.of_groups.iter().enumerate().filter(|(_, own)| **own > 0.0) {
            let own = self.without(index, &sum.squares);
            variance += squares * own.0;
            fourth += squares * squares * own.1;
        }
        let satterthwaite = if fourth > 0.0 { variance * variance / fourth } else { f64::INFINITY };
        // The common part of the cells counts once, however many cells there are.
        let own: f64 = weights.keys().map(|&cell| self.scatter.own[cell]).sum();
        let shared = self.scatter.prior.1 + own;
        let degrees = satterthwaite.min(shared).min(self.scatter.degrees);
        Some(Contrast { value: sum.value, error: variance.sqrt(), degrees })
    }

    /// The sums of a group without the cells that are in the contrast.
    fn without(&self, group: usize, cells: &[(usize, f64)]) -> (f64, f64) {
        let (mut variance, mut fourth) = self.group_sums[group];
        for &(cell, _) in cells.iter().filter(|(cell, _)| self.table.group_index(*cell) == group) {
            let (own, degrees) = self.scatter.variances[cell];
            variance -= own;
            fourth -= own * own / degrees;
        }
        (variance.max(0.0), fourth.max(0.0))
    }

    /// In blocks that hold the same cells the runs have the same factors.
    fn sum_over_few_cells(&self, weights: &BTreeMap<usize, f64>) -> Sum {
        let mixed = self.table.solve_sparse(weights);
        let mut squares = vec![0.0; self.cells.len()];
        let mut sums = vec![0.0; self.cells.len()];
        for group in self.table.groups() {
            let typical = group.mean(&mixed);
            let blocks = group.elements.len() as f64;
            for &(cell, times) in &group.members {
                let factor = mixed[cell] - typical;
                sums[cell] += blocks * times * factor;
                squares[cell] += blocks * times * factor * factor;
            }
        }
        let wanted = |cell: usize| weights.get(&cell).copied().unwrap_or(0.0);
        let missed = sums.iter().enumerate().map(|(cell, sum)| (sum - wanted(cell)).abs());
        Sum {
            value: mixed.iter().zip(&self.right).map(|(mixed, right)| mixed * right).sum(),
            left_over: missed.fold(0.0, f64::max),
            squares: squares.into_iter().enumerate().filter(|(_, own)| *own > 0.0).collect(),
            of_groups: Vec::new(),
        }
    }

    /// In cells that ran in the same blocks the runs have the same factors, except for the cells in
    /// the contrast.
    fn sum_over_few_blocks(&self, weights: &BTreeMap<usize, f64>) -> Sum {
        let mut missed: BTreeMap<usize, f64> = BTreeMap::new();
        let mut value = 0.0;
        for (&cell, weight) in weights {
            let (runs, centre) = self.cells[cell];
            value += weight * centre;
            for &(block, times) in &self.table.group_of(cell).members {
                *missed.entry(block).or_default() += times * weight / runs;
            }
        }
        let size: f64 = weights.values().map(|weight| weight.abs()).sum();
        let alone = |cell: usize, weight: f64| weight * weight / self.cells[cell].0;
        // The usual case: the cells ran in the same blocks, which cancel.
        if missed.values().all(|own| own.abs() < 1e-13 * size) {
            let squares = weights.iter().map(|(&cell, &weight)| (cell, alone(cell, weight)));
            return Sum { value, squares: squares.collect(), of_groups: vec![], left_over: 0.0 };
        }
        // The factors of the blocks' levels, and with them of the runs of all cells.
        let mixed = self.table.solve_sparse(&missed);
        value -= mixed.iter().zip(&self.right).map(|(mixed, right)| mixed * right).sum::<f64>();
        let mut rest = vec![0.0; mixed.len()];
        missed.iter().for_each(|(&block, own)| rest[block] += own);
        let mut of_groups = Vec::with_capacity(self.table.groups().len());
        for group in self.table.groups() {
            let typical = if group.size > 0.0 { group.mean(&mixed) } else { 0.0 };
            let mut squares = 0.0;
            for &(block, times) in &group.members {
                let factor = typical - mixed[block];
                rest[block] += group.elements.len() as f64 * times * factor;
                squares += times * factor * factor;
            }
            of_groups.push(squares);
        }
        // The factors of the runs of a cell in the contrast add up to its weight; those of the
        // group add up to zero.
        let own = |(&cell, &weight): (&usize, &f64)| {
            (cell, alone(cell, weight) + of_groups[self.table.group_index(cell)])
        };
        let squares = weights.iter().map(own).collect();
        let left_over = rest.iter().map(|rest| rest.abs()).fold(0.0, f64::max);
        Sum { value, squares, of_groups, left_over }
    }
}

/// How many numbers each element has, and their mean.
fn means(count: usize, numbers: impl Iterator<Item = (usize, f64)>) -> Vec<(f64, f64)> {
    let mut sums = vec![(0.0, 0.0); count];
    for (element, number) in numbers {
        let (runs, sum) = &mut sums[element];
        (*runs, *sum) = (*runs + 1.0, *sum + number);
    }
    let mean = |(runs, sum): (f64, f64)| (runs, if runs > 0.0 { sum / runs } else { 0.0 });
    sums.into_iter().map(mean).collect()
}

/// Degrees of freedom of the residuals of each cell.
fn degrees(table: &TwoWay, smaller: Smaller, count: usize) -> Vec<f64> {
    let mut degrees = vec![0.0; count];
    for group in table.groups() {
        let leverages = table.leverages(group);
        let left = group.members.iter().zip(&leverages);
        let left = left.map(|(&(member, times), leverage)| (member, times * (1.0 - leverage)));
        match smaller {
            Smaller::Cells => left.for_each(|(cell, own)| {
                degrees[cell] += group.elements.len() as f64 * own;
            }),
            Smaller::Blocks => {
                let all: f64 = left.map(|(_, own)| own).sum();
                group.elements.iter().for_each(|&cell| degrees[cell] = all);
            }
        }
    }
    degrees
}

/// Sums over the cells of each group, where cells are the larger side.
fn group_sums(table: &TwoWay, smaller: Smaller, scatter: &Moderated) -> Vec<(f64, f64)> {
    if smaller == Smaller::Cells {
        return Vec::new();
    }
    let of = |group: &RunGroup| {
        let own = group.elements.iter().map(|&cell| scatter.variances[cell]);
        own.filter(|(_, degrees)| *degrees > 0.0).fold((0.0, 0.0), |sum, (variance, degrees)| {
            (sum.0 + variance, sum.1 + variance * variance / degrees)
        })
    };
    table.groups().iter().map(of).collect()
}

#[cfg(test)]
mod naive;
#[cfg(test)]
mod tests;
