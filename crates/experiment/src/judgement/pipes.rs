//! The program of a pipeline that the others wait for, from how full the pipes between them were.
//!
//! A writer to a full pipe waits for the reader; a reader of an empty pipe waits for the writer.
//! All others wait for the program with a full pipe into it and an empty one behind it; at the ends
//! of a pipeline one of the two is enough.

use std::collections::BTreeMap;

use base::finding::{Certainty, Finding, Unit};

use super::{Judgement, Sentence, Subject, rules};
use crate::record::{Cell, Factor, RunRecord, shown_cell};

/// A pipe that is full, or empty, in this share of the looks counts as full, or empty.
const MOSTLY_PERCENT: f64 = 60.0;
/// A pipe with this mean fill counts as full, too, if it is full this many times as often as empty:
/// one read leaves room in the pipe that the next look may see.
const FILL_PERCENT: f64 = 70.0;
const TIMES_AS_OFTEN: f64 = 3.0;
/// Fewer looks at a pipe, in all runs of a combination, are too few.
const LOOKS_MIN: u64 = 20;
/// Largest number of combinations with a sentence.
const TOLD_MAX: usize = 8;

/// A sentence for each combination with one such program.
pub fn slow_programs(
    factors: &[Factor],
    runs: &[RunRecord],
    judgement: &Judgement,
) -> Vec<Sentence> {
    let mut of_cell: BTreeMap<&Cell, Vec<&RunRecord>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.error.is_none()) {
        of_cell.entry(&run.cell).or_default().push(run);
    }
    let one = |cell: &super::CellSummary| {
        let found = slow_program(of_cell.get(&cell.cell)?)?;
        let place = match shown_cell(&cell.cell, factors).as_str() {
            "the only combination" => String::new(),
            shown => format!("{shown}: "),
        };
        Some(found.sentence(&place))
    };
    judgement.cells.iter().filter_map(one).take(TOLD_MAX).collect()
}

/// A pipe over all runs of a combination.
#[derive(Clone, Debug)]
struct Pooled {
    from: String,
    to: String,
    looks: u64,
    /// Percent of all looks.
    full: f64,
    empty: f64,
    /// Mean fill in percent; 50 if it was not recorded.
    fill: f64,
}

impl Pooled {
    /// All pipes with enough looks.
    fn of(runs: &[&RunRecord]) -> Vec<Pooled> {
        let mut all: Vec<Pooled> = Vec::new();
        for pipe in runs.iter().flat_map(|run| &run.pipes) {
            let (Some(full), Some(empty)) = (pipe.full_percent, pipe.empty_percent) else {
                continue;
            };
            let known = all.iter().position(|one| one.from == pipe.from && one.to == pipe.to);
            let at = known.unwrap_or_else(|| {
                let (from, to) = (pipe.from.clone(), pipe.to.clone());
                all.push(Pooled { from, to, looks: 0, full: 0.0, empty: 0.0, fill: 0.0 });
                all.len() - 1
            });
            let one = &mut all[at];
            let looks = one.looks + pipe.looks;
            let share = pipe.looks as f64 / looks.max(1) as f64;
            let mix = |before: f64, now: f64| before + share * (now - before);
            *one = Pooled {
                looks,
                full: mix(one.full, full),
                empty: mix(one.empty, empty),
                fill: mix(one.fill, pipe.fill_percent.unwrap_or(50.0)),
                ..one.clone()
            };
        }
        all.retain(|pipe| pipe.looks >= LOOKS_MIN);
        all
    }

    fn is_full(&self) -> bool {
        let is_mostly = self.fill >= FILL_PERCENT && self.full >= TIMES_AS_OFTEN * self.empty;
        self.full >= MOSTLY_PERCENT || is_mostly
    }

    fn is_empty(&self) -> bool {
        let room = 100.0 - self.fill;
        let is_mostly = room >= FILL_PERCENT && self.empty >= TIMES_AS_OFTEN * self.full;
        self.empty >= MOSTLY_PERCENT || is_mostly
    }

    /// `full in 80 % of all looks`.
    fn words(&self, what: &str, share: f64) -> String {
        if share >= MOSTLY_PERCENT {
            return format!("{what} in {share:.0} % of all looks");
        }
        format!(
            "{:.0} % full on average, full in {:.0} % of all looks and empty in {:.0} %",
            self.fill, self.full, self.empty
        )
    }
}

