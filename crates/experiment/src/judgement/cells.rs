//! The statistics of each cell.

use std::collections::BTreeMap;

use super::{CellSummary, JudgementOptions};
use crate::record::{Cell, Factor, Level, RunRecord};
use statistics::outliers::outliers;
use statistics::{geometric_mean, harmonic_mean, interval, mean, standard_deviation};

/// One summary for each cell that has at least one good run, in the order of the factors' levels.
pub fn summarise(
    factors: &[Factor],
    runs: &[RunRecord],
    options: &JudgementOptions,
) -> Vec<CellSummary> {
    let places = Places::new(factors);
    let mut by_place: BTreeMap<(Vec<usize>, &Cell), Vec<&RunRecord>> = BTreeMap::new();
    for run in runs {
        by_place.entry((places.of(&run.cell), &run.cell)).or_default().push(run);
    }
    let level = match &options.stopping {
        Some(rule) => options.confidence.max(rule.level(by_place.len())),
        None => options.confidence,
    };
    let summaries =
        by_place.into_iter().map(|((_, cell), runs)| summary(cell.clone(), &runs, level, options));
    summaries.flatten().collect()
}

/// The place of each level of each factor.
pub struct Places<'a> {
    factors: Vec<(&'a str, BTreeMap<&'a Level, usize>)>,
}

impl<'a> Places<'a> {
    /// The places of these factors, in the order of their levels.
    pub fn new(factors: &'a [Factor]) -> Places<'a> {
        let of = |factor: &'a Factor| {
            let mut places = BTreeMap::new();
            for (index, level) in factor.levels.iter().enumerate() {
                places.entry(level).or_insert(index);
            }
            (factor.name.as_str(), places)
        };
        Places { factors: factors.iter().map(of).collect() }
    }

    /// The place of a cell among all: the index of its level in each factor; unknown levels last.
    pub fn of(&self, cell: &Cell) -> Vec<usize> {
        let index = |(name, places): &(&str, BTreeMap<&Level, usize>)| {
            cell.get(*name).and_then(|level| places.get(level).copied()).unwrap_or(usize::MAX)
        };
        self.factors.iter().map(index).collect()
    }
}

fn summary(
    cell: Cell,
    runs: &[&RunRecord],
    level: f64,
    options: &JudgementOptions,
) -> Option<CellSummary> {
    let rates: Vec<(u64, f64)> =
        runs.iter().filter_map(|run| Some((run.repeat, run.speed()?))).collect();
    let values: Vec<f64> = rates.iter().map(|(_, rate)| *rate).collect();
    let outliers = outliers(&values).into_iter().map(|index| rates[index].0).collect();
    let measured = measured(runs);
    let typical = |(name, values): (&String, &BTreeMap<u64, f64>)| {
        let values: Vec<f64> = values.values().copied().collect();
        Some((name.clone(), mean(&values)?))
    };
    let interval = interval::of_geometric_mean(&values, level);
    Some(CellSummary {
        cell,
        failed: runs.len() - rates.len(),
        mean_bytes_per_second: mean(&values)?,
        standard_deviation: standard_deviation(&values),
        harmonic_mean_bytes_per_second: harmonic_mean(&values)?,
        bytes_per_second: geometric_mean(&values)?,
        interval,
        told_within: interval,
        median_interval: interval::of_median(&values, options.confidence),
        outliers,
        measures: measured.iter().filter_map(typical).collect(),
        measured,
        rates,
    })
}

/// The other measures of all good runs, by their repeat.
fn measured(runs: &[&RunRecord]) -> BTreeMap<String, BTreeMap<u64, f64>> {
    let mut values: BTreeMap<String, BTreeMap<u64, f64>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.error.is_none()) {
        for (name, value) in &run.measures {
            values.entry(name.clone()).or_default().insert(run.repeat, *value);
        }
    }
    values
}
