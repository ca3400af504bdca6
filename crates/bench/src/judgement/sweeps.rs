//! Which cell to use, and each factor over its levels.

use std::collections::BTreeMap;

use super::cells::{level, place};
use super::{CellSummary, Options, Recommendation, Sweep};
use crate::model::{Model, Point, fit};
use crate::record::{Cell, Factor, Level, Role};
use crate::statistics::ratio::{self, Ratio};
use crate::statistics::sweep::{best, one_standard_error};

/// For each combination of loads the simplest cell that is as good as the best. Simpler is what
/// has the earlier level of the first factor in which two cells differ.
pub fn recommend(
    factors: &[Factor],
    cells: &[CellSummary],
    options: &Options,
) -> Vec<Recommendation> {
    let is_load =
        |name: &str| factors.iter().any(|factor| factor.name == name && factor.role == Role::Load);
    let mut by_load: BTreeMap<(Vec<usize>, Cell), Vec<usize>> = BTreeMap::new();
    for (index, cell) in cells.iter().enumerate() {
        let load: Cell = cell
            .cell
            .iter()
            .filter(|(name, _)| is_load(name))
            .map(|(name, level)| (name.clone(), level.clone()))
            .collect();
        by_load.entry((place(factors, &load), load)).or_default().push(index);
    }
    let one = |((_, load), members): ((Vec<usize>, Cell), Vec<usize>)| {
        let levels: Vec<_> = members.iter().map(|&index| level(&cells[index], options)).collect();
        let best = members[best(&levels)?];
        let cell = members[one_standard_error(&levels, options.indifference)?];
        let is_present = |index: &usize| {
            factors.iter().filter(|factor| factor.role == Role::Setting).all(|factor| {
                let wanted = factor.present.as_ref().or(factor.levels.first());
                cells[*index].cell.get(&factor.name) == wanted
            })
        };
        let baseline = members.iter().copied().find(is_present).unwrap_or(members[0]);
        let gain = gain(&cells[cell], &cells[baseline], options.confidence);
        let plain = cells[cell].bytes_per_second / cells[baseline].bytes_per_second;
        Some(Recommendation {
            load,
            cell,
            best,
            baseline,
            gain: gain.map_or(plain, |gain| gain.ratio),
            gain_interval: gain.map(|gain| gain.interval),
        })
    };
    by_load.into_iter().filter_map(one).collect()
}

/// How many times one cell is as fast as another, block by block where both have them.
pub fn gain(cell: &CellSummary, baseline: &CellSummary, confidence: f64) -> Option<Ratio> {
    let other = |repeat: u64| {
        baseline.rates.iter().find(|(theirs, _)| *theirs == repeat).map(|(_, rate)| *rate)
    };
    let pairs: Vec<(f64, f64)> =
        cell.rates.iter().filter_map(|(repeat, rate)| Some((*rate, other(*repeat)?))).collect();
    let rates = |cell: &CellSummary| cell.rates.iter().map(|(_, rate)| *rate).collect::<Vec<_>>();
    if pairs.len() >= 3 {
        ratio::paired(&pairs, confidence)
    } else {
        ratio::independent(&rates(cell), &rates(baseline), confidence)
    }
}

/// All sweeps with at least two levels.
pub fn sweeps(
    factors: &[Factor],
    cells: &[CellSummary],
    recommended: &[Recommendation],
    options: &Options,
) -> Vec<Sweep> {
    let mut found = Vec::new();
    for factor in factors.iter().filter(|factor| factor.levels.len() > 1) {
        let mut groups: BTreeMap<(Vec<usize>, Cell), Vec<usize>> = BTreeMap::new();
        for (index, cell) in cells.iter().enumerate() {
            if cell.cell.contains_key(&factor.name) {
                let mut others = cell.cell.clone();
                others.remove(&factor.name);
                groups.entry((place(factors, &others), others)).or_default().push(index);
            }
        }
        for ((_, others), members) in groups {
            found.extend(sweep(factor, others, members, cells, recommended, options));
        }
    }
    found
}

fn sweep(
    factor: &Factor,
    others: Cell,
    mut members: Vec<usize>,
    cells: &[CellSummary],
    recommended: &[Recommendation],
    options: &Options,
) -> Option<Sweep> {
    members.sort_by_key(|&index| place(std::slice::from_ref(factor), &cells[index].cell));
    let levels: Vec<_> = members.iter().map(|&index| level(&cells[index], options)).collect();
    let best = best(&levels).filter(|_| members.len() > 1)?;
    let knee = one_standard_error(&levels, options.indifference)?;
    let is_told = factor.role == Role::Setting
        && recommended.iter().any(|recommendation| members.contains(&recommendation.cell));
    let model = model(factor, &members, cells);
    Some(Sweep { factor: factor.name.clone(), others, cells: members, best, knee, model, is_told })
}

/// The curve through the levels that are numbers above zero; what has no place on it, as no
/// read-ahead at all, has no residual.
fn model(factor: &Factor, members: &[usize], cells: &[CellSummary]) -> Option<Model> {
    let point = |&index: &usize| match cells[index].cell.get(&factor.name)? {
        Level::Number(number) if *number > 0 => {
            Some(Point { level: *number as f64, bytes_per_second: cells[index].bytes_per_second })
        }
        _ => None,
    };
    let places: Vec<Option<Point>> = members.iter().map(point).collect();
    let is_curve = factor.is_numeric();
    let points: Vec<Point> =
        places.iter().filter(|_| is_curve).filter_map(|point| *point).collect();
    let mut model = fit(&points)?;
    let mut residuals = std::mem::take(&mut model.residuals).into_iter();
    let aligned = |place: &Option<Point>| place.and_then(|_| residuals.next()).unwrap_or(0.0);
    model.residuals = places.iter().map(aligned).collect();
    Some(model)
}
