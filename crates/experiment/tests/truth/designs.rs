//! What the design of an experiment adds to a list of rates: repeats, media, conditions, and the
//! order of the runs.

use experiment::judgement::{Effect, RateVerdict};
use experiment::record::{Cell, RunRecord};
use statistics::blocks::{Fit, Observation};
use statistics::random::Random;

use crate::world::{
    Table, World, block_sizes, chance, doublings, experiments, is, of_row, percent, quiet, says,
    words,
};

const REPEATS: [u64; 3] = [3, 5, 10];

/// Scatter of a cell in three machines: all alike, one cell that scatters five times as much, and
/// every cell in a way of its own.
fn scatter(machine: usize, cell: usize, random: &mut Random) -> f64 {
    match machine {
        0 => 0.02,
        1 => 0.02 * if cell == 0 { 5.0 } else { 1.0 },
        _ => 0.02 * (0.5 * random.normal()).exp(),
    }
}

/// Intervals of the differences of two cells, by cells and blocks with moderated scatter.
#[test]
fn intervals_of_differences_hold_the_truth() {
    let count = experiments(150);
    let mut table = Table::new(
        "differences of cells in blocks, 95 % intervals that hold the truth, %",
        &["n = 3", "n = 5", "n = 10"],
    );
    for cells in [2usize, 6, 24] {
        for (machine, name) in ["alike", "one by five", "all unlike"].iter().enumerate() {
            let held = REPEATS.map(|repeats| {
                let (mut held, mut all) = (0.0, 0.0);
                for seed in 0..count {
                    let mut random = Random::new(77_003 * seed + cells as u64);
                    let scatters: Vec<f64> =
                        (0..cells).map(|cell| scatter(machine, cell, &mut random)).collect();
                    let mut runs = Vec::new();
                    for block in 0..repeats as usize {
                        let shift = 0.1 * random.normal();
                        for (cell, scatter) in scatters.iter().enumerate() {
                            let log = shift + scatter * random.normal();
                            runs.push(Observation { cell, block, log });
                        }
                    }
                    let fit = Fit::new(runs).unwrap();
                    for other in 1..cells {
                        let found = fit.contrast(&[(1.0, other), (-1.0, other - 1)]).unwrap();
                        let holds = found.interval(0.95).unwrap().contains(1.0);
                        (held, all) = (held + f64::from(u8::from(holds)), all + 1.0);
                    }
                }
                100.0 * held / all
            });
            let least = 93.0 - chance(7.0, count);
            table.row(&format!("{cells} cells, {name}"), &held, least..=100.0);
        }
    }
    table.check();
}

/// Six block sizes, one of them 3 % slower, in repeats that differ by a tenth.
#[test]
fn repeats_that_differ_do_not_hide_a_difference() {
    let count = experiments(100);
    println!("\neffect of -3 %, noise 1 %, repeats differ by 10 %");
    println!("{:<34}{:>10}{:>10}{:>10}", "", "differs %", "half %", "holds %");
    for repeats in REPEATS {
        let world = World {
            times: &|cell| if is(cell, "engine", "new") { 0.97 } else { 1.0 },
            noise: &|_| 0.01,
            between_repeats: 0.1,
            ..quiet(
                vec![words("data", &["a", "b", "c"]), words("engine", &["old", "new"])],
                repeats,
            )
        };
        let effect = |seed: u64| {
            let judgement = world.judged(seed);
            let mut effects = judgement.effects.into_iter();
            effects.find(|effect| effect.change.factor == "engine").unwrap()
        };
        let effects: Vec<Effect> = (0..count).map(effect).collect();
        let share = |counts: &dyn Fn(&Effect) -> bool| {
            100.0 * effects.iter().filter(|effect| counts(effect)).count() as f64 / count as f64
        };
        let differs = share(&|effect| effect.verdict == RateVerdict::Differs);
        let holds = share(&|effect| effect.interval.unwrap().contains(0.97));
        let halves = effects.iter().map(|effect| effect.interval.unwrap().relative_half_width());
        let half = 100.0 * halves.sum::<f64>() / count as f64;
        println!("n = {repeats:<30}{differs:>10.1}{half:>10.2}{holds:>10.1}");
        let columns = ["told to differ, %", "half width, %", "holds the truth, %"];
        of_row(3, &format!("effect of -3 %, n = {repeats}"), &columns, &[differs, half, holds]);
        assert!(differs >= 95.0 && half < 1.8, "{repeats}: {differs} {half}");
        assert!(holds >= 95.0 - chance(5.0, count), "{repeats}: {holds}");
    }
}

/// Two equal media, each loaded once in a repeat, with a scatter of its own.
#[test]
fn a_medium_is_known_from_one_number_for_each_repeat() {
    let count = experiments(60);
    let title = "two mediums without a difference, each put in once a repeat: told to differ, %";
    let mut table = Table::new(title, &["n = 3", "n = 5", "n = 10"]).of(4);
    for between_mediums in [0.0, 0.03] {
        let differs = REPEATS.map(|repeats| {
            let world = World {
                noise: &|_| 0.01,
                between_mediums,
                ..quiet(vec![words("medium", &["a", "b"]), block_sizes(4)], repeats)
            };
            percent(count, |seed| {
                let judgement = world.judged(seed);
                let mut effects = judgement.effects.iter();
                let effect = effects.find(|effect| effect.change.factor == "medium").unwrap();
                effect.verdict == RateVerdict::Differs
            })
        });
        let name = format!("mediums differ by {:.0} %", between_mediums * 100.0);
        table.row(&name, &differs, 0.0..=5.0 + chance(5.0, count));
    }
    table.check();
}

