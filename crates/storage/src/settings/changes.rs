//! Settings that are changed to stay, until somebody takes the change back.
//!
//! Before the first write the values in force, the devices by what they are known by, and the
//! values to come are written to a list and synchronised. A change is a set of settings that are
//! set together: those that were asked for, and those that the kernel sets anew by itself when one
//! of these is written. All are written in the order of [`SettingKind`], so that what is reset
//! comes behind what resets it, and read back behind the last one. Whoever is killed in the middle
//! has left the list, and reverting goes by that.
//!
//! Unlike the journal of [`guard`] the list outlives a restart: a value may have been
//! made to stay elsewhere (udev). What the kernel has forgotten meanwhile is not written again:
//! only a value that is still as it was set is put back then. A device that is gone is told, and
//! stays in the list until it is back or is given up.

mod persist;
mod revert;
mod trial;

use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use serde::{Deserialize, Serialize};

use super::device::Device;
use super::{GuardError, Setting, SettingError, SettingKind, guard, journal};
use machine::mounts::{self, Mount};

pub use persist::{FileState, Kept, Persisted, kept};
pub use revert::{Left, Reverted};
pub use trial::{Phase, Trial};

/// Changes that may be in the list at once.
pub const CHANGES_MAX: usize = 1000;

/// Where settings are: this machine, or in a test what behaves like a kernel.
pub trait SettingFiles: std::fmt::Debug {
    /// Where sysfs is.
    fn sys(&self) -> &Path;
    /// What is mounted.
    fn mounts(&self) -> Vec<Mount>;
    /// Which start of the machine this is.
    fn boot(&self) -> Option<String>;
    /// Time since the start of the machine, sleep included, in milliseconds.
    fn uptime_ms(&self) -> u64;
    /// The value in force.
    ///
    /// # Errors
    /// When it cannot be read.
    fn value(&self, setting: &Setting) -> Result<String, SettingError>;
    /// Whether it may be written.
    ///
    /// # Errors
    /// When it may not.
    fn check_settable(&self, setting: &Setting) -> Result<(), SettingError>;
    /// Writes a value, of which the kernel may make another one.
    ///
    /// # Errors
    /// When the kernel refuses it.
    fn write(&self, setting: &Setting, value: &str) -> Result<(), SettingError>;
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

    fn value(&self, setting: &Setting) -> Result<String, SettingError> {
        setting.value()
    }

    fn check_settable(&self, setting: &Setting) -> Result<(), SettingError> {
        setting.check_settable()
    }

    fn write(&self, setting: &Setting, value: &str) -> Result<(), SettingError> {
        setting.write(value)
    }
}

/// Why settings cannot be changed or changed back.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The list cannot be used.
    #[error(transparent)]
    List(#[from] GuardError),
    /// A setting cannot be read or written.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A setting belongs to no device that could be found again.
    #[error("whose setting {} is, is not known", path.display())]
    NoDevice {
        /// The setting.
        path: PathBuf,
    },
    /// A file that keeps settings is somebody else's.
    #[error("{} is none that was written here, or was changed since", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A file that keeps settings cannot be read or written.
    #[error("{what} {}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// More changes than anybody makes by hand.
    #[error("{CHANGES_MAX} changes are remembered already")]
    TooMany,
    /// A value was not taken, and what had been set before it was put back.
    #[error("nothing was changed, since {wanted:?} was not taken")]
    Refused {
        /// What was written.
        wanted: String,
        /// Where, and why.
        source: Box<SettingError>,
    },
}

/// One setting of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// What it sets.
    pub kind: SettingKind,
    /// Of which device.
    pub device: Device,
    /// As it was.
    pub before: String,
    /// What it was set to; none of what is remembered only since the kernel may set it anew.
    pub set: Option<String>,
}

/// Settings that were set together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsChange {
    /// For what it was made, as typed.
    pub for_path: String,
    /// When, in seconds of Unix time.
    pub made_unix_seconds: u64,
    /// In which start of the machine.
    pub boot: Option<String>,
    /// Until when, of one that is to be put back by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Trial>,
    /// In the order in which they are written.
    pub settings: Vec<Changed>,
}

/// What is to be changed.
#[derive(Clone, Debug)]
pub struct WantedChange {
    /// For what, as typed.
    pub for_path: String,
    /// Now, in seconds of Unix time.
    pub now_unix_seconds: u64,
    /// Until when, where it is to be put back by itself.
    pub trial: Option<Trial>,
    /// The settings and their values.
    pub settings: Vec<(Setting, String)>,
}

/// A setting of a change as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Now {
    /// What was changed.
    #[serde(flatten)]
    pub changed: Changed,
    /// What its device is called now; none of one that is gone.
    pub name: Option<String>,
    /// What it holds.
    pub value: Option<String>,
}

impl Now {
    /// Whether it holds what it was set to.
    pub fn holds(&self) -> bool {
        self.changed.set.is_none() || self.changed.set == self.value || self.asks_for_default()
    }

