//! Changes on trial: put back at a time, unless they are confirmed before.
//!
//! The time stands in the list, so that it outlives whoever was to put the change back (a process,
//! the guard): what is overdue is put back by the next that opens the list and asks for it. The
//! time is that since the start of the machine, sleep included, which nobody sets; after a restart
//! every trial is over, since the kernel has forgotten what was tried.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::revert::is_same;
use super::{Change, ChangeError, Changed, Changes, Machine, Reverted};
use crate::processes::Process;

/// Until when a change is on trial, and who puts it back then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// The time at which it is put back, in milliseconds since the start of the machine.
    pub until_uptime_ms: u64,
    /// The same in seconds of Unix time, for people.
    pub until_unix_seconds: u64,
    /// Who waits for it.
    pub guard: Process,
}

impl Change {
    /// How long it stays by itself, of a change on trial: nothing of one that is overdue.
    pub fn left(&self, machine: &dyn Machine) -> Option<Duration> {
        let trial = self.trial.as_ref()?;
        if self.boot != machine.boot() {
            return Some(Duration::ZERO);
        }
        Some(Duration::from_millis(trial.until_uptime_ms.saturating_sub(machine.uptime_ms())))
    }

    /// Whether it is on trial and ought to have been put back.
    pub fn is_overdue(&self, machine: &dyn Machine) -> bool {
        self.left(machine) == Some(Duration::ZERO)
    }
}

impl Changes<'_> {
    /// Ends the trial of all changes: they stay. How many changes that were.
    ///
    /// # Errors
    /// When the list cannot be written.
    pub fn confirm(&mut self) -> Result<Vec<Change>, ChangeError> {
        let mut confirmed = Vec::new();
        for change in self.list.changes.iter_mut().filter(|change| change.trial.is_some()) {
            change.trial = None;
            confirmed.push(change.clone());
        }
        if !confirmed.is_empty() {
            self.write_list()?;
        }
        Ok(confirmed)
    }

    /// Puts back every change that is overdue, the newest first. What a later change has set anew
    /// stays as that one set it, and goes back to what was before both with it.
    ///
    /// # Errors
    /// When a setting cannot be put back: then its change stays in the list.
    pub fn put_back_overdue(&mut self) -> Result<Reverted, ChangeError> {
        let mut all = Reverted::default();
        for index in (0..self.list.changes.len()).rev() {
            if self.list.changes[index].is_overdue(self.machine) {
                all.add(self.take_back_one(index)?);
            }
        }
        Ok(all)
    }

    /// Takes one change back and forgets it, but for what is gone.
    pub(super) fn take_back_one(&mut self, index: usize) -> Result<Reverted, ChangeError> {
        let change = self.list.changes[index].clone();
        let later = &self.list.changes[index + 1..];
        let is_set_anew = |changed: &Changed| {
            later.iter().flat_map(|change| &change.settings).any(|other| {
                is_same(other, changed)
                    && other.device.sequence == changed.device.sequence
                    && other.set.is_some()
            })
        };
        let (kept, back): (Vec<Changed>, Vec<Changed>) =
            change.settings.iter().cloned().partition(is_set_anew);
        let alone = Change { settings: back, ..change.clone() };
        // What is kept may be set anew by the kernel with what is put back.
        let kept = self.in_force(kept);
        let reverted = self.put_back(&[alone], kept)?;
        let is_gone = |one: &Changed| reverted.gone.iter().any(|gone| is_same(&gone.changed, one));
        for changed in &change.settings {
            hand_over(changed, &mut self.list.changes[index + 1..]);
        }
        self.list.changes[index].settings.retain(is_gone);
        self.list.changes.retain(|change| !change.settings.is_empty());
        self.write_list()?;
        Ok(reverted)
    }
}

/// What was before a change that is taken back was before the next one, too: later changes go back
/// to it, up to the first that set another value.
fn hand_over(changed: &Changed, later: &mut [Change]) {
    for other in later.iter_mut().flat_map(|change| &mut change.settings) {
        if is_same(other, changed) && other.device.sequence == changed.device.sequence {
            other.before.clone_from(&changed.before);
            if other.set.is_some() {
                return;
            }
        }
    }
}
