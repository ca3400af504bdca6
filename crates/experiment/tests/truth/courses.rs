//! The course of a run: a rate that changes permanently, one that dips and recovers, and a slower
//! beginning.

use experiment::judgement::judge;
use statistics::bytes_over_time::Series;
use statistics::random::Random;

use crate::world::{Table, block_sizes, experiments, percent, quiet, says};

/// Steps of a run, and the scatter of each.
const STEPS: usize = 100;
const SCATTER: f64 = 0.04;

/// Levels of a rate, each with its number of steps.
type Levels<'a> = &'a [(usize, f64)];

/// Whether a rule has a finding on runs with these levels of the rate.
fn told(levels: Levels<'_>, rule: &str, seed: u64) -> bool {
    let world = quiet(vec![block_sizes(2)], 3);
    let mut random = Random::new(51_407 * seed + 3);
    let mut runs = world.runs(seed);
    for run in &mut runs {
        run.seconds = 100.0;
        let flat = levels.iter().flat_map(|&(count, level)| std::iter::repeat_n(level, count));
        let noisy = flat.map(|level| (1e9 * level * (1.0 + SCATTER * random.normal())) as u64);
        run.series = Some(Series { step_seconds: 1.0, bytes: noisy.chain([0]).collect() });
    }
    says(&judge(&world.factors, &runs, &Default::default()), rule)
}

#[test]
fn a_change_is_told_by_whether_it_lasts() {
    let count = experiments(40);
    let rules = ["experiment.regime-change", "experiment.dip", "experiment.warm-up"];
    let title = "what is told of the course of six runs, %";
    let mut table = Table::new(title, &["changes", "dips", "warms up"]).of(10);
    let change = [(40, 1.0), (STEPS - 40, 0.6)];
    let dip = [(40, 1.0), (20, 0.6), (STEPS - 60, 1.0)];
    let warm_up = [(20, 0.4), (STEPS - 20, 1.0)];
    let steady = [(STEPS, 1.0)];
    let cases: [(&str, Levels<'_>, [f64; 3]); 4] = [
        ("slower for good from 40 % on", &change, [100.0, 0.0, 0.0]),
        ("a dip that recovers", &dip, [0.0, 100.0, 0.0]),
        ("a slow first fifth", &warm_up, [0.0, 0.0, 100.0]),
        ("steady", &steady, [0.0, 0.0, 0.0]),
    ];
    for (name, levels, expected) in cases {
        let shares = rules.map(|rule| percent(count, |seed| told(levels, rule, seed)));
        table.row(name, &shares, 0.0..=100.0);
        for (share, expected) in shares.iter().zip(expected) {
            assert!((share - expected).abs() <= 5.0, "{name}: {shares:?}");
        }
    }
    table.check();
}
