//! Whether the repeats are the sample that all intervals take them for.

use std::collections::BTreeMap;

use finding::{Certainty, Finding, Unit};

use super::findings::named;
use super::{CellSummary, Sentence, Subject, rules};
use crate::record::{Factor, shown_cell};
use crate::statistics::sample::{KINDS_MIN, like_the_one_before, of_two_kinds, tells_dependence};

/// What chance explains less often than this is told.
const CHANCE: f64 = 0.02;

/// What is known of the machine over the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// Its rates have a trend.
    Drifts,
    /// None was seen.
    Stays,
}

/// Repeats that depend on each other, cells with two speeds, and what of that cannot be known from
/// so few repeats. A machine that drifts has repeats like the one before: that is told as what it
/// is.
pub fn sampling(factors: &[Factor], cells: &[CellSummary], machine: Machine) -> Vec<Sentence> {
    let drifts = machine == Machine::Drifts;
    let logs = |cell: &CellSummary| -> Vec<f64> {
        let by_repeat: BTreeMap<u64, f64> = cell.rates.iter().copied().collect();
        by_repeat.values().map(|rate| rate.ln()).collect()
    };
    let all: Vec<Vec<f64>> = cells.iter().map(logs).collect();
    let repeats = all.iter().map(Vec::len).max().unwrap_or(0);
    let whole: Vec<Vec<f64>> = all.iter().filter(|own| own.len() == repeats).cloned().collect();
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
    let dependence = like_the_one_before(&whole, 1).filter(|p| *p <= CHANCE && !drifts);
    if let Some(p) = dependence {
        let text = "a run looks like the one before it in the same combination: repeats know less \
                    than their number, and intervals are too narrow; longer pauses between them, \
                    or more of them over a longer time, would tell more"
            .to_owned();
        say(&rules::DEPENDENT_REPEATS, text, &[("by_chance", p, Unit::Share)]);
    }
    let kinds = of_two_kinds(&all).filter(|_| !drifts);
    let places: Vec<String> = kinds
        .unwrap_or_default()
        .iter()
        .map(|&index| shown_cell(&cells[index].cell, factors))
        .collect();
    if let Some(places) = named(&places) {
        let text = format!(
            "runs of two kinds rather than one: {places}; a mean and its interval describe neither"
        );
        say(&rules::TWO_KINDS, text, &[]);
    }
    let mut unknown = Vec::new();
    if !tells_dependence(whole.len(), repeats) {
        unknown.push("whether a run depends on the one before it");
    }
    if repeats < KINDS_MIN {
        unknown.push("whether there are runs of two kinds");
    }
    if !unknown.is_empty() {
        let text = format!(
            "{}: {repeats} repeats cannot tell, and every interval takes it that there is nothing \
             of the kind",
            unknown.join(", or ")
        );
        say(&rules::NOT_TESTABLE, text, &[("repeats", repeats as f64, Unit::Count)]);
    }
    found
}
