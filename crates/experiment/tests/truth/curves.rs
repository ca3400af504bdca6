//! The curve through a sweep: which of its numbers are reported, and whether they are true.

use experiment::judgement::{Judgement, JudgementOptions, Sentence, Subject, judge};
use experiment::record::Cell;
use statistics::curve::PhysicalLimit;

use crate::world::{Table, World, block_sizes, chance, experiments, percent, quiet};

const REPEATS: [u64; 3] = [3, 5, 10];

/// Rate of a block size in MB/s: a fixed time in microseconds, a rate after it, and a limit.
fn rate(cell: &Cell, fixed_us: f64, behind: f64, limit: f64) -> f64 {
    let bytes = match cell.get("block_bytes") {
        Some(experiment::record::Level::Number(bytes)) => *bytes as f64,
        _ => 1.0,
    };
    (1.0 / (1.0 / behind + fixed_us / bytes)).min(limit)
}

fn curve(judgement: &Judgement) -> Option<&Sentence> {
    judgement.sentences.iter().find(|one| one.finding.rule == "experiment.curve")
}

/// A number of a finding.
fn number(one: &Sentence, name: &str) -> Option<f64> {
    one.finding.numbers.iter().find(|number| number.name == name).map(|number| number.value)
}

/// The reported fixed time in microseconds: its interval, or its bound.
fn fixed_time(one: &Sentence) -> Option<(f64, f64)> {
    let low = if one.text.contains("less than") { 0.0 } else { number(one, "fixed_low")? };
    Some((1e6 * low, 1e6 * number(one, "fixed_high")?))
}

/// A fixed time as a value on data that are flat; a plateau on a curve that has none.
#[test]
fn what_is_not_in_the_data_is_not_told() {
    let count = experiments(40);
    let title = "told of a curve, %";
    let mut table = Table::new(title, &["n = 3", "n = 5", "n = 10"]).of(9);
    let most = 0.0..=5.0 + chance(5.0, count);
    for noise in [0.01, 0.03] {
        let world = |repeats, fixed_us| World {
            times: Box::leak(Box::new(move |cell: &Cell| rate(cell, fixed_us, 300.0, 1e9))),
            noise: Box::leak(Box::new(move |_: &Cell| noise)),
            ..quiet(vec![block_sizes(6)], repeats)
        };
        let value = REPEATS.map(|repeats| {
            percent(count, |seed| {
                let judgement = world(repeats, 0.0).judged(seed);
                // A value, or a range that excludes zero.
                curve(&judgement).is_some_and(|one| {
                    fixed_time(one).is_none_or(|(low, _)| low > 0.0)
                        && !one.text.contains("at every level")
                })
            })
        });
        table.row(
            &format!("flat, noise {:.0} %: a fixed time", 100.0 * noise),
            &value,
            most.clone(),
        );
        let plateau = REPEATS.map(|repeats| {
            percent(count, |seed| {
                let judgement = world(repeats, 300.0).judged(seed);
                curve(&judgement).is_some_and(|one| one.text.contains("never faster than"))
            })
        });
        let name = format!("no plateau, noise {:.0} %: one", 100.0 * noise);
        table.row(&name, &plateau, most.clone());
    }
    table.check();
}

/// Reported fixed times, as values, ranges or bounds, contain the true value.
#[test]
fn what_is_told_of_a_curve_holds_the_truth() {
    let count = experiments(40);
    let title = "the fixed time of a request that is told holds the truth, %";
    let mut table = Table::new(title, &["n = 3", "n = 5", "n = 10"]).of(9);
    for (name, fixed_us, behind, limit) in [
        ("300 us, then 300 MB/s", 300.0, 300.0, 1e9),
        ("150 us, then 320, 250 at most", 150.0, 320.0, 250.0),
        ("one level rises (400 us, 120 MB/s)", 400.0, 1000.0, 110.0),
    ] {
        for (noise, between_repeats) in [(0.01, 0.0), (0.02, 0.05)] {
            let held = REPEATS.map(|repeats| {
                let world = World {
                    times: &|cell| rate(cell, fixed_us, behind, limit),
                    noise: &|_| noise,
                    between_repeats,
                    ..quiet(vec![block_sizes(6)], repeats)
                };
                let mut told = 0.0f64;
                let mut held = 0.0;
                for seed in 0..count {
                    // 1e8 bytes in a second are 1 of these MB/s.
                    let judgement = world.judged(seed);
                    let Some(one) = curve(&judgement) else { continue };
                    told += 1.0;
                    let range = fixed_time(one).map(|(low, high)| (100.0 * low, 100.0 * high));
                    held += f64::from(u8::from(
                        range.is_some_and(|(low, high)| (low..=high).contains(&fixed_us)),
                    ));
                }
                assert!(told > 0.0, "{name}: nothing is told");
                100.0 * held / told
            });
            let name = format!("{name}, {:.0} %", 100.0 * noise);
            table.row(&name, &held, 90.0 - chance(10.0, count)..=100.0);
        }
    }
    table.check();
}

/// A rate after the fixed time that exceeds what the drive can do is not reported, and the plateau
/// agrees with the level to set.
#[test]
fn a_curve_and_a_choice_speak_with_one_voice() {
    let count = experiments(60);
    let limit = PhysicalLimit { name: "native rate".into(), bytes_per_second: 110e8 };
    let options = JudgementOptions { limits: vec![limit], ..JudgementOptions::default() };
    let mut table = Table::new("sentences at odds, %", &["n = 1", "n = 3", "n = 5"]).of(15);
    let share = |repeats: u64, at_odds: &dyn Fn(&Judgement) -> bool| {
        let world = World {
            times: &|cell| rate(cell, 400.0, 350.0, 110.0),
            noise: &|_| 0.03,
            ..quiet(vec![block_sizes(6)], repeats)
        };
        percent(count, |seed| at_odds(&judge(&world.factors, &world.runs(seed), &options)))
    };
    let behind = [1, 3, 5].map(|repeats| {
        share(repeats, &|judgement| {
            // 1e8 bytes in a second are 1 of these MB/s.
            let told = |one| number(one, "rate_high").is_some_and(|rate| rate > 120.0 * 1e8);
            curve(judgement).is_some_and(told)
        })
    });
    table.row("faster than the drive behind it", &behind, 0.0..=0.0);
    let both = [1, 3, 5].map(|repeats| {
        share(repeats, &|judgement| {
            let any = |what: &str| judgement.sentences.iter().any(|one| one.text.contains(what));
            any("never faster than") && any("the rate still rises")
        })
    });
    table.row("a plateau, and still rising", &both, 0.0..=0.0);
    let finding = [1, 3, 5].map(|repeats| {
        share(repeats, &|judgement| {
            let of_one = |one: &Sentence| one.subject < Subject::Seen;
            repeats == 1 && judgement.sentences.iter().any(of_one)
        })
    });
    table.row("one run each, and set or found", &finding, 0.0..=0.0);
    let gain = [1, 3, 5].map(|repeats| {
        share(repeats, &|judgement| {
            let is_open = |one: &Sentence| {
                one.subject == Subject::Gain && judgement.recommended[0].gain_interval.is_none()
            };
            repeats == 1 && judgement.sentences.iter().any(is_open)
        })
    });
    table.row("a gain that is not shown", &gain, 0.0..=0.0);
    table.check();
}
