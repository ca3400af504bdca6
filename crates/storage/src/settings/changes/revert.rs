//! Changes taken back: every setting as it was before the first of them.

use serde::Serialize;

use super::{ChangeError, Changed, Changes, SettingsChange};
use crate::settings::device::Device;
use crate::settings::{Setting, SettingError};

/// Times that all settings are gone through: the kernel may have set one anew behind another one
/// that was written, but not more often than there are kinds.
const PASSES_MAX: usize = 3;

/// A setting that was put back, or was not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Left {
    /// What was changed, with the value before the first change.
    #[serde(flatten)]
    pub changed: Changed,
    /// What it held.
    pub found: Option<String>,
}

/// What taking changes back came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reverted {
    /// Settings that are as they were, each once.
    pub put_back: Vec<Left>,
    /// Settings that the kernel has forgotten since, at a restart or when the device went and came
    /// back, and that hold what Takeup did not set.
    pub forgotten: Vec<Left>,
    /// Settings of devices that are gone. They stay in the list.
    pub gone: Vec<Left>,
    /// Settings of a trial that somebody else has set since; they stay so, and are forgotten.
    pub theirs: Vec<Left>,
}

/// Whether it is as it was.
fn is_back(left: &Left) -> bool {
    left.found.as_ref() == Some(&left.changed.before)
}

/// Whether two are the same setting of the same device. Paths to one disk have one WWN.
pub(super) fn is_same(one: &Changed, other: &Changed) -> bool {
    let key = |it: &Changed| (it.kind, it.device.known_by.clone(), it.device.name.clone());
    key(one) == key(other)
}

/// One setting of one device over all changes that are taken back.
struct Whole {
    changed: Changed,
    /// Whether the device has been what it is now since then.
    is_of_now: bool,
}

impl Reverted {
    /// Adds what another one came to.
    pub(super) fn add(&mut self, other: Reverted) {
        self.put_back.extend(other.put_back);
        self.forgotten.extend(other.forgotten);
        self.gone.extend(other.gone);
        self.theirs.extend(other.theirs);
    }
}

