//! When a writer that found its ring empty starts again, and how fast it drains it then.
//!
//! A tape drive streams between its lowest and its highest speed. A source within that range is
//! followed as it comes: to wait for a full ring would only make stops that need not be. A source
//! below it stops the drive anyway; then few long runs are better than many short ones, so the
//! writer waits until the ring is full, and drains it no faster than the drive needs.
//!
//! How fast the source is, is known whenever the ring runs empty: all that came since it ran empty
//! the last time has gone through.

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
        /// Limit on the rate while the source is slower.
        drain_bytes_per_second: Option<u64>,
    },
}

/// Shortest time over which the rate of a source is judged.
const WINDOW: Duration = Duration::from_secs(1);

/// What is known of the source so far.
#[derive(Debug)]
pub(crate) struct Pace {
    restart: Restart,
    since: Instant,
    bytes_then: u64,
    /// The limit, while the source is slower than the target's lowest speed.
    drain: Option<RateLimit>,
    slow: bool,
}

impl Pace {
    /// A writer that begins to wait for its first block now.
    pub(crate) fn new(restart: Restart, now: Instant) -> Pace {
        Pace { restart, since: now, bytes_then: 0, drain: None, slow: false }
    }

    /// The ring is empty after `bytes` went through it. Returns the blocks to wait for.
    pub(crate) fn ran_empty(&mut self, bytes: u64, now: Instant) -> usize {
        let (blocks, lowest, drain) = match self.restart {
            Restart::AtFill { blocks } => return blocks,
            Restart::Paced { blocks, lowest_bytes_per_second, drain_bytes_per_second } => {
                (blocks, lowest_bytes_per_second, drain_bytes_per_second)
            }
        };
        let window = now.saturating_duration_since(self.since);
        if window >= WINDOW {
            let rate = (bytes - self.bytes_then) as f64 / window.as_secs_f64();
            self.slow = rate < lowest as f64;
            self.drain = drain.filter(|_| self.slow).map(RateLimit::new);
            (self.since, self.bytes_then) = (now, bytes);
        }
        if self.slow { blocks } else { 1 }
    }

    /// The limit of the pace, if there is one at present.
    pub(crate) fn limit(&mut self) -> Option<&mut RateLimit> {
        self.drain.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACED: Restart = Restart::Paced {
        blocks: 900,
        lowest_bytes_per_second: 100_000_000,
        drain_bytes_per_second: Some(100_000_000),
    };

    /// Runs empty every `step` with a source of that rate; returns the blocks that are waited for.
    fn waits(rate: u64, step: Duration, times: u32) -> Vec<usize> {
        let start = Instant::now();
        let mut pace = Pace::new(PACED, start);
        let bytes = |time: Duration| (rate as f64 * time.as_secs_f64()) as u64;
        (1..=times).map(|time| pace.ran_empty(bytes(step * time), start + step * time)).collect()
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
    fn nothing_is_concluded_from_a_moment() {
        let waits = waits(60_000_000, Duration::from_millis(400), 6);
        assert_eq!(waits, [1, 1, 900, 900, 900, 900]);
    }

    #[test]
    fn a_source_that_becomes_faster_is_believed() {
        let start = Instant::now();
        let mut pace = Pace::new(PACED, start);
        let second = Duration::from_secs(1);
        assert_eq!(pace.ran_empty(50_000_000, start + second), 900);
        assert!(pace.limit().is_some());
        assert_eq!(pace.ran_empty(250_000_000, start + 2 * second), 1);
        assert!(pace.limit().is_none());
    }

    #[test]
    fn a_fill_that_was_asked_for_is_kept() {
        let start = Instant::now();
        let mut pace = Pace::new(Restart::AtFill { blocks: 7 }, start);
        assert_eq!(pace.ran_empty(1 << 40, start + Duration::from_secs(1)), 7);
        assert!(pace.limit().is_none());
    }
}
