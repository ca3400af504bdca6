//! One answer over conditions that nobody chooses by their rate: framing, size of the file, medium.
//!
//! The design of `btape speed` has twelve loads for each setting: two kinds of data in two framings
//! and three sizes. Told for each of them the conclusions would be a list of twelve times the same.
//! So the runs of one repeat are put together, all their bytes by all their time, and judged by the
//! factors that remain; what the others do by themselves is an effect, told as such. Tables and
//! figures keep every combination.

use std::collections::{BTreeMap, BTreeSet};

use crate::quantities;
use crate::record::{Cell, Factor, RunRecord};

/// An experiment without its conditions.
pub struct Pool {
    /// Factors that remain.
    pub factors: Vec<Factor>,
    /// Factors that were pooled, with two levels at least.
    pub over: Vec<Factor>,
    /// A run for each remaining cell and repeat.
    pub runs: Vec<RunRecord>,
}

/// Puts runs together; `None` where no condition was varied, or nothing would be left.
pub fn pool(factors: &[Factor], runs: &[RunRecord]) -> Option<Pool> {
    let is_condition =
        |factor: &&Factor| quantities::factor(&factor.name).is_condition && factor.levels.len() > 1;
    let over: Vec<Factor> = factors.iter().filter(is_condition).cloned().collect();
    let remaining = |factor: &&Factor| !over.iter().any(|other| other.name == factor.name);
    let factors: Vec<Factor> = factors.iter().filter(remaining).cloned().collect();
    if over.is_empty() || !factors.iter().any(|factor| factor.levels.len() > 1) {
        return None;
    }
    let mut groups: BTreeMap<Cell, BTreeMap<u64, Vec<&RunRecord>>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.bytes_per_second().is_some()) {
        let mut cell = run.cell.clone();
        cell.retain(|name, _| !over.iter().any(|factor| factor.name == *name));
        groups.entry(cell).or_default().entry(run.repeat).or_default().push(run);
    }
    let pooled = groups.into_iter().flat_map(|(cell, repeats)| whole_repeats(&cell, repeats));
    Some(Pool { runs: pooled.collect(), factors, over })
}

/// Repeats in which every combination of the conditions ran: others would be of another mixture.
fn whole_repeats(cell: &Cell, repeats: BTreeMap<u64, Vec<&RunRecord>>) -> Vec<RunRecord> {
    let all: BTreeSet<&Cell> = repeats.values().flatten().map(|run| &run.cell).collect();
    let whole = repeats.into_iter().filter(|(_, runs)| {
        let own: BTreeSet<&Cell> = runs.iter().map(|run| &run.cell).collect();
        own.len() == all.len()
    });
    whole.map(|(repeat, runs)| together(cell.clone(), repeat, &runs)).collect()
}

fn together(cell: Cell, repeat: u64, runs: &[&RunRecord]) -> RunRecord {
    let mut sums: BTreeMap<String, (f64, usize)> = BTreeMap::new();
    for (name, value) in runs.iter().flat_map(|run| &run.measures) {
        let sum = sums.entry(name.clone()).or_default();
        *sum = (sum.0 + value, sum.1 + 1);
    }
    let means = sums.into_iter().map(|(name, (sum, count))| (name, sum / count as f64));
    RunRecord {
        cell,
        repeat,
        bytes: runs.iter().map(|run| run.bytes).sum(),
        seconds: runs.iter().map(|run| run.seconds).sum(),
        measures: means.collect(),
        environment: runs.first().map(|run| run.environment.clone()).unwrap_or_default(),
        ..RunRecord::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Level, Role};

    fn factor(name: &str, levels: &[&str]) -> Factor {
        let levels = levels.iter().map(|&level| Level::Text(level.into())).collect();
        Factor { name: name.into(), levels, role: Role::Load, present: None }
    }

    fn run(data: &str, framing: &str, repeat: u64, seconds: f64) -> RunRecord {
        let text = |text: &str| Level::Text(text.to_owned());
        let cell = [("data".to_owned(), text(data)), ("framing".to_owned(), text(framing))].into();
        let measures = [("x".to_owned(), seconds)].into();
        RunRecord { cell, repeat, bytes: 100, seconds, measures, ..RunRecord::default() }
    }

    #[test]
    fn bytes_and_times_are_put_together_where_nothing_is_missing() {
        let factors = [factor("data", &["a", "b"]), factor("framing", &["raw", "tar"])];
        let runs = [
            run("a", "raw", 1, 1.0),
            run("a", "tar", 1, 3.0),
            run("a", "raw", 2, 1.0),
            run("b", "raw", 1, 5.0),
        ];
        let pool = pool(&factors, &runs).unwrap();
        assert_eq!(pool.factors, factors[..1]);
        assert_eq!(pool.over, factors[1..]);
        let found: Vec<_> =
            pool.runs.iter().map(|run| (run.bytes, run.seconds, run.measures["x"])).collect();
        // The second repeat of "a" has one framing only; "b" never had another.
        assert_eq!(found, [(200, 4.0, 2.0), (100, 5.0, 5.0)]);
        assert!(super::pool(&factors[1..], &runs).is_none());
        assert!(super::pool(&factors[..1], &runs).is_none());
    }
}
