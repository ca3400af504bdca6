//! The mechanics of a disk: an arm with heads over platters that turn.
//!
//! The arm moves over cylinders, and takes longer the further it goes ([`SeekCurve`]). Then the
//! first byte has to come under a head. The bytes pass at the rate of their track: outer tracks
//! hold more.
//!
//! The position of a byte is a number of turns: the whole part is the track, the fraction is the
//! angle. Rates fall linearly from the outermost track to the innermost, so the bytes in front of a
//! track grow as a square, and the position of a byte is a root. Seek distance, angle and rate all
//! come from this one formula. Tracks follow each other without a gap, because the published rates
//! include the time of changing tracks.
//!
//! Not here: the queue and the cache, which are in `spindle`; sectors that were moved elsewhere,
//! and shingled tracks.

use crate::{BILLION, whole};

/// How long the arm takes to move and to settle, by distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeekCurve {
    /// To the next cylinder, ns.
    pub single_ns: u64,
    /// Mean over all pairs of cylinders, ns.
    pub average_ns: u64,
    /// From the first cylinder to the last, ns.
    pub full_ns: u64,
}

impl SeekCurve {
    /// Time in ns for a distance in cylinders, on a disk that has `cylinders`.
    ///
    /// A root and a line that lead through the three times: E. K. Lee, R. H. Katz, "An analytic
    /// performance model of disk arrays", SIGMETRICS 1993. The root is for the part in which the
    /// arm gathers speed.
    pub fn ns(&self, distance: u64, cylinders: u64) -> u64 {
        if distance == 0 {
            return 0;
        }
        let [single, average, full] =
            [self.single_ns, self.average_ns, self.full_ns].map(|ns| ns as f64);
        let root = (15.0 * average - 10.0 * single - 5.0 * full) / 3.0;
        let line = (7.0 * single - 15.0 * average + 8.0 * full) / 3.0;
        let furthest = cylinders.saturating_sub(1).max(1) as f64;
        let share = ((distance - 1) as f64 / (furthest - 1.0).max(1.0)).min(1.0);
        let ns = root * share.sqrt() + line * share + single;
        whole(ns.clamp(single.min(full), full.max(single)))
    }
}

/// The mechanics of one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heads {
    /// Bytes over which the whole way of the arm is spread.
    pub capacity_bytes: u64,
    pub turns_per_minute: u64,
    /// Rate of the innermost track in percent of that of the outermost, where the first bytes are.
    pub inner_rate_percent: u64,
    /// Tracks that lie above each other: the arm reaches all of them without moving.
    pub surfaces: u64,
    pub seek: SeekCurve,
    /// Requests among which the drive chooses the next one (NCQ); 1: in the order of arrival.
    pub queue: usize,
    /// Bytes that the drive reads on into its cache behind a read, unless another request comes.
    pub read_on_bytes: u64,
}

impl Heads {
    /// Time of a turn, ns.
    pub fn turn_ns(&self) -> f64 {
        60.0 * BILLION as f64 / self.turns_per_minute.max(1) as f64
    }

    /// Mean time in ns until the first byte of a random request passes: the average seek, and half
    /// a turn.
    pub fn mean_ns(&self) -> u64 {
        self.seek.average_ns + whole(self.turn_ns() / 2.0)
    }
}

/// Where the bytes of a disk are.
#[derive(Clone, Debug)]
pub(super) struct Platters {
    heads: Heads,
    turn_ns: f64,
    /// Rates of the outermost and of the innermost track, bytes per second.
    outer: f64,
    inner: f64,
    tracks: f64,
    cylinders: u64,
}

/// A wait of all of a turn but this is none: times are whole nanoseconds.
const JUST_PASSED_TURNS: f64 = 1e-6;

impl Platters {
    pub(super) fn new(heads: Heads, outer_bytes_per_second: u64) -> Platters {
        let turn_ns = heads.turn_ns();
        let outer = outer_bytes_per_second.max(1) as f64;
        let inner = outer * heads.inner_rate_percent.clamp(1, 100) as f64 / 100.0;
        let track_bytes = f64::midpoint(outer, inner) * turn_ns / BILLION as f64;
        let tracks = (heads.capacity_bytes as f64 / track_bytes).max(1.0);
        let cylinders = (whole(tracks) / heads.surfaces.max(1)).max(1);
        Platters { heads, turn_ns, outer, inner, tracks, cylinders }
    }

