//! By which options of fio the syncs of a section come to their number.
//!
//! fio syncs behind every so many writes of a section, but for the last one, which ends it, and
//! those that fill a queue of libaio at its beginning (3.33: 385 of 400 at a depth of 16).
//! Where no such number comes near the count, one part of the writes has the next smaller number
//! and the rest the next larger one. How syncs bunch is not made again.

use super::numbers::whole;
use super::slice::Slice;

/// What the count may be off for one section to do.
const NEAR: f64 = 0.05;

/// A share of the writes of a group, with a sync behind every so many of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cadence {
    /// A sync behind so many writes.
    pub every: u64,
    /// Of the writes.
    pub share: f64,
}

/// How many syncs a section makes that has so many in flight.
pub fn made(writes: u64, every: u64, depth: u64) -> u64 {
    writes.saturating_sub(depth.saturating_sub(1).max(1)) / every.max(1)
}

/// Of a section with reads among its writes, a sync behind how many writes makes more syncs than
/// there are writes: at each such place fio syncs again behind each read that comes before the next
/// write (3.33). `None` where no number comes near.
pub fn among_reads(reads: u64, writes: u64, syncs: u64, depth: u64) -> Option<u64> {
    /// By how much the count may be off.
    const NEAR: f64 = 0.1;
    let lost = depth.saturating_sub(1);
    let all = (reads + writes).saturating_sub(lost) as f64;
    if reads == 0 || syncs <= made(writes, 1, depth) {
        return None;
    }
    let every = (all / syncs as f64).round().max(1.0);
    let is_near = (all / every / syncs as f64 - 1.0).abs() <= NEAR;
    is_near.then(|| whole(every))
}

/// The sections that make `syncs` of `writes`, of which there is one of each at least.
pub fn of(writes: u64, syncs: u64, depth: u64) -> Vec<Cadence> {
    let off = |every: u64| (made(writes, every, depth) as f64 / syncs as f64 - 1.0).abs();
    let below = (made(writes, 1, depth) / syncs).max(1);
    let above = below + 1;
    let nearer = if off(below) <= off(above) { below } else { above };
    if off(nearer) <= NEAR || syncs >= made(writes, 1, depth) {
        return vec![Cadence { every: nearer, share: 1.0 }];
    }
    // (x writes - lost) / below + ((1 - x) writes - lost) / above are the syncs.
    let (dense, sparse) = (1.0 / below as f64, 1.0 / above as f64);
    let lost = (writes - made(writes, 1, depth)) as f64 * (dense + sparse) / writes as f64;
    let wanted = syncs as f64 / writes as f64 + lost;
    let share = ((wanted - sparse) / (dense - sparse)).clamp(0.0, 1.0);
    if whole(share * 100.0) == 0 || whole(share * 100.0) == 100 {
        return vec![Cadence { every: nearer, share: 1.0 }];
    }
    vec![Cadence { every: below, share }, Cadence { every: above, share: 1.0 - share }]
}

/// The number of the largest of several sections.
pub fn nearest(slices: &[Slice]) -> Option<u64> {
    slices.iter().max_by(|a, b| a.share.total_cmp(&b.share)).and_then(|slice| slice.every)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As fio 3.33 was seen to do it.
    #[test]
    fn reads_between_writes_are_synced_again() {
        // 400 requests, `fsync=2`; `fdatasync=1` of a queue of 16.
        assert_eq!(among_reads(274, 126, 197, 16), Some(2));
        assert_eq!(among_reads(58, 62, 105, 16), Some(1));
        assert_eq!(among_reads(1028, 481, 780, 1), Some(2));
        // As many as writes do alone; and more than there can be.
        assert_eq!(among_reads(100, 100, 50, 1), None);
        assert_eq!(among_reads(0, 100, 150, 1), None);
        assert_eq!(among_reads(100, 100, 400, 1), None);
    }

    proptest! {
        #[test]
        fn the_count_comes_back(
            writes in 1u64..1_000_000,
            part in 0.0..1.0f64,
            depth in 1u64..33,
        ) {
            let syncs = ((writes as f64 * part * part * part) as u64).max(1);
            let all = of(writes, syncs, depth);
            let shares: f64 = all.iter().map(|it| it.share).sum();
            prop_assert!((shares - 1.0).abs() < 1e-9);
            let own = |it: &Cadence| whole(writes as f64 * it.share);
            let count: u64 = all.iter().map(|it| made(own(it), it.every, depth)).sum();
            // Each section has none behind its last write.
            let off = (count as f64 - syncs as f64).abs();
            let near = 2.5 + depth as f64 + 0.05 * syncs as f64;
            prop_assert!(off <= near, "{count} for {syncs}: {all:?}");
        }
    }
}
