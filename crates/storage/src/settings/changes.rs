//! Settings that stay changed until the user reverts them.
//!
//! Before the first write, Takeup writes a list and synchronises it: the values in force, the
//! identity of each device, and the new values. A change is a set of settings that are set
//! together: the requested ones, and those that the kernel resets when one of these is written. All
//! are written in the order of [`SettingKind`], so that a reset setting comes after the one that
//! resets it, and read back after the last write. If the process is killed in between, the list is
//! there, and a revert uses it.
//!
//! Unlike the journal of [`guard`], the list outlives a restart, because udev may keep a value.
//! After a restart, a revert restores only values that still hold what was set; the kernel has
//! forgotten the others. A device that is gone is reported, and stays in the list until it is back
//! or the user gives it up.

mod persist;
mod revert;
mod trial;

use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use serde::{Deserialize, Serialize};

use super::device::Device;
use super::{Setting, SettingKind, guard, journal};
use crate::StorageError;
use machine::mounts::{self, Mount};

pub use persist::{FileState, Kept, Persisted, kept};
pub use revert::{Left, Reverted};
pub use trial::{Phase, Trial};

/// Changes that may be in the list at once.
pub const CHANGES_MAX: usize = 1000;

/// Access to settings: this machine, or in a test a model of a kernel.
pub trait SettingFiles: std::fmt::Debug {
    /// The root of sysfs.
    fn sys(&self) -> &Path;
    /// The mounted file systems.
    fn mounts(&self) -> Vec<Mount>;
    /// Identifies this start of the machine.
    fn boot(&self) -> Option<String>;
    /// Time since the start of the machine, sleep included, in milliseconds.
    fn uptime_ms(&self) -> u64;
    /// The value in force.
    ///
    /// # Errors
    /// When it cannot be read.
    fn value(&self, setting: &Setting) -> Result<String, StorageError>;
    /// Checks that it may be written.
    ///
    /// # Errors
    /// When it may not.
    fn check_settable(&self, setting: &Setting) -> Result<(), StorageError>;
    /// Writes a value; the kernel may set another one.
    ///
    /// # Errors
    /// When the kernel refuses it.
    fn write(&self, setting: &Setting, value: &str) -> Result<(), StorageError>;
}

/// The machine that this program runs on.
#[derive(Clone, Copy, Debug)]
pub struct ThisMachine;

impl SettingFiles for ThisMachine {
    fn sys(&self) -> &Path {
        Path::new("/sys")
    }

    fn mounts(&self) -> Vec<Mount> {
        mounts::now().unwrap_or_default()
    }

    fn boot(&self) -> Option<String> {
        guard::boot()
    }

    fn uptime_ms(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
    }

    fn value(&self, setting: &Setting) -> Result<String, StorageError> {
        setting.value()
    }

    fn check_settable(&self, setting: &Setting) -> Result<(), StorageError> {
        setting.check_settable()
    }

    fn write(&self, setting: &Setting, value: &str) -> Result<(), StorageError> {
        setting.write(value)
    }
}

/// One setting of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    pub kind: SettingKind,
    pub device: Device,
    /// The value before the change.
    pub before: String,
    /// The value that was set; `None` for a setting that is in the list only because the kernel may
    /// reset it.
    pub set: Option<String>,
}

/// Settings that were set together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsChange {
    /// The path that it was made for, as typed.
    pub for_path: String,
    /// When, in seconds of Unix time.
    pub made_unix_seconds: u64,
    /// The start of the machine in which it was made.
    pub boot: Option<String>,
    /// Set while the change is on trial and will be restored automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Trial>,
    /// In the order in which they are written.
    pub settings: Vec<Changed>,
}

/// A change to make.
#[derive(Clone, Debug)]
pub struct WantedChange {
    /// The path, as typed.
    pub for_path: String,
    /// Now, in seconds of Unix time.
    pub now_unix_seconds: u64,
    /// For a trial, when it is restored automatically.
    pub trial: Option<Trial>,
    /// The settings and their values.
    pub settings: Vec<(Setting, String)>,
}

