//! The cell to use for each load, and each factor over its levels.

use std::collections::BTreeMap;

use super::cells::Places;
use super::comparer::{Against, Basis, Comparer};
use super::verdict::RateVerdict;
use super::{CellSummary, JudgementOptions, Recommendation, Sweep};
use crate::quantities;
use crate::record::{Cell, Factor, Role};
use statistics::curve::{Model, Point, fit};
use statistics::sweep::{simplest_of_the_best, unimodal};

/// For each combination of loads the cell in force, unless another cell is shown to be faster: then
/// the simplest of the cells that cannot be distinguished from the fastest. The simpler of two
/// cells has the earlier level of the first factor in which they differ.
pub fn recommend(
    factors: &[Factor],
    cells: &[CellSummary],
    comparer: &Comparer,
    options: &JudgementOptions,
) -> Vec<Recommendation> {
    let is_load =
        |name: &str| factors.iter().any(|factor| factor.name == name && factor.role == Role::Load);
    let places = Places::new(factors);
    let mut by_load: BTreeMap<(Vec<usize>, Cell), Vec<usize>> = BTreeMap::new();
    for (index, cell) in cells.iter().enumerate() {
        let load: Cell = cell
            .cell
            .iter()
            .filter(|(name, _)| is_load(name))
            .map(|(name, level)| (name.clone(), level.clone()))
            .collect();
        by_load.entry((places.of(&load), load)).or_default().push(index);
    }
    let is_present = |index: &usize| {
        factors.iter().filter(|factor| factor.role == Role::Setting).all(|factor| {
            let wanted = factor.present.as_ref().or(factor.levels.first());
            cells[*index].cell.get(&factor.name) == wanted
        })
    };
    let one = |((_, load), members): ((Vec<usize>, Cell), Vec<usize>)| {
        let baseline = members.iter().copied().find(is_present).unwrap_or(members[0]);
        let smooth = smooth(factors, &members, cells);
        among(load, &members, &smooth, baseline, comparer, options)
    };
    by_load.into_iter().map(one).collect()
}

fn among(
    load: Cell,
    members: &[usize],
    smooth: &BTreeMap<usize, f64>,
    baseline: usize,
    comparer: &Comparer,
    options: &JudgementOptions,
) -> Recommendation {
    let speed = |index: usize| smooth[&index];
    let others: Vec<usize> = members.iter().copied().filter(|&index| index != baseline).collect();
    let found: Vec<(usize, Against)> =
        others.iter().copied().zip(comparer.against(baseline, &others)).collect();
    let is_faster = |(_, against): &&(usize, Against)| {
        against.contrast.value > 0.0
            && RateVerdict::of(Some(against.interval), options) == RateVerdict::Differs
    };
    let faster: Vec<usize> = found.iter().filter(is_faster).map(|(index, _)| *index).collect();
    let best = members.iter().copied().max_by(|&a, &b| speed(a).total_cmp(&speed(b)));
    let best = best.unwrap_or(baseline);
    let simplest = |among: &[usize]| -> Option<usize> {
        let best =
            among.iter().copied().chain([best]).max_by(|&a, &b| speed(a).total_cmp(&speed(b)))?;
        let logs: Vec<(f64, f64)> =
            among.iter().map(|&index| (speed(index), known_error(comparer, index, best))).collect();
        let place = simplest_of_the_best(&logs, speed(best), options.band)?;
        Some(among[shown_before(comparer, among, place, best, options)])
    };
    let is_seen = |(_, against): &&(usize, Against)| {
        against.basis == Basis::SingleRuns && against.contrast.value > options.band.ln_1p()
    };
    let seen: Vec<usize> = found.iter().filter(is_seen).map(|(index, _)| *index).collect();
    // Results of repeats go before those of single runs.
    let cell = simplest(&faster).or_else(|| simplest(&seen)).unwrap_or(baseline);
    let own = found.iter().find(|(index, _)| *index == cell).map(|(_, against)| against);
    let measured = own.filter(|against| against.basis == Basis::Repeats);
    let is_no_better =
        |(_, against): &(usize, Against)| against.interval.high.ln() <= options.band.ln_1p();
    let is_single = |(_, against): &(usize, Against)| against.basis == Basis::SingleRuns;
    let rests_on_singles = match own {
        Some(own) => own.basis == Basis::SingleRuns,
        None => !found.is_empty() && found.iter().all(is_single),
    };
    let verdict = match measured {
        Some(against) => RateVerdict::of(Some(against.interval), options),
        // Nothing is noticeably faster: the cell in force is as good as all others.
        None if cell == baseline && found.iter().all(is_no_better) => RateVerdict::Same,
        None => RateVerdict::NotSettled,
    };
    Recommendation {
        load,
        cell,
        best,
        baseline,
        compared: members.len(),
        gain: own.map_or(1.0, |against| against.contrast.ratio()),
        gain_interval: measured.map(|against| against.interval),
        hidden: found.iter().map(|(_, against)| against.interval.high).fold(1.0, f64::max),
        basis: if rests_on_singles { Basis::SingleRuns } else { Basis::Repeats },
        verdict,
    }
}

/// The first level before a place that by itself is shown to be the same as the best one; otherwise
/// the place. A level that scatters much pulls the fitted levels of its neighbours towards itself,
/// and would win over them just because little is known about it.
fn shown_before(
    comparer: &Comparer,
    members: &[usize],
    place: usize,
    best: usize,
    options: &JudgementOptions,
) -> usize {
    let is_shown = |&cell: &usize| {
        cell == best
            || comparer.against(best, &[cell]).iter().any(|against| {
                against.basis == Basis::Repeats
                    && RateVerdict::of(Some(against.interval), options) == RateVerdict::Same
            })
    };
    members[..place].iter().position(is_shown).unwrap_or(place)
}

