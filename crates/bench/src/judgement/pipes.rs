//! Which program of a pipeline the others wait for, from how full the pipes between them were.
//!
//! What writes into a full pipe waits for its reader, what reads from an empty one for its writer.
//! A program with a full pipe before it and an empty one behind it is what all others wait for; at
//! the ends of a pipeline one of the two is enough.

use finding::{Certainty, Finding, Unit};

use super::{Judgement, Sentence, Subject, rules};
use crate::programs::PipeUse;
use crate::record::{Factor, RunRecord, shown_cell};
use crate::statistics::mean;

/// A pipe that is so often full, or empty, is full, or empty.
const MOSTLY_PERCENT: f64 = 60.0;
/// Fewer looks at a pipe tell nothing.
const LOOKS_MIN: u64 = 20;
/// More combinations than this are not told.
const TOLD_MAX: usize = 8;

/// A sentence for each combination with one such program.
pub fn slow_programs(
    factors: &[Factor],
    runs: &[RunRecord],
    judgement: &Judgement,
) -> Vec<Sentence> {
    let one = |cell: &super::CellSummary| {
        let own = |run: &&RunRecord| run.cell == cell.cell && run.error.is_none();
        let runs: Vec<&RunRecord> = runs.iter().filter(own).collect();
        let found = slow_program(&runs)?;
        let place = match shown_cell(&cell.cell, factors).as_str() {
            "the only combination" => String::new(),
            shown => format!("{shown}: "),
        };
        Some(found.sentence(&place))
    };
    judgement.cells.iter().filter_map(one).take(TOLD_MAX).collect()
}

struct Slow {
    program: String,
    /// How often the pipe before it is full, and the one behind it empty.
    full_before: Option<f64>,
    empty_behind: Option<f64>,
}

impl Slow {
    fn sentence(&self, place: &str) -> Sentence {
        let program = &self.program;
        let (who, why) = match (self.full_before, self.empty_behind) {
            (Some(full), Some(empty)) => (
                program.clone(),
                format!(
                    "the pipe into it is full in {full:.0} % of all looks, the one behind it empty \
                     in {empty:.0} %"
                ),
            ),
            (Some(full), None) => (
                format!("{program}, or what it writes to"),
                format!("the pipe into it is full in {full:.0} % of all looks"),
            ),
            (None, empty) => (
                format!("{program}, or what it reads from"),
                format!(
                    "the pipe behind it is empty in {:.0} % of all looks",
                    empty.unwrap_or(0.0)
                ),
            ),
        };
        let text = format!("{place}what the other programs wait for is {who}: {why}");
        let mut finding = Finding::new(&rules::SLOW_PROGRAM, Certainty::Inferred, text);
        for (name, percent) in [("full", self.full_before), ("empty", self.empty_behind)] {
            if let Some(percent) = percent {
                finding = finding.with_number(name, percent / 100.0, Unit::Share);
            }
        }
        Sentence::new(Subject::Finding, finding)
    }
}

/// The one program that fits; `None` where none does, or several.
fn slow_program(runs: &[&RunRecord]) -> Option<Slow> {
    let mut names: Vec<&String> =
        runs.iter().flat_map(|run| &run.pipes).flat_map(|pipe| [&pipe.from, &pipe.to]).collect();
    names.sort();
    names.dedup();
    // Every pipe of it has to agree.
    let share = |is_own: &dyn Fn(&PipeUse) -> bool, value: fn(&PipeUse) -> Option<f64>| {
        let of_run = |run: &&RunRecord| {
            let own = run.pipes.iter().filter(|pipe| is_own(pipe) && pipe.looks >= LOOKS_MIN);
            own.filter_map(value).reduce(f64::min)
        };
        mean(&runs.iter().filter_map(of_run).collect::<Vec<f64>>())
    };
    let fitting = |name: &&String| {
        let full_before = share(&|pipe| pipe.to == **name, |pipe| pipe.full_percent);
        let empty_behind = share(&|pipe| pipe.from == **name, |pipe| pipe.empty_percent);
        let fits = |percent: Option<f64>| percent.is_none_or(|it| it >= MOSTLY_PERCENT);
        let is_known = full_before.is_some() || empty_behind.is_some();
        (is_known && fits(full_before) && fits(empty_behind)).then(|| Slow {
            program: (**name).clone(),
            full_before,
            empty_behind,
        })
    };
    let mut all = names.iter().filter_map(fitting);
    let found = all.next()?;
    all.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(pipes: &[(&str, &str, f64, f64)]) -> RunRecord {
        let pipe = |&(from, to, full, empty): &(&str, &str, f64, f64)| PipeUse {
            from: from.to_owned(),
            to: to.to_owned(),
            looks: 100,
            full_percent: Some(full),
            empty_percent: Some(empty),
            ..PipeUse::default()
        };
        RunRecord { pipes: pipes.iter().map(pipe).collect(), ..RunRecord::default() }
    }

    #[test]
    fn the_program_between_a_full_and_an_empty_pipe_is_the_slow_one() {
        let check = |pipes: &[(&str, &str, f64, f64)], expected: Option<&str>| {
            let run = run(pipes);
            let found = slow_program(&[&run]);
            assert_eq!(found.map(|slow| slow.program).as_deref(), expected, "{pipes:?}");
        };
        check(&[("tar", "gzip", 95.0, 1.0), ("gzip", "dd", 0.0, 99.0)], Some("gzip"));
        check(&[("tar", "gzip", 95.0, 1.0), ("gzip", "dd", 97.0, 2.0)], Some("dd"));
        check(&[("tar", "gzip", 2.0, 95.0), ("gzip", "dd", 0.0, 99.0)], Some("tar"));
        // Sometimes this one, sometimes that one.
        check(&[("tar", "gzip", 50.0, 40.0)], None);
        // One that empties a pipe that the next one never fills: two that do not know each other.
        check(&[("a", "b", 99.0, 0.0), ("c", "d", 99.0, 0.0)], None);
        check(&[], None);
    }
}
