//! Reverting changes: every setting gets the value from before the first change.

use serde::Serialize;

use super::{Changed, Changes, SettingsChange};
use crate::StorageError;
use crate::settings::Setting;
use crate::settings::device::Device;

/// Passes over all settings: a write may make the kernel reset another setting, which the next pass
/// restores.
const PASSES_MAX: usize = 3;

/// A setting that was restored, or was not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Left {
    /// The setting, with the value before the first change.
    #[serde(flatten)]
    pub changed: Changed,
    /// The value that it had before the revert.
    pub found: Option<String>,
}

/// The result of a revert.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reverted {
    /// Settings with their old value again, each once.
    pub put_back: Vec<Left>,
    /// Settings left alone: the kernel has reset them, at a restart or when the device went and
    /// came back, and they hold a value that Takeup did not set.
    pub forgotten: Vec<Left>,
    /// Settings of devices that are gone. They stay in the list.
    pub gone: Vec<Left>,
    /// Settings of a trial that another program has set since; they keep that value and leave the
    /// list.
    pub theirs: Vec<Left>,
}

/// Whether it has its old value.
fn is_back(left: &Left) -> bool {
    left.found.as_ref() == Some(&left.changed.before)
}

/// Whether two are the same setting of the same device. Paths to one disk have one WWN.
pub(super) fn is_same(one: &Changed, other: &Changed) -> bool {
    let key = |it: &Changed| (it.kind, it.device.known_by.clone(), it.device.name.clone());
    key(one) == key(other)
}

/// One setting of one device over all changes that are reverted.
struct Whole {
    changed: Changed,
    /// Whether neither a restart nor a new appearance of the device came in between.
    is_of_now: bool,
}

impl Reverted {
    /// Adds the result of another revert.
    pub(super) fn add(&mut self, other: Reverted) {
        self.put_back.extend(other.put_back);
        self.forgotten.extend(other.forgotten);
        self.gone.extend(other.gone);
        self.theirs.extend(other.theirs);
    }
}

impl Changes<'_> {
    /// Reverts all changes and removes them from the list, except those of devices that are gone.
    ///
    /// # Errors
    /// When a setting cannot be restored: then the list stays as it is.
    pub fn revert(&mut self) -> Result<Reverted, StorageError> {
        let reverted = self.put_back(&self.list.changes, Vec::new())?;
        let is_gone = |one: &Changed| reverted.gone.iter().any(|gone| is_same(&gone.changed, one));
        for change in &mut self.list.changes {
            change.settings.retain(is_gone);
        }
        self.list.changes.retain(|change| !change.settings.is_empty());
        self.write_list()?;
        Ok(reverted)
    }

    /// Removes the settings of devices that are gone from the list, and returns their number.
    ///
    /// # Errors
    /// When the list cannot be written.
    pub fn forget_gone(&mut self) -> Result<usize, StorageError> {
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

    pub(super) fn take_back_last(&mut self) -> Result<Reverted, StorageError> {
        self.take_back_one(self.list.changes.len() - 1, Vec::new())
    }

    /// Tries all settings and returns the first error. If the kernel resets a setting in `kept`
    /// meanwhile, it is written again; it is not an error if the kernel refuses that value now.
    pub(super) fn put_back(
        &self,
        changes: &[SettingsChange],
        kept: Vec<(Setting, Changed)>,
    ) -> Result<Reverted, StorageError> {
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
                    // It keeps its present value, even if an earlier write resets it.
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

    /// Settings with their present value as the value to restore.
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
    ) -> Result<(), StorageError> {
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
                failed = Some(StorageError::NotTaken {
                    setting: setting.clone(),
                    written: changed.before.clone(),
                    found,
                });
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Whether the device is the same appearance as at the change, without a restart in between.
    pub(super) fn is_of_now(&self, change: &SettingsChange, changed: &Changed) -> bool {
        let (sys, mounts) = (self.machine.sys(), self.machine.mounts());
        let setting = changed.device.find(sys, changed.kind, &mounts);
        let now = setting.and_then(|setting| Device::of(sys, &setting, &mounts));
        change.boot == self.machine.boot()
            && now.is_some_and(|now| now.sequence == changed.device.sequence)
    }

    /// Each setting of each device once: the value before the first change that the kernel can
    /// still know, and the value that the last change set.
    fn wholes(&self, changes: &[SettingsChange]) -> Vec<Whole> {
        let mut wholes: Vec<Whole> = Vec::new();
        for change in changes {
            for changed in &change.settings {
                let is_of_now = self.is_of_now(change, changed);
                let same = |whole: &&mut Whole| is_same(&whole.changed, changed);
                match wholes.iter_mut().find(same) {
                    // An older value is useless if the kernel has reset the setting since.
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
