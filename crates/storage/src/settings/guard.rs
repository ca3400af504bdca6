//! Temporary changes of settings, which are restored even after a crash.
//!
//! Before the first change, the guard writes the values in force to a journal and synchronises it.
//! It restores them when it is done, stopped or dropped. If the process is killed, the journal
//! stays, and the next guard (or [`recover`]) restores the values. The journal should be in a
//! folder that a restart empties, such as `/run`, because a restart resets the settings as well. In
//! any other folder, the journal holds the boot ID, so that it is ignored after a restart.
//! `journal.rs` writes the journal and checks who may have written it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Setting, journal};
use crate::StorageError;
use machine::processes::Process;

/// The content of a journal.
#[derive(Debug, Serialize, Deserialize)]
struct Journal {
    pid: u32,
    /// Start of the process in ticks since the start of the machine: distinguishes it from a later
    /// process with the same number.
    process_start: u64,
    /// The boot ID of that time.
    #[serde(default)]
    boot: Option<String>,
    settings: Vec<Remembered>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Remembered {
    #[serde(flatten)]
    setting: Setting,
    before: String,
}

impl Remembered {
    /// Writes only a value that differs, because not every user may write.
    fn put_back(&self) -> Result<(), StorageError> {
        match self.setting.value() {
            Ok(value) if value == self.before => Ok(()),
            Err(error) if is_gone(&error) => Ok(()),
            _ => self.setting.set(&self.before),
        }
    }
}

/// A device that is gone has no setting to restore.
fn is_gone(error: &StorageError) -> bool {
    let StorageError::Setting { source, .. } = error else { return false };
    source.kind() == io::ErrorKind::NotFound
}

/// Tries all of them; the journal stays until every one is restored.
fn put_back(remembered: &[Remembered], journal: Option<&Path>) -> Result<(), StorageError> {
    let mut failed = None;
    for setting in remembered {
        failed = setting.put_back().err().or(failed);
    }
    match failed {
        Some(error) => Err(error),
        None => journal.map_or(Ok(()), journal::remove),
    }
}

/// Remembers the old values of settings until they are restored.
#[derive(Debug)]
pub struct Guard {
    journal: Option<PathBuf>,
    remembered: Vec<Remembered>,
}

impl Guard {
    /// Remembers the settings, and those that the kernel resets with them, in memory and in the
    /// journal. With no settings, nothing is written and no journal is needed.
    ///
    /// # Errors
    /// Those of [`recover`], which comes first. When there are settings and no journal, or one of
    /// them may not be set.
    pub fn new(journal: Option<&Path>, settings: &[Setting]) -> Result<Guard, StorageError> {
        let mut settings = settings.to_vec();
        let reset: Vec<Setting> = settings.iter().flat_map(Setting::reset_with_it).collect();
        settings.extend(reset);
        settings.sort();
        settings.dedup();
        match journal {
            Some(journal) => recover(journal).map(|_| ())?,
            None if settings.is_empty() => {}
            None => return Err(StorageError::NoPlace { what: names(&settings) }),
        }
        let one = |setting: Setting| {
            let before = setting.value()?;
            Ok(Remembered { setting, before })
        };
        let remembered: Result<Vec<Remembered>, StorageError> =
            settings.into_iter().map(one).collect();
        let guard = Guard { journal: journal.map(Path::to_path_buf), remembered: remembered? };
        // Report a missing permission now, before a journal is written that no one can process.
        for Remembered { setting, .. } in &guard.remembered {
            setting.check_settable()?;
        }
        if let Some(journal) = guard.journal.as_deref().filter(|_| !guard.remembered.is_empty()) {
            guard.write_journal(journal)?;
        }
        Ok(guard)
    }

    /// All of them in the order in which they are set, each with its old value.
    pub fn remembered(&self) -> impl Iterator<Item = (&Setting, &str)> {
        self.remembered.iter().map(|one| (&one.setting, one.before.as_str()))
    }

    /// Sets one of them, unless it already has that value.
    ///
    /// # Errors
    /// When it cannot be set, or the kernel sets another value.
    pub fn set(&self, setting: &Setting, value: &str) -> Result<(), StorageError> {
        assert!(
            self.remembered.iter().any(|remembered| remembered.setting == *setting),
            "only settings that can be restored are changed"
        );
        // Writing the same value could make the kernel reset other settings.
        if setting.value()? == value {
            return Ok(());
        }
        setting.set(value)
    }

