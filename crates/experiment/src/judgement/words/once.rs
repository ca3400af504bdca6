//! Combinations that ran once.

use std::collections::BTreeSet;

use base::finding::{Certainty, Finding};

use super::super::{Basis, CellSummary, Judgement, Sentence, Subject, rules};
use crate::record::{Factor, shown_cell};

/// Largest number of combinations to repeat that the sentence names.
const REPEATED_MAX: usize = 4;

/// Which combinations ran once, and which of them to repeat.
pub(super) fn repeats(factors: &[Factor], judgement: &Judgement) -> Option<Sentence> {
    let single: Vec<&CellSummary> =
        judgement.cells.iter().filter(|cell| cell.rates.len() == 1).collect();
    let all = judgement.cells.len();
    let ran_once = match (single.len(), all) {
        (0, _) => return None,
        (once, all) if once == all => "every combination ran once".to_owned(),
        (once, all) => format!("{once} of {all} combinations ran once"),
    };
    let told = judgement
        .pooled
        .as_ref()
        .map_or((judgement, factors), |pooled| (&pooled.judgement, &pooled.factors[..]));
    let open = told.0.recommended.iter().filter(|found| found.basis == Basis::SingleRuns);
    let is_single = |index: &usize| told.0.cells[*index].rates.len() == 1;
    let named_first: BTreeSet<usize> = open
        .flat_map(|found| [found.baseline, found.cell])
        .filter(is_single)
        .take(REPEATED_MAX)
        .collect();
    let shown = |&index: &usize| shown_cell(&told.0.cells[index].cell, told.1);
    let which: Vec<String> = named_first.iter().map(shown).collect();
    let which = match &which[..] {
        [] => "them".to_owned(),
        some => some.join("; "),
    };
    let text = format!(
        "{ran_once}: the scatter of single runs is unknown, so nothing is recommended from them; \
         repeat at least {which} (--repeats 5)",
    );
    let finding = Finding::new(&rules::ONE_RUN_EACH, Certainty::Measured, text);
    Some(Sentence::new(Subject::Doubt, finding))
}