impl Changes<'_> {
    /// Takes all changes back and forgets them, but for those of devices that are gone.
    ///
    /// # Errors
    /// When a setting cannot be put back: then the list stays as it is.
    pub fn revert(&mut self) -> Result<Reverted, ChangeError> {
        let reverted = self.put_back(&self.list.changes, Vec::new())?;
        let is_gone = |one: &Changed| reverted.gone.iter().any(|gone| is_same(&gone.changed, one));
        for change in &mut self.list.changes {
            change.settings.retain(is_gone);
        }
        self.list.changes.retain(|change| !change.settings.is_empty());
        self.write_list()?;
        Ok(reverted)
    }

    /// Forgets what was changed of devices that are gone; how many settings that were.
    ///
    /// # Errors
    /// When the list cannot be written.
    pub fn forget_gone(&mut self) -> Result<usize, ChangeError> {
        let (sys, mounts) = (self.machine.sys(), self.machine.mounts());
        let mut forgotten = 0;
        for change in &mut self.list.changes {
            let before = change.settings.len();
            change.settings.retain(|one| one.device.find(sys, one.kind, &mounts).is_some());
            forgotten += before - change.settings.len();
        }
        self.list.changes.retain(|change| !change.settings.is_empty());
        self.write_list()?;
        Ok(forgotten)
    }

    pub(super) fn take_back_last(&mut self) -> Result<Reverted, ChangeError> {
        self.take_back_one(self.list.changes.len() - 1, Vec::new())
    }

    /// All of them are tried; the first error is told. What is to be kept as it is now is written
    /// where that has set it anew; a kernel that does not take it any more is no error.
    pub(super) fn put_back(
        &self,
        changes: &[SettingsChange],
        kept: Vec<(Setting, Changed)>,
    ) -> Result<Reverted, SettingError> {
        let mut wholes = self.wholes(changes);
        wholes.sort_by_key(|it| (it.changed.kind, it.changed.device.name.clone()));
        let mounts = self.machine.mounts();
        let mut reverted = Reverted::default();
        let mut own: Vec<(Setting, Changed)> = Vec::new();
        for Whole { changed, is_of_now } in wholes {
            let setting = changed.device.find(self.machine.sys(), changed.kind, &mounts);
            let found = setting.as_ref().and_then(|setting| self.machine.value(setting).ok());
            let left = Left { changed: changed.clone(), found: found.clone() };
            match setting {
                None => reverted.gone.push(left),
                Some(setting) if !is_of_now && changed.set.is_none() => {
                    // Kept as it is now, whatever is written before it.
                    let before = found.unwrap_or(changed.before);
                    own.push((setting, Changed { before, ..changed }));
                }
                Some(_) if !is_of_now && found != changed.set && !is_back(&left) => {
                    reverted.forgotten.push(left);
                }
                Some(setting) => {
                    own.push((setting, changed));
                    reverted.put_back.push(left);
                }
            }
        }
        self.write_until_they_hold(&own, &kept)?;
        Ok(reverted)
    }

    /// Settings with what they hold now in the place of what was before.
    pub(super) fn in_force(&self, settings: Vec<Changed>) -> Vec<(Setting, Changed)> {
        let mounts = self.machine.mounts();
        let one = |changed: Changed| {
            let setting = changed.device.find(self.machine.sys(), changed.kind, &mounts)?;
            let before = self.machine.value(&setting).ok()?;
            Some((setting, Changed { before, ..changed }))
        };
        settings.into_iter().filter_map(one).collect()
    }

    fn write_until_they_hold(
        &self,
        own: &[(Setting, Changed)],
        kept: &[(Setting, Changed)],
    ) -> Result<(), SettingError> {
        let mut failed = None;
        let mut all: Vec<(&(Setting, Changed), bool)> = own.iter().map(|it| (it, true)).collect();
        all.extend(kept.iter().map(|it| (it, false)));
        all.sort_by_key(|((setting, _), _)| setting);
        for _ in 0..PASSES_MAX {
            failed = None;
            let mut has_written = false;
            for ((setting, changed), is_own) in &all {
                if self.machine.value(setting).ok().as_ref() != Some(&changed.before) {
                    has_written = true;
                    let refused = self.machine.write(setting, &changed.before).err();
                    failed = refused.filter(|_| *is_own).or(failed);
                }
            }
            if !has_written {
                break;
            }
        }
        for (setting, changed) in own {
            let found = self.machine.value(setting)?;
            if found != changed.before && failed.is_none() {
                failed = Some(SettingError::NotTaken {
                    setting: setting.clone(),
                    written: changed.before.clone(),
                    found,
                });
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Whether its device has been what it is now since it was changed.
    pub(super) fn is_of_now(&self, change: &SettingsChange, changed: &Changed) -> bool {
        let (sys, mounts) = (self.machine.sys(), self.machine.mounts());
        let setting = changed.device.find(sys, changed.kind, &mounts);
        let now = setting.and_then(|setting| Device::of(sys, &setting, &mounts));
        change.boot == self.machine.boot()
            && now.is_some_and(|now| now.sequence == changed.device.sequence)
    }

    /// Each setting of each device once, with the value before the first of these changes that the
    /// kernel may still know, and what the last of them set.
    fn wholes(&self, changes: &[SettingsChange]) -> Vec<Whole> {
        let mut wholes: Vec<Whole> = Vec::new();
        for change in changes {
            for changed in &change.settings {
                let is_of_now = self.is_of_now(change, changed);
                let same = |whole: &&mut Whole| is_same(&whole.changed, changed);
                match wholes.iter_mut().find(same) {
                    // What was before is of no use when the kernel has forgotten it since.
                    Some(whole) if whole.is_of_now || !is_of_now => {
                        if changed.set.is_some() {
                            whole.changed.set.clone_from(&changed.set);
                        }
                    }
                    Some(whole) => *whole = Whole { changed: changed.clone(), is_of_now },
                    None => wholes.push(Whole { changed: changed.clone(), is_of_now }),
                }
            }
        }
        wholes
    }
}
