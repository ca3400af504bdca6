//! Advice on one setting from runs over its levels: the level to set, its gain over the one in
//! force, how certain the gain is, and what it costs.
//!
//! The sentences of a judgement report what can be gained. This module also asks whether less would
//! do: if nothing is faster than the level in force, and a lower level is shown to be as fast and
//! to cost less, it advises the lower one. It advises nothing that is not settled.

use serde::Serialize;

use super::comparer::Basis;
use super::costs::grown;
use super::typed::{MeasuredOn, SettingToType, Typed, typed};
use super::{CellSummary, Judgement, JudgementOptions, RateVerdict};
use crate::quantities::costs;
use crate::record::{Factor, Level, RunRecord};
use statistics::interval::Interval;

/// What to set a setting to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The level in force.
    pub present: Level,
    /// The level to set, which may be the one in force; `None` if that is not settled.
    pub recommended: Option<Level>,
    /// The level with the highest mean rate, settled or not.
    pub fastest: Level,
    /// The rate of the recommended level, or of the fastest one, relative to the level in force.
    pub gain: Gain,
    /// The costs of the recommended level, next to those of the level in force.
    pub costs: Vec<Paid>,
    /// The commands that set it, by program, and those that restore the old value.
    pub typed: Vec<Typed>,
}

/// One rate divided by another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gain {
    pub ratio: f64,
    /// Its interval, if there are repeats.
    pub interval: Option<Interval>,
    /// The verdict of the interval.
    pub verdict: RateVerdict,
}

/// A cost of a level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Paid {
    /// Name of the measure.
    pub measure: &'static str,
    pub what: &'static str,
    /// Value with the level in force.
    pub present: f64,
    /// Value with the recommended level.
    pub recommended: f64,
    /// Whether the cost is shown to grow or, with a lower level, to shrink.
    pub is_settled: bool,
}

/// The advice on the one setting that the experiment varied; `None` if it varied none, or did not
/// run the level in force.
pub fn advice(
    judgement: &Judgement,
    factor: &Factor,
    runs: &[RunRecord],
    options: &JudgementOptions,
) -> Option<Advice> {
    let own = judgement.recommended.first().filter(|_| judgement.recommended.len() == 1)?;
    let (factor, in_force) = (&*factor.name, factor.present.as_ref());
    let level = |cell: usize| judgement.cells[cell].cell.get(factor).cloned();
    let present = level(own.baseline)?;
    // If all its runs were stopped, another level is the baseline, which is not in force.
    if in_force.is_some_and(|level| *level != present) {
        return None;
    }
    let against = |cell: usize| {
        let found = judgement.comparer.against(own.baseline, &[cell]);
        let repeated = found.first().filter(|one| one.basis == Basis::Repeats);
        let interval = repeated.map(|one| one.interval);
        let ratio = found.first().map_or(1.0, |one| one.contrast.ratio());
        Gain { ratio, interval, verdict: RateVerdict::of(interval, options) }
    };
    let (chosen, gain) = match (own.verdict, own.basis) {
        (RateVerdict::Differs, Basis::Repeats) => {
            let gain = Gain {
                ratio: own.gain,
                interval: own.gain_interval,
                verdict: RateVerdict::Differs,
            };
            (Some(own.cell), gain)
        }
        (RateVerdict::Same, Basis::Repeats) => {
            match lower(judgement, factor, own.baseline, options) {
                Some(cell) => (Some(cell), against(cell)),
                None => (Some(own.baseline), against_fastest(own.best, own.baseline, &against)),
            }
        }
        _ => (None, against_fastest(own.best, own.baseline, &against)),
    };
    let recommended = chosen.and_then(level);
    let change = recommended.clone().filter(|level| *level != present).map(|to| SettingToType {
        factor: factor.to_owned(),
        from: present.clone(),
        to,
    });
    Some(Advice {
        fastest: level(own.best)?,
        costs: chosen.map_or_else(Vec::new, |cell| {
            paid(&judgement.cells[cell], &judgement.cells[own.baseline])
        }),
        typed: change.map_or_else(Vec::new, |change| typed(&change, &MeasuredOn::of(runs))),
        present,
        recommended,
        gain,
    })
}

/// The gain of the fastest level. If that is the level in force, the gain is exactly 1.
fn against_fastest(best: usize, baseline: usize, against: &dyn Fn(usize) -> Gain) -> Gain {
    if best == baseline {
        let none = Interval { low: 1.0, high: 1.0 };
        return Gain { ratio: 1.0, interval: Some(none), verdict: RateVerdict::Same };
    }
    against(best)
}

