//! Compares cells with each other, with the effect of the repeats taken out.
//!
//! The runs are fitted as cells and blocks ([`Fit`]). A medium, which a person has to change, is
//! changed once in a repeat. The runs on one medium in one repeat thus have more in common than the
//! repeat, and form a block of their own (the whole plot of a split-plot design, Yates 1935). A
//! difference between media then has only one observation for each repeat, however many runs there
//! are.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CellSummary, JudgementOptions};
use crate::quantities::hard_to_change;
use crate::record::{Factor, Level, Role};
use statistics::blocks::{Contrast, Fit, Observation};
use statistics::curve::known::Errors;
use statistics::interval::Interval;
use statistics::sample::widening;
use statistics::simultaneous::dunnett_factor;
use statistics::{mean, standard_deviation};

/// The basis of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    Repeats,
    /// Cells that ran once, whose scatter is unknown.
    SingleRuns,
}

/// The comparison of a cell with another one.
#[derive(Clone, Copy, Debug)]
pub struct Against {
    /// The difference.
    pub contrast: Contrast,
    /// Interval of the ratio, simultaneous with those of all other comparisons.
    pub interval: Interval,
    /// The basis of the error.
    pub basis: Basis,
}

/// The runs of all cells, ready to be compared.
#[derive(Clone, Debug, Default)]
pub struct Comparer {
    fit: Option<Fit>,
    /// Logarithms of the rates of each cell by their repeat.
    logs: Vec<BTreeMap<u64, f64>>,
    /// Logarithm of the rate of each cell.
    means: Vec<f64>,
    /// The whole plot of a repeat that each cell belongs to.
    plots: Vec<usize>,
    /// Number of comparisons with the settings in force, over all loads.
    compared: usize,
    /// Factor on the errors if repeats depend on each other, otherwise 1.
    widened: f64,
    confidence: f64,
    /// Cache of factors of simultaneous intervals, by the number of cells and the degrees of
    /// freedom: each takes thousands of evaluations.
    factors: RefCell<BTreeMap<(usize, u64), f64>>,
}

impl Comparer {
    /// Prepares all cells of an experiment, by their index.
    pub fn new(factors: &[Factor], cells: &[CellSummary], options: &JudgementOptions) -> Comparer {
        let is_load = |factor: &&Factor| factor.role == Role::Load;
        let load = |cell: &CellSummary| -> Vec<Option<Level>> {
            let loads = factors.iter().filter(is_load);
            loads.map(|factor| cell.cell.get(&factor.name).cloned()).collect()
        };
        let loads: BTreeSet<Vec<Option<Level>>> = cells.iter().map(load).collect();
        let mut known: BTreeMap<Vec<Option<&Level>>, usize> = BTreeMap::new();
        let mut plots = Vec::with_capacity(cells.len());
        for cell in cells {
            let levels: Vec<Option<&Level>> =
                hard_to_change().map(|name| cell.cell.get(name)).collect();
            let next = known.len();
            plots.push(*known.entry(levels).or_insert(next));
        }
        let mut blocks: BTreeMap<(u64, usize), usize> = BTreeMap::new();
        let mut observations = Vec::new();
        for ((index, cell), plot) in cells.iter().enumerate().zip(&plots) {
            for (repeat, rate) in &cell.rates {
                let next = blocks.len();
                let block = *blocks.entry((*repeat, *plot)).or_insert(next);
                observations.push(Observation { cell: index, block, log: rate.ln() });
            }
        }
        let logs = |cell: &CellSummary| {
            cell.rates.iter().map(|(repeat, rate)| (*repeat, rate.ln())).collect()
        };
        Comparer {
            fit: Fit::new(observations),
            logs: cells.iter().map(logs).collect(),
            means: cells.iter().map(|cell| cell.bytes_per_second.ln()).collect(),
            plots,
            compared: cells.len() - loads.len(),
            widened: 1.0,
            confidence: options.confidence,
            factors: RefCell::default(),
        }
    }

    /// The factor of a standard error among `family` cells. Degrees are rounded down, so that there
    /// are few distinct ones.
    fn factor(&self, family: usize, degrees: f64) -> f64 {
        let rounded = match degrees {
            few if few < 1.5 => few,
            some if some < 20.0 => (some * 4.0).floor() / 4.0,
            many => many.min(1e4).floor(),
        };
        let computed = || dunnett_factor(self.confidence, family, rounded).unwrap_or(f64::INFINITY);
        let mut factors = self.factors.borrow_mut();
        *factors.entry((family, rounded.to_bits())).or_insert_with(computed)
    }

    /// Widens the errors because repeats resemble the one before, by as much as the residuals of a
    /// cell show. The residuals are without the effect of the repeat, so what a whole repeat has in
    /// common does not count.
    pub fn widen(&mut self) {
        let Some(fit) = &self.fit else { return };
        let mut left = fit.residuals().iter();
        let of_cell = |own: &BTreeMap<u64, f64>| -> Vec<f64> {
            left.by_ref().take(own.len()).copied().collect()
        };
        let residuals: Vec<Vec<f64>> = self.logs.iter().map(of_cell).collect();
        self.widened = widening(&residuals);
    }

