//! One answer over conditions that you do not choose by their rate: framing, file size, medium.
//!
//! The design of `btape speed` has twelve loads for each setting: two kinds of data in two framings
//! and three sizes. Conclusions for each load would repeat the same list twelve times. So the runs
//! of one repeat are pooled, all their bytes divided by all their time, and judged by the remaining
//! factors. The effects of the pooled factors are reported as effects. Tables and figures keep
//! every combination.
//!
//! Settings are compared over conditions that all of them completed: a setting that failed in the
//! slow framing would otherwise win on the others. A sentence names what is left out.

use std::collections::{BTreeMap, BTreeSet};

use crate::quantities;
use crate::record::{Cell, Factor, Role, RunRecord, shown_cell};

/// An experiment without its conditions.
pub struct Pool {
    /// Factors that remain.
    pub factors: Vec<Factor>,
    /// Factors that were pooled, with two levels at least.
    pub over: Vec<Factor>,
    /// A run for each remaining cell and repeat.
    pub runs: Vec<RunRecord>,
    /// What was left out, so that all settings are compared over the same conditions.
    pub left_out: Vec<String>,
}

/// Runs of one remaining cell: by repeat, then by condition.
type Repeats<'a> = BTreeMap<u64, BTreeMap<Cell, &'a RunRecord>>;

/// Pools the runs; `None` if no condition was varied, or no other factor remains.
pub fn pool(factors: &[Factor], runs: &[RunRecord]) -> Option<Pool> {
    let is_condition =
        |factor: &&Factor| quantities::factor(&factor.name).is_condition && factor.levels.len() > 1;
    let over: Vec<Factor> = factors.iter().filter(is_condition).cloned().collect();
    let remaining = |factor: &&Factor| !over.iter().any(|other| other.name == factor.name);
    let factors: Vec<Factor> = factors.iter().filter(remaining).cloned().collect();
    if over.is_empty() || !factors.iter().any(|factor| factor.levels.len() > 1) {
        return None;
    }
    let mut groups: BTreeMap<Cell, Repeats<'_>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.bytes_per_second().is_some()) {
        let is_over = |name: &String| over.iter().any(|factor| factor.name == *name);
        let (condition, cell) = run.cell.clone().into_iter().partition(|(name, _)| is_over(name));
        groups.entry(cell).or_default().entry(run.repeat).or_default().insert(condition, run);
    }
    // Only cells with the same load are compared.
    let is_load =
        |name: &String| factors.iter().any(|own| own.name == *name && own.role == Role::Load);
    let mut by_load: BTreeMap<Cell, Vec<(Cell, Repeats<'_>)>> = BTreeMap::new();
    for (cell, repeats) in groups {
        let mut load = cell.clone();
        load.retain(|name, _| is_load(name));
        by_load.entry(load).or_default().push((cell, repeats));
    }
    let mut pool = Pool { factors, over, runs: Vec::new(), left_out: Vec::new() };
    by_load.into_values().for_each(|cells| pool.add(cells));
    Some(pool)
}

impl Pool {
    /// Adds the cells of one load, over the conditions that all of them completed.
    fn add(&mut self, mut cells: Vec<(Cell, Repeats<'_>)>) {
        let conditions = |repeats: &Repeats<'_>| -> BTreeSet<Cell> {
            repeats.values().flat_map(|runs| runs.keys().cloned()).collect()
        };
        let shared = |cells: &[(Cell, Repeats<'_>)]| -> BTreeSet<Cell> {
            let sets = cells.iter().map(|(_, repeats)| conditions(repeats));
            sets.reduce(|all, own| &all & &own).unwrap_or_default()
        };
        // A setting without any condition in common with the others cannot be compared.
        while shared(&cells).is_empty() && cells.len() > 1 {
            let fewest = |index: &usize| conditions(&cells[*index].1).len();
            let Some(index) = (0..cells.len()).min_by_key(fewest) else { break };
            let (cell, _) = cells.remove(index);
            self.left_out.push(format!(
                "{}, which has no condition in common with the others",
                shown_cell(&cell, &self.factors)
            ));
        }
        let shared = shared(&cells);
        let all: BTreeSet<Cell> = cells.iter().flat_map(|(_, own)| conditions(own)).collect();
        for condition in all.difference(&shared) {
            let lacking = cells.iter().filter(|(_, own)| !conditions(own).contains(condition));
            let lacking: Vec<String> =
                lacking.take(2).map(|(cell, _)| shown_cell(cell, &self.factors)).collect();
            let condition = shown_cell(condition, &self.over);
            let text = format!("{condition}, where {} has no result", lacking.join(" and "));
            self.left_out.push(text);
        }
        for (cell, repeats) in cells {
            self.whole_repeats(&cell, repeats, &shared);
        }
    }

    /// Adds the repeats in which every combination of conditions ran; other repeats would average
    /// over a different mixture.
    fn whole_repeats(&mut self, cell: &Cell, repeats: Repeats<'_>, shared: &BTreeSet<Cell>) {
        for (repeat, mut runs) in repeats {
            runs.retain(|condition, _| shared.contains(condition));
            match shared.iter().find(|condition| !runs.contains_key(*condition)) {
                None => {
                    let runs: Vec<&RunRecord> = runs.into_values().collect();
                    self.runs.push(together(cell.clone(), repeat, &runs));
                }
                Some(missing) => self.left_out.push(format!(
                    "repeat {repeat} of {}, where {} has no result",
                    shown_cell(cell, &self.factors),
                    shown_cell(missing, &self.over)
                )),
            }
        }
    }
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
    use crate::record::Level;

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
        // The second repeat of "a" has only one framing; "b" never has another.
        assert_eq!(found, [(200, 4.0, 2.0), (100, 5.0, 5.0)]);
        assert_eq!(pool.left_out, ["repeat 2 of data a, where framing tar has no result"]);
        assert!(super::pool(&factors[1..], &runs).is_none());
        assert!(super::pool(&factors[..1], &runs).is_none());
    }

    #[test]
    fn settings_are_compared_over_what_all_of_them_completed() {
        let setting = Factor { role: Role::Setting, ..factor("data", &["a", "b"]) };
        let factors = [setting, factor("framing", &["raw", "tar"])];
        let runs = [run("a", "raw", 1, 1.0), run("a", "tar", 1, 3.0), run("b", "raw", 1, 1.2)];
        let found = pool(&factors, &runs).unwrap();
        let seconds: Vec<f64> = found.runs.iter().map(|run| run.seconds).collect();
        assert_eq!(seconds, [1.0, 1.2]);
        assert_eq!(found.left_out, ["framing tar, where data b has no result"]);
        // Nothing in common: the setting that completed less cannot be compared.
        let runs = [run("a", "raw", 1, 1.0), run("a", "raw", 2, 1.0), run("b", "tar", 1, 1.2)];
        let found = pool(&factors, &runs).unwrap();
        assert_eq!(found.left_out.len(), 1);
        assert!(found.left_out[0].contains("no condition in common"), "{:?}", found.left_out);
    }
}
