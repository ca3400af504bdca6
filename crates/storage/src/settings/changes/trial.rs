//! Changes on trial: put back at a time, unless they are confirmed before.
//!
//! The time stands in the list, so that it outlives whoever was to put the change back (a process,
//! the guard): what is overdue is put back by the next that opens the list and asks for it. The
//! time is that since the start of the machine, sleep included, which nobody sets; after a restart
//! every trial is over, since the kernel has forgotten what was tried.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::revert::is_same;
use super::{ChangeError, Changed, Changes, Left, Reverted, SettingFiles, SettingsChange, look};
use crate::settings::Setting;
use machine::processes::Process;

/// Until when a change is on trial, and who puts it back then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// The time at which it is put back, in milliseconds since the start of the machine.
    pub until_uptime_ms: u64,
    /// The same in seconds of Unix time, for people.
    pub until_unix_seconds: u64,
    /// Who waits for it.
    pub guard: Process,
    /// How far it has come.
    #[serde(default)]
    pub phase: Phase,
}

/// How far a trial has come, as the list has it: whoever is killed leaves that behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Its settings are being written: they may hold anything.
    #[default]
    BeingSet,
    /// They were set, and held what they were set to: what they hold instead is somebody else's.
    Set,
    /// They are being put back, but for those of somebody else.
    BeingPutBack,
}

impl SettingsChange {
    /// How long it stays by itself, of a change on trial: nothing of one that is overdue.
    pub fn left(&self, machine: &dyn SettingFiles) -> Option<Duration> {
        let trial = self.trial.as_ref()?;
        if self.boot != machine.boot() {
            return Some(Duration::ZERO);
        }
        Some(Duration::from_millis(trial.until_uptime_ms.saturating_sub(machine.uptime_ms())))
    }

    /// Whether it is on trial and ought to have been put back.
    pub fn is_overdue(&self, machine: &dyn SettingFiles) -> bool {
        self.left(machine) == Some(Duration::ZERO)
    }
}

impl Changes<'_> {
    /// Ends the trial of all changes: they stay. How many changes that were.
    ///
    /// # Errors
    /// When the list cannot be written.
    pub fn confirm(&mut self) -> Result<Vec<SettingsChange>, ChangeError> {
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
    /// stays as that one set it, and goes back to what was before both with it; what somebody else
    /// has set meanwhile stays, and is forgotten.
    ///
    /// # Errors
    /// When a setting cannot be put back: then its change stays in the list.
    pub fn put_back_overdue(&mut self) -> Result<Reverted, ChangeError> {
        self.put_back_those(SettingsChange::is_overdue)
    }

    /// Puts back what this guard waits for, overdue or not, in the same way.
    ///
    /// # Errors
    /// As [`Changes::put_back_overdue`].
    pub fn put_back_guarded_by(&mut self, guard: &Process) -> Result<Reverted, ChangeError> {
        let is_guarded = |change: &SettingsChange, _: &dyn SettingFiles| {
            change.trial.as_ref().is_some_and(|trial| trial.guard == *guard)
        };
        self.put_back_those(is_guarded)
    }

    fn put_back_those(
        &mut self,
        is_over: impl Fn(&SettingsChange, &dyn SettingFiles) -> bool,
    ) -> Result<Reverted, ChangeError> {
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

    /// Takes those settings out of a trial that somebody else has set meanwhile, and writes down
    /// that the others are being put back: from then on the kernel may set any of them anew.
    fn give_up_what_is_theirs(&mut self, index: usize) -> Result<Vec<Left>, ChangeError> {
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

    /// Takes one change back and forgets it, but for what is gone; what is `kept` stays.
    pub(super) fn take_back_one(
        &mut self,
        index: usize,
        mut kept: Vec<(Setting, Changed)>,
    ) -> Result<Reverted, ChangeError> {
        let change = self.list.changes[index].clone();
        let later = &self.list.changes[index + 1..];
        let (set_anew, back): (Vec<Changed>, Vec<Changed>) =
            change.settings.iter().cloned().partition(|it| is_set_anew(it, later));
        let alone = SettingsChange { settings: back, ..change.clone() };
        // What is kept may be set anew by the kernel with what is put back.
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

/// Whether a later change has set it, too.
fn is_set_anew(changed: &Changed, later: &[SettingsChange]) -> bool {
    later.iter().flat_map(|change| &change.settings).any(|other| {
        is_same(other, changed)
            && other.device.sequence == changed.device.sequence
            && other.set.is_some()
    })
}

/// What was before a change that is taken back was before the next one, too: later changes go back
/// to it, up to the first that set another value.
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