    pub(super) fn heads(&self) -> &Heads {
        &self.heads
    }

    /// Time of so many turns, ns.
    pub(super) fn pass_ns(&self, turns: f64) -> u64 {
        whole((turns * self.turn_ns).max(0.0))
    }

    /// Turns in so much time.
    pub(super) fn turns_in(&self, ns: u64) -> f64 {
        ns as f64 / self.turn_ns
    }

    /// The position of a byte, in turns. Bytes beyond the capacity go on at the inner rate.
    pub(super) fn turns(&self, byte: u64) -> f64 {
        let share = byte as f64 / self.heads.capacity_bytes.max(1) as f64;
        let (outer, inner) = (self.outer, self.inner);
        // In front of the share r of all tracks are outer r - (outer - inner) r^2 / 2, of
        // (outer + inner) / 2 in all. This form of the root is exact near zero, too.
        let all = (outer + inner) * share.min(1.0);
        let root = (outer * outer - (outer - inner) * all).max(0.0).sqrt();
        let beyond = (share - 1.0).max(0.0) * f64::midpoint(outer, inner) / inner;
        (all / (outer + root) + beyond) * self.tracks
    }

    /// Time of the arm between two positions, ns.
    pub(super) fn seek_ns(&self, from_turns: f64, to_turns: f64) -> u64 {
        let cylinder = |turns: f64| whole(turns) / self.heads.surfaces.max(1);
        let distance = cylinder(from_turns).abs_diff(cylinder(to_turns));
        self.heads.seek.ns(distance, self.cylinders)
    }

    /// When a position comes under a head that is on its track from `from_ns` on.
    pub(super) fn under_head_ns(&self, turns: f64, from_ns: u64) -> u64 {
        let angle = (from_ns as f64 / self.turn_ns).fract();
        let wait = (turns.fract() - angle).rem_euclid(1.0);
        let wait = if wait > 1.0 - JUST_PASSED_TURNS { 0.0 } else { wait };
        from_ns + self.pass_ns(wait)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::DiskParameters;
    use super::super::parameters::Positioning;
    use super::*;

    fn platters(capacity_bytes: u64) -> Platters {
        let disk = DiskParameters::sata7200();
        let Positioning::Heads(heads) = disk.positioning else { panic!("{disk:?}") };
        Platters::new(Heads { capacity_bytes, ..heads }, disk.server_bytes_per_second)
    }

    proptest! {
        /// Each byte lies behind the one before, and no byte passes faster than at the outer edge
        /// or slower than at the inner one.
        #[test]
        fn positions_follow_each_other(
            capacity in 1u64 << 28..1 << 42,
            place in 0.0..1.3,
            bytes in 4096u64..1 << 24,
        ) {
            let platters = platters(capacity);
            let at = (place * capacity as f64) as u64;
            let turns = platters.turns(at + bytes) - platters.turns(at);
            let rate = bytes as f64 / (turns * platters.turn_ns / 1e9);
            prop_assert!(rate > platters.inner * 0.9999 && rate < platters.outer * 1.0001);
        }

        #[test]
        fn a_position_is_under_a_head_once_a_turn(turns in 0.0..3e6, from_ns in 0u64..1 << 50) {
            let platters = platters(1 << 42);
            let under_ns = platters.under_head_ns(turns, from_ns);
            prop_assert!(under_ns >= from_ns);
            prop_assert!((under_ns - from_ns) as f64 <= platters.turn_ns);
            // Once more after a turn, up to rounding.
            let again_ns = platters.under_head_ns(turns, under_ns + 1000);
            let off_ns = (again_ns - under_ns) as f64 - platters.turn_ns;
            prop_assert!(off_ns.abs() < 20.0, "{}", off_ns);
        }
    }

    #[test]
    fn all_tracks_hold_all_bytes() {
        let platters = platters(3_000_000_000_000);
        assert_eq!(platters.turns(0), 0.0);
        assert!((platters.turns(3_000_000_000_000) / platters.tracks - 1.0).abs() < 1e-12);
        // 156 MB/s on average: 1.3 MB a track.
        assert!((2.29e6..2.31e6).contains(&platters.tracks), "{}", platters.tracks);
    }
}