    /// Restores everything for now, and keeps the journal.
    ///
    /// # Errors
    /// When a setting cannot be restored.
    pub fn as_before(&self) -> Result<(), StorageError> {
        put_back(&self.remembered, None)
    }

    /// Restores everything and removes the journal.
    ///
    /// # Errors
    /// When a setting cannot be restored: the journal stays.
    pub fn put_back(&mut self) -> Result<(), StorageError> {
        match std::mem::take(&mut self.remembered) {
            settings if settings.is_empty() => Ok(()),
            settings => put_back(&settings, self.journal.as_deref()),
        }
    }

    fn write_journal(&self, path: &Path) -> Result<(), StorageError> {
        let pid = std::process::id();
        let process_start = process_start(pid).unwrap_or(0);
        let settings = self.remembered.clone();
        let journal = Journal { pid, process_start, boot: boot(), settings };
        let text = serde_json::to_string(&journal).map_err(io::Error::from);
        let text = text.map_err(journal::failed("write", path))?;
        journal::write(path, &text)
    }
}

impl Drop for Guard {
    /// Restores the settings after an error or a panic, when `put_back` was not called.
    fn drop(&mut self) {
        let _ = self.put_back();
    }
}

/// Restores the settings that a killed process left changed. Returns the number of settings.
///
/// # Errors
/// When another user may have made the journal, it cannot be parsed, or it names something that is
/// not a setting: then nothing is written, and it stays. When the process that made it still runs,
/// or a setting cannot be restored.
pub fn recover(journal: &Path) -> Result<usize, StorageError> {
    let Some(text) = journal::read(journal)? else { return Ok(0) };
    // The journal is complete, because it got its name only then: report one that cannot be parsed.
    let found: Journal = serde_json::from_slice(&text)
        .map_err(|source| StorageError::NotUnderstood { path: journal.to_owned(), source })?;
    if let (Some(then), Some(now)) = (&found.boot, boot())
        && *then != now
    {
        return journal::remove(journal).map(|()| 0);
    }
    if process_start(found.pid) == Some(found.process_start) {
        let settings: Vec<Setting> = found.settings.into_iter().map(|it| it.setting).collect();
        return Err(StorageError::Busy { pid: found.pid, what: names(&settings) });
    }
    // Check all of them before the first write.
    for Remembered { setting, .. } in &found.settings {
        match setting.value() {
            Err(error @ StorageError::NoSetting { .. }) => {
                let why = format!("it names an invalid setting: {error}");
                return Err(StorageError::Untrusted { path: journal.to_owned(), why });
            }
            Err(error) if !is_gone(&error) => return Err(error),
            _ => {}
        }
    }
    put_back(&found.settings, Some(journal))?;
    Ok(found.settings.len())
}

/// Settings that an experiment has changed, or had changed when it was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The process of the experiment.
    pub pid: u32,
    /// Whether it still runs, and will restore them.
    pub runs: bool,
    /// The names of the settings.
    pub what: String,
}

/// The changed settings in a journal, without restoring them; `None` if there are none, or the
/// machine was restarted since.
///
/// # Errors
/// As [`recover`], except errors of writing.
pub fn pending(journal: &Path) -> Result<Option<Pending>, StorageError> {
    let Some(text) = journal::read(journal)? else { return Ok(None) };
    let found: Journal = serde_json::from_slice(&text)
        .map_err(|source| StorageError::NotUnderstood { path: journal.to_owned(), source })?;
    let is_of_now = found.boot.is_none() || found.boot == boot();
    let settings: Vec<Setting> = found.settings.into_iter().map(|it| it.setting).collect();
    let runs = process_start(found.pid) == Some(found.process_start);
    let pending = Pending { pid: found.pid, runs, what: names(&settings) };
    Ok(Some(pending).filter(|_| is_of_now && !settings.is_empty()))
}

/// The names of these settings, each once.
fn names(settings: &[Setting]) -> String {
    let mut names: Vec<&str> = settings.iter().map(|setting| setting.kind.name()).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

/// The boot ID, which the kernel makes at each start of the machine (random(4)).
pub(super) fn boot() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

fn process_start(pid: u32) -> Option<u64> {
    Process::of(pid).map(|process| process.start_ticks)
}

#[cfg(test)]
mod tests;
