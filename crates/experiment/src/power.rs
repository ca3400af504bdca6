//! Power analysis before an experiment: how many repeats a given difference needs, and how small a
//! difference the repeats of a plan can show.
//!
//! The scatter of a machine comes from its earlier runs. It is the scatter that comparisons within
//! blocks see: the residual of each run once its cell and its repeat are taken out. Scatter differs
//! from day to day, so with several records the plan uses the third quartile.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::record::{Cell, RunRecord};
use statistics::blocks::{Fit, Observation};
use statistics::noncentral::found;
use statistics::quantile;
use statistics::simultaneous::dunnett_factor;

/// Share of experiments that must find the difference.
pub const POWER: f64 = 0.8;

/// Largest number of repeats that is planned.
pub const REPEATS_MAX: u64 = 1000;

/// The scatter in a record.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Noise {
    /// Scatter of a run once cell and repeat are taken out, as a share.
    pub scatter: f64,
    /// Degrees of freedom of the scatter.
    pub degrees: f64,
    /// Mean seconds of a run, preparation included.
    pub run_seconds: f64,
}

impl Noise {
    /// From the runs of an experiment. `None` without repeats.
    pub fn of(runs: &[RunRecord]) -> Option<Noise> {
        let mut cells: BTreeMap<&Cell, usize> = BTreeMap::new();
        let mut blocks: BTreeMap<u64, usize> = BTreeMap::new();
        let mut observations = Vec::new();
        for run in runs {
            let Some(rate) = run.speed() else { continue };
            let next = cells.len();
            let cell = *cells.entry(&run.cell).or_insert(next);
            let next = blocks.len();
            let block = *blocks.entry(run.repeat).or_insert(next);
            observations.push(Observation { cell, block, log: rate.ln() });
        }
        let (scatter, degrees) = Fit::new(observations)?.scatter();
        Some(Noise { scatter, degrees, run_seconds: run_seconds(runs)? })
    }

    /// Of several records: the third quartile of the scatter, and the mean length of a run.
    pub fn of_several(records: &[Noise]) -> Option<Noise> {
        let of = |number: fn(&Noise) -> f64| records.iter().map(number).collect::<Vec<f64>>();
        Some(Noise {
            scatter: quantile(&of(|one| one.scatter), 0.75)?,
            degrees: of(|one| one.degrees).iter().sum(),
            run_seconds: statistics::mean(&of(|one| one.run_seconds))?,
        })
    }
}

/// Typical time from one start to the next, if known: a run takes longer than its measured part.
/// The median ignores a pause of a day between two runs.
fn run_seconds(runs: &[RunRecord]) -> Option<f64> {
    let mut begun: Vec<u64> =
        runs.iter().map(|run| run.started_unix_seconds).filter(|&at| at > 0).collect();
    begun.sort_unstable();
    let measured: Vec<f64> = runs.iter().map(|run| run.seconds).collect();
    let steps: Vec<f64> = begun.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let typical = quantile(&steps, 0.5).unwrap_or(0.0);
    Some(typical.max(statistics::mean(&measured)?))
}

/// Probability of finding a difference between one cell and the one in force, as one of `cells`
/// compared cells, in blocks with this scatter.
pub fn power(difference: f64, scatter: f64, cells: usize, repeats: u64) -> Option<f64> {
    if repeats < 2 || cells < 2 || difference <= -1.0 {
        return None;
    }
    let repeats = repeats as f64;
    let degrees = (cells as f64 - 1.0) * (repeats - 1.0);
    let limit = dunnett_factor(0.95, cells - 1, degrees)?;
    let away = difference.ln_1p().abs() / (scatter.max(1e-9) * (2.0 / repeats).sqrt());
    found(limit, away, degrees)
}

/// Repeats that show a difference in four of five experiments. `None` if more than [`REPEATS_MAX`].
pub fn repeats_for(difference: f64, scatter: f64, cells: usize) -> Option<u64> {
    first(|repeats| power(difference, scatter, cells, repeats) >= Some(POWER))
}

/// The smallest difference, as a share, that this many repeats show in four of five experiments.
pub fn seen_with(scatter: f64, cells: usize, repeats: u64) -> Option<f64> {
    power(0.0, scatter, cells, repeats)?;
    let (mut low, mut high) = (0.0f64, 100.0f64);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if power(middle, scatter, cells, repeats)? >= POWER { high = middle } else { low = middle }
    }
    Some(high)
}

