//! The costs of a setting: counters that are shown to grow with it.
//!
//! A counter includes what other programs did during a run. Its difference is a cost of a setting
//! if it is settled over the repeats, is large enough to matter, and can be caused by what differs
//! between the two cells: no block size of a tape evicts anything from the page cache.

use super::CellSummary;
use crate::quantities::{Cost, costs};
use statistics::interval::{Interval, of_mean};

/// Confidence for each counter, higher because there are several.
const SURE: f64 = 0.99;

/// A counter that grew.
pub struct Grown {
    pub measure: &'static str,
    pub what: &'static str,
    /// Value with the cell.
    pub now: f64,
    /// Value with the settings in force, if the counter grew over it.
    pub then: Option<f64>,
}

/// The costs of `cell` relative to `baseline`.
pub fn grown(cell: &CellSummary, baseline: &CellSummary) -> Vec<Grown> {
    let differs = |name: &&String| cell.cell.get(*name) != baseline.cell.get(*name);
    let changed: Vec<&String> = cell.cell.keys().filter(differs).collect();
    let is_tape = is_tape(cell);
    let mut found = Vec::new();
    for (measure, cost) in costs() {
        let can_act = changed.iter().any(|name| cost.acts(name));
        if is_tape && cost.is_of_the_host {
            continue;
        }
        let (Some(&now), Some(&then)) =
            (cell.measures.get(measure), baseline.measures.get(measure))
        else {
            continue;
        };
        let grows =
            can_act && now > then * cost.growth && is_settled(measure, cell, baseline, &cost);
        let is_excess = cost.is_of_one && now > cost.growth && is_above_one(measure, cell);
        if grows || is_excess {
            found.push(Grown { measure, what: cost.what, now, then: grows.then_some(then) });
        }
    }
    found
}

/// Whether the cell wrote to a tape.
fn is_tape(cell: &CellSummary) -> bool {
    cell.measures.keys().any(|name| name == "filemark_seconds" || name.starts_with("drive_"))
}

/// Whether it grew in the repeats that both cells have.
fn is_settled(measure: &str, cell: &CellSummary, baseline: &CellSummary, cost: &Cost) -> bool {
    let (Some(now), Some(then)) = (cell.measured.get(measure), baseline.measured.get(measure))
    else {
        return false;
    };
    let differences: Vec<f64> =
        now.iter().filter_map(|(repeat, now)| Some(now - then.get(repeat)?)).collect();
    match of_mean(&differences, SURE) {
        Some(Interval { low, .. }) => low > 0.0,
        // An allocated size is exact and needs no second run.
        None => cost.is_exact && !differences.is_empty(),
    }
}

fn is_above_one(measure: &str, cell: &CellSummary) -> bool {
    let Some(values) = cell.measured.get(measure) else { return false };
    let values: Vec<f64> = values.values().copied().collect();
    of_mean(&values, SURE).is_some_and(|interval| interval.low > 1.0)
}
