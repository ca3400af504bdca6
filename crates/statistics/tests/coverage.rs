//! Tests the methods on simulated experiments whose truth is known: the share of intervals that
//! hold it, and the share of false alarms. `cargo test -p statistics --test coverage --
//! --nocapture` prints the table of `docs/design/statistics.md`.

#![expect(clippy::print_stdout, reason = "the table of the document")]

use statistics::bootstrap::{BootstrapOptions, bca, percentile};
use statistics::interval::{Interval, of_geometric_mean, of_mean, of_median};
use statistics::random::Random;
use statistics::stopping::Stopping;
use statistics::{mean, ratio};

const EXPERIMENTS: u64 = 6000;

fn log_normal(random: &mut Random, spread: f64) -> f64 {
    100.0 * (spread * random.normal()).exp()
}

/// Share of simulated experiments whose interval holds `truth`.
fn coverage(
    what: &str,
    truth: f64,
    experiments: u64,
    interval: impl Fn(&mut Random) -> Option<Interval>,
) -> f64 {
    let holds = |seed: &u64| {
        let mut random = Random::new(1_000_003 * seed + 17);
        interval(&mut random).is_some_and(|interval| interval.contains(truth))
    };
    let share = (0..experiments).filter(holds).count() as f64 / experiments as f64;
    println!("{what:<66} {:5.1} %", share * 100.0);
    share
}

fn check(what: &str, truth: f64, interval: impl Fn(&mut Random) -> Option<Interval>) {
    let share = coverage(what, truth, EXPERIMENTS, interval);
    assert!((0.93..=0.97).contains(&share), "{what}: {share}");
}

fn draws(count: usize, mut draw: impl FnMut() -> f64) -> Vec<f64> {
    (0..count).map(|_| draw()).collect()
}

#[test]
fn intervals_of_one_cell_cover_the_truth() {
    for n in [3, 5, 10] {
        check(&format!("t of the mean, normal, {n} runs"), 100.0, |random| {
            of_mean(&draws(n, || 100.0 + 5.0 * random.normal()), 0.95)
        });
        check(&format!("t of logarithms, log-normal (sigma 0.5), {n} runs"), 100.0, |random| {
            of_geometric_mean(&draws(n, || log_normal(random, 0.5)), 0.95)
        });
    }
    // Rates that are not log-normal: a long left tail, as of runs that are sometimes disturbed. The
    // time is disturbed for an exponential share: the mean logarithm is that of ln(1/(1+x/10)).
    let mut random = Random::new(4);
    let slowed = |random: &mut Random| 100.0 / (1.0 - 0.1 * (1.0 - random.unit()).ln());
    let logs: f64 = (0..4_000_000).map(|_| slowed(&mut random).ln()).sum::<f64>() / 4e6;
    // The limit of the method, and what to use there.
    let skewed = |random: &mut Random| draws(10, || slowed(random));
    let share = coverage(
        "t of logarithms, exponential disturbances (left tail), 10 runs",
        logs.exp(),
        EXPERIMENTS,
        |random| of_geometric_mean(&skewed(random), 0.95),
    );
    assert!((0.90..=0.95).contains(&share), "{share}");
    let median = 100.0 / (1.0 + 0.1 * 2f64.ln());
    check("median, exponential disturbances (left tail), 10 runs", median, |random| {
        of_median(&skewed(random), 0.95)
    });
}

#[test]
fn intervals_without_a_distribution_cover_the_truth() {
    for n in [8, 10, 20] {
        check(&format!("median, log-normal (sigma 0.5), {n} runs"), 100.0, |random| {
            of_median(&draws(n, || log_normal(random, 0.5)), 0.95)
        });
    }
    let options = BootstrapOptions { resamples: 1000, ..BootstrapOptions::default() };
    let mean = |sample: &[f64]| mean(sample).unwrap();
    let truth = 100.0 * (0.3f64 * 0.3 / 2.0).exp();
    let sample = |random: &mut Random| draws(40, || log_normal(random, 0.3));
    // The bootstrap needs tens of runs, so nothing here relies on it below that.
    let share = coverage("BCa of the mean, log-normal (0.3), 40 runs", truth, 2000, |random| {
        bca(&sample(random), mean, options)
    });
    assert!((0.92..=0.97).contains(&share), "{share}");
    let share = coverage("percentile of the mean, the same", truth, 2000, |random| {
        percentile(&sample(random), mean, options)
    });
    assert!((0.91..=0.97).contains(&share), "{share}");
}

/// Two cells in `blocks` randomised blocks while the system loses a third of its speed, in a line
/// or as a random walk; the second one is 1.1 times as fast.
fn drifting(random: &mut Random, blocks: usize, walk: f64) -> Vec<(f64, f64)> {
    let mut level = 0.0f64;
    let steps = 2 * blocks;
    let mut run = |random: &mut Random, gain: f64| {
        level -= 0.4 / steps as f64;
        level += walk * random.normal();
        100.0 * gain * (level + 0.02 * random.normal()).exp()
    };
    let mut block = |random: &mut Random| match random.below(2) {
        0 => {
            let first = run(random, 1.1);
            (first, run(random, 1.0))
        }
        _ => {
            let first = run(random, 1.0);
            (run(random, 1.1), first)
        }
    };
    (0..blocks).map(|_| block(random)).collect()
}

