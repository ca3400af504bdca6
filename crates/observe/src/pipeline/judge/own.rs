//! How long a stage would take if no other ever kept it waiting, and all of them together.
//!
//! What a stage was seen to do is a bound from below only. A stage that holds a rate by the clock
//! sleeps less when it was kept waiting, and makes up for it: its rate says how long it takes. One
//! that sleeps without a rate that is known may or may not make up for it: then nothing is said.
//! What a stage does at its end, until its target has everything, overlaps with nothing.

use super::{Case, Stage};

/// Of the run, from which on sleeping and waiting for others hide from each other.
const HIDES_SHARE: f64 = 0.05;

impl Case<'_> {
    /// Bytes that passed a stage, by its own calls or those of its neighbours.
    pub(super) fn moved_bytes(&self, at: usize) -> Option<u64> {
        let all = &self.look.stages;
        let next = |at: usize| all.get(at + 1).and_then(|it| it.bytes_in);
        let before = |at: usize| at.checked_sub(1).and_then(|at| all[at].bytes_out);
        next(at).or(all[at].bytes_out).or_else(|| before(at)).or(all[at].bytes_in)
    }

    /// How long a stage takes at the rate that it was told to hold.
    pub(super) fn declared_seconds(&self, at: usize) -> Option<f64> {
        let rate = self.look.stages[at].declared_bytes_per_second?;
        Some(self.moved_bytes(at)? as f64 / rate.max(f64::MIN_POSITIVE))
    }

    /// How long a stage takes at the least, by what it was seen to do.
    pub(super) fn seen_seconds(&self, at: usize) -> f64 {
        let stage = &self.look.stages[at];
        match self.declared_seconds(at) {
            Some(declared) => declared.max(stage.busy_seconds() - stage.clock_seconds),
            None => stage.busy_seconds(),
        }
    }

    /// Whether a stage may take longer by itself than [`Case::seen_seconds`].
    pub(super) fn hides_its_pace(&self, at: usize) -> bool {
        let stage = &self.look.stages[at];
        let waits = stage.blocked_seconds + stage.starved_seconds;
        let sleeps = self.declared_seconds(at).is_none()
            && self.share(stage.clock_seconds) >= HIDES_SHARE
            && self.share(waits) >= HIDES_SHARE;
        sleeps || (at + 1 == self.look.stages.len() && self.drive_stops())
    }

    /// How long a stage takes by itself, without its end; `None` where that is not known.
    fn own_seconds(&self, at: usize) -> Option<f64> {
        let flush = self.look.stages[at].flush_seconds;
        (!self.hides_its_pace(at)).then(|| (self.seen_seconds(at) - flush).max(0.0))
    }

    /// The first stage whose pace is hidden.
    pub(super) fn hidden_pace(&self) -> Option<usize> {
        (0..self.look.stages.len()).find(|&at| self.hides_its_pace(at))
    }

    /// How long the last stage waits at its end until its target has everything.
    pub(super) fn end_seconds(&self) -> f64 {
        self.look.stages.last().map_or(0.0, |last| last.flush_seconds)
    }

    /// How long all of it takes if nothing waits for anything that can overlap, where `changed`
    /// takes that many seconds in the place of its own and all stages that much processor time;
    /// `None` where that is not known.
    pub(super) fn overlapped_with(
        &self,
        changed: Option<(usize, f64)>,
        used_seconds: f64,
    ) -> Option<f64> {
        let own = |at: usize| match changed {
            Some((stage, seconds)) if stage == at => Some(seconds),
            _ => self.own_seconds(at),
        };
        let all: Option<Vec<f64>> = (0..self.look.stages.len()).map(own).collect();
        let longest = all?.into_iter().fold(0.0, f64::max);
        let cores = used_seconds / self.left_cores();
        let programs = longest.max(cores) + self.end_seconds();
        Some(programs.max(self.drive_seconds_to_end()))
    }

    /// The same as it is.
    pub(super) fn overlapped_seconds(&self) -> Option<f64> {
        self.overlapped_with(None, self.used_seconds())
    }

    /// A stage's name as in a sentence, with what hides its pace.
    pub(super) fn hidden_because(&self, at: usize) -> String {
        if at + 1 == self.look.stages.len() && self.drive_stops() {
            return "how long the drive takes without its stops is not known".to_owned();
        }
        let Stage { clock_seconds, .. } = &self.look.stages[at];
        format!(
            "{} waits for the clock for {} of the run and may wait longer where nothing else \
             keeps it",
            self.named(at),
            report::format::percent(self.share(*clock_seconds).min(1.0))
        )
    }
}
