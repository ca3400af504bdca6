//! Cells against each other: what differs between them, with the repeats taken out.
//!
//! The runs are fitted as cells and blocks ([`Fit`]). What takes a person to change, a medium, is
//! changed once in a repeat, so that the runs on one medium of one repeat have more in common than
//! the repeat: they are a block of their own (the whole plot of a split-plot design, Yates 1935).
//! What differs between mediums is then known from one number for each repeat and no more, however
//! many runs stand behind it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{CellSummary, JudgementOptions};
use crate::quantities::hard_to_change;
use crate::record::{Factor, Level, Role};
use statistics::blocks::{Contrast, Fit, Observation};
use statistics::curve::known::Errors;
use statistics::interval::Interval;
use statistics::sample::widening;
use statistics::simultaneous::dunnett_factor;
use statistics::{mean, standard_deviation};

/// What an error rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// On repeats.
    Repeats,
    /// On cells that ran once: nothing is known of their scatter.
    SingleRuns,
}

/// A cell against another one.
#[derive(Clone, Copy, Debug)]
pub struct Against {
    /// The difference.
    pub contrast: Contrast,
    /// Interval of the ratio, right together with those of all others that were asked for.
    pub interval: Interval,
    /// What it rests on.
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
    /// Which whole plot of a repeat each cell belongs to.
    plots: Vec<usize>,
    /// Comparisons with what is in force, over all loads.
    compared: usize,
    /// By what errors are multiplied, where repeats depend on each other.
    widened: f64,
    confidence: f64,
    /// Factors of simultaneous intervals by the number of cells and the degrees of freedom, as they
    /// were needed: each takes thousands of evaluations.
    factors: RefCell<BTreeMap<(usize, u64), f64>>,
}

impl Comparer {
    /// Of all cells of an experiment, by their index.
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

    /// The factor of a standard error among `family` cells, the degrees rounded to the careful side
    /// so that there are few distinct ones.
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

    /// Takes it that repeats are like the one before, as far as what is left of the runs of a cell
    /// without those of its repeat shows it: what a whole repeat has in common falls out.
    pub fn widen(&mut self) {
        let Some(fit) = &self.fit else { return };
        let mut left = fit.residuals().iter();
        let of_cell = |own: &BTreeMap<u64, f64>| -> Vec<f64> {
            left.by_ref().take(own.len()).copied().collect()
        };
        let residuals: Vec<Vec<f64>> = self.logs.iter().map(of_cell).collect();
        self.widened = widening(&residuals);
    }

    /// A weighted sum of cells whose weights add up to 0. `None` without repeats.
    pub fn contrast(&self, terms: &[(f64, usize)]) -> Option<Contrast> {
        let found = self.independent_contrast(terms)?;
        Some(Contrast { error: self.widened * found.error, ..found })
    }

    /// The same, of repeats that have nothing to do with each other.
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

    /// How many times one cell is as fast as another one. Where one of them ran once its error is
    /// without a limit: the scatter of other cells is not its own.
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

    /// What share of the rate of `best` a cell has at least, by its interval.
    pub fn at_least(&self, cell: usize, best: usize) -> f64 {
        let against = self.against(best, &[cell]);
        if cell == best { 1.0 } else { against[0].interval.low.min(1.0) }
    }

    /// The scatter of single runs, as a share, from which on it explains that difference between
    /// two of them, as one of all that are compared.
    pub fn explaining_scatter(&self, difference: f64) -> f64 {
        let factor = dunnett_factor(self.confidence, self.compared.max(1), 1e4);
        let error = difference.abs() / factor.unwrap_or(f64::INFINITY);
        (error / std::f64::consts::SQRT_2).exp_m1()
    }

    /// How well the levels of several groups of cells are known, each the mean of its cells; of
    /// cells that ran once nothing is.
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

    /// All of `others` against one cell, with intervals that are right together, and together with
    /// those of all other loads.
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