    /// A weighted sum of cells with weights that add up to 0. `None` without repeats.
    pub fn contrast(&self, terms: &[(f64, usize)]) -> Option<Contrast> {
        let found = self.independent_contrast(terms)?;
        Some(Contrast { error: self.widened * found.error, ..found })
    }

    /// The same contrast for independent repeats.
    fn independent_contrast(&self, terms: &[(f64, usize)]) -> Option<Contrast> {
        let mut by_plot: BTreeMap<usize, f64> = BTreeMap::new();
        for &(weight, cell) in terms {
            *by_plot.entry(self.plots[cell]).or_default() += weight;
        }
        if by_plot.values().all(|weight| weight.abs() < 1e-9) {
            return self.fit.as_ref()?.contrast(terms);
        }
        // Whole plots: the repeat is the unit.
        let repeats = self.logs[terms.first()?.1].keys();
        let in_repeat = |repeat: &u64| -> Option<f64> {
            terms.iter().map(|(weight, cell)| Some(weight * self.logs[*cell].get(repeat)?)).sum()
        };
        Contrast::of_blocks(&repeats.filter_map(in_repeat).collect::<Vec<_>>())
    }

    /// The ratio of one cell to another. If one of them ran once, the error is infinite: the
    /// scatter of other cells may differ from its own.
    pub fn ratio(&self, to: usize, from: usize) -> (Contrast, Basis) {
        let ran_once = [to, from].iter().any(|&cell| self.logs[cell].len() < 2);
        match self.contrast(&[(1.0, to), (-1.0, from)]).filter(|_| !ran_once) {
            Some(contrast) => (contrast, Basis::Repeats),
            None => {
                let value = self.means[to] - self.means[from];
                let unknown = Contrast { value, error: f64::INFINITY, degrees: f64::INFINITY };
                (unknown, Basis::SingleRuns)
            }
        }
    }

    /// Lower bound on the share of the rate of `best` that a cell has, by its interval.
    pub fn at_least(&self, cell: usize, best: usize) -> f64 {
        let against = self.against(best, &[cell]);
        if cell == best { 1.0 } else { against[0].interval.low.min(1.0) }
    }

    /// The scatter of single runs, as a share, that is just large enough to explain that difference
    /// between two of them, among all comparisons.
    pub fn explaining_scatter(&self, difference: f64) -> f64 {
        let factor = dunnett_factor(self.confidence, self.compared.max(1), 1e4);
        let error = difference.abs() / factor.unwrap_or(f64::INFINITY);
        (error / std::f64::consts::SQRT_2).exp_m1()
    }

    /// The errors of the levels of several groups of cells, each the mean of its cells; infinite
    /// for cells that ran once.
    pub fn errors(&self, groups: &[Vec<usize>]) -> Errors {
        let of_cell = |cell: &usize| -> (f64, f64, f64) {
            let logs: Vec<f64> = self.logs[*cell].values().copied().collect();
            let count = logs.len().max(1) as f64;
            match self.fit.as_ref().and_then(|fit| fit.error(*cell)) {
                Some((own, degrees)) => {
                    let whole = standard_deviation(&logs).unwrap_or(0.0).powi(2) / count;
                    (own * own, whole - own * own, degrees)
                }
                None => (f64::INFINITY, 0.0, f64::INFINITY),
            }
        };
        let mut errors = Errors { own: Vec::new(), common: 0.0, degrees: f64::INFINITY };
        let mut common = Vec::new();
        for group in groups {
            let cells: Vec<(f64, f64, f64)> = group.iter().map(of_cell).collect();
            let count = cells.len().max(1) as f64;
            let variance: f64 = cells.iter().map(|(own, ..)| own).sum();
            errors.own.push(variance.sqrt() / count);
            common.extend(cells.iter().map(|(_, common, _)| common));
            let least = cells.iter().map(|(.., degrees)| *degrees).fold(f64::INFINITY, f64::min);
            errors.degrees = errors.degrees.min(least);
        }
        errors.common = mean(&common).unwrap_or(0.0).max(0.0).sqrt();
        errors
    }

    /// Compares all of `others` with one cell. The intervals are simultaneous, also with those of
    /// all other loads.
    pub fn against(&self, one: usize, others: &[usize]) -> Vec<Against> {
        let family = self.compared.max(others.len());
        let against = |&other: &usize| {
            let (contrast, basis) = self.ratio(other, one);
            let interval = match basis {
                Basis::Repeats => contrast.interval_with(self.factor(family, contrast.degrees)),
                Basis::SingleRuns => Interval { low: 0.0, high: f64::INFINITY },
            };
            Against { contrast, interval, basis }
        };
        others.iter().map(against).collect()
    }
}
