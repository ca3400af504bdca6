//! The number of reads of one stream in flight, found while it runs.
//!
//! A stream that must come in order can keep a device busy only by asking ahead. By Little's law
//! the requests in flight are the rate times the time that each takes: eight of 1 MiB get 3 GB/s
//! from a disk that answers in 2.5 ms, and 400 MB/s from one behind a network that takes 20 ms. The
//! latency is not known in advance. So the depth is doubled now and then, and kept if that is
//! faster by at least [`WORTH`]. A stream held up by another stage, with no room in the ring, says
//! nothing about the device, and ends an attempt.

use std::time::{Duration, Instant};

/// Least gain for which a doubled depth is kept.
const WORTH: f64 = 1.1;
/// A rate is measured over this many rounds of all requests in flight, and at least this time.
const ROUNDS: usize = 4;
const WINDOW_MIN: Duration = Duration::from_millis(20);
/// Windows between attempts without gain: at first, and at most.
const PAUSE_MIN: u32 = 4;
const PAUSE_MAX: u32 = 256;

/// The depth of one stream.
#[derive(Debug)]
pub struct Depth {
    now: usize,
    most: usize,
    /// Depth and rate before the current attempt.
    before: Option<(usize, f64)>,
    /// Windows until the next attempt.
    pause: u32,
    /// Length of the next pause, in windows.
    next_pause: u32,
    window: Option<Window>,
    /// Transfers that are not counted: they began before the window's depth was reached.
    passing: usize,
}

#[derive(Debug)]
struct Window {
    since: Instant,
    bytes: u64,
    ended: usize,
}

impl Depth {
    /// Begins with `least`, and increases up to `most`.
    pub fn new(least: usize, most: usize) -> Depth {
        let now = least.max(1);
        Depth {
            now,
            most: most.max(now),
            before: None,
            pause: 1,
            next_pause: PAUSE_MIN,
            window: None,
            passing: now,
        }
    }

    /// How many may be in flight now.
    pub fn now(&self) -> usize {
        self.now
    }

    /// A transfer of this many bytes has ended.
    pub fn ended(&mut self, bytes: u64, at: Instant) {
        if self.now == self.most && self.before.is_none() {
            return;
        }
        if self.passing > 0 {
            self.passing -= 1;
            return;
        }
        let Some(window) = &mut self.window else {
            self.window = Some(Window { since: at, bytes: 0, ended: 0 });
            return;
        };
        window.bytes += bytes;
        window.ended += 1;
        let took = at.saturating_duration_since(window.since);
        if window.ended >= ROUNDS * self.now && took >= WINDOW_MIN {
            let rate = window.bytes as f64 / took.as_secs_f64();
            self.window = None;
            self.learn(rate);
        }
    }

    /// No transfer could begin for lack of room: the limit is elsewhere.
    pub fn held_up(&mut self) {
        if let Some((before, _)) = self.before.take() {
            self.go_back(before);
        }
        self.pause_again();
        self.restart();
    }

    /// A stream ends or begins: fewer are in flight than allowed.
    pub fn restart(&mut self) {
        self.window = None;
        self.passing = self.now;
    }

    fn learn(&mut self, rate: f64) {
        match self.before.take() {
            Some((before, slower)) if rate < slower * WORTH => {
                self.go_back(before);
                self.next_pause = (self.next_pause * 2).min(PAUSE_MAX);
            }
            Some(_) => {
                self.next_pause = PAUSE_MIN;
                self.try_more(rate);
            }
            None if self.pause > 1 => self.pause -= 1,
            None => self.try_more(rate),
        }
    }

    fn try_more(&mut self, rate: f64) {
        if self.now == self.most {
            return;
        }
        self.before = Some((self.now, rate));
        self.now = (self.now * 2).min(self.most);
        self.restart();
    }

    fn go_back(&mut self, before: usize) {
        self.now = before;
        self.pause_again();
        self.restart();
    }

    fn pause_again(&mut self) {
        self.pause = self.next_pause;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEBIBYTE: u64 = 1 << 20;

    /// Runs a stream of requests of 1 MiB from a device that answers each after `latency` and
    /// gives no more than `rate` bytes a second; returns the depth at the end and the highest.
    fn stream(depth: &mut Depth, latency: Duration, rate: f64, requests: usize) -> (usize, usize) {
        let begun = Instant::now();
        let each = Duration::from_secs_f64(MEBIBYTE as f64 / rate);
        let (mut now, mut device_free) = (begun, begun);
        let mut under_way = std::collections::VecDeque::new();
        let mut highest = 0;
        for _ in 0..requests {
            while under_way.len() < depth.now() {
                device_free = device_free.max(now) + each;
                under_way.push_back(device_free.max(now + latency));
            }
            now = under_way.pop_front().expect("the depth is no less than one");
            depth.ended(MEBIBYTE, now);
            highest = highest.max(depth.now());
        }
        (depth.now(), highest)
    }

    #[test]
    fn a_device_far_away_is_asked_for_as_much_as_it_gives() {
        // Little: 1 GB/s times 20 ms are 19 requests.
        let far = Duration::from_millis(20);
        assert_eq!(stream(&mut Depth::new(8, 32), far, 1e9, 4000).0, 32);
        // Half of that is nine: sixteen are a tenth faster than eight, 32 are no faster.
        let (depth, highest) = stream(&mut Depth::new(8, 32), far, 0.5e9, 4000);
        assert_eq!((depth, highest), (16, 32));
        assert_eq!(stream(&mut Depth::new(8, 32), far, 5e9, 4000).0, 32);
    }

    #[test]
    fn a_device_that_is_busy_is_left_with_what_it_has() {
        let near = Duration::from_millis(2);
        let mut depth = Depth::new(8, 32);
        let (end, highest) = stream(&mut depth, near, 1e9, 20_000);
        assert_eq!((end, highest), (8, 16));
        // The attempts get rare.
        let mut tried = 0;
        for _ in 0..20 {
            let (_, highest) = stream(&mut depth, near, 1e9, 1000);
            tried += u32::from(highest > 8);
        }
        assert!(tried <= 4, "{tried} of 20 stretches with an attempt");
    }

    #[test]
    fn what_is_held_up_tries_nothing() {
        let mut depth = Depth::new(8, 32);
        let begun = Instant::now();
        for number in 0..10_000 {
            depth.ended(MEBIBYTE, begun + Duration::from_millis(number));
            if number % 7 == 0 {
                depth.held_up();
            }
            assert_eq!(depth.now(), 8);
        }
    }

    #[test]
    fn an_attempt_that_is_held_up_is_taken_back() {
        let mut depth = Depth::new(8, 32);
        let begun = Instant::now();
        let tried = (0..1000).find(|&number| {
            depth.ended(MEBIBYTE, begun + Duration::from_millis(number));
            depth.now() == 16
        });
        assert!(tried.is_some());
        depth.held_up();
        assert_eq!(depth.now(), 8);
    }

    #[test]
    fn a_fixed_depth_stays() {
        let mut depth = Depth::new(4, 4);
        assert_eq!(stream(&mut depth, Duration::from_millis(20), 1e9, 5000), (4, 4));
    }
}