/// The error of a difference. It is unknown for single runs; 0 then leaves only the band.
fn known_error(comparer: &Comparer, one: usize, other: usize) -> f64 {
    let (contrast, basis) = comparer.ratio(one, other);
    if basis == Basis::Repeats { contrast.error } else { 0.0 }
}

/// Logarithms of the rates of cells. If a single number is varied, they are smoothed so that they
/// rise and then fall.
fn smooth(factors: &[Factor], members: &[usize], cells: &[CellSummary]) -> BTreeMap<usize, f64> {
    let is_varied = |factor: &&Factor| factor.role == Role::Setting && factor.levels.len() > 1;
    let mut varied = factors.iter().filter(is_varied);
    let is_one_number = varied.next().is_some_and(Factor::is_numeric) && varied.next().is_none();
    let logs: Vec<f64> = members.iter().map(|&index| cells[index].bytes_per_second.ln()).collect();
    let logs = if is_one_number { unimodal(&logs) } else { logs };
    members.iter().copied().zip(logs).collect()
}

/// All sweeps with at least two levels.
pub fn sweeps(
    factors: &[Factor],
    cells: &[CellSummary],
    recommended: &[Recommendation],
    comparer: &Comparer,
    options: &JudgementOptions,
) -> Vec<Sweep> {
    let mut found = Vec::new();
    let mut told_through = vec![None; cells.len()];
    // If two recommendations name one cell, keep the first.
    for (index, found) in recommended.iter().enumerate().rev() {
        told_through[found.cell] = Some(index);
    }
    let sweeping = Sweeping { cells, recommended, told_through, comparer, options };
    let places = Places::new(factors);
    for factor in factors.iter().filter(|factor| factor.levels.len() > 1) {
        let mut groups: BTreeMap<(Vec<usize>, Cell), Vec<usize>> = BTreeMap::new();
        for (index, cell) in cells.iter().enumerate() {
            if cell.cell.contains_key(&factor.name) {
                let mut others = cell.cell.clone();
                others.remove(&factor.name);
                groups.entry((places.of(&others), others)).or_default().push(index);
            }
        }
        let own = Places::new(std::slice::from_ref(factor));
        for ((_, others), mut members) in groups {
            members.sort_by_cached_key(|&index| own.of(&cells[index].cell));
            found.extend(sweeping.sweep(factor, others, members));
        }
    }
    found
}

struct Sweeping<'a> {
    cells: &'a [CellSummary],
    recommended: &'a [Recommendation],
    /// Index of the recommendation that names each cell.
    told_through: Vec<Option<usize>>,
    comparer: &'a Comparer,
    options: &'a JudgementOptions,
}

impl Sweeping<'_> {
    fn sweep(&self, factor: &Factor, others: Cell, members: Vec<usize>) -> Option<Sweep> {
        if members.len() < 2 {
            return None;
        }
        let speed = |place: &usize| self.cells[members[*place]].bytes_per_second;
        let best = (0..members.len()).max_by(|a, b| speed(a).total_cmp(&speed(b)))?;
        let raw: Vec<f64> =
            members.iter().map(|&index| self.cells[index].bytes_per_second.ln()).collect();
        let levels = if factor.is_numeric() { unimodal(&raw) } else { raw };
        let highest = levels.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let error = |&index: &usize| known_error(self.comparer, index, members[best]);
        let logs: Vec<(f64, f64)> = levels.iter().copied().zip(members.iter().map(error)).collect();
        let knee = simplest_of_the_best(&logs, highest, self.options.band)?;
        let knee = shown_before(self.comparer, &members, knee, members[best], self.options);
        let told = members.iter().filter_map(|&cell| self.told_through[cell]).min();
        let told = told.map(|index| &self.recommended[index]);
        let is_told = factor.role == Role::Setting && told.is_some();
        let chosen = told.and_then(|found| members.iter().position(|&cell| cell == found.cell));
        let (verdicts, basis, hidden) = self.verdicts(&members, chosen.unwrap_or(knee));
        Some(Sweep {
            factor: factor.name.clone(),
            others,
            best,
            knee,
            // The curves are in bytes.
            model: model(factor, &members, self.cells).filter(|_| self.options.value.is_rate()),
            is_told,
            verdicts,
            basis,
            hidden,
            cells: members,
        })
    }

    /// Each level against the chosen one; whether all verdicts rest on repeats; and an upper bound
    /// on the ratios.
    fn verdicts(&self, members: &[usize], chosen: usize) -> (Vec<RateVerdict>, Basis, f64) {
        let others: Vec<usize> =
            members.iter().copied().filter(|&index| index != members[chosen]).collect();
        let against = self.comparer.against(members[chosen], &others);
        let singles = against.iter().any(|one| one.basis == Basis::SingleRuns);
        let basis = if singles { Basis::SingleRuns } else { Basis::Repeats };
        let mut verdicts: Vec<RateVerdict> =
            against.iter().map(|one| RateVerdict::of(Some(one.interval), self.options)).collect();
        verdicts.insert(chosen, RateVerdict::Same);
        let hidden = against.iter().map(|one| one.interval.high).fold(1.0, f64::max);
        (verdicts, basis, hidden)
    }
}

/// The curve through the levels that are numbers above zero. A level without a place on it, such as
/// no read-ahead at all, gets the residual 0.
fn model(factor: &Factor, members: &[usize], cells: &[CellSummary]) -> Option<Model> {
    let point = |&index: &usize| {
        let level = quantities::bytes_at_once(&factor.name, &cells[index].cell)?;
        Some(Point { level, bytes_per_second: cells[index].bytes_per_second })
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
