//! When a writer that found its ring empty starts again, and how fast it drains it then.
//!
//! A tape drive streams between its lowest and its highest speed. A source within that range is
//! followed as it comes: to wait for a full ring would only make stops that need not be. A source
//! below it stops the drive anyway; then few long runs are better than many short ones, so the
//! writer waits until the ring is full, and drains it no faster than the drive needs.
//!
//! At the start nothing is known of the source. The first quarter of a second's worth of blocks
//! says whether it keeps up: then the target has them at once, and does not stand while memory
//! fills.
//!
//! How fast the source is, is seen from both ends of the ring: what came out of it, and by how much
//! it is fuller. A source that the limit itself holds back fills the ring at the limit, which lies
//! above the lowest speed, so a limit that is no longer needed lifts itself.
//!
//! Not here: how many readers work at once, which is the backup's.

use std::time::{Duration, Instant};

use crate::rate::RateLimit;

/// When a writer that found the ring empty starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// At this fill.
    AtFill {
        /// Blocks that must be ready.
        blocks: usize,
    },
    /// At once while the source is faster than the lowest speed of the target; else at this fill.
    Paced {
        /// Blocks that must be ready where the source is slower.
        blocks: usize,
        /// The lowest speed.
        lowest_bytes_per_second: u64,
        /// Limit on the rate while the source is slower; above the lowest speed.
        drain_bytes_per_second: Option<u64>,
    },
}

/// Shortest time over which the rate of a source is judged.
const WINDOW: Duration = Duration::from_secs(1);

/// Part of a second at the target's lowest speed that a source is judged by at the start.
const PROBES_PER_SECOND: u64 = 4;

/// Decides on restarts from what was seen of the source so far.
#[derive(Debug)]
pub(crate) struct Restarts {
    restart: Restart,
    since: Instant,
    /// Bytes that the source had produced then.
    produced_then: u64,
    is_slow: bool,
    /// The limit, while the source is slower than the target's lowest speed.
    drain: Option<RateLimit>,
}

impl Restarts {
    /// For a writer that begins to wait for its first block now.
    pub(crate) fn new(restart: Restart, now: Instant) -> Restarts {
        Restarts { restart, since: now, produced_then: 0, is_slow: false, drain: None }
    }

    /// Bytes from which on the source can be judged before the writer starts; none where the writer
    /// starts at its fill whatever the source does.
    pub(crate) fn probe_bytes(&self) -> Option<u64> {
        match self.restart {
            Restart::AtFill { .. } => None,
            Restart::Paced { lowest_bytes_per_second, .. } => {
                Some(lowest_bytes_per_second / PROBES_PER_SECOND)
            }
        }
    }

    /// Whether a source that has produced so many bytes since the start is fast enough for the
    /// target to start at once.
    pub(crate) fn keeps_up(&self, produced_bytes: u64, now: Instant) -> bool {
        let Restart::Paced { lowest_bytes_per_second, .. } = self.restart else { return false };
        let seconds = now.saturating_duration_since(self.since).as_secs_f64();
        produced_bytes as f64 >= lowest_bytes_per_second as f64 * seconds
    }

    /// Learns that the source has produced so many bytes since the start: what was written, and
    /// what waits in the ring.
    pub(crate) fn observe(&mut self, produced_bytes: u64, now: Instant) {
        let Restart::Paced { lowest_bytes_per_second, drain_bytes_per_second, .. } = self.restart
        else {
            return;
        };
        let window = now.saturating_duration_since(self.since);
        if window < WINDOW {
            return;
        }
        let bytes = produced_bytes.saturating_sub(self.produced_then);
        let was_slow = self.is_slow;
        self.is_slow = bytes as f64 / window.as_secs_f64() < lowest_bytes_per_second as f64;
        if self.is_slow != was_slow {
            self.drain = drain_bytes_per_second.filter(|_| self.is_slow).map(RateLimit::new);
        }
        (self.since, self.produced_then) = (now, produced_bytes);
    }

    /// Blocks to wait for when the ring is empty.
    pub(crate) fn fill_blocks(&self) -> usize {
        match self.restart {
            Restart::AtFill { blocks } => blocks,
            Restart::Paced { blocks, .. } if self.is_slow => blocks,
            Restart::Paced { .. } => 1,
        }
    }

