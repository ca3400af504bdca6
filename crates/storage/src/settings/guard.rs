//! Settings that are changed for a while and put back, also after a crash.
//!
//! Before the first change the values that are in force are written to a journal and synchronised.
//! They are put back when the guard is done, stopped or dropped; whoever is killed leaves the
//! journal, and the next guard (or [`recover`]) puts back what it names. The journal belongs into a
//! directory that a restart of the machine empties, as `/run`: the kernel forgets the settings
//! then, too. Where it lies in another one, it is of no use after a restart, which its number of
//! the start tells. How it is written, and who may have written it, is `journal.rs`'s business.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Setting, SettingError, journal};
use machine::processes::Process;

/// Why settings cannot be kept safe.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// The journal cannot be used.
    #[error("{what} the journal {}", path.display())]
    Journal {
        /// What was tried.
        what: &'static str,
        /// The journal.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others may have made it.
    #[error("the journal {} is not believed: {why}", path.display())]
    Untrusted {
        /// The journal.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// What it says is not known, and so not which settings were changed.
    #[error("the journal {} is not understood", path.display())]
    NotUnderstood {
        /// The journal.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// No folder for a journal is known.
    #[error("there is no folder to remember the {what} in")]
    NoPlace {
        /// What is to be remembered.
        what: String,
    },
    /// Somebody else changes settings.
    #[error("process {pid} runs an experiment that changes {what}")]
    Busy {
        /// The other one.
        pid: u32,
        /// What it changes.
        what: String,
    },
    /// A setting cannot be read or written.
    #[error(transparent)]
    Setting(#[from] SettingError),
}

/// What a journal holds.
#[derive(Debug, Serialize, Deserialize)]
struct Journal {
    pid: u32,
    /// Ticks since the machine was started at which the process began: tells it from a later one
    /// with the same number.
    process_start: u64,
    /// Which start of the machine that was.
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
    /// Only what is other than it was is written, which not everybody may.
    fn put_back(&self) -> Result<(), SettingError> {
        match self.setting.value() {
            Ok(value) if value == self.before => Ok(()),
            Err(error) if is_gone(&error) => Ok(()),
            _ => self.setting.set(&self.before),
        }
    }
}

/// A device that is gone has no setting to put back.
fn is_gone(error: &SettingError) -> bool {
    let SettingError::Setting { source, .. } = error else { return false };
    source.kind() == io::ErrorKind::NotFound
}

/// All of them are tried; the journal stays as long as one is not as it was.
fn put_back(remembered: &[Remembered], journal: Option<&Path>) -> Result<(), GuardError> {
    let mut failed = None;
    for setting in remembered {
        failed = setting.put_back().err().or(failed);
    }
    match failed {
        Some(error) => Err(error.into()),
        None => journal.map_or(Ok(()), journal::remove),
    }
}

/// Holds settings as they were, until they are put back.
#[derive(Debug)]
pub struct Guard {
    journal: Option<PathBuf>,
    remembered: Vec<Remembered>,
}

impl Guard {
    /// Remembers the settings, and those that the kernel sets anew when one of them is written, in
    /// memory and in the journal. Of no settings nothing is written, and no journal is needed.
    ///
    /// # Errors
    /// Those of [`recover`], which comes first. When there are settings and no journal, or one of
    /// them may not be set.
    pub fn new(journal: Option<&Path>, settings: &[Setting]) -> Result<Guard, GuardError> {
        let mut settings = settings.to_vec();
        let reset: Vec<Setting> = settings.iter().flat_map(Setting::reset_with_it).collect();
        settings.extend(reset);
        settings.sort();
        settings.dedup();
        match journal {
            Some(journal) => recover(journal).map(|_| ())?,
            None if settings.is_empty() => {}
            None => return Err(GuardError::NoPlace { what: names(&settings) }),
        }
        let one = |setting: Setting| {
            let before = setting.value()?;
            Ok(Remembered { setting, before })
        };
        let remembered: Result<Vec<Remembered>, SettingError> =
            settings.into_iter().map(one).collect();
        let guard = Guard { journal: journal.map(Path::to_path_buf), remembered: remembered? };
        // Who may not set them shall hear it now, and leave no journal that nobody can work off.
        for Remembered { setting, .. } in &guard.remembered {
            setting.check_settable()?;
        }
        if let Some(journal) = guard.journal.as_deref().filter(|_| !guard.remembered.is_empty()) {
            guard.write_journal(journal)?;
        }
        Ok(guard)
    }

    /// All of them in the order in which they are set, each with the value that it had.
    pub fn remembered(&self) -> impl Iterator<Item = (&Setting, &str)> {
        self.remembered.iter().map(|one| (&one.setting, one.before.as_str()))
    }

    /// Sets one of them, where it is not as wanted already.
    ///
    /// # Errors
    /// When it cannot be set, or the kernel takes another value.
    pub fn set(&self, setting: &Setting, value: &str) -> Result<(), SettingError> {
        assert!(
            self.remembered.iter().any(|remembered| remembered.setting == *setting),
            "only what can be put back is changed"
        );
        // Writing what is there is not nothing: the kernel may set others anew.
        if setting.value()? == value {
            return Ok(());
        }
        setting.set(value)
    }

    /// Puts everything back for now, and remembers it still.
    ///
    /// # Errors
    /// When a setting cannot be put back.
    pub fn as_before(&self) -> Result<(), GuardError> {
        put_back(&self.remembered, None)
    }

    /// Puts everything back and removes the journal.
    ///
    /// # Errors
    /// When a setting cannot be put back: the journal stays.
    pub fn put_back(&mut self) -> Result<(), GuardError> {
        match std::mem::take(&mut self.remembered) {
            settings if settings.is_empty() => Ok(()),
            settings => put_back(&settings, self.journal.as_deref()),
        }
    }

    fn write_journal(&self, path: &Path) -> Result<(), GuardError> {
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
    /// What `put_back` did not do: the way out through an error or a panic.
    fn drop(&mut self) {
        let _ = self.put_back();
    }
}

/// Puts back what somebody who was killed left. Returns how many settings that were.
///
/// # Errors
/// When others may have made the journal, it is not understood, or it names what is no setting:
/// then nothing is written, and it stays. When who made it still runs, or a setting cannot be put
/// back.
pub fn recover(journal: &Path) -> Result<usize, GuardError> {
    let Some(text) = journal::read(journal)? else { return Ok(0) };
    // It is whole, since it got its name when it was: whatever it says, somebody has to know.
    let found: Journal = serde_json::from_slice(&text)
        .map_err(|source| GuardError::NotUnderstood { path: journal.to_owned(), source })?;
    if let (Some(then), Some(now)) = (&found.boot, boot())
        && *then != now
    {
        return journal::remove(journal).map(|()| 0);
    }
    if process_start(found.pid) == Some(found.process_start) {
        let settings: Vec<Setting> = found.settings.into_iter().map(|it| it.setting).collect();
        return Err(GuardError::Busy { pid: found.pid, what: names(&settings) });
    }
    // All are looked at before the first is written.
    for Remembered { setting, .. } in &found.settings {
        match setting.value() {
            Err(error @ SettingError::NoSetting { .. }) => {
                let why = format!("it names what is none: {error}");
                return Err(GuardError::Untrusted { path: journal.to_owned(), why });
            }
            Err(error) if !is_gone(&error) => return Err(error.into()),
            _ => {}
        }
    }
    put_back(&found.settings, Some(journal))?;
    Ok(found.settings.len())
}

/// Settings that an experiment has changed, or had when it was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Whose they are.
    pub pid: u32,
    /// Whether it still runs, and will put them back.
    pub runs: bool,
    /// Their kinds, in words.
    pub what: String,
}

/// What a journal says is changed, without touching any of it; `None` where nothing is, or the
/// machine was started anew since.
///
/// # Errors
/// As [`recover`], but for what it would write.
pub fn pending(journal: &Path) -> Result<Option<Pending>, GuardError> {
    let Some(text) = journal::read(journal)? else { return Ok(None) };
    let found: Journal = serde_json::from_slice(&text)
        .map_err(|source| GuardError::NotUnderstood { path: journal.to_owned(), source })?;
    let is_of_now = found.boot.is_none() || found.boot == boot();
    let settings: Vec<Setting> = found.settings.into_iter().map(|it| it.setting).collect();
    let runs = process_start(found.pid) == Some(found.process_start);
    let pending = Pending { pid: found.pid, runs, what: names(&settings) };
    Ok(Some(pending).filter(|_| is_of_now && !settings.is_empty()))
}

/// The kinds of these settings, each once.
fn names(settings: &[Setting]) -> String {
    let mut names: Vec<&str> = settings.iter().map(|setting| setting.kind.name()).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

/// The number that the kernel gives to each start of the machine (random(4)).
pub(super) fn boot() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

fn process_start(pid: u32) -> Option<u64> {
    Process::of(pid).map(|process| process.start_ticks)
}

#[cfg(test)]
mod tests;
