//! Whether two experiments took turns, repeat by repeat.

use std::collections::BTreeMap;

use crate::record::RunRecord;

/// Whether each repeat of both began before the next repeat of either, and neither was always
/// first. An experiment that is always second is later by a whole run, so a drift would be part of
/// every pair.
pub fn took_turns(a: &[RunRecord], b: &[RunRecord]) -> bool {
    let (times_a, times_b) = (began(a), began(b));
    let last = |times: &BTreeMap<u64, (u64, u64)>| times.keys().last().copied().unwrap_or(0);
    let repeats = last(&times_a).min(last(&times_b));
    let mut first = None;
    let mut before = 0;
    let (mut a_first, mut b_first) = (0, 0);
    for repeat in 1..=repeats {
        let (Some(&in_a), Some(&in_b)) = (times_a.get(&repeat), times_b.get(&repeat)) else {
            return false;
        };
        if in_a.0.min(in_b.0) < before {
            return false;
        }
        before = in_a.1.max(in_b.1);
        a_first += u64::from(in_a.0 < in_b.0);
        b_first += u64::from(in_b.0 < in_a.0);
        first = first.or(Some(in_a.0.min(in_b.0)));
    }
    let is_fair = a_first.min(b_first) >= (repeats / 3).max(1);
    // Nothing is known about imported rows without times.
    repeats >= 2 && is_fair && first.is_some_and(|first| before > first)
}

/// When the first and the last run of each repeat began.
fn began(runs: &[RunRecord]) -> BTreeMap<u64, (u64, u64)> {
    let mut times: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for run in runs {
        let at = run.started_unix_seconds;
        let (first, last) = times.entry(run.repeat).or_insert((at, at));
        (*first, *last) = ((*first).min(at), (*last).max(at));
    }
    times
}
