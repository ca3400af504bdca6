//! Which step a drive chooses: the one that fits the rate the host offers.
//!
//! No maker publishes the rule. This one has the two known properties: between the lowest and the
//! highest step the drive does not stop, and it does not search for a speed for minutes. The
//! offered rate is what the host delivers while it does not have to wait, so a drive that is the
//! limit notices how much faster the host could be.
//!
//! That rate has a memory, so a burst stays in it: data that piled up before the drive during the
//! turn at the end of a wrap arrive at the speed of the interface, and a small buffer is empty
//! before the burst is forgotten. So a drive whose buffer runs low uses only its buffer and takes
//! its lowest step, at which any sufficient source fills the buffer again.

use super::Nanobytes;

/// Time of the host after which older data count half.
const MEMORY_NS: u64 = 2_000_000_000;
/// Above this fill the drive takes the step over the offered rate.
const HIGH_PERCENT: u8 = 75;
/// At this fill and below it takes its lowest step; it checks as soon as the buffer has fallen to
/// it.
pub const LOW_PERCENT: u8 = 25;

/// The rate at which the host delivers (or takes) native bytes while it does not wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfferedRate {
    bytes: Nanobytes,
    active_ns: u64,
    since_ns: u64,
    paused: bool,
}

impl OfferedRate {
    /// Nothing is known yet.
    pub fn starting(now_ns: u64) -> OfferedRate {
        OfferedRate { since_ns: now_ns, ..OfferedRate::default() }
    }

    /// The host delivered `bytes`. Time before the first of them does not count: a drive that
    /// stood loaded all day, or waited for a program to read, would begin at its lowest step and
    /// need seconds to leave it.
    pub fn add(&mut self, bytes: Nanobytes, now_ns: u64) {
        if self.bytes == 0 {
            (self.active_ns, self.since_ns) = (0, now_ns);
        }
        self.account(now_ns);
        self.bytes += bytes;
        while self.active_ns > MEMORY_NS {
            self.active_ns /= 2;
            self.bytes /= 2;
        }
    }

    /// The host starts to wait.
    pub fn pause(&mut self, now_ns: u64) {
        self.account(now_ns);
        self.paused = true;
    }

    /// The host stops waiting.
    pub fn go_on(&mut self, now_ns: u64) {
        self.account(now_ns);
        self.paused = false;
    }

    /// Native bytes per second; 0 before any time has passed.
    pub fn rate(&self, now_ns: u64) -> u64 {
        let waited_ns = if self.paused { 0 } else { now_ns.saturating_sub(self.since_ns) };
        match self.active_ns + waited_ns {
            0 if self.bytes == 0 => 0,
            0 => u64::MAX,
            ns => u64::try_from(self.bytes / u128::from(ns)).unwrap_or(u64::MAX),
        }
    }

    fn account(&mut self, now_ns: u64) {
        if !self.paused {
            self.active_ns += now_ns.saturating_sub(self.since_ns);
        }
        self.since_ns = now_ns;
    }
}

/// The step for an offered rate and a buffer that is full to `fill_percent` (empty, when reading).
pub fn best_step(speeds: &[u64], current: usize, offered: u64, fill_percent: u8) -> usize {
    let highest = speeds.len() - 1;
    let over = speeds.iter().position(|speed| *speed >= offered).unwrap_or(highest);
    let under = speeds.iter().rposition(|speed| *speed <= offered).unwrap_or(0);
    match fill_percent {
        percent if percent >= HIGH_PERCENT => over,
        percent if percent <= LOW_PERCENT => 0,
        _ => current.clamp(under.min(over), over),
    }
}
