//! A limit on bytes per second.
//!
//! The next block may go when the earlier ones, at the given rate, would just be done. After a
//! pause of the source, a burst makes up for at most a tenth of a second.

use std::time::{Duration, Instant};

/// Computes how long to wait before the next bytes.
#[derive(Debug)]
pub struct RateLimit {
    bytes_per_second: f64,
    next: Instant,
}

/// Bytes that may go at once, as the time that they take at the rate.
pub const BURST: Duration = Duration::from_millis(100);

impl RateLimit {
    /// A limit that starts now. `bytes_per_second` is greater than zero.
    pub fn new(bytes_per_second: u64) -> RateLimit {
        RateLimit { bytes_per_second: bytes_per_second.max(1) as f64, next: Instant::now() }
    }

    /// Books `bytes` and returns how long the caller must wait before it sends them.
    pub fn book(&mut self, bytes: usize) -> Duration {
        self.book_at(bytes, Instant::now())
    }

    fn book_at(&mut self, bytes: usize, now: Instant) -> Duration {
        if let Some(earliest) = now.checked_sub(BURST) {
            self.next = self.next.max(earliest);
        }
        let wait = self.next.saturating_duration_since(now);
        self.next += Duration::from_secs_f64(bytes as f64 / self.bytes_per_second);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_stream_is_held_to_the_rate() {
        let mut limit = RateLimit::new(1_000_000);
        let start = Instant::now();
        let mut now = start;
        for _ in 0..100 {
            now += limit.book_at(100_000, now);
        }
        let seconds = (now - start).as_secs_f64();
        assert!((9.7..=9.95).contains(&seconds), "{seconds}");
    }

    #[test]
    fn a_pause_is_not_made_up_for() {
        let mut limit = RateLimit::new(1_000_000);
        let start = Instant::now();
        let mut now = start + Duration::from_secs(60);
        for _ in 0..10 {
            now += limit.book_at(100_000, now);
        }
        assert!((now - start).as_secs_f64() >= 60.7, "ten blocks of 0.1 s less burst");
    }
}