/// Large blocks lose 5 % and fail in the slow framing, and must not win because of that.
#[test]
fn a_setting_that_failed_in_the_slow_framing_does_not_win() {
    let count = experiments(60);
    let title = "5 % slower, fails in the slow framing: told to be faster, %";
    let mut table = Table::new(title, &["n = 3", "n = 5", "n = 10"]).of(2);
    let is_large = |cell: &Cell| doublings(cell, "block_bytes", 65536) == 1;
    let wins = REPEATS.map(|repeats| {
        let world = World {
            times: &|cell| {
                let framed = if is(cell, "framing", "tar") { 0.6 } else { 1.0 };
                framed * if is_large(cell) { 0.95 } else { 1.0 }
            },
            noise: &|_| 0.02,
            fails: &|cell, _| is_large(cell) && is(cell, "framing", "tar"),
            ..quiet(vec![words("framing", &["raw", "tar"]), block_sizes(2)], repeats)
        };
        percent(count, |seed| {
            let judgement = world.judged(seed);
            assert!(says(&judgement, "experiment.left-out"), "{:#?}", judgement.sentences);
            let pooled = judgement.pooled.unwrap().judgement;
            let found = &pooled.recommended[0];
            found.cell != found.baseline
        })
    });
    table.row("block size 128 KiB", &wins, 0.0..=5.0 + chance(5.0, count));
    table.check();
}

/// A machine that becomes slower is found, with a failed run or without.
#[test]
fn a_drift_is_told_and_none_is_not() {
    let count = experiments(60);
    let mut table =
        Table::new("drift over the experiment: told, %", &["n = 3", "n = 5", "n = 10"]).of(7);
    let none = 0.0..=1.0 + chance(1.0, count);
    let some = 98.0..=100.0;
    for (name, drift, between_repeats, fails, bounds) in [
        ("none", 0.0, 0.0, false, none.clone()),
        ("none, repeats differ by 10 %", 0.0, 0.1, false, 0.0..=4.0 + chance(4.0, count)),
        ("-30 %", -0.357, 0.0, false, some.clone()),
        ("-30 %, one run failed", -0.357, 0.0, true, some.clone()),
        ("-30 %, repeats differ by 2 %", -0.357, 0.02, false, 0.0..=100.0),
    ] {
        let told = REPEATS.map(|repeats| {
            let world = World {
                noise: &|_| 0.03,
                drift,
                between_repeats,
                fails: &|cell, repeat| {
                    fails && repeat == 2 && doublings(cell, "block_bytes", 65536) == 1
                },
                ..quiet(vec![block_sizes(6)], repeats)
            };
            percent(count, |seed| says(&world.judged(seed), "experiment.drift"))
        });
        table.row(name, &told, bounds);
    }
    table.check();
}

/// Six loads on which a setting has the same effect.
#[test]
fn effects_that_do_not_depend_on_a_load_are_not_told_to() {
    let count = experiments(100);
    let title = "what a setting brings, told to depend on six loads, %";
    let mut table = Table::new(title, &["n = 3", "n = 5", "n = 10"]).of(11);
    for (name, depends, bounds) in [
        ("the same with all", 1.0, 0.0..=5.0 + chance(5.0, count)),
        ("a tenth more with one", 1.1, 80.0..=100.0),
    ] {
        let told = REPEATS.map(|repeats| {
            let data = words("data", &["a", "b", "c", "d", "e", "f"]);
            let world = World {
                times: &|cell| match (is(cell, "engine", "new"), is(cell, "data", "c")) {
                    (true, true) => 1.1 * depends,
                    (true, false) => 1.1,
                    _ => 1.0,
                },
                noise: &|_| 0.02,
                ..quiet(vec![data, words("engine", &["old", "new"])], repeats)
            };
            percent(count, |seed| says(&world.judged(seed), "experiment.joint-effect"))
        });
        table.row(name, &told, bounds);
    }
    table.check();
}

/// Clean repeats of one cell, and repeats with one that is slower by a third.
#[test]
fn clean_repeats_are_no_outliers() {
    let count = experiments(150);
    let title = "cells of which a run is told to be unlike the others, %";
    let mut table = Table::new(title, &["n = 5", "n = 7", "n = 10", "n = 20"]).of(10);
    for (name, slow, bounds) in [
        ("clean", 1.0, 0.0..=1.0 + chance(1.0, count)),
        ("one run slower by a third", 0.67, 0.0..=100.0),
    ] {
        let told = [5, 7, 10, 20].map(|repeats| {
            let world = World { noise: &|_| 0.02, ..quiet(vec![block_sizes(2)], repeats) };
            percent(count, |seed| {
                let mut runs: Vec<RunRecord> = world.runs(seed);
                runs.retain(|run| doublings(&run.cell, "block_bytes", 65536) == 0);
                runs[2].bytes = (runs[2].bytes as f64 * slow) as u64;
                let judgement =
                    experiment::judgement::judge(&world.factors, &runs, &Default::default());
                says(&judgement, "experiment.outliers")
            })
        });
        table.row(name, &told, bounds);
    }
    table.check();
}
