//! What a section of fio cannot do alone, by several: a ring of any depth, since fio makes each a
//! power of two, and syncs of any number.

use super::super::operation::Engine;
use super::cadence;
use super::group::FileGroup;
use super::numbers::whole;
use super::part::Part;
use super::part::synced_among_reads;

/// Deepest queue that is asked for.
pub const DEPTH_MAX: f64 = 1024.0;

/// Sections that a ring is cut into, at most: three powers of two come within 7 % of any depth.
const SLICES_MAX: usize = 3;

/// A part of what a section would do, by a section of its own: fio makes the depth of a ring a
/// power of two (3.33: `iodepth=93` has 128 in flight), so that other depths are sums of such.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice {
    /// From 1.
    pub number: usize,
    /// Requests in flight; `None` where nothing is to be cut.
    pub depth: Option<u64>,
    /// Share of the operations.
    pub share: f64,
    /// A sync behind so many writes; `None` where there are none, or they are the syncs alone.
    pub every: Option<u64>,
    /// It begins when the one before has ended.
    pub is_after: bool,
}

impl Slice {
    /// Into what a part of a group is cut.
    pub fn of(group: &FileGroup, part: Part) -> Vec<Slice> {
        let cadences = Slice::by_cadence(group, part);
        let whole = cadences.clone();
        if group.engine != Engine::IoUring || part == Part::Syncs {
            return whole;
        }
        let Some(depth) = group.depth.map(|depth| asked_depth(group, depth)) else { return whole };
        // One of its own is as near as several for a depth that is just short of a power of two.
        let power = depth.next_power_of_two();
        if depth * 8 >= power * 7 {
            return whole;
        }
        let mut left = depth;
        let mut depths = Vec::new();
        while left > 0 && depths.len() < SLICES_MAX {
            // What is left over by the last one is told by the nearer of two powers.
            let below = 1 << left.ilog2();
            let is_last = depths.len() + 1 == SLICES_MAX;
            let own = if is_last && left * 2 > below * 3 { below * 2 } else { below };
            depths.push(own);
            left = left.saturating_sub(own);
        }
        let all: u64 = depths.iter().sum();
        // Not both: of a ring whose depth is no power of two syncs come as near as one number does.
        let every = cadence::nearest(&cadences);
        if depths.len() < 2 {
            return whole;
        }
        let slice = |(at, depth): (usize, &u64)| Slice {
            number: at + 1,
            depth: Some(*depth),
            share: *depth as f64 / all as f64,
            every,
            is_after: false,
        };
        depths.iter().enumerate().map(slice).collect()
    }

    /// By how many writes there are for a sync.
    fn by_cadence(group: &FileGroup, part: Part) -> Vec<Slice> {
        let one = Slice { number: 1, depth: None, share: 1.0, every: None, is_after: false };
        let has_syncs = matches!(part, Part::Writes | Part::All) && group.syncs > 0;
        if !has_syncs || group.writes == 0 {
            return vec![one];
        }
        if part == Part::All
            && let Some(every) = synced_among_reads(group)
        {
            return vec![Slice { every: Some(every), ..one }];
        }
        let cadences = cadence::of(group.writes, group.syncs, filled(group));
        let slice = |(at, cadence): (usize, &cadence::Cadence)| Slice {
            number: at + 1,
            share: cadence.share,
            every: Some(cadence.every),
            is_after: at > 0,
            ..one
        };
        cadences.iter().enumerate().map(slice).collect()
    }
}

/// How many writes fio has in flight at the beginning, without a sync behind them.
pub fn filled(group: &FileGroup) -> u64 {
    match (group.engine, group.depth) {
        (Engine::Libaio, Some(depth)) => asked_depth(group, depth),
        _ => 1,
    }
}

/// What a queue is asked to hold.
pub fn asked_depth(group: &FileGroup, depth: f64) -> u64 {
    let files = if group.beside { group.names.len() as f64 } else { 1.0 };
    whole((depth.clamp(1.0, DEPTH_MAX) * files).min(DEPTH_MAX)).max(1)
}
