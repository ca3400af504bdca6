//! Experiments of a hundred thousand runs: judging, comparing and planning. When the work grew with
//! the cube of the repeats, none of these ended within minutes, or fitted into memory.

use experiment::compare::compare;
use experiment::judgement::{Judgement, JudgementOptions, judge};
use experiment::power::Noise;
use experiment::record::{Experiment, FORMAT, Factor, Header, Level, RunRecord, Value};
use statistics::random::Random;

/// An experiment with this many combinations and repeats; each combination is faster than the one
/// before by `step`.
fn experiment(cells: u64, repeats: u64, step: f64, seed: u64) -> Experiment {
    let factor = Factor::new("depth", (1..=cells).map(Level::Number).collect());
    let mut random = Random::new(seed);
    let mut runs = Vec::new();
    for repeat in 1..=repeats {
        let shift = 0.05 * random.normal();
        for cell in 1..=cells {
            let log = shift + 0.01 * random.normal() + step * cell as f64;
            runs.push(RunRecord {
                cell: [("depth".to_owned(), Level::Number(cell))].into(),
                repeat,
                order: runs.len() as u64 + 1,
                started_unix_seconds: 1_000_000 + 2 * runs.len() as u64,
                bytes: (1e9 * log.exp()) as u64,
                seconds: 2.0,
                ..RunRecord::default()
            });
        }
    }
    let header = Header {
        format: FORMAT,
        kind: "disk".into(),
        title: "large".into(),
        value: Value::Rate,
        factors: vec![factor],
        plan: serde_json::Value::Null,
        seed,
        started_unix_seconds: 1_000_000,
    };
    Experiment { header, runs, torn_bytes: 0 }
}

fn judged(experiment: &Experiment) -> Judgement {
    let judgement =
        judge(&experiment.header.factors, &experiment.runs, &JudgementOptions::default());
    let text = report::experiments::text(experiment, &judgement, report::table::Style::PLAIN);
    assert!(!text.is_empty());
    judgement
}

#[test]
fn two_combinations_with_fifty_thousand_repeats() {
    let large = experiment(2, 50_000, 0.1, 1);
    let gain = judged(&large).recommended[0].gain;
    assert!((gain - 0.1f64.exp()).abs() < 0.001, "{gain}");
    let noise = Noise::of(&large.runs).unwrap();
    assert!((noise.scatter / 0.01 - 1.0).abs() < 0.05, "{noise:?}");
}

#[test]
fn fifty_thousand_combinations_with_two_repeats_of_which_some_are_missing() {
    let mut large = experiment(50_000, 2, 0.0, 2);
    large.runs.retain(|run| !(run.repeat == 2 && run.order % 7919 == 0));
    assert_eq!(judged(&large).cells.len(), 50_000);
}

#[test]
fn a_hundred_thousand_levels() {
    assert_eq!(judged(&experiment(100_000, 1, 0.0, 3)).cells.len(), 100_000);
}

#[test]
fn as_many_combinations_as_repeats_of_which_some_are_missing() {
    let mut large = experiment(316, 316, 0.0001, 4);
    let mut random = Random::new(9);
    large.runs.retain(|_| random.below(50) != 0);
    assert_eq!(judged(&large).cells.len(), 316);
}

#[test]
fn two_large_experiments_side_by_side() {
    for (cells, repeats) in [(2, 25_000), (50_000, 1), (25_000, 2)] {
        let (a, b) = (experiment(cells, repeats, 0.0, 5), experiment(cells, repeats, 0.0, 6));
        let found = compare(&a, &b, &JudgementOptions::default());
        assert_eq!(found.pairs.len() as u64, cells);
    }
}
