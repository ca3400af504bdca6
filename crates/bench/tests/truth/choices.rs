//! What is recommended: the gain of the best of many, and the knee.

use bench::record::{Cell, Level};

use crate::world::{
    Table, World, block_sizes, chance, doublings, experiments, percent, quiet, setting,
};

const REPEATS: [u64; 3] = [3, 5, 10];

/// Eight settings that are the same, or one of which is a tenth faster: what is told of the gain.
#[test]
fn the_gain_of_the_best_of_many_is_no_gain_of_luck() {
    let count = experiments(60);
    let is_fast = |cell: &Cell| cell["readers"] == Level::Number(5);
    for (effect, least) in [(1.0, 0.99), (1.1, 0.98)] {
        println!("\none of eight settings {effect:.2} times as fast, noise 5 %");
        println!("{:<10}{:>16}{:>16}{:>14}", "repeats", "told by true", "interval holds", "told");
        for repeats in REPEATS {
            let world = World {
                times: &|cell| if is_fast(cell) { effect } else { 1.0 },
                noise: &|_| 0.05,
                ..quiet(vec![setting("readers", 8)], repeats)
            };
            let (mut ratios, mut held, mut told) = (0.0, 0.0, 0.0);
            for seed in 0..count {
                let judgement = world.judged(seed);
                let found = &judgement.recommended[0];
                let truth = if is_fast(&judgement.cells[found.cell].cell) { effect } else { 1.0 };
                ratios += found.gain / truth;
                held += f64::from(u8::from(
                    found.gain_interval.is_none_or(|interval| interval.contains(truth)),
                ));
                told += f64::from(u8::from(found.cell != found.baseline));
            }
            let (ratio, held) = (ratios / count as f64, 100.0 * held / count as f64);
            let told = 100.0 * told / count as f64;
            println!("{repeats:<10}{ratio:>16.3}{held:>14.1} %{told:>12.1} %");
            assert!((least..1.03).contains(&ratio), "{effect} {repeats}: {ratio}");
            assert!(held >= 95.0 - chance(5.0, count), "{effect} {repeats}: {held}");
        }
    }
}

/// Six levels, of which the fourth is as fast as all behind it.
#[test]
fn the_knee_is_found_more_often_with_more_repeats() {
    let count = experiments(50);
    let mut table = Table::new("the right knee, %", &["n = 3", "n = 5", "n = 10", "n = 20"]);
    for (noise, drift, least) in [(0.01, 0.0, 90.0), (0.03, 0.0, 76.0), (0.03, -0.3, 70.0)] {
        let right = [3, 5, 10, 20].map(|repeats| {
            let world = World {
                times: &|cell| {
                    let place = doublings(cell, "block_bytes", 65536) as usize;
                    [0.4, 0.65, 0.9, 1.0, 1.0, 1.0][place]
                },
                noise: &|_| noise,
                drift,
                ..quiet(vec![block_sizes(6)], repeats)
            };
            percent(count, |seed| {
                let judgement = world.judged(seed);
                judgement.sweeps[0].knee == 3 && judgement.recommended[0].cell == 3
            })
        });
        let name = format!("noise {:.0} %, drift {:.0} %", noise * 100.0, drift * 100.0);
        assert!(right[3] >= right[0], "{name}: {right:?}");
        table.row(&name, &right, least - chance(24.0, count)..=100.0);
    }
    table.check();
}
