//! The average effect of each factor over everything else, and the interactions of two factors.
//!
//! Averages are of logarithms over pairs of cells that differ in nothing else, with equal weights.
//! The intervals come from the residuals once cells and repeats are taken out ([`Comparer`]). An
//! average over cells that behave differently describes none of them, so interactions are computed
//! as well.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::comparer::Comparer;
use super::verdict::RateVerdict;
use super::{CellSummary, JudgementOptions};
use crate::record::{Cell, Factor, Level};
use statistics::interval::Interval;

/// A change from one level of a factor to another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelChange {
    pub factor: String,
    pub from: Level,
    pub to: Level,
}

/// The effect of a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Effect {
    pub change: LevelChange,
    /// For an interaction, the change of the other factor.
    pub with: Option<LevelChange>,
    /// The factor by which the rate changes; for an interaction, the factor by which that factor
    /// changes.
    pub ratio: f64,
    /// Its interval, if all cells have at least two runs.
    pub interval: Option<Interval>,
    /// What that settles.
    pub verdict: RateVerdict,
    /// Number of pairs of cells, or of pairs of pairs, in the average.
    pub pairs: usize,
    /// For a main effect that is slower in some places and faster in others: the slowest and the
    /// fastest place, both settled. The average then describes no place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns_around: Option<Box<[At; 2]>>,
}

/// The effect of a change at one combination of everything else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct At {
    /// Everything else.
    pub others: Cell,
    /// The factor by which the rate changes there.
    pub ratio: f64,
    pub interval: Option<Interval>,
}

impl Effect {
    /// Whether it is a main effect whose average is meaningful.
    pub fn is_average(&self) -> bool {
        self.with.is_none() && self.turns_around.is_none()
    }
}

/// Only this many levels of a factor are compared with the first one.
const LEVELS_MAX: usize = 6;

/// All main effects, then all interactions of two factors between their extreme levels.
pub fn effects(
    factors: &[Factor],
    cells: &[CellSummary],
    comparer: &Comparer,
    options: &JudgementOptions,
) -> Vec<Effect> {
    let design = Design::new(cells, comparer, options);
    let varied: Vec<&Factor> = factors.iter().filter(|factor| factor.levels.len() > 1).collect();
    let mut all: Vec<Effect> = Vec::new();
    for factor in &varied {
        all.extend(changes(factor).iter().filter_map(|change| design.main(change)));
    }
    let extremes: Vec<Option<LevelChange>> =
        varied.iter().map(|factor| design.extreme_change(factor)).collect();
    for (index, first) in extremes.iter().enumerate() {
        for second in &extremes[index + 1..] {
            let (Some(first), Some(second)) = (first, second) else { continue };
            all.extend(design.interaction(first, second));
        }
    }
    all
}

/// For numbers the change from the first level to the last; for words from the first to each other
/// level.
fn changes(factor: &Factor) -> Vec<LevelChange> {
    let (Some(from), rest) = (factor.levels.first(), &factor.levels[1..]) else {
        return Vec::new();
    };
    let to = if factor.is_numeric() {
        &rest[rest.len() - 1..]
    } else {
        &rest[..rest.len().min(LEVELS_MAX)]
    };
    let change = |to: &Level| LevelChange {
        factor: factor.name.clone(),
        from: from.clone(),
        to: to.clone(),
    };
    to.iter().map(change).collect()
}

struct Design<'a> {
    /// Index and rate of each cell.
    cells: BTreeMap<&'a Cell, (usize, f64)>,
    comparer: &'a Comparer,
    options: &'a JudgementOptions,
}