#[test]
fn ratios_cover_the_truth() {
    check("ratio, log-normal with unequal scatter (0.1, 0.4), 5 and 9 runs", 1.0, |random| {
        let a = draws(5, || log_normal(random, 0.1));
        let b = draws(9, || log_normal(random, 0.4));
        ratio::independent(&a, &b, 0.95).map(|ratio| ratio.interval)
    });
    for (walk, what) in [(0.0, "line"), (0.02, "random walk")] {
        for blocks in [5, 8] {
            check(&format!("ratio by blocks, drift ({what}), {blocks} blocks"), 1.1, |random| {
                ratio::paired(&drifting(random, blocks, walk), 0.95).map(|ratio| ratio.interval)
            });
        }
    }
    // Why blocks are needed: the same drift, with one cell after the other.
    let share = coverage("ratio, the same drift, cells not interleaved", 1.1, 2000, |random| {
        let runs = drifting(random, 16, 0.0);
        let a: Vec<f64> = runs[..8].iter().map(|pair| pair.0).collect();
        let b: Vec<f64> = runs[8..].iter().map(|pair| pair.1).collect();
        ratio::independent(&a, &b, 0.95).map(|ratio| ratio.interval)
    });
    assert!(share < 0.5, "{share}");
}

/// Experiments of this many cells that end by the rule of `run`: the share that ends narrow, and
/// how many intervals hold the truth, in all experiments and in those that ended narrow.
fn stopped(rule: Stopping, cells: usize, sigma: f64, experiments: u64) -> [f64; 4] {
    let [mut narrow, mut all, mut held_narrow, mut repeats] = [0.0; 4];
    for seed in 0..experiments {
        let mut random = Random::new(1_000_003 * seed + 17);
        let mut rates: Vec<Vec<(u64, f64)>> = vec![Vec::new(); cells];
        let mut repeat = 0;
        let is_narrow = loop {
            repeat += 1;
            for own in &mut rates {
                own.push((repeat, log_normal(&mut random, sigma)));
            }
            match rule.is_enough(&rates, repeat) {
                true => break true,
                false if repeat == rule.repeats_max => break false,
                false => {}
            }
        };
        let holds = |own: &Vec<(u64, f64)>| {
            let values: Vec<f64> = own.iter().map(|(_, rate)| *rate).collect();
            let interval = of_geometric_mean(&values, rule.level(cells));
            interval.is_some_and(|interval| interval.contains(100.0))
        };
        let held = rates.iter().filter(|own| holds(own)).count() as f64 / cells as f64;
        all += held;
        repeats += repeat as f64;
        if is_narrow {
            narrow += 1.0;
            held_narrow += held;
        }
    }
    let count = experiments as f64;
    let percent = |part: f64, whole: f64| 100.0 * part / whole;
    [percent(narrow, count), percent(all, count), percent(held_narrow, narrow), repeats / count]
}

/// Repeating until the intervals are narrow makes them too narrow; the rule of `run` corrects that.
/// If nine of ten experiments would need more repeats than allowed, those that end narrow were
/// lucky: their intervals hold the truth less often, whatever the rule.
#[test]
fn stopping_when_narrow_costs_no_truth() {
    let rule = Stopping { repeats_min: 5, repeats_max: 20, narrow: 0.05 };
    println!("stop at +-5 %, 5 to 20 runs    ends narrow   all hold   narrow hold   repeats");
    for cells in [1, 2, 4] {
        for sigma in [0.02, 0.04, 0.06, 0.08, 0.10] {
            let [narrow, all, held, repeats] = stopped(rule, cells, sigma, 2500 / cells as u64);
            println!(
                "{cells} cells, scatter {:>3.0} % {narrow:>18.1} % {all:>8.1} % {held:>10.1} % \
                 {repeats:>10.1}",
                100.0 * sigma
            );
            // The line of `cargo xtask statistics`.
            println!(
                "@row 12 | scatter {:.0} %, cells {cells} | end as narrow, %: {narrow:.1}, those \
                 hold the truth, %: {held:.1}",
                100.0 * sigma
            );
            assert!(all >= 94.0, "{cells} {sigma}: {all}");
            assert!(narrow < 75.0 || held >= 93.5, "{cells} {sigma}: {held}");
            assert!(narrow < 30.0 || held >= 89.0, "{cells} {sigma}: {held}");
        }
    }
}

#[test]
fn identical_systems_raise_few_alarms() {
    for cells in [1, 6, 36] {
        let family = |seed: &u64| {
            let mut random = Random::new(7_000_001 * seed + 3);
            let p_values: Vec<f64> = (0..cells)
                .map(|_| {
                    let a = draws(5, || log_normal(&mut random, 0.2));
                    let b = draws(5, || log_normal(&mut random, 0.2));
                    ratio::independent(&a, &b, 0.95).unwrap().p_value
                })
                .collect();
            ratio::holm(&p_values).iter().any(|&p| p < 0.05)
        };
        let share = (0..4000u64).filter(family).count() as f64 / 4000.0;
        println!(
            "{:<66} {:5.1} %",
            format!("any alarm among {cells} identical cells"),
            share * 100.0
        );
        assert!(share <= 0.05 + 0.007, "{cells} cells: {share}");
    }
}
