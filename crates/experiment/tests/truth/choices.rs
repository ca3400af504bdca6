//! Recommendations: the gain of the best of many, and the knee.

use experiment::judgement::{Sentence, Subject};
use experiment::record::{Cell, Level};

use crate::world::{
    Table, World, block_sizes, chance, doublings, experiments, of_row, percent, quiet, setting,
    words,
};

const REPEATS: [u64; 3] = [3, 5, 10];

/// Eight equal settings, or one of eight that is a tenth faster: the reported gain.
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
            let what = format!("one of eight {effect:.1} times as fast, n = {repeats}");
            let columns = ["gain told by true, %", "its interval holds, %"];
            of_row(5, &what, &columns, &[100.0 * ratio, held]);
            assert!((least..1.03).contains(&ratio), "{effect} {repeats}: {ratio}");
            assert!(held >= 95.0 - chance(5.0, count), "{effect} {repeats}: {held}");
        }
    }
}

/// Six levels; the fourth is as fast as all after it.
#[test]
fn the_knee_is_found_more_often_with_more_repeats() {
    let count = experiments(50);
    let mut table = Table::new("the right knee, %", &["n = 3", "n = 5", "n = 10", "n = 20"]).of(6);
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

/// Equal settings on several loads: none of them is recommended for all loads.
#[test]
fn one_setting_for_all_loads_is_none_of_luck() {
    let count = experiments(60);
    let title = "equal settings on three loads: another one is told to be set for all, %";
    let mut table = Table::new(title, &["n = 1", "n = 3", "n = 5"]).of(5);
    let told = [1, 3, 5].map(|repeats| {
        let factors = vec![words("data", &["a", "b", "c"]), setting("readers", 4)];
        let world = World { noise: &|_| 0.05, ..quiet(factors, repeats) };
        percent(count, |seed| {
            let judgement = world.judged(seed);
            let sets_another = |one: &Sentence| {
                one.finding.rule == "experiment.one-for-all"
                    && one.subject == Subject::Set
                    && !one.text.contains("readers 1 ")
                    && !one.text.contains("readers 1:")
                    && !one.text.contains("readers 1;")
            };
            judgement.sentences.iter().any(sets_another)
        })
    });
    table.row("noise 5 %", &told, 0.0..=5.0 + chance(5.0, count));
    table.check();
}

/// A sentence on a gain is consistent: its interval excludes 1, and its rates have that ratio,
/// within the digits of both.
#[test]
fn a_gain_agrees_with_itself() {
    let title = "two block sizes, one 20 % faster: a gain is told";
    gain_agrees(title, &|cell| 1.0 + 0.2 * f64::from(doublings(cell, "block_bytes", 65536)));
    let title = "two block sizes, one 200 times as fast: a gain is told";
    gain_agrees(title, &|cell| 1.0 + 199.0 * f64::from(doublings(cell, "block_bytes", 65536)));
}

fn gain_agrees(title: &str, times: &dyn Fn(&Cell) -> f64) {
    let count = experiments(60);
    let mut table = Table::new(title, &["n = 3", "n = 5", "n = 10"]).of(13);
    let world = |repeats| World {
        times,
        noise: &|_| 0.08,
        between_repeats: 0.1,
        fails: &|cell, repeat| repeat == 2 && doublings(cell, "block_bytes", 65536) == 0,
        ..quiet(vec![block_sizes(2)], repeats)
    };
    let gains = |repeats: u64, counts: &dyn Fn(&Sentence) -> bool| {
        percent(count, |seed| {
            let judgement = world(repeats).judged(seed);
            let mut gains = judgement.sentences.iter().filter(|one| one.subject == Subject::Gain);
            gains.any(|one| one.finding.rule == "experiment.gain" && counts(one))
        })
    };
    let number = |one: &Sentence, name: &str| {
        let mut numbers = one.finding.numbers.iter();
        numbers.find(|number| number.name == name).map_or(0.0, |number| number.value)
    };
    let row = |counts: &dyn Fn(&Sentence) -> bool| REPEATS.map(|repeats| gains(repeats, counts));
    let open = row(&|one| number(one, "low") <= 1.0);
    table.row("that is not shown, %", &open, 0.0..=0.0);
    let odd = row(&|one| {
        // `1.2 times the rate of block size 64 KiB (1.1 to 1.3): 11900 MB/s against 9900 MB/s`
        let rates = one.text.split_once("): ").unwrap().1.split_once(" against ").unwrap();
        let rate = |text: &str| text.split(' ').next().unwrap().parse::<f64>().unwrap();
        let told = rate(&one.text);
        // Each of the three is rounded by at most half of the last digit, which is below the half
        // width; rates have at least three digits.
        let half = (number(one, "high") - number(one, "low")) / 2.0 / told;
        (rate(rates.0) / rate(rates.1) / told - 1.0).abs() > 1.5 * half.max(0.005)
    });
    table.row("beside rates of another ratio, %", &odd, 0.0..=0.0);
    table.check();
}
