//! Which sets are kept, and why.
//!
//! Only sets that can be restored count: a day whose set needs an archive that is lost is no day.
//! Periods are those that have sets, not those up to today, so that a machine that was switched off
//! for a month loses nothing. What a kept set needs is kept.

use std::collections::{BTreeMap, BTreeSet};

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use crate::config::Keep;

/// What has to be known of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetainedSet {
    pub set: [u8; 16],
    /// When its run began, in seconds since 1970.
    pub begun_seconds: u64,
    /// The sets of its chain, the full one first, itself last.
    pub chain: Vec<[u8; 16]>,
    /// Whether the rule is for it. Sets of other jobs stay, and what they need, too.
    pub is_ruled: bool,
    /// Whether nothing is known against its own archive.
    pub is_sound: bool,
    /// Whether it ended early, on a full medium: it lacks some of what was there, and is no day.
    pub is_partial: bool,
}

/// Why a set is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Because {
    /// It is the newest that can be restored.
    Newest,
    Last,
    Daily,
    Weekly,
    Monthly,
    Yearly,
    /// A kept set, of this number in the order of the input, counts on it.
    NeededBy(usize),
    /// The rule is for another job.
    OtherJob,
    /// It ended early, and no whole set has followed: the next one begins with what it lacks.
    EndedEarly,
    /// It cannot be restored now: an archive of its chain is not there, or is damaged. If that
    /// comes back, it can.
    Broken,
}

/// What becomes of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// With all reasons, at least one.
    Kept(Vec<Because>),
    Goes,
}

/// The period that a time is in.
type PeriodOf = fn(&Zoned) -> (i16, i16);

/// What becomes of each of the sets of a folder; those of a job come in the order in which they
/// were made.
pub fn fates(sets: &[RetainedSet], keep: &Keep, zone: &TimeZone) -> Vec<Fate> {
    let numbers: BTreeMap<[u8; 16], usize> =
        sets.iter().enumerate().map(|(number, set)| (set.set, number)).collect();
    let is_good = |link: &[u8; 16]| numbers.get(link).is_some_and(|at: &usize| sets[*at].is_sound);
    let is_whole = |set: &RetainedSet| set.chain.iter().all(is_good);
    let is_day = |set: &RetainedSet| is_whole(set) && !set.is_partial;
    let mut reasons: Vec<BTreeSet<Because>> = vec![BTreeSet::new(); sets.len()];
    let whole: Vec<usize> =
        (0..sets.len()).rev().filter(|it| sets[*it].is_ruled && is_day(&sets[*it])).collect();
    if let Some(newest) = whole.first() {
        reasons[*newest].insert(Because::Newest);
    }
    let behind = whole.first().map_or(0, |newest| newest + 1);
    let is_waiting = |(_, set): &(usize, &RetainedSet)| set.is_ruled && set.is_partial;
    for (number, _) in sets.iter().enumerate().skip(behind).filter(is_waiting) {
        reasons[number].insert(Because::EndedEarly);
    }
    for number in whole.iter().take(keep.last as usize) {
        reasons[*number].insert(Because::Last);
    }
    let periods: [(u32, Because, PeriodOf); 4] = [
        (keep.daily, Because::Daily, |time| (time.year(), time.day_of_year())),
        (keep.weekly, Because::Weekly, |time| {
            let week = time.date().iso_week_date();
            (week.year(), week.week().into())
        }),
        (keep.monthly, Because::Monthly, |time| (time.year(), time.month().into())),
        (keep.yearly, Because::Yearly, |time| (time.year(), 0)),
    ];
    for (periods, because, of) in periods {
        let mut seen = BTreeSet::new();
        for number in &whole {
            let seconds = i64::try_from(sets[*number].begun_seconds).unwrap_or(i64::MAX);
            let Ok(time) = Timestamp::from_second(seconds) else { continue };
            if seen.len() >= periods as usize {
                break;
            }
            if seen.insert(of(&time.to_zoned(zone.clone()))) {
                reasons[*number].insert(because);
            }
        }
    }
    for (number, _) in sets.iter().enumerate().filter(|(_, set)| !set.is_ruled) {
        reasons[number].insert(Because::OtherJob);
    }
    for (number, set) in sets.iter().enumerate() {
        if !is_whole(set) {
            reasons[number].insert(Because::Broken);
        }
    }
    keep_what_is_needed(sets, &numbers, &mut reasons);
    reasons
        .into_iter()
        .map(|reasons| {
            if reasons.is_empty() { Fate::Goes } else { Fate::Kept(reasons.into_iter().collect()) }
        })
        .collect()
}

