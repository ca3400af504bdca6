//! Repeats that are not an independent sample: each resembles the one before, or there are two
//! speeds.

use experiment::judgement::judge;
use experiment::record::RunRecord;
use statistics::interval::Interval;
use statistics::random::Random;

use crate::world::{Table, block_sizes, chance, experiments, percent, quiet, says};

const REPEATS: [u64; 4] = [3, 5, 10, 20];

/// Experiments with a scatter of 3 %, where each cell has a course of its own.
fn runs(cells: u32, repeats: u64, seed: u64, like: f64, kinds: f64) -> Vec<RunRecord> {
    let world = quiet(vec![block_sizes(cells)], repeats);
    let mut random = Random::new(7_919 * seed + 5);
    let mut before = vec![None; cells as usize];
    let mut runs = world.runs(seed);
    for run in &mut runs {
        let place = crate::world::doublings(&run.cell, "block_bytes", 65536) as usize;
        let fresh = random.normal();
        let next = match before[place] {
            Some(before) => like * before + (1.0 - like * like).sqrt() * fresh,
            None => fresh,
        };
        before[place] = Some(next);
        let kind = kinds * random.below(2) as f64;
        run.bytes = (run.bytes as f64 * (0.03 * next + kind).exp()) as u64;
    }
    runs
}

fn table(title: &str, rule: &str, rows: &[(&str, u32, f64, f64, [f64; 2])]) {
    let count = experiments(60);
    let mut table = Table::new(title, &["n = 3", "n = 5", "n = 10", "n = 20"]).of(14);
    for &(name, cells, like, kinds, [most, least]) in rows {
        let told = REPEATS.map(|repeats| {
            percent(count, |seed| {
                let runs = runs(cells, repeats, seed, like, kinds);
                let judgement = judge(&[block_sizes(cells)], &runs, &Default::default());
                let warns = says(&judgement, rule) || says(&judgement, "experiment.drift");
                assert!(!warns || !says(&judgement, rule) || repeats >= 5, "too few to say so");
                if repeats == 3 {
                    assert!(says(&judgement, "experiment.not-testable"), "what is not known");
                }
                warns
            })
        });
        table.row(name, &told, 0.0..=100.0);
        assert!(told[2] >= least && told[3] >= least, "{name}: {told:?}");
        assert!(told.iter().all(|&told| told <= most), "{name}: {told:?}");
    }
    table.check();
}

#[test]
fn repeats_that_depend_on_each_other_are_told() {
    // 1 % of false drifts, and 2 % of this.
    let most = 3.0 + chance(3.0, experiments(60));
    table(
        "a run is like the one before (0.5 of it): told, %",
        "experiment.dependent-repeats",
        &[
            ("6 cells, independent", 6, 0.0, 0.0, [most, 0.0]),
            ("6 cells", 6, 0.5, 0.0, [100.0, 50.0]),
            ("1 cell", 1, 0.5, 0.0, [100.0, 5.0]),
        ],
    );
}

#[test]
fn cells_with_two_speeds_are_told() {
    let most = 3.0 + chance(3.0, experiments(60));
    table(
        "runs of two kinds, 30 % apart, scatter 3 %: told, %",
        "experiment.two-kinds",
        &[
            ("6 cells, one kind", 6, 0.0, 0.0, [most, 0.0]),
            ("6 cells", 6, 0.0, 0.3, [100.0, 90.0]),
            ("1 cell", 1, 0.0, 0.3, [100.0, 80.0]),
        ],
    );
}

/// If a dependence between repeats is reported, the intervals are widened enough.
#[test]
fn intervals_of_repeats_that_depend_are_wider() {
    let count = experiments(60);
    let title = "six cells, a run is like the one before (0.5 of it): intervals hold the truth, %";
    let mut table = Table::new(title, &["n = 10", "n = 20"]).of(14);
    let mut rows = [[0.0; 2]; 3];
    for (place, repeats) in [10u64, 20].into_iter().enumerate() {
        let [mut cells, mut differences, mut told, mut plain] = [0.0; 4];
        for seed in 0..count {
            let runs = runs(6, repeats, seed, 0.5, 0.0);
            let judgement = judge(&[block_sizes(6)], &runs, &Default::default());
            let Some(dependence) = judgement.dependence else { continue };
            told += 6.0;
            for cell in &judgement.cells {
                let interval = cell.interval.unwrap();
                let holds = |interval: Interval| f64::from(u8::from(interval.contains(1e8)));
                cells += holds(interval);
                plain += holds(interval.widened(1.0 / dependence.widened));
            }
            let effect = judgement.effects[0].interval.unwrap();
            differences += 6.0 * f64::from(u8::from(effect.contains(1.0)));
        }
        let shares = [plain, cells, differences].map(|held| 100.0 * held / f64::max(told, 1.0));
        for (row, share) in rows.iter_mut().zip(shares) {
            row[place] = share;
        }
    }
    table.row("of a cell, as if independent", &rows[0], 0.0..=100.0);
    table.row("of a cell, made wider", &rows[1], 88.0 - chance(10.0, count)..=100.0);
    table.row("of the last against the first", &rows[2], 88.0 - chance(10.0, count)..=100.0);
    assert!(rows[0].iter().zip(&rows[1]).all(|(plain, wider)| wider >= plain), "{rows:?}");
    table.check();
}