/// The lowest level that is shown to be as fast as the one in force and to cost less.
fn lower(
    judgement: &Judgement,
    factor: &str,
    baseline: usize,
    options: &JudgementOptions,
) -> Option<usize> {
    let number = |cell: usize| match judgement.cells[cell].cell.get(factor) {
        Some(Level::Number(number)) => Some(*number),
        _ => None,
    };
    let present = number(baseline)?;
    let mut lower: Vec<(u64, usize)> = (0..judgement.cells.len())
        .filter_map(|cell| Some((number(cell)?, cell)))
        .filter(|(level, _)| *level < present)
        .collect();
    lower.sort_unstable();
    let cells: Vec<usize> = lower.iter().map(|(_, cell)| *cell).collect();
    let found = judgement.comparer.against(baseline, &cells);
    let is_as_good = |(cell, against): &(&usize, &super::comparer::Against)| {
        let verdict = RateVerdict::of(Some(against.interval), options);
        against.basis == Basis::Repeats
            && verdict == RateVerdict::Same
            && !grown(&judgement.cells[baseline], &judgement.cells[**cell]).is_empty()
    };
    cells.iter().zip(&found).find(is_as_good).map(|(cell, _)| *cell)
}

/// Every cost that both cells measured.
fn paid(cell: &CellSummary, baseline: &CellSummary) -> Vec<Paid> {
    let moved: Vec<&str> = [grown(cell, baseline), grown(baseline, cell)]
        .into_iter()
        .flatten()
        .filter(|grown| grown.then.is_some())
        .map(|grown| grown.measure)
        .collect();
    let one = |(measure, cost): (&'static str, crate::quantities::Cost)| {
        Some(Paid {
            measure,
            what: cost.what,
            present: *baseline.measures.get(measure)?,
            recommended: *cell.measures.get(measure)?,
            is_settled: moved.contains(&measure),
        })
    };
    costs().into_iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Subject, judge};
    use super::*;

    const WINDOWS: [u64; 4] = [64 << 10, 128 << 10, 1 << 20, 8 << 20];

    /// Eight runs of each window at these rates, with this scatter, and the bytes that the device
    /// reads for a random read; the third window is in force.
    fn advised(rates: [f64; 4], scatter: f64, random_read_bytes: [f64; 4]) -> Advice {
        advised_against(WINDOWS[2], rates, [scatter; 4], random_read_bytes)
    }

    /// The same with another window in force, and a scatter for each window.
    fn advised_against(
        present: u64,
        rates: [f64; 4],
        scatter: [f64; 4],
        random_read_bytes: [f64; 4],
    ) -> Advice {
        judged_against(present, rates, scatter, random_read_bytes).1
    }

    /// The judgement of `report`, and the advice of `tune`.
    fn judged_against(
        present: u64,
        rates: [f64; 4],
        scatter: [f64; 4],
        random_read_bytes: [f64; 4],
    ) -> (Judgement, Advice) {
        let mut random = statistics::random::Random::new(7);
        let mut runs = Vec::new();
        for repeat in 1..=8 {
            for (place, window) in WINDOWS.into_iter().enumerate() {
                let paid = random_read_bytes[place] * (1.0 + 0.01 * random.normal());
                let rate = rates[place] * (scatter[place] * random.normal()).exp();
                runs.push(RunRecord {
                    cell: [("read_ahead_bytes".to_owned(), Level::Number(window))].into(),
                    repeat,
                    bytes: 100_000_000,
                    seconds: 1e8 / rate,
                    measures: [("random_read_device_bytes".to_owned(), paid)].into(),
                    environment: [("path", "/srv/big"), ("device", "sdb"), ("queues", "sdb")]
                        .map(|(name, value)| (name.to_owned(), value.to_owned()))
                        .into(),
                    ..RunRecord::default()
                });
            }
        }
        let levels = WINDOWS.map(Level::Number).to_vec();
        let present = Some(Level::Number(present));
        let factor = Factor { present, ..Factor::new("read_ahead_bytes", levels) };
        let options = JudgementOptions::default();
        let judgement = judge(std::slice::from_ref(&factor), &runs, &options);
        let advice = advice(&judgement, &factor, &runs, &options).unwrap();
        (judgement, advice)
    }

    const FREE: [f64; 4] = [4096.0; 4];
    const DEAR: [f64; 4] = [4096.0, 8192.0, 65536.0, 262_144.0];

    #[test]
    fn what_is_faster_is_advised_with_what_it_costs() {
        let advice = advised([1e8, 1.5e8, 2e8, 4e8], 0.01, DEAR);
        assert_eq!(advice.recommended, Some(Level::Number(8 << 20)));
        let interval = advice.gain.interval.unwrap();
        assert!(
            advice.gain.verdict == RateVerdict::Differs && interval.contains(2.0),
            "{advice:?}"
        );
        assert!(advice.costs.len() == 1 && advice.costs[0].is_settled, "{advice:?}");
        let (then, now) = (advice.costs[0].present, advice.costs[0].recommended);
        assert!(then < 7e4 && now > 2.5e5, "{advice:?}");
    }

    #[test]
    fn the_lowest_that_is_as_fast_is_advised_where_more_costs_others() {
        let advice = advised([1e8, 2e8, 2e8, 2e8], 0.005, DEAR);
        assert_eq!(advice.recommended, Some(Level::Number(128 << 10)));
        assert_eq!(advice.gain.verdict, RateVerdict::Same);
        assert!(advice.costs[0].is_settled && advice.costs[0].recommended < 1e4, "{advice:?}");
        // A level without extra costs stays as it is.
        let advice = advised([1e8, 2e8, 2e8, 2e8], 0.005, FREE);
        assert_eq!(advice.recommended, Some(Level::Number(1 << 20)));
        assert!(advice.typed.is_empty() && advice.gain.verdict == RateVerdict::Same, "{advice:?}");
    }

    /// A level that scatters much is no better than a lower one that is shown to be as fast as the
    /// best.
    #[test]
    fn what_is_known_badly_is_not_advised_in_the_place_of_what_is_known_well() {
        let scatter = [0.002, 0.002, 0.2, 0.002];
        let advice = advised_against(64 << 10, [1e8, 5.8e8, 5.2e8, 5.88e8], scatter, DEAR);
        assert_eq!(advice.recommended, Some(Level::Number(128 << 10)), "{advice:?}");
        assert_eq!(advice.gain.verdict, RateVerdict::Differs);
    }

    /// Another level with runs does not replace it.
    #[test]
    fn nothing_is_advised_where_what_is_in_force_was_not_run() {
        let mut runs = Vec::new();
        for repeat in 1..=4 {
            for window in &WINDOWS[2..] {
                runs.push(RunRecord {
                    cell: [("read_ahead_bytes".to_owned(), Level::Number(*window))].into(),
                    repeat,
                    bytes: *window,
                    seconds: 1.0 + 0.001 * repeat as f64,
                    ..RunRecord::default()
                });
            }
        }
        let levels = WINDOWS.map(Level::Number).to_vec();
        let options = JudgementOptions::default();
        let advised = |present: u64| {
            let present = Some(Level::Number(present));
            let factor = Factor { present, ..Factor::new("read_ahead_bytes", levels.clone()) };
            let judgement = judge(std::slice::from_ref(&factor), &runs, &options);
            advice(&judgement, &factor, &runs, &options)
        };
        assert_eq!(advised(WINDOWS[0]), None);
        assert!(advised(WINDOWS[2]).is_some());
    }

    #[test]
    fn nothing_is_advised_that_is_not_settled() {
        let advice = advised([2e8, 2e8, 2e8, 2.1e8], 0.2, DEAR);
        assert_eq!(
            (advice.recommended.clone(), advice.gain.verdict),
            (None, RateVerdict::NotSettled)
        );
        assert!(advice.gain.interval.is_some() && advice.typed.is_empty(), "{advice:?}");
    }

    /// A report of the same runs recommends nothing if the advice is empty, also if other levels
    /// are shown to be slower.
    #[test]
    fn a_report_recommends_nothing_that_is_not_advised() {
        let mut open = 0;
        for (rates, scatter) in [
            ([5e7, 2e8, 2e8, 2.1e8], [0.02, 0.02, 0.02, 0.3]),
            ([5e7, 8e7, 2e8, 2.2e8], [0.01, 0.01, 0.1, 0.1]),
            ([2e8, 5e7, 2e8, 2e8], [0.2, 0.01, 0.2, 0.01]),
            ([1e8, 2e8, 4e8, 8e8], [0.01; 4]),
            ([2e8; 4], [0.001; 4]),
        ] {
            for present in WINDOWS {
                let (judgement, advice) = judged_against(present, rates, scatter, FREE);
                let is_set = |one: &&crate::judgement::Sentence| {
                    one.subject == Subject::Set && one.text.starts_with("read-ahead: ")
                };
                let set = judgement.sentences.iter().find(is_set);
                assert_eq!(set.is_some(), advice.recommended.is_some(), "{set:?}: {advice:?}");
                open += usize::from(advice.recommended.is_none());
            }
        }
        assert!((4..16).contains(&open), "{open}: the test says nothing");
    }
}
