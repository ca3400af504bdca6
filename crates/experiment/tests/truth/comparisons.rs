//! Comparisons of two experiments: reported differences, and experiments that took turns.

use experiment::compare::{Comparison, compare};
use experiment::judgement::{JudgementOptions, RateVerdict};
use experiment::record::{Experiment, FORMAT, Factor, Header, Level, RunRecord};

use crate::world::{Table, World, block_sizes, chance, experiments, of_row, percent, quiet, words};

const REPEATS: [u64; 3] = [3, 5, 10];

fn experiment(factors: &[Factor], runs: Vec<RunRecord>) -> Experiment {
    let header = Header {
        format: FORMAT,
        kind: "read".into(),
        title: String::new(),
        value: experiment::record::Value::Rate,
        factors: factors.to_vec(),
        plan: serde_json::Value::Null,
        seed: 1,
        started_unix_seconds: 1,
    };
    Experiment { header, runs, torn_bytes: 0 }
}

/// Six cells with a scatter of 1 %; all runs `times` as fast, and begun from `begins` on.
fn session(seed: u64, repeats: u64, times: f64, begins: impl Fn(u64) -> u64) -> Experiment {
    let factors = vec![block_sizes(6)];
    let world = World { noise: &|_| 0.01, times: &|_| times, ..quiet(factors.clone(), repeats) };
    let mut runs = world.runs(seed);
    runs.iter_mut().for_each(|run| run.started_unix_seconds = begins(run.repeat) + run.order % 6);
    experiment(&factors, runs)
}

fn says(comparison: &Comparison, words: &str) -> bool {
    comparison.sentences.iter().any(|sentence| sentence.contains(words))
}

/// Two sessions of one machine; one is 3 % faster for an unknown reason.
#[test]
fn a_session_that_is_faster_is_told_to_be_one() {
    let count = experiments(40);
    let title = "sessions of one machine, one 3 % faster, %";
    let mut table = Table::new(title, &["n = 3", "n = 5", "n = 10"]).of(8);
    let both = |repeats, counts: &dyn Fn(&Comparison) -> bool| {
        percent(count, |seed| {
            let a = session(2 * seed, repeats, 1.0, |repeat| 1000 + 100 * repeat);
            let b = session(2 * seed + 1, repeats, 1.03, |repeat| 9000 + 100 * repeat);
            counts(&compare(&a, &b, &JudgementOptions::default()))
        })
    };
    let differs =
        |one: &Comparison| one.pairs.iter().any(|pair| pair.verdict == RateVerdict::Differs);
    let row = |counts: &dyn Fn(&Comparison) -> bool| REPEATS.map(|repeats| both(repeats, counts));
    table.row("a cell is told to differ", &row(&differs), 0.0..=100.0);
    let silent = |one: &Comparison| !says(one, "A and B did not take turns");
    table.row("and not when it was measured", &row(&silent), 0.0..=0.0);
    let unsaid = |one: &Comparison| !says(one, "by about the same factor");
    table.row("nor that all cells differ alike", &row(&unsaid), 0.0..=5.0 + chance(5.0, count));
    table.check();
}

/// A machine that loses 2 % with every half of a repeat, and two experiments in turns.
#[test]
fn who_is_always_second_has_not_taken_turns() {
    let count = experiments(40);
    let title = "equal experiments in turns on a machine that drifts: told to differ, %";
    let mut table = Table::new(title, &["n = 3", "n = 5", "n = 10"]).of(8);
    for (name, is_fair) in [("A B A B", false), ("A B B A", true)] {
        let told = REPEATS.map(|repeats| {
            percent(count, |seed| {
                let first = |repeat: u64, is_a: bool| (is_fair && repeat.is_multiple_of(2)) != is_a;
                let begins =
                    |repeat, is_a| 1000 + 100 * repeat + 50 * u64::from(!first(repeat, is_a));
                let of = |seed, is_a| {
                    let mut one = session(seed, repeats, 1.0, |repeat| begins(repeat, is_a));
                    for run in &mut one.runs {
                        let half = 2 * run.repeat + u64::from(!first(run.repeat, is_a));
                        run.bytes = (run.bytes as f64 * 0.98f64.powi(half as i32)) as u64;
                    }
                    one
                };
                let found = compare(
                    &of(2 * seed, true),
                    &of(2 * seed + 1, false),
                    &JudgementOptions::default(),
                );
                assert_eq!(found.in_turns, is_fair, "{name}");
                found.in_turns
                    && found.pairs.iter().any(|pair| pair.verdict == RateVerdict::Differs)
            })
        });
        table.row(name, &told, 0.0..=5.0 + chance(5.0, count));
    }
    table.check();
}