    /// The limit on the rate, if there is one at present.
    pub(crate) fn limit(&mut self) -> Option<&mut RateLimit> {
        self.drain.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOWEST: u64 = 100_000_000;
    const DRAIN: u64 = 102_000_000;
    const PACED: Restart = Restart::Paced {
        blocks: 900,
        lowest_bytes_per_second: LOWEST,
        drain_bytes_per_second: Some(DRAIN),
    };

    /// A source of that rate, seen every `step`; the blocks that would be waited for each time.
    fn waits(rate: u64, step: Duration, times: u32) -> Vec<usize> {
        let start = Instant::now();
        let mut restarts = Restarts::new(PACED, start);
        let produced = |time: Duration| (rate as f64 * time.as_secs_f64()) as u64;
        let mut wait = |time: u32| {
            restarts.observe(produced(step * time), start + step * time);
            restarts.fill_blocks()
        };
        (1..=times).map(&mut wait).collect()
    }

    #[test]
    fn a_source_that_keeps_up_is_never_waited_for() {
        assert_eq!(waits(120_000_000, Duration::from_secs(2), 3), [1, 1, 1]);
    }

    #[test]
    fn a_slow_source_fills_the_ring_first() {
        assert_eq!(waits(60_000_000, Duration::from_secs(2), 3), [900, 900, 900]);
    }

    #[test]
    fn a_source_that_keeps_up_is_not_waited_for_at_the_start() {
        let start = Instant::now();
        let restarts = Restarts::new(PACED, start);
        assert_eq!(restarts.probe_bytes(), Some(LOWEST / 4));
        assert!(restarts.keeps_up(LOWEST / 4, start + Duration::from_millis(249)));
        assert!(!restarts.keeps_up(LOWEST / 4, start + Duration::from_millis(251)));
        let restarts = Restarts::new(Restart::AtFill { blocks: 7 }, start);
        assert_eq!(restarts.probe_bytes(), None);
        assert!(!restarts.keeps_up(LOWEST, start + Duration::from_millis(1)));
    }

    #[test]
    fn nothing_is_concluded_from_a_moment() {
        let waits = waits(60_000_000, Duration::from_millis(400), 6);
        assert_eq!(waits, [1, 1, 900, 900, 900, 900]);
    }

    /// A source at these rates, one a second, into a ring of 1 GB that a writer drains as it may.
    /// Returns whether the writer was limited at the end of each second.
    fn limited(rates: &[u64]) -> Vec<bool> {
        const RING: u64 = 1_000_000_000;
        const FASTEST: u64 = 300_000_000;
        let start = Instant::now();
        let mut restarts = Restarts::new(PACED, start);
        let (mut written, mut fill) = (0, 0u64);
        let mut second = |(number, rate): (usize, &u64)| {
            let drain = if restarts.limit().is_some() { DRAIN } else { FASTEST };
            let came = (*rate).min(RING - fill + drain);
            let out = drain.min(fill + came);
            (written, fill) = (written + out, fill + came - out);
            restarts.observe(written + fill, start + Duration::from_secs(number as u64 + 1));
            restarts.limit().is_some()
        };
        rates.iter().enumerate().map(&mut second).collect()
    }

    #[test]
    fn a_source_that_becomes_faster_is_believed_while_the_ring_is_full() {
        let slow_then_fast = [&[60_000_000; 3][..], &[250_000_000; 12]].concat();
        let mut expected = vec![true; 3];
        expected.extend([false; 12]);
        assert_eq!(limited(&slow_then_fast), expected);
    }

    #[test]
    fn a_full_ring_lifts_the_limit_that_filled_it() {
        let start = Instant::now();
        let mut restarts = Restarts::new(PACED, start);
        let at = |second| start + Duration::from_secs(second);
        restarts.observe(60_000_000, at(1));
        assert!(restarts.limit().is_some());
        // The ring is full: no more comes in than the limit lets out.
        restarts.observe(60_000_000 + DRAIN, at(2));
        assert!(restarts.limit().is_none());
    }

    #[test]
    fn a_fill_that_was_asked_for_is_kept() {
        let start = Instant::now();
        let mut restarts = Restarts::new(Restart::AtFill { blocks: 7 }, start);
        restarts.observe(1, start + Duration::from_secs(9));
        assert_eq!(restarts.fill_blocks(), 7);
        assert!(restarts.limit().is_none());
    }
}
