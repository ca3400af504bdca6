//! The device watched over the part of a run that fio counts.
//!
//! A job with `ramp_time` runs for that long before fio begins to count. The device counts from the
//! first request on, so the look that its counters are held against is taken when the ramp is over:
//! that long after the first request that it served.

use std::time::{Duration, Instant};

use storage::layers::Storage;

use experiment::observed::{About, Before, Measures};

/// What a job does before it is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ramp {
    /// Nothing.
    #[default]
    None,
    /// All of its parts begin together, with as long a ramp.
    For(Duration),
    /// Its parts begin at different times, or have different ramps.
    Several,
}

/// Looks at a device from before fio starts.
pub struct RampWatch<'a> {
    device: &'a Storage,
    ramp: Ramp,
    before: Before,
    begun: Option<Instant>,
    behind_ramp: Option<Before>,
}

/// Why there are no numbers of the device.
const SEVERAL: &str = "parts of the job have ramps of their own: what the device counted holds \
                       them, too, and is left out";
const UNSEEN: &str = "nobody saw the end of the job's ramp at the device: what it counted is left \
                      out";

impl<'a> RampWatch<'a> {
    /// Begins.
    pub fn new(device: &'a Storage, ramp: Ramp) -> RampWatch<'a> {
        let before = Before::look(device);
        RampWatch { device, ramp, before, begun: None, behind_ramp: None }
    }

    /// Looks again, every few milliseconds while fio runs.
    pub fn look(&mut self) {
        let Ramp::For(ramp) = self.ramp else { return };
        match self.begun {
            _ if self.behind_ramp.is_some() => {}
            None if self.before.is_busy_since(self.device) => self.begun = Some(Instant::now()),
            Some(begun) if begun.elapsed() >= ramp => {
                self.behind_ramp = Some(Before::look(self.device));
            }
            _ => {}
        }
    }

    /// Bytes that the device has moved since the beginning.
    pub fn device_bytes(&self) -> Option<u64> {
        self.before.device_bytes(self.device)
    }

    /// What was counted of a run that moved `bytes`, and what should be known of it.
    pub fn measures(&self, about: About, bytes: u64) -> (Measures, Option<&'static str>) {
        let of_this_machine = || self.before.measures_of_this_machine(bytes);
        match (self.ramp, &self.behind_ramp) {
            (Ramp::None, _) => (self.before.measures(self.device, about, bytes), None),
            (Ramp::For(_), Some(behind)) => (behind.measures(self.device, about, bytes), None),
            (Ramp::For(_), None) => (of_this_machine(), Some(UNSEEN)),
            (Ramp::Several, _) => (of_this_machine(), Some(SEVERAL)),
        }
    }
}