    /// Whether the kernel was asked for its own value, which is never the one that was written.
    pub fn asks_for_default(&self) -> bool {
        let is_default = self.changed.set.as_deref() == Some(SettingKind::DEFAULT_LATENCY);
        self.changed.kind == SettingKind::WriteBackLatency && is_default
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct List {
    changes: Vec<SettingsChange>,
    /// What keeps them over a restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    persisted: Option<Persisted>,
}

/// The list of changes, which nobody else changes as long as this is held.
#[derive(Debug)]
pub struct Changes<'a> {
    machine: &'a dyn SettingFiles,
    path: PathBuf,
    list: List,
    _lock: OwnedFd,
}

/// The changes that a list holds, as they are at this moment; who reads need not wait for others.
///
/// # Errors
/// When the list is not believed or not understood.
pub fn remembered(path: &Path) -> Result<Vec<SettingsChange>, ChangeError> {
    Ok(read(path)?.changes)
}

fn read(path: &Path) -> Result<List, ChangeError> {
    let Some(text) = journal::read(path)? else { return Ok(List::default()) };
    let understood = serde_json::from_slice(&text);
    let path = path.to_owned();
    Ok(understood.map_err(|source| GuardError::NotUnderstood { path, source })?)
}

/// How the settings of a change are now.
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
    /// Opens the list, which is made with the first change. Waits while another process has it.
    ///
    /// # Errors
    /// When it is not believed or not understood, or its folder cannot be made.
    pub fn open(machine: &'a dyn SettingFiles, path: &Path) -> Result<Changes<'a>, ChangeError> {
        let lock = journal::lock(path)?;
        Ok(Changes { machine, path: path.to_owned(), list: read(path)?, _lock: lock })
    }

    /// All changes, the oldest first.
    pub fn all(&self) -> &[SettingsChange] {
        &self.list.changes
    }

    /// Writes a change to the list before anything of it is done. Nothing is written of one that
    /// changes nothing.
    ///
    /// # Errors
    /// When a setting may not be set, or the list cannot be written.
    pub fn remember(&mut self, wanted: &WantedChange) -> Result<SettingsChange, ChangeError> {
        if self.list.changes.len() >= CHANGES_MAX {
            return Err(ChangeError::TooMany);
        }
        let mut settings: Vec<(Setting, Option<String>)> = Vec::new();
        for (setting, value) in &wanted.settings {
            self.machine.check_settable(setting)?;
            // Writing what is there is not nothing: the kernel may set others anew.
            if self.machine.value(setting)? != *value {
                settings.push((setting.clone(), Some(value.clone())));
            }
        }
        let reset: Vec<Setting> =
            settings.iter().flat_map(|(setting, _)| self.reset_with(setting)).collect();
        for setting in reset {
            if !settings.iter().any(|(known, _)| *known == setting) {
                // What is asked for and holds already has to hold in the end, too.
                let asked = wanted.settings.iter().find(|(asked, _)| *asked == setting);
                settings.push((setting, asked.map(|(_, value)| value.clone())));
            }
        }
        settings.sort();
        let mounts = self.machine.mounts();
        let changed = |(setting, set): (Setting, Option<String>)| {
            let device = Device::of(self.machine.sys(), &setting, &mounts);
            let device =
                device.ok_or_else(|| ChangeError::NoDevice { path: setting.path.clone() })?;
            let before = self.machine.value(&setting)?;
            Ok(Changed { kind: setting.kind, device, before, set })
        };
        let settings: Result<Vec<Changed>, ChangeError> =
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

    /// Does the change that was remembered last, and says how its settings are then. What the
    /// kernel made of a value stands in the list from then on.
    ///
    /// # Errors
    /// When a setting cannot be written: then all of the change was put back.
    pub fn apply(&mut self) -> Result<Vec<Now>, ChangeError> {
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

    /// Those of the same queue that the kernel sets anew with this one.
    fn reset_with(&self, setting: &Setting) -> Vec<Setting> {
        let Some(queue) = setting.path.parent() else { return Vec::new() };
        let others = setting.kind.resets().iter().map(|kind| Setting::of_queue(*kind, queue));
        others.filter(|other| self.machine.value(other).is_ok()).collect()
    }

    /// What is not as it is to be is written, in the order of the kinds. What was not asked for is
    /// kept as it was, but for what belongs to the scheduler when that is another one.
    fn write_settings(&self, change: &SettingsChange) -> Result<(), ChangeError> {
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
                written.map_err(|source| ChangeError::Refused {
                    wanted: wanted.clone(),
                    source: Box::new(source),
                })?;
            }
        }
        Ok(())
    }

    fn write_list(&self) -> Result<(), ChangeError> {
        if self.list.changes.is_empty() && self.list.persisted.is_none() {
            return Ok(journal::remove_if_there(&self.path)?);
        }
        let text = serde_json::to_string_pretty(&self.list).map_err(std::io::Error::from);
        let text = text.map_err(journal::failed("write", &self.path))?;
        Ok(journal::replace(&self.path, &text)?)
    }
}

#[cfg(test)]
mod tests;
