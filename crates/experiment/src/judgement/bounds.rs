//! Combinations known only by a bound, because their runs took too long and were stopped.
//!
//! Such a run is a censored observation: its rate is below that of a run that ends at that moment.
//! Against a combination faster than that bound it has lost, whatever its rate is; against any
//! other nothing is settled. It is never recommended, and always named.

use std::collections::BTreeMap;

use base::finding::{Certainty, Finding, Unit};
use base::format::{duration, rate};

use super::{Judgement, RateVerdict, Recommendation, Sentence, Subject, rules};
use crate::record::{Cell, Factor, RunRecord, Value, shown_cell};

/// A combination with a stopped run.
struct Stopped {
    /// The lowest upper bound on its rate.
    below: Option<f64>,
    /// Seconds after which that run was stopped.
    seconds: f64,
}

/// A sentence for each combination with a stopped run.
pub fn bounds(
    factors: &[Factor],
    runs: &[RunRecord],
    judgement: &Judgement,
    value: Value,
) -> Vec<Sentence> {
    let mut cells: BTreeMap<&Cell, Stopped> = BTreeMap::new();
    for run in runs {
        let Some(seconds) = run.cut_after_seconds else { continue };
        let below = match value {
            Value::Rate => run.slower_than_bytes_per_second,
            Value::Time => run.longer_than_seconds.map(|seconds| 1.0 / seconds),
        };
        let known = cells.entry(&run.cell).or_insert(Stopped { below: None, seconds });
        if below.is_some_and(|below| known.below.is_none_or(|known| below < known)) {
            *known = Stopped { below, seconds };
        }
    }
    let told =
        |(cell, stopped): (&Cell, Stopped)| sentence(factors, cell, &stopped, judgement, value);
    cells.into_iter().map(told).collect()
}

fn sentence(
    factors: &[Factor],
    cell: &Cell,
    stopped: &Stopped,
    judgement: &Judgement,
    value: Value,
) -> Sentence {
    let name = shown_cell(cell, factors);
    let took = duration(stopped.seconds);
    let doubt = |text: String| {
        let finding = Finding::new(&rules::BOUND, Certainty::Unknown, text);
        Sentence::new(Subject::Doubt, finding).settled(RateVerdict::NotSettled)
    };
    let Some(below) = stopped.below else {
        let what = match value {
            Value::Rate => "rate",
            Value::Time => "time",
        };
        return doubt(format!("{name}: stopped after {took}; its {what} is unknown"));
    };
    let slower = match value {
        Value::Rate => format!("{name}: slower than {}, stopped after {took}", rate(below)),
        Value::Time => format!("{name}: longer than {took}, when it was stopped"),
    };
    let Some(recommended) = of_load(cell, judgement) else {
        return doubt(format!("{slower}; no run with the same load completed to compare it with"));
    };
    let best = &judgement.cells[recommended.cell];
    let least = best.interval.map_or(best.bytes_per_second, |interval| interval.low);
    let against = format!("{} ({})", shown_cell(&best.cell, factors), best.told(value));
    if below >= least {
        return doubt(format!(
            "{slower}, too early to compare it with {against}: raise --run-limit"
        ));
    }
    let times = least / below;
    // No other sentence names the only combination with a result.
    let (subject, text) = if recommended.compared == 1 {
        (Subject::Set, format!("{against}, at least {times:.1} times as fast: {slower}"))
    } else {
        let text = format!("{slower}: {against} is at least {times:.1} times as fast");
        (Subject::Finding, text)
    };
    let bound = match value {
        Value::Rate => ("slower_than", below, Unit::BytesPerSecond),
        Value::Time => ("longer_than", 1.0 / below, Unit::Seconds),
    };
    let finding = Finding::new(&rules::BOUND, Certainty::Measured, text)
        .with_number(bound.0, bound.1, bound.2)
        .with_number("stopped_after", stopped.seconds, Unit::Seconds)
        .with_number("times", times, Unit::Ratio);
    Sentence::new(subject, finding).settled(RateVerdict::Differs)
}

/// The recommendation for the load of a combination.
fn of_load<'a>(cell: &Cell, judgement: &'a Judgement) -> Option<&'a Recommendation> {
    let is_of_load = |found: &&Recommendation| {
        found.load.iter().all(|(name, level)| cell.get(name) == Some(level))
    };
    judgement.recommended.iter().find(is_of_load)
}

#[cfg(test)]
mod tests {
    use super::super::judge;
    use super::*;
    use crate::judgement::JudgementOptions;
    use crate::record::{Level, Role};

    const BLOCKS: [u64; 3] = [512, 65536, 1 << 20];