/// The chains of what is kept. A chain names all sets that it needs, so once is enough.
fn keep_what_is_needed(
    sets: &[RetainedSet],
    numbers: &BTreeMap<[u8; 16], usize>,
    reasons: &mut [BTreeSet<Because>],
) {
    let kept: Vec<usize> = (0..sets.len()).filter(|it| !reasons[*it].is_empty()).collect();
    for number in kept {
        for link in sets[number].chain.iter().filter(|link| **link != sets[number].set) {
            let Some(needed) = numbers.get(link) else { continue };
            let is_told = reasons[*needed].iter().any(|it| matches!(it, Because::NeededBy(_)));
            if !is_told {
                reasons[*needed].insert(Because::NeededBy(number));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY: u64 = 86_400;
    /// 2026-11-02, a Monday, at 02:00.
    const MONDAY: u64 = 1_793_584_800;

    fn set(number: u8, begun_seconds: u64, chain: &[u8]) -> RetainedSet {
        let chain = chain.iter().chain([&number]).map(|link| [*link; 16]).collect();
        RetainedSet {
            set: [number; 16],
            begun_seconds,
            chain,
            is_ruled: true,
            is_sound: true,
            is_partial: false,
        }
    }

    fn keep(sets: &[RetainedSet], keep: &Keep) -> Vec<bool> {
        let fates = fates(sets, keep, &TimeZone::UTC);
        fates.iter().map(|fate| *fate != Fate::Goes).collect()
    }

    #[test]
    fn days_are_those_with_sets() {
        // Two on the first day, then a month of holidays, then two days.
        let times = [MONDAY, MONDAY + 3600, MONDAY + 30 * DAY, MONDAY + 31 * DAY];
        let sets: Vec<_> = (1..).zip(times).map(|(number, time)| set(number, time, &[])).collect();
        let daily = |daily| keep(&sets, &Keep { daily, ..Keep::default() });
        assert_eq!(daily(1), [false, false, false, true]);
        assert_eq!(daily(2), [false, false, true, true]);
        assert_eq!(daily(3), [false, true, true, true]);
        assert_eq!(daily(9), [false, true, true, true]);
        let monthly = keep(&sets, &Keep { monthly: 2, ..Keep::default() });
        assert_eq!(monthly, [false, true, false, true]);
    }

    #[test]
    fn weeks_begin_on_monday() {
        let sets: Vec<_> =
            (0..14).map(|day| set(day + 1, MONDAY + u64::from(day) * DAY, &[])).collect();
        let kept = keep(&sets, &Keep { weekly: 2, ..Keep::default() });
        let kept: Vec<usize> = (0..14).filter(|day| kept[*day]).collect();
        assert_eq!(kept, [6, 13]);
    }

    #[test]
    fn a_day_ends_where_the_user_is() {
        // Half past eleven in the evening and half past midnight in Berlin, one day in UTC.
        let sets = [set(1, MONDAY - 3600 * 3 - 1800, &[]), set(2, MONDAY - 3600 * 2 - 1800, &[])];
        let daily = Keep { daily: 2, ..Keep::default() };
        let kept = |zone: &TimeZone| {
            fates(&sets, &daily, zone).iter().filter(|fate| **fate != Fate::Goes).count()
        };
        assert_eq!(kept(&TimeZone::UTC), 1);
        assert_eq!(kept(&TimeZone::fixed(jiff::tz::offset(1))), 2);
    }

    #[test]
    fn what_is_needed_stays() {
        let sets = [
            set(1, MONDAY, &[]),
            set(2, MONDAY + DAY, &[1]),
            set(3, MONDAY + 2 * DAY, &[1, 2]),
            set(4, MONDAY + 3 * DAY, &[1]),
        ];
        let fates = fates(&sets, &Keep { last: 1, ..Keep::default() }, &TimeZone::UTC);
        assert_eq!(fates[0], Fate::Kept(vec![Because::NeededBy(3)]));
        assert_eq!(fates[1..3], [Fate::Goes, Fate::Goes]);
        assert_eq!(fates[3], Fate::Kept(vec![Because::Newest, Because::Last]));
    }

    #[test]
    fn a_damaged_archive_is_no_day_and_what_is_left_of_its_chain_stays() {
        let mut sets = [
            set(1, MONDAY, &[]),
            set(2, MONDAY + DAY, &[]),
            set(3, MONDAY + 2 * DAY, &[2]),
            set(4, MONDAY + 3 * DAY, &[2, 3]),
        ];
        sets[2].is_sound = false;
        let last = Keep { last: 1, ..Keep::default() };
        let fates = fates(&sets, &last, &TimeZone::UTC);
        assert_eq!(
            fates[1],
            Fate::Kept(vec![Because::Newest, Because::Last, Because::NeededBy(2)])
        );
        assert_eq!(fates[0], Fate::Goes);
        assert_eq!(fates[2], Fate::Kept(vec![Because::NeededBy(3), Because::Broken]));
        assert_eq!(fates[3], Fate::Kept(vec![Because::Broken]));
    }

    #[test]
    fn a_set_that_ended_early_is_no_day_and_stays_until_a_whole_one_follows() {
        let mut sets = vec![set(1, MONDAY, &[]), set(2, MONDAY + DAY, &[])];
        sets[1].is_partial = true;
        let last = Keep { last: 1, ..Keep::default() };
        let fates_of = |sets: &[RetainedSet]| fates(sets, &last, &TimeZone::UTC);
        let whole = Fate::Kept(vec![Because::Newest, Because::Last]);
        assert_eq!(fates_of(&sets), [whole.clone(), Fate::Kept(vec![Because::EndedEarly])]);
        // The next set of its chain has the rest.
        sets.push(set(3, MONDAY + 2 * DAY, &[2]));
        let needed = Fate::Kept(vec![Because::NeededBy(2)]);
        assert_eq!(fates_of(&sets), [Fate::Goes, needed, whole]);
    }

    #[test]
    fn what_another_job_needs_stays() {
        let mut other = set(3, MONDAY + DAY, &[1]);
        other.is_ruled = false;
        let sets = [set(1, MONDAY, &[]), set(2, MONDAY + DAY, &[]), other];
        let fates = fates(&sets, &Keep { last: 1, ..Keep::default() }, &TimeZone::UTC);
        assert_eq!(fates[0], Fate::Kept(vec![Because::NeededBy(2)]));
        assert_eq!(fates[2], Fate::Kept(vec![Because::OtherJob]));
    }

    #[test]
    fn a_broken_set_is_no_day_and_stays() {
        // The second full set is lost: what counts on it is no success.
        let sets = [set(1, MONDAY, &[]), set(3, MONDAY + DAY, &[2])];
        let fates = fates(&sets, &Keep { last: 1, ..Keep::default() }, &TimeZone::UTC);
        assert_eq!(fates[0], Fate::Kept(vec![Because::Newest, Because::Last]));
        assert_eq!(fates[1], Fate::Kept(vec![Because::Broken]));
    }

    proptest! {
        /// Whatever the rule and however chains lie: what stays can be restored if it could be
        /// before, and the newest that can be restored stays.
        #[test]
        fn no_chain_breaks(
            parents in prop::collection::vec((prop::option::of(0usize..40), 0u64..40), 1..40),
            lost in prop::collection::btree_set(0usize..40, 0..5),
            damaged in prop::collection::btree_set(0usize..40, 0..4),
            (last, daily, weekly) in (0u32..4, 0u32..6, 0u32..4),
        ) {
            let mut all: Vec<RetainedSet> = Vec::new();
            for (number, (parent, hours)) in parents.iter().enumerate() {
                let parent = parent.and_then(|parent| all.get(parent));
                let mut chain = parent.map(|it| it.chain.clone()).unwrap_or_default();
                chain.push([number as u8; 16]);
                let begun_seconds = MONDAY + number as u64 * 5 * 3600 + hours * 60;
                let is_ruled = number % 7 != 3;
                let is_sound = !damaged.contains(&number);
                all.push(RetainedSet {
                    set: [number as u8; 16],
                    begun_seconds,
                    chain,
                    is_ruled,
                    is_sound,
                    is_partial: number % 11 == 5,
                });
            }
            let is_there = |it: &RetainedSet| !lost.contains(&usize::from(it.set[0]));
            let sets: Vec<RetainedSet> = all.into_iter().filter(is_there).collect();
            let keep = Keep { last, daily, weekly, ..Keep::default() };
            let fates = fates(&sets, &keep, &TimeZone::UTC);
            let whole = |stay: &dyn Fn(usize) -> bool, set: &RetainedSet| {
                set.chain.iter().all(|link| {
                    let is_it = |(at, it): (usize, &RetainedSet)| {
                        it.set == *link && it.is_sound && stay(at)
                    };
                    sets.iter().enumerate().any(is_it)
                })
            };
            // Of what stays, no link that is there goes: what it lacks may come back.
            for (at, set) in sets.iter().enumerate() {
                let links = |it: &usize| set.chain.contains(&sets[*it].set);
                if fates[at] != Fate::Goes {
                    prop_assert!((0..sets.len()).filter(links).all(|it| fates[it] != Fate::Goes));
                }
            }
            let stays = |at: usize| fates[at] != Fate::Goes;
            for (at, set) in sets.iter().enumerate().filter(|(at, _)| stays(*at)) {
                prop_assert!(whole(&stays, set) || !whole(&|_| true, set), "{at}");
            }
            prop_assert!((0..sets.len()).all(|at| sets[at].is_ruled || stays(at)));
            let is_newest = |at: &usize| sets[*at].is_ruled && whole(&|_| true, &sets[*at]);
            if let Some(newest) = (0..sets.len()).rfind(is_newest) {
                prop_assert!(stays(newest));
            }
        }
    }
}