impl Design<'_> {
    fn new<'a>(
        cells: &'a [CellSummary],
        comparer: &'a Comparer,
        options: &'a JudgementOptions,
    ) -> Design<'a> {
        let entry =
            |(index, cell): (usize, &'a CellSummary)| (&cell.cell, (index, cell.bytes_per_second));
        Design { cells: cells.iter().enumerate().map(entry).collect(), comparer, options }
    }

    fn main(&self, change: &LevelChange) -> Option<Effect> {
        let pairs = self
            .at(change)
            .filter_map(|from| Some(vec![(-1.0, from), (1.0, self.moved(from, change)?)]));
        let pairs: Vec<Vec<(f64, &Cell)>> = pairs.collect();
        let turns_around = self.turns_around(change, &pairs);
        let effect = self.effect(change, None, pairs)?;
        Some(Effect { turns_around, ..effect })
    }

    /// The slowest and the fastest place of a change that is shown to be slower in some
    /// combinations and faster in others, corrected for their number by Bonferroni.
    fn turns_around(
        &self,
        change: &LevelChange,
        pairs: &[Vec<(f64, &Cell)>],
    ) -> Option<Box<[At; 2]>> {
        let confidence = 1.0 - (1.0 - self.options.confidence) / pairs.len().max(1) as f64;
        let at = |pair: &Vec<(f64, &Cell)>| {
            let terms: Vec<(f64, usize)> =
                pair.iter().map(|(sign, cell)| (*sign, self.cells[*cell].0)).collect();
            let contrast = self.comparer.contrast(&terms)?;
            let interval = contrast.interval(confidence);
            let mut others = pair[0].1.clone();
            others.remove(&change.factor);
            let is_settled = RateVerdict::of(interval, self.options) == RateVerdict::Differs;
            is_settled.then(|| At { others, ratio: contrast.ratio(), interval })
        };
        let found: Vec<At> = pairs.iter().filter(|_| pairs.len() > 1).filter_map(at).collect();
        let slowest = found.iter().min_by(|a, b| a.ratio.total_cmp(&b.ratio))?;
        let fastest = found.iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio))?;
        let turns = slowest.ratio < 1.0 && fastest.ratio > 1.0;
        turns.then(|| Box::new([slowest.clone(), fastest.clone()]))
    }

    fn interaction(&self, change: &LevelChange, with: &LevelChange) -> Option<Effect> {
        let quads = self.at(change).filter(|cell| cell.get(&with.factor) == Some(&with.from));
        let quads = quads.filter_map(|from| {
            let to = self.moved(from, change)?;
            let (other_from, other_to) = (self.moved(from, with)?, self.moved(to, with)?);
            Some(vec![(1.0, from), (-1.0, to), (-1.0, other_from), (1.0, other_to)])
        });
        self.effect(change, Some(with.clone()), quads.collect())
    }

    /// Cells at the beginning of a change.
    fn at<'b>(&'b self, change: &'b LevelChange) -> impl Iterator<Item = &'b Cell> {
        let begins = |cell: &&Cell| cell.get(&change.factor) == Some(&change.from);
        self.cells.keys().copied().filter(begins)
    }

    fn moved(&self, cell: &Cell, change: &LevelChange) -> Option<&Cell> {
        let mut to = cell.clone();
        to.insert(change.factor.clone(), change.to.clone());
        self.cells.get_key_value(&to).map(|(cell, _)| *cell)
    }

    fn effect(
        &self,
        change: &LevelChange,
        with: Option<LevelChange>,
        groups: Vec<Vec<(f64, &Cell)>>,
    ) -> Option<Effect> {
        let share = 1.0 / groups.len() as f64;
        let cells = || groups.iter().flatten().map(|(sign, cell)| (sign * share, *cell));
        let plain: f64 = cells().map(|(weight, cell)| weight * self.cells[cell].1.ln()).sum();
        let terms: Vec<(f64, usize)> =
            cells().map(|(weight, cell)| (weight, self.cells[cell].0)).collect();
        let contrast = self.comparer.contrast(&terms).filter(|_| !groups.is_empty());
        let interval = contrast.and_then(|found| found.interval(self.options.confidence));
        (!groups.is_empty()).then(|| Effect {
            change: change.clone(),
            with,
            ratio: contrast.map_or(plain.exp(), |found| found.ratio()),
            interval,
            verdict: RateVerdict::of(interval, self.options),
            pairs: groups.len(),
            turns_around: None,
        })
    }

    /// For words the change from the slowest to the fastest level; for numbers from the first to
    /// the last.
    fn extreme_change(&self, factor: &Factor) -> Option<LevelChange> {
        if factor.is_numeric() {
            return changes(factor).pop();
        }
        let mean = |level: &&Level| {
            let own = self.cells.iter().filter(|(cell, _)| cell.get(&factor.name) == Some(level));
            let logs: Vec<f64> = own.map(|(_, (_, rate))| rate.ln()).collect();
            statistics::mean(&logs)
        };
        let mut means: Vec<(f64, &Level)> =
            factor.levels.iter().filter_map(|level| Some((mean(&level)?, level))).collect();
        means.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (first, last) = (means.first()?.1, means.last()?.1);
        let factor = factor.name.clone();
        (first != last).then(|| LevelChange { factor, from: first.clone(), to: last.clone() })
    }
}
