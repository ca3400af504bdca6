//! When a writer whose ring ran empty starts again, and how fast it then drains the ring.
//!
//! A tape drive streams between its lowest and its highest speed. It can follow a source within
//! that range: waiting for a full ring would only cause unnecessary stops. A slower source stops
//! the drive anyway, and few long runs are better than many short ones. So the writer waits until
//! the ring is full, and drains it no faster than the drive needs.
//!
//! At the start the source's rate is unknown. The first quarter of a second's worth of blocks shows
//! whether the source keeps up; if so, the target gets them at once, and does not wait while memory
//! fills.
//!
//! The rate of the source is measured at both ends of the ring: what left the ring, and how much
//! its fill grew. A source that only the limit holds back fills the ring at the limit, which is
//! above the lowest speed, so a limit that is no longer needed is lifted.
//!
//! Not here: the number of readers, which the backup decides.

use std::time::{Duration, Instant};

use crate::rate::RateLimit;

/// When a writer whose ring ran empty starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    AtFill {
        /// Blocks that must be ready.
        blocks: usize,
    },
    /// At once while the source is faster than the target's lowest speed; otherwise at this fill.
    Paced {
        /// Blocks that must be ready if the source is slower.
        blocks: usize,
        /// The lowest speed.
        lowest_bytes_per_second: u64,
        /// Rate limit while the source is slower; above the lowest speed.
        drain_bytes_per_second: Option<u64>,
    },
}

/// Shortest time over which the rate of a source is judged.
const WINDOW: Duration = Duration::from_secs(1);

/// Fraction of a second, at the target's lowest speed, over which a source is judged at the start.
const PROBES_PER_SECOND: u64 = 4;

/// Decides on restarts from the source's progress so far.
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

    /// Bytes after which the source can be judged before the writer starts; `None` if the writer
    /// starts at its fill in any case.
    pub(crate) fn probe_bytes(&self) -> Option<u64> {
        match self.restart {
            Restart::AtFill { .. } => None,
            Restart::Paced { lowest_bytes_per_second, .. } => {
                Some(lowest_bytes_per_second / PROBES_PER_SECOND)
            }
        }
    }

    /// Whether a source with this many bytes since the start is fast enough for the target to start
    /// at once.
    pub(crate) fn keeps_up(&self, produced_bytes: u64, now: Instant) -> bool {
        let Restart::Paced { lowest_bytes_per_second, .. } = self.restart else { return false };
        let seconds = now.saturating_duration_since(self.since).as_secs_f64();
        produced_bytes as f64 >= lowest_bytes_per_second as f64 * seconds
    }

    /// Records that the source has produced this many bytes since the start: written bytes, and
    /// those in the ring.
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

    /// The current rate limit, if any.
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
