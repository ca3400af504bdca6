//! Whether the repeats are the independent sample that all intervals assume.

use std::collections::BTreeMap;

use base::finding::{Certainty, Finding, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::findings::named;
use super::{CellSummary, Judgement, Sentence, Subject, rules};
use crate::record::{Factor, shown_cell};
use statistics::sample::{
    KINDS_MIN, like_the_one_before, of_two_kinds, tells_dependence, widening,
};

/// A pattern that chance explains less often than this is reported.
const CHANCE: f64 = 0.02;

/// Whether the machine changed over the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineOverTime {
    /// Its rates have a trend.
    Drifts,
    /// No trend was seen.
    Stays,
}

/// Dependence between successive repeats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dependence {
    /// Probability that independent repeats look like that.
    pub by_chance: f64,
    /// Factor by which the intervals of cells are widened.
    pub widened: f64,
}

/// Logarithms of the rates of each cell in the order of the repeats.
fn logs(cells: &[CellSummary]) -> Vec<Vec<f64>> {
    let of = |cell: &CellSummary| -> Vec<f64> {
        let by_repeat: BTreeMap<u64, f64> = cell.rates.iter().copied().collect();
        by_repeat.values().map(|rate| rate.ln()).collect()
    };
    cells.iter().map(of).collect()
}

/// The cells with the largest number of repeats.
fn whole(all: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let repeats = all.iter().map(Vec::len).max().unwrap_or(0);
    all.iter().filter(|own| own.len() == repeats).cloned().collect()
}

/// Whether a repeat resembles the one before, on a machine that does not drift.
pub fn dependence(cells: &[CellSummary], machine: MachineOverTime) -> Option<Dependence> {
    let whole = whole(&logs(cells));
    let by_chance = like_the_one_before(&whole, 1).filter(|_| machine == MachineOverTime::Stays)?;
    let is_told = by_chance <= CHANCE;
    is_told.then(|| Dependence { by_chance, widened: widening(&whole) })
}

/// Findings on repeats that depend on each other, on cells with two speeds, and on which of the two
/// so few repeats cannot show. On a machine that drifts repeats resemble the one before, too; that
/// has a finding of its own.
pub fn sampling(
    factors: &[Factor],
    judgement: &Judgement,
    machine: MachineOverTime,
) -> Vec<Sentence> {
    let cells = &judgement.cells;
    let drifts = machine == MachineOverTime::Drifts;
    let all = logs(cells);
    let repeats = all.iter().map(Vec::len).max().unwrap_or(0);
    let whole = whole(&all);
    let mut found = Vec::new();
    let mut say = |rule, text: String, numbers: &[(&'static str, f64, Unit)]| {
        let finding = Finding::new(rule, Certainty::Inferred, text);
        let finding = numbers
            .iter()
            .fold(finding, |finding, &(name, value, unit)| finding.with_number(name, value, unit));
        found.push(Sentence::new(Subject::Doubt, finding));
    };
    if repeats < 2 {
        return found;
    }
    if let Some(Dependence { by_chance, widened }) = judgement.dependence {
        let text = format!(
            "repeats are not independent: a run resembles the one before it, so intervals are made \
             {widened:.1} times as wide; pause longer between repeats, or spread more of them over \
             a longer time"
        );
        let numbers = [("by_chance", by_chance, Unit::Share), ("widened", widened, Unit::Ratio)];
        say(&rules::DEPENDENT_REPEATS, text, &numbers);
    }
    let kinds = of_two_kinds(&all).filter(|_| !drifts);
    let places: Vec<String> = kinds
        .unwrap_or_default()
        .iter()
        .map(|&index| shown_cell(&cells[index].cell, factors))
        .collect();
    if let Some(places) = named(&places) {
        let text = format!(
            "the runs of one setting fall into two groups of different speed: {places}; the mean \
             and its interval describe neither group, and the cause is unknown"
        );
        say(&rules::TWO_KINDS, text, &[]);
    }
    let mut unknown = Vec::new();
    if !tells_dependence(whole.len(), repeats) {
        unknown.push("whether a run depends on the one before it");
    }
    if repeats < KINDS_MIN {
        unknown.push("whether there are two speeds");
    }
    if !unknown.is_empty() {
        let text = format!(
            "{repeats} repeats cannot show {}; if so, the intervals are too narrow",
            unknown.join(", or ")
        );
        say(&rules::NOT_TESTABLE, text, &[("repeats", repeats as f64, Unit::Count)]);
    }
    found
}