/// A setting of a change as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Now {
    #[serde(flatten)]
    pub changed: Changed,
    /// The present name of its device; `None` if the device is gone.
    pub name: Option<String>,
    /// The value in force.
    pub value: Option<String>,
}

impl Now {
    /// Whether it holds the value that was set.
    pub fn holds(&self) -> bool {
        self.changed.set.is_none() || self.changed.set == self.value || self.asks_for_default()
    }

    /// Whether the kernel was asked for its default, which always reads back as another value.
    pub fn asks_for_default(&self) -> bool {
        let is_default = self.changed.set.as_deref() == Some(SettingKind::DEFAULT_LATENCY);
        self.changed.kind == SettingKind::WriteBackLatency && is_default
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct List {
    changes: Vec<SettingsChange>,
    /// The file that keeps them over a restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    persisted: Option<Persisted>,
}

/// The list of changes, locked against other processes while this exists.
#[derive(Debug)]
pub struct Changes<'a> {
    machine: &'a dyn SettingFiles,
    path: PathBuf,
    list: List,
    _lock: OwnedFd,
}

/// The changes in a list at this moment; a reader does not wait for the lock.
///
/// # Errors
/// When the list is not trusted or cannot be parsed.
pub fn remembered(path: &Path) -> Result<Vec<SettingsChange>, StorageError> {
    Ok(read(path)?.changes)
}

fn read(path: &Path) -> Result<List, StorageError> {
    let Some(text) = journal::read(path)? else { return Ok(List::default()) };
    let understood = serde_json::from_slice(&text);
    let path = path.to_owned();
    understood.map_err(|source| StorageError::NotUnderstood { path, source })
}

/// The present values of the settings of a change.
pub fn look(machine: &dyn SettingFiles, change: &SettingsChange) -> Vec<Now> {
    let mounts = machine.mounts();
    let one = |changed: &Changed| {
        let found = changed.device.find(machine.sys(), changed.kind, &mounts);
        let name = found.as_ref().and_then(|setting| Device::of(machine.sys(), setting, &mounts));
        Now {
            changed: changed.clone(),
            name: name.map(|device| device.name),
            value: found.and_then(|setting| machine.value(&setting).ok()),
        }
    };
    change.settings.iter().map(one).collect()
}

impl<'a> Changes<'a> {
    /// Opens the list, which the first change creates. Waits while another process has the lock.
    ///
    /// # Errors
    /// When it is not trusted or cannot be parsed, or its folder cannot be created.
    pub fn open(machine: &'a dyn SettingFiles, path: &Path) -> Result<Changes<'a>, StorageError> {
        let lock = journal::lock(path)?;
        Ok(Changes { machine, path: path.to_owned(), list: read(path)?, _lock: lock })
    }

    /// All changes, the oldest first.
    pub fn all(&self) -> &[SettingsChange] {
        &self.list.changes
    }

    /// Writes a change to the list before it is made. A change that changes nothing is not written.
    ///
    /// # Errors
    /// When a setting may not be set, or the list cannot be written.
    pub fn remember(&mut self, wanted: &WantedChange) -> Result<SettingsChange, StorageError> {
        if self.list.changes.len() >= CHANGES_MAX {
            return Err(StorageError::TooMany);
        }
        let mut settings: Vec<(Setting, Option<String>)> = Vec::new();
        for (setting, value) in &wanted.settings {
            self.machine.check_settable(setting)?;
            // Skip values in force: writing them could still make the kernel reset other settings.
            if self.machine.value(setting)? != *value {
                settings.push((setting.clone(), Some(value.clone())));
            }
        }
        let reset: Vec<Setting> =
            settings.iter().flat_map(|(setting, _)| self.reset_with(setting)).collect();
        for setting in reset {
            if !settings.iter().any(|(known, _)| *known == setting) {
                // A requested value that is in force now must also be in force at the end.
                let asked = wanted.settings.iter().find(|(asked, _)| *asked == setting);
                settings.push((setting, asked.map(|(_, value)| value.clone())));
            }
        }
        settings.sort();
        let mounts = self.machine.mounts();
        let changed = |(setting, set): (Setting, Option<String>)| {
            let device = Device::of(self.machine.sys(), &setting, &mounts);
            let device =
                device.ok_or_else(|| StorageError::NoDevice { path: setting.path.clone() })?;
            let before = self.machine.value(&setting)?;
            Ok(Changed { kind: setting.kind, device, before, set })
        };
        let settings: Result<Vec<Changed>, StorageError> =
            settings.into_iter().map(changed).collect();
        let change = SettingsChange {
            for_path: wanted.for_path.clone(),
            made_unix_seconds: wanted.now_unix_seconds,
            boot: self.machine.boot(),
            trial: wanted.trial.clone(),
            settings: settings?,
        };
        if !change.settings.is_empty() {
            self.list.changes.push(change.clone());
            self.write_list()?;
        }
        Ok(change)
    }

    /// Makes the change that was remembered last, and returns the resulting values. If the kernel
    /// set another value, the list has that one from then on.
    ///
    /// # Errors
    /// When a setting cannot be written: then the whole change was restored.
    pub fn apply(&mut self) -> Result<Vec<Now>, StorageError> {
        let Some(change) = self.list.changes.last().cloned() else { return Ok(Vec::new()) };
        if let Err(refused) = self.write_settings(&change) {
            self.take_back_last()?;
            return Err(refused);
        }
        let now = look(self.machine, &change);
        let mut is_other = false;
        if let Some(last) = self.list.changes.last_mut() {
            for (changed, now) in last.settings.iter_mut().zip(&now) {
                let is_as_set = now.holds() && !now.asks_for_default();
                if !is_as_set && now.value.is_some() {
                    changed.set.clone_from(&now.value);
                    is_other = true;
                }
            }
            if let Some(trial) = &mut last.trial {
                trial.phase = Phase::Set;
                is_other = true;
            }
        }
        if is_other {
            self.write_list()?;
        }
        Ok(now)
    }

    /// Settings of the same queue that the kernel resets with this one.
    fn reset_with(&self, setting: &Setting) -> Vec<Setting> {
        let Some(queue) = setting.path.parent() else { return Vec::new() };
        let others = setting.kind.resets().iter().map(|kind| Setting::of_queue(*kind, queue));
        others.filter(|other| self.machine.value(other).is_ok()).collect()
    }

    /// Writes the values that are not in force yet, in the order of the kinds. Settings that were
    /// not requested keep their value, except those that belong to a changed scheduler.
    fn write_settings(&self, change: &SettingsChange) -> Result<(), StorageError> {
        let mounts = self.machine.mounts();
        for changed in &change.settings {
            let Some(setting) = changed.device.find(self.machine.sys(), changed.kind, &mounts)
            else {
                continue;
            };
            let is_of_scheduler = SettingKind::Scheduler.resets().contains(&changed.kind)
                && change.settings.iter().any(|other| {
                    other.kind == SettingKind::Scheduler && other.device == changed.device
                });
            let wanted = match &changed.set {
                None if is_of_scheduler => continue,
                set => set.as_ref().unwrap_or(&changed.before),
            };
            if self.machine.value(&setting).ok().as_ref() != Some(wanted) {
                let written = self.machine.write(&setting, wanted);
                written.map_err(|source| StorageError::Refused {
                    wanted: wanted.clone(),
                    source: Box::new(source),
                })?;
            }
        }
        Ok(())
    }

    fn write_list(&self) -> Result<(), StorageError> {
        if self.list.changes.is_empty() && self.list.persisted.is_none() {
            return journal::remove_if_there(&self.path);
        }
        let text = serde_json::to_string_pretty(&self.list).map_err(std::io::Error::from);
        let text = text.map_err(journal::failed("write", &self.path))?;
        journal::replace(&self.path, &text)
    }
}

#[cfg(test)]
mod tests;