/// Repeats after which four of five experiments show that two equal rates are the same, with the
/// whole interval within the band.
pub fn repeats_for_the_same(band: f64, scatter: f64, cells: usize) -> Option<u64> {
    let is_enough = |repeats: u64| {
        let degrees = (cells as f64 - 1.0) * (repeats as f64 - 1.0);
        let Some(limit) = dunnett_factor(0.95, cells - 1, degrees) else { return false };
        let Ok(t) = StudentsT::new(0.0, 1.0, degrees) else { return false };
        let room = band.ln_1p() / (scatter.max(1e-9) * (2.0 / repeats as f64).sqrt()) - limit;
        2.0 * t.cdf(room) - 1.0 >= POWER
    };
    if cells < 2 { None } else { first(is_enough) }
}

/// The smallest number of repeats that is enough. `is_enough` must be monotonic.
fn first(is_enough: impl Fn(u64) -> bool) -> Option<u64> {
    let mut high = 2;
    while !is_enough(high) {
        high *= 2;
        if high > REPEATS_MAX {
            return None;
        }
    }
    let mut low = if high == 2 { 1 } else { high / 2 };
    while low + 1 < high {
        let middle = u64::midpoint(low, high);
        if is_enough(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Level, RunRecord};
    use statistics::random::Random;

    /// Cells of 3 % scatter in repeats that differ by a tenth, the last one faster.
    fn runs(seed: u64, cells: u64, repeats: u64, gain: f64) -> Vec<RunRecord> {
        let mut random = Random::new(seed);
        let mut runs = Vec::new();
        for repeat in 1..=repeats {
            let shift = 0.1 * random.normal();
            for cell in 0..cells {
                let log =
                    shift + 0.03 * random.normal() + if cell + 1 == cells { gain } else { 0.0 };
                runs.push(RunRecord {
                    cell: [("readers".to_owned(), Level::Number(cell + 1))].into(),
                    repeat,
                    started_unix_seconds: 1000 + 7 * runs.len() as u64,
                    bytes: (1e9 * log.exp()) as u64,
                    seconds: 5.0,
                    ..RunRecord::default()
                });
            }
        }
        runs
    }

    #[test]
    fn the_noise_that_was_put_in_comes_out() {
        let noise = Noise::of(&runs(3, 6, 40, 0.0)).unwrap();
        assert!((noise.scatter / 0.03 - 1.0).abs() < 0.1, "{noise:?}");
        assert!((noise.run_seconds - 7.0).abs() < 1e-9 && noise.degrees > 150.0, "{noise:?}");
        assert_eq!(Noise::of(&runs(3, 6, 1, 0.0)), None);
        let several = [0.01, 0.02, 0.03, 0.04, 0.05].map(|scatter| Noise { scatter, ..noise });
        assert!((Noise::of_several(&several).unwrap().scatter - 0.04).abs() < 1e-9);
    }

    /// The judgement finds the difference as often as planned.
    #[test]
    fn a_difference_is_found_as_often_as_planned() {
        use crate::judgement::{JudgementOptions, judge};
        use crate::record::{Factor, Role};
        for (cells, difference) in [(2u64, 0.05f64), (6, 0.08)] {
            let repeats = repeats_for(difference, 0.03, cells as usize).unwrap();
            let levels = (1..=cells).map(Level::Number).collect();
            let factor = Factor { role: Role::Setting, ..Factor::new("readers", levels) };
            let found = (0..200)
                .filter(|&seed| {
                    let runs = runs(seed, cells, repeats, difference.ln_1p());
                    let judged =
                        judge(std::slice::from_ref(&factor), &runs, &JudgementOptions::default());
                    let own = &judged.recommended[0];
                    own.cell + 1 == cells as usize
                })
                .count();
            assert!((135..=195).contains(&found), "{cells}, {repeats} repeats: {found} of 200");
        }
    }

    #[test]
    fn smaller_differences_take_more_repeats() {
        let repeats = |difference| repeats_for(difference, 0.03, 4).unwrap();
        assert!(repeats(0.2) < repeats(0.05) && repeats(0.05) < repeats(0.02));
        let seen = seen_with(0.03, 4, repeats(0.05)).unwrap();
        assert!(seen <= 0.05 && seen > 0.035, "{seen}");
        assert_eq!(repeats_for(0.0001, 0.3, 4), None);
        assert_eq!((seen_with(0.03, 4, 1), power(0.1, 0.03, 1, 9)), (None, None));
        assert!(repeats_for_the_same(0.02, 0.03, 2).unwrap() > 20);
    }
}