/// A setting that both varied is not a difference between them; a constant that differs is compared
/// across.
#[test]
fn what_was_varied_is_a_factor_and_a_constant_is_compared_across() {
    let with = |medium: &str, readings: &[&str], cache: &str| {
        let factors = [block_sizes(3), words("medium", &[medium])];
        let world = World { noise: &|_| 0.01, ..quiet(factors.to_vec(), 3) };
        let mut runs = world.runs(5);
        for run in &mut runs {
            let reading = readings[run.order as usize % readings.len()];
            run.environment.insert("queue read_ahead_kb".into(), reading.into());
            run.environment.insert("cache".into(), cache.into());
        }
        experiment(&factors, runs)
    };
    let columns = ["cells that are compared across it"];
    let (a, b) = (with("LTO-3", &["128", "4096"], "on"), with("LTO-4", &["4096", "512"], "off"));
    let found = compare(&a, &b, &JudgementOptions::default());
    assert_eq!(found.pairs.len(), 3, "the medium keeps nothing apart");
    of_row(17, "one constant differs, of 3 cells", &columns, &[found.pairs.len() as f64]);
    assert!(says(&found, "compared across medium LTO-3 in A and LTO-4 in B"), "{found:#?}");
    let named: Vec<&str> = found.environment.iter().map(|(name, ..)| &name[..]).collect();
    assert_eq!(named, ["cache"], "the read-ahead was varied by both");
    let varied = found.environment.iter().filter(|(name, ..)| name.contains("read_ahead")).count();
    of_row(17, "both varied a setting", &["told as a difference"], &[varied as f64]);
    let held = compare(&a, &with("LTO-3", &["512"], "on"), &JudgementOptions::default());
    let expected = ("queue read_ahead_kb".to_owned(), "128, 4096".to_owned(), "512".to_owned());
    assert_eq!(held.environment, [expected]);
    assert!(held.sentences.iter().all(|sentence| !sentence.contains("across")));
    assert!(matches!(a.runs[0].cell["medium"], Level::Text(_)));
}

/// A difference of the size that the sentence says four of five comparisons find.
#[test]
fn what_would_be_seen_is_seen() {
    let count = experiments(40);
    let title = "a difference as large as is told to be seen: found, %";
    let mut table = Table::new(title, &["n = 3", "n = 5", "n = 10"]).of(8);
    let found = REPEATS.map(|repeats| {
        let begins = |at: u64| move |repeat: u64| at + 100 * repeat;
        let told = |seed: u64| -> Option<f64> {
            let a = session(2 * seed, repeats, 1.0, begins(1000));
            let b = session(2 * seed + 1, repeats, 1.0, begins(9000));
            let all = compare(&a, &b, &JudgementOptions::default()).sentences;
            let rest = all.iter().find_map(|one| one.split_once("a difference of "))?.1;
            rest.split(' ').next()?.parse().ok()
        };
        let mut sizes: Vec<f64> = (0..count).filter_map(told).collect();
        sizes.sort_by(f64::total_cmp);
        let typical = 1.0 + sizes[sizes.len() / 2] / 100.0;
        percent(count, |seed| {
            let a = session(2 * seed, repeats, 1.0, begins(1000));
            let mut b = session(2 * seed + 1, repeats, 1.0, begins(9000));
            let cell = b.runs[0].cell.clone();
            for run in b.runs.iter_mut().filter(|run| run.cell == cell) {
                run.bytes = (run.bytes as f64 * typical) as u64;
            }
            let found = compare(&a, &b, &JudgementOptions::default());
            found.pairs.iter().any(|pair| pair.cell == cell && pair.verdict == RateVerdict::Differs)
        })
    });
    table.row("one of six, goal 80", &found, 80.0 - chance(20.0, count)..=100.0);
    table.check();
}