    /// Runs of 64 KiB and 1 MiB at 80 and 100 MB/s, and one of 512 bytes that was stopped.
    fn judged(blocks: &[u64], below: Option<f64>) -> Judgement {
        let levels = blocks.iter().map(|&block| Level::Number(block)).collect();
        let name = "block_bytes".to_owned();
        let factor = Factor { name, levels, role: Role::Setting, present: None };
        let mut runs = Vec::new();
        for repeat in 1..=5 {
            for (block, rate) in [(65536, 80e6), (1 << 20, 100e6)] {
                if blocks.contains(&block) {
                    runs.push(RunRecord {
                        cell: [("block_bytes".to_owned(), Level::Number(block))].into(),
                        repeat,
                        bytes: rate as u64,
                        seconds: 1.0 + 0.001 * (repeat % 3) as f64,
                        ..RunRecord::default()
                    });
                }
            }
        }
        runs.push(RunRecord {
            cell: [("block_bytes".to_owned(), Level::Number(512))].into(),
            repeat: 1,
            error: Some("stopped".to_owned()),
            cut_after_seconds: Some(30.0),
            slower_than_bytes_per_second: below,
            ..RunRecord::default()
        });
        judge(&[factor], &runs, &JudgementOptions::default())
    }

    #[track_caller]
    fn check(judgement: &Judgement, subject: Subject, verdict: RateVerdict, expected: &str) {
        let own = |one: &&Sentence| one.finding.rule == rules::BOUND.id;
        let told: Vec<&Sentence> = judgement.sentences.iter().filter(own).collect();
        let [told] = told[..] else { panic!("{:#?}", judgement.sentences) };
        assert!(told.text.contains(expected), "{}", told.text);
        assert_eq!((told.subject, told.verdict), (subject, Some(verdict)));
        // It has one sentence, and is never recommended.
        let is_failure = |one: &Sentence| one.finding.rule == rules::FAILED_RUNS.id;
        assert!(!judgement.sentences.iter().any(is_failure), "{:#?}", judgement.sentences);
        let least = Level::Number(512);
        for found in &judgement.recommended {
            assert_ne!(judgement.cells[found.cell].cell["block_bytes"], least);
        }
    }

    #[test]
    fn a_bound_loses_against_what_is_faster_and_says_nothing_of_the_rest() {
        let (differs, open) = (RateVerdict::Differs, RateVerdict::NotSettled);
        let lost = judged(&BLOCKS, Some(2e6));
        check(&lost, Subject::Finding, differs, "block size 512 B: slower than 2.00 MB/s");
        check(&lost, Subject::Finding, differs, ": block size 1 MiB (");
        let near = judged(&BLOCKS, Some(300e6));
        check(&near, Subject::Doubt, open, "too early to compare it with block size 1");
        check(&judged(&BLOCKS, None), Subject::Doubt, open, "its rate is unknown");
        // No other sentence recommends the only combination with a result.
        let alone = judged(&BLOCKS[..2], Some(2e6));
        check(&alone, Subject::Set, differs, "block size 64 KiB (");
        check(
            &judged(&BLOCKS[..1], Some(2e6)),
            Subject::Doubt,
            open,
            "no run with the same load completed",
        );
    }

    /// If the bytes of a run are unknown, the bound is a time.
    #[test]
    fn a_run_that_took_too_long_loses_against_one_that_ended() {
        let level = |name: &str| Level::Text(name.to_owned());
        let cell = |name: &str| [("command".to_owned(), level(name))].into();
        let run = |name: &str, repeat: u64, seconds: f64| RunRecord {
            cell: cell(name),
            repeat,
            value: Value::Time,
            seconds,
            ..RunRecord::default()
        };
        let mut runs: Vec<RunRecord> =
            (1..=5).map(|repeat| run("quick", repeat, 1.0 + 0.01 * repeat as f64)).collect();
        runs.push(RunRecord {
            error: Some("stopped".to_owned()),
            cut_after_seconds: Some(30.0),
            longer_than_seconds: Some(30.0),
            ..run("endless", 1, 0.0)
        });
        let levels = vec![level("quick"), level("endless")];
        let factor =
            Factor { name: "command".to_owned(), levels, role: Role::Setting, present: None };
        let judgement = judge(
            &[factor],
            &runs,
            &JudgementOptions { value: Value::Time, ..JudgementOptions::default() },
        );
        let own = |one: &&Sentence| one.finding.rule == rules::BOUND.id;
        let told = judgement.sentences.iter().find(own).expect("the bound is told");
        let text = "times as fast: command endless: longer than 30.0 s, when it was stopped";
        assert!(told.text.contains(text), "{}", told.text);
        assert_eq!(told.verdict, Some(RateVerdict::Differs));
        let bound = told.finding.numbers.iter().find(|number| number.name == "longer_than");
        assert_eq!(bound.map(|number| (number.value, number.unit)), Some((30.0, Unit::Seconds)));
    }
}
