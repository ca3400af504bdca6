//! Changes on trial: restored at a set time, unless the user confirms them before.
//!
//! The time is in the list, so that it outlives the guard, the process that restores the change. If
//! the guard has died, the next command that opens the list restores what is overdue. The time
//! counts from the start of the machine, sleep included, because no one can set that clock. After a
//! restart every trial is over, because the kernel has forgotten the values.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::revert::is_same;
use super::{Changed, Changes, Left, Reverted, SettingFiles, SettingsChange, look};
use crate::StorageError;
use crate::settings::Setting;
use machine::processes::Process;

/// When a trial ends, and which process restores the change then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// The time of the restore, in milliseconds since the start of the machine.
    pub until_uptime_ms: u64,
    /// The same in seconds of Unix time, for people.
    pub until_unix_seconds: u64,
    /// The process that waits for that time.
    pub guard: Process,
    /// The progress of the trial.
    #[serde(default)]
    pub phase: Phase,
}

/// The progress of a trial in the list; it survives if a process is killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Its settings are being written: they may hold anything.
    #[default]
    BeingSet,
    /// They were set and read back: another value now was set by another program.
    Set,
    /// They are being restored, except those that another program has set.
    BeingPutBack,
}

impl SettingsChange {
    /// Time left of a trial, zero if it is overdue; `None` for a change that is not on trial.
    pub fn left(&self, machine: &dyn SettingFiles) -> Option<Duration> {
        let trial = self.trial.as_ref()?;
        if self.boot != machine.boot() {
            return Some(Duration::ZERO);
        }
        Some(Duration::from_millis(trial.until_uptime_ms.saturating_sub(machine.uptime_ms())))
    }

    /// Whether it is on trial and its time is over.
    pub fn is_overdue(&self, machine: &dyn SettingFiles) -> bool {
        self.left(machine) == Some(Duration::ZERO)
    }
}

impl Changes<'_> {
    /// Ends the trial of all changes, which stay. Returns these changes.
    ///
    /// # Errors
    /// When the list cannot be written.
    pub fn confirm(&mut self) -> Result<Vec<SettingsChange>, StorageError> {
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

    /// Restores every change that is overdue, the newest first. A setting that a later change has
    /// set again keeps that value, and reverting the later change restores the value from before
    /// both. A setting that another program has set stays, and leaves the list.
    ///
    /// # Errors
    /// When a setting cannot be restored: then its change stays in the list.
    pub fn put_back_overdue(&mut self) -> Result<Reverted, StorageError> {
        self.put_back_those(SettingsChange::is_overdue)
    }

    /// Restores the changes of this guard in the same way, overdue or not.
    ///
    /// # Errors
    /// As [`Changes::put_back_overdue`].
    pub fn put_back_guarded_by(&mut self, guard: &Process) -> Result<Reverted, StorageError> {
        let is_guarded = |change: &SettingsChange, _: &dyn SettingFiles| {
            change.trial.as_ref().is_some_and(|trial| trial.guard == *guard)
        };
        self.put_back_those(is_guarded)
    }

    fn put_back_those(
        &mut self,
        is_over: impl Fn(&SettingsChange, &dyn SettingFiles) -> bool,
    ) -> Result<Reverted, StorageError> {
        let mut all = Reverted::default();
        for index in (0..self.list.changes.len()).rev() {
            if is_over(&self.list.changes[index], self.machine) {
                let theirs = self.give_up_what_is_theirs(index)?;
                let kept = self.in_force(theirs.iter().map(|it| it.changed.clone()).collect());
                all.add(self.take_back_one(index, kept)?);
                all.theirs.extend(theirs);
            }
        }
        Ok(all)
    }

    /// Removes settings from a trial that another program has set meanwhile, and records that the
    /// others are being restored: from then on the kernel may reset any of them.
    fn give_up_what_is_theirs(&mut self, index: usize) -> Result<Vec<Left>, StorageError> {
        let change = &self.list.changes[index];
        let is_set = change.trial.as_ref().is_some_and(|trial| trial.phase == Phase::Set);
        if !is_set {
            return Ok(Vec::new());
        }
        let later = &self.list.changes[index + 1..];
        let is_theirs = |now: &super::Now| {
            let is_other =
                |wanted: Option<&String>| wanted.is_some() && wanted != now.value.as_ref();
            let changed = &now.changed;
            now.value.is_some()
                && is_other(changed.set.as_ref())
                && is_other(Some(&changed.before))
                && self.is_of_now(change, changed)
                && !is_set_anew(changed, later)
        };
        let theirs: Vec<Left> = look(self.machine, change)
            .into_iter()
            .filter(is_theirs)
            .map(|now| Left { changed: now.changed, found: now.value })
            .collect();
        let change = &mut self.list.changes[index];
        let is_one = |changed: &Changed| theirs.iter().any(|it| is_same(&it.changed, changed));
        change.settings.retain(|changed| !is_one(changed));
        if let Some(trial) = &mut change.trial {
            trial.phase = Phase::BeingPutBack;
        }
        self.write_list()?;
        Ok(theirs)
    }

    /// Reverts one change and removes it from the list, except devices that are gone. Settings in
    /// `kept` stay.
    pub(super) fn take_back_one(
        &mut self,
        index: usize,
        mut kept: Vec<(Setting, Changed)>,
    ) -> Result<Reverted, StorageError> {
        let change = self.list.changes[index].clone();
        let later = &self.list.changes[index + 1..];
        let (set_anew, back): (Vec<Changed>, Vec<Changed>) =
            change.settings.iter().cloned().partition(|it| is_set_anew(it, later));
        let alone = SettingsChange { settings: back, ..change.clone() };
        // A restore may make the kernel reset settings that are kept.
        kept.extend(self.in_force(set_anew));
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

/// Whether a later change has also set it.
fn is_set_anew(changed: &Changed, later: &[SettingsChange]) -> bool {
    later.iter().flat_map(|change| &change.settings).any(|other| {
        is_same(other, changed)
            && other.device.sequence == changed.device.sequence
            && other.set.is_some()
    })
}

/// Passes the value from before a reverted change to later changes of the same setting, up to the
/// first one that set a value itself: that is now the value to restore.
fn hand_over(changed: &Changed, later: &mut [SettingsChange]) {
    for other in later.iter_mut().flat_map(|change| &mut change.settings) {
        if is_same(other, changed) && other.device.sequence == changed.device.sequence {
            other.before.clone_from(&changed.before);
            if other.set.is_some() {
                return;
            }
        }
    }
}
