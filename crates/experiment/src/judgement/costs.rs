//! What a setting costs: counters that grow with it, where that is settled.
//!
//! A counter says what happened while a run was under way, whoever did it. It is a cost of a
//! setting where its own difference is settled over the repeats, where that is large enough to
//! matter, and where what differs between the two cells can act on it at all: no block size of a
//! tape pushes anything out of the page cache.

use super::CellSummary;
use crate::quantities::{Cost, costs};
use statistics::interval::{Interval, of_mean};

/// Several counters are looked at, so that each has to be this sure.
const SURE: f64 = 0.99;

/// A counter that grew.
pub struct Grown {
    /// Its name.
    pub measure: &'static str,
    /// What it is.
    pub what: &'static str,
    /// With the cell.
    pub now: f64,
    /// With what is in force, where it is more than that.
    pub then: Option<f64>,
}

/// What `cell` costs against `baseline`.
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

/// Whether it grew in the repeats that both have.
fn is_settled(measure: &str, cell: &CellSummary, baseline: &CellSummary, cost: &Cost) -> bool {
    let (Some(now), Some(then)) = (cell.measured.get(measure), baseline.measured.get(measure))
    else {
        return false;
    };
    let differences: Vec<f64> =
        now.iter().filter_map(|(repeat, now)| Some(now - then.get(repeat)?)).collect();
    match of_mean(&differences, SURE) {
        Some(Interval { low, .. }) => low > 0.0,
        // What is allocated needs no second run.
        None => cost.is_exact && !differences.is_empty(),
    }
}

fn is_above_one(measure: &str, cell: &CellSummary) -> bool {
    let Some(values) = cell.measured.get(measure) else { return false };
    let values: Vec<f64> = values.values().copied().collect();
    of_mean(&values, SURE).is_some_and(|interval| interval.low > 1.0)
}
