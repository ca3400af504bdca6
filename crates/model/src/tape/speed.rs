//! Which step a drive takes: that which fits the rate the host offers.
//!
//! No maker publishes the rule. This one has the two properties that are known: between the lowest
//! and the highest step the drive does not stop, and it does not hunt for a speed for minutes. The
//! offered rate is what the host delivers while it is not made to wait, so that a drive that is the
//! limit sees how much faster the host could be.
//!
//! That rate is a memory, and a burst stays in it: what piled up before the drive while it turned
//! at the end of a wrap comes as fast as the interface, and a small buffer is empty before the
//! burst is forgotten. So a drive whose buffer runs low goes by its buffer alone and takes its
//! lowest step, at which any source that it can keep up with fills the buffer again.

use super::Nanobytes;

/// Host time after which older data count half.
const MEMORY_NS: u64 = 2_000_000_000;
/// Above this the drive takes the step over the offered rate.
const HIGH_PERCENT: u8 = 75;
/// At this and below it takes its lowest step, and it looks as soon as the buffer has come down to
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

    /// The host delivered `bytes`.
    pub fn add(&mut self, bytes: Nanobytes, now_ns: u64) {
        self.account(now_ns);
        self.bytes += bytes;
        while self.active_ns > MEMORY_NS {
            self.active_ns /= 2;
            self.bytes /= 2;
        }
    }

    /// The host waits from now on.
    pub fn pause(&mut self, now_ns: u64) {
        self.account(now_ns);
        self.paused = true;
    }

    /// The host waits no longer.
    pub fn go_on(&mut self, now_ns: u64) {
        self.account(now_ns);
        self.paused = false;
    }

    /// Native bytes per second; no bytes in no time is a rate of 0.
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
