//! Tests of cells and blocks.

use super::*;
use crate::random::Random;

fn one(cell: usize, block: usize, log: f64) -> Observation {
    Observation { cell, block, log }
}

#[test]
fn of_two_cells_it_is_the_paired_t() {
    let pairs = [(5.2, 5.0), (5.6, 5.3), (4.9, 4.8), (5.5, 5.35)];
    let runs = pairs
        .iter()
        .enumerate()
        .flat_map(|(block, &(a, b))| [one(0, block, a), one(1, block, b)])
        .collect();
    let found = Fit::new(runs).unwrap().contrast(&[(1.0, 0), (-1.0, 1)]).unwrap();
    let differences: Vec<f64> = pairs.iter().map(|(a, b)| a - b).collect();
    let expected = Contrast::of_blocks(&differences).unwrap();
    assert!((found.value - expected.value).abs() < 1e-12, "{found:?} {expected:?}");
    assert!((found.error - expected.error).abs() < 1e-12, "{found:?} {expected:?}");
    assert!((found.degrees - 3.0).abs() < 1e-9, "{found:?}");
}

/// Numbers of the textbook method: the mean of a cell that misses a block is not its adjusted mean.
#[test]
fn a_missing_run_does_not_make_a_difference() {
    let mut runs = Vec::new();
    for (block, shift) in [0.0, 0.3, -0.2, 0.1].into_iter().enumerate() {
        for (cell, level) in [1.0, 1.1, 1.3].into_iter().enumerate() {
            if (cell, block) != (1, 1) {
                runs.push(one(cell, block, level + shift));
            }
        }
    }
    let fit = Fit::new(runs).unwrap();
    let found = fit.contrast(&[(1.0, 1), (-1.0, 0)]).unwrap();
    assert!((found.value - 0.1).abs() < 1e-9 && found.error < 1e-6, "{found:?}");
    assert!(fit.residuals().iter().all(|rest| rest.abs() < 1e-9));
}

#[test]
fn cells_without_a_common_block_are_not_compared() {
    let runs = vec![
        one(0, 0, 1.0),
        one(1, 0, 1.1),
        one(0, 1, 1.2),
        one(1, 1, 1.2),
        one(2, 2, 2.0),
        one(3, 2, 2.2),
        one(2, 3, 2.1),
        one(3, 3, 2.1),
    ];
    let fit = Fit::new(runs).unwrap();
    assert!(fit.contrast(&[(1.0, 0), (-1.0, 1)]).is_some());
    assert_eq!(fit.contrast(&[(1.0, 0), (-1.0, 2)]), None);
    assert!(Fit::new(vec![one(0, 0, 1.0), one(1, 0, 2.0)]).is_none());
}

#[test]
fn residual_degrees_are_those_of_the_model() {
    let mut random = Random::new(3);
    let mut runs = Vec::new();
    for cell in 0..6 {
        for block in 0..4 {
            runs.push(one(cell, block, random.normal()));
        }
    }
    let full = Fit::new(runs.clone()).unwrap();
    assert!((full.scatter().1 - 15.0).abs() < 1e-9, "{:?}", full.scatter());
    runs.truncate(22);
    let missing = Fit::new(runs).unwrap();
    assert!((missing.scatter().1 - 13.0).abs() < 1e-9, "{:?}", missing.scatter());
}

/// Random cells and blocks in which many runs are missing and some occur twice.
fn incomplete(random: &mut Random) -> Vec<Observation> {
    let (cells, blocks) = (2 + random.below(7), 2 + random.below(7));
    let share = [2, 5, 50][random.below(3)];
    let mut runs = Vec::new();
    for cell in 0..cells {
        for block in 0..blocks {
            let times = if random.below(share) == 0 { random.below(3) } else { 1 };
            for _ in 0..times {
                let scatter = 0.02 * (1.0 + cell as f64) * random.normal();
                runs.push(one(cell, block, cell as f64 + 0.3 * block as f64 + scatter));
            }
        }
    }
    runs
}

#[test]
fn it_is_what_the_naive_way_finds() {
    let near = |a: f64, b: f64| a == b || (a - b).abs() <= 1e-7 * a.abs().max(b.abs()).max(1e-3);
    let mut random = Random::new(11);
    let (mut compared, mut refused) = (0, 0);
    for round in 0..600 {
        let runs = incomplete(&mut random);
        let (fit, naive) = (Fit::new(runs.clone()), naive::Naive::new(runs.clone()));
        let (Some(fit), Some(naive)) = (&fit, &naive) else {
            assert_eq!(fit.is_some(), naive.is_some(), "{round}");
            continue;
        };
        assert!(near(fit.scatter().0, naive.scatter().0), "{round}");
        assert!(near(fit.scatter().1, naive.scatter().1), "{round}");
        let residuals = fit.residuals().iter().zip(naive.residuals());
        assert!(residuals.clone().all(|(a, b)| (a - b).abs() < 1e-9), "{round}");
        let cells = runs.iter().map(|run| run.cell).max().unwrap() + 1;
        for from in 0..cells {
            let to = (from + 1) % cells;
            let third = (from + 2) % cells;
            for terms in
                [vec![(1.0, to), (-1.0, from)], vec![(0.5, to), (0.5, third), (-1.0, from)]]
            {
                match (fit.contrast(&terms), naive.contrast(&terms)) {
                    (Some(a), Some(b)) => {
                        let same = near(a.value, b.value) && near(a.error, b.error);
                        assert!(same && near(a.degrees, b.degrees), "{round}: {a:?} {b:?}");
                        compared += 1;
                    }
                    (None, None) => refused += 1,
                    (a, b) => panic!("{round}: {a:?} {b:?}"),
                }
            }
        }
    }
    assert!(compared > 3000 && refused > 100, "{compared} {refused}");
}
