//! Warnings on runs so short that their rate means almost nothing.

use crate::judgement::Judgement;
use crate::judgement::rules::SHORT_RUNS;

/// A sentence for each side that has such runs.
pub fn runs(sides: [(&str, &Judgement); 2]) -> Vec<String> {
    let of = |(side, judged): (&str, &Judgement)| {
        let own = judged.sentences.iter().filter(|one| one.finding.rule == SHORT_RUNS.id);
        own.map(|one| format!("in {side} {}", one.text)).collect::<Vec<String>>()
    };
    sides.into_iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judgement::{JudgementOptions, judge};
    use crate::record::{Factor, Level, RunRecord};

    /// A file that the page cache had: 4 GB/s, from runs of a few milliseconds.
    #[test]
    fn a_rate_of_next_to_nothing_is_told_to_be_one() {
        let judged = |seconds: f64| {
            let run = |repeat: u64| RunRecord {
                repeat,
                bytes: 4 << 20,
                seconds: seconds * (1.0 + 0.01 * repeat as f64),
                started_unix_seconds: 1000 + repeat,
                ..RunRecord::default()
            };
            let runs: Vec<RunRecord> = (1..=5).map(run).collect();
            let level = Factor::new("depth", vec![Level::Number(1)]);
            judge(&[level], &runs, &JudgementOptions::default())
        };
        let (long, short) = (judged(2.0), judged(0.001));
        assert_eq!(runs([("A", &long), ("B", &long)]), Vec::<String>::new());
        let told = runs([("A", &long), ("B", &short)]);
        assert!(
            told.len() == 1 && told[0].starts_with("in B the runs are short: a typical one took 1"),
            "{told:?}"
        );
    }
}