struct Slow {
    program: String,
    /// The least full pipe into the program, and the least empty one behind it.
    into: Option<Pooled>,
    behind: Option<Pooled>,
}

impl Slow {
    fn sentence(&self, place: &str) -> Sentence {
        let program = &self.program;
        let into = self.into.as_ref().map(|pipe| pipe.words("full", pipe.full));
        let behind = self.behind.as_ref().map(|pipe| pipe.words("empty", pipe.empty));
        let (who, why) = match (into, behind) {
            (Some(into), Some(behind)) => {
                (program.clone(), format!("the pipe into it is {into}, the one behind it {behind}"))
            }
            (Some(into), None) => {
                (format!("{program}, or what it writes to"), format!("the pipe into it is {into}"))
            }
            (None, behind) => (
                format!("{program}, or what it reads from"),
                format!("the pipe behind it is {}", behind.unwrap_or_default()),
            ),
        };
        let text = format!("{place}the other programs wait for {who}: {why}");
        let mut finding = Finding::new(&rules::SLOW_PROGRAM, Certainty::Inferred, text);
        let full = self.into.as_ref().map(|pipe| ("full", pipe.full));
        let empty = self.behind.as_ref().map(|pipe| ("empty", pipe.empty));
        for (name, percent) in full.into_iter().chain(empty) {
            finding = finding.with_number(name, percent / 100.0, Unit::Share);
        }
        Sentence::new(Subject::Finding, finding)
    }
}

/// The one program that fits; `None` if none or several do.
fn slow_program(runs: &[&RunRecord]) -> Option<Slow> {
    let pipes = Pooled::of(runs);
    let mut names: Vec<&String> = pipes.iter().flat_map(|pipe| [&pipe.from, &pipe.to]).collect();
    names.sort();
    names.dedup();
    let fitting = |name: &&String| {
        let into = pipes.iter().filter(|pipe| pipe.to == **name);
        let behind = pipes.iter().filter(|pipe| pipe.from == **name);
        // Every pipe of the program has to agree.
        let agree = into.clone().all(Pooled::is_full) && behind.clone().all(Pooled::is_empty);
        agree.then(|| Slow {
            program: (**name).clone(),
            into: into.min_by(|a, b| a.full.total_cmp(&b.full)).cloned(),
            behind: behind.min_by(|a, b| a.empty.total_cmp(&b.empty)).cloned(),
        })
    };
    let mut all = names.iter().filter_map(fitting);
    let found = all.next()?;
    all.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::PipeUse;

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
        // The slow program changes.
        check(&[("tar", "gzip", 50.0, 40.0)], None);
        // Two programs fit: one empties a pipe, and the next never fills its own.
        check(&[("a", "b", 99.0, 0.0), ("c", "d", 99.0, 0.0)], None);
        check(&[], None);
    }

    /// `dd | dd` in runs of a tenth of a second: a few looks in each, and one read leaves the pipe
    /// three quarters full.
    #[test]
    fn short_runs_are_looked_at_together_and_what_is_fairly_full_is_full() {
        let dd = |fill: f64, full: f64, empty: f64| {
            let mut run = run(&[("cat", "dd", full, empty)]);
            (run.pipes[0].looks, run.pipes[0].fill_percent) = (8, Some(fill));
            run
        };
        let runs = [dd(80.0, 50.0, 5.0), dd(74.0, 50.0, 15.0), dd(77.0, 47.0, 7.0)];
        let told = |runs: &[RunRecord]| {
            let runs: Vec<&RunRecord> = runs.iter().collect();
            slow_program(&runs).map(|slow| slow.sentence("").text.clone())
        };
        let text = told(&runs).unwrap();
        assert!(text.starts_with("the other programs wait for dd, or"), "{text}");
        assert!(text.ends_with("77 % full on average, full in 49 % of all looks and empty in 9 %"));
        assert_eq!(told(&runs[..2]), None, "16 looks tell nothing");
        let both = [dd(60.0, 45.0, 25.0), dd(62.0, 48.0, 30.0), dd(58.0, 44.0, 28.0)];
        assert_eq!(told(&both), None, "now one waits and now the other");
    }
}
