//! Read-ahead that is set for an experiment and put back, also after a crash.
//!
//! Before the first change the values that are in force are written to a journal and synchronised.
//! They are put back when the experiment ends, is stopped or fails; whoever is killed leaves the
//! journal, and the next experiment (or `takeup bench put-back`) puts back what it names. The
//! journal belongs into a directory that a restart of the machine empties, as `/run`: the kernel
//! forgets the settings then, too. Where it lies in another one, it is of no use after a restart,
//! which its number of the start tells. Who may have written it is `journal.rs`'s business.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use host::processes::ProcessTimes;
use host::settings::{SettingError, check_read_ahead, read_ahead_bytes, set_read_ahead};
use serde::{Deserialize, Serialize};

use super::journal;

/// Why a read-ahead cannot be kept safe.
#[derive(Debug, thiserror::Error)]
pub enum ReadAheadError {
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
    /// No folder for a journal is known.
    #[error("there is no folder to remember the read-ahead in")]
    NoPlace,
    /// Another experiment has it.
    #[error("process {pid} runs an experiment that changes read-ahead")]
    Busy {
        /// The other one.
        pid: u32,
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
    settings: Vec<Setting>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Setting {
    path: PathBuf,
    before_bytes: u64,
}

impl Setting {
    /// Only what is other than it was is written, which not everybody may.
    fn put_back(&self) -> Result<(), SettingError> {
        match read_ahead_bytes(&self.path) {
            Ok(bytes) if bytes == self.before_bytes => Ok(()),
            _ => set_read_ahead(&self.path, self.before_bytes),
        }
    }
}

/// Holds settings as they were, until they are put back.
#[derive(Debug)]
pub struct ReadAheadGuard {
    journal: Option<PathBuf>,
    settings: Vec<Setting>,
}

impl ReadAheadGuard {
    /// Remembers the settings, in memory and in the journal. Of no settings nothing is written, and
    /// no journal is needed.
    pub fn new(
        journal: Option<&Path>,
        settings: &[PathBuf],
    ) -> Result<ReadAheadGuard, ReadAheadError> {
        match journal {
            Some(journal) => recover(journal).map(|_| ())?,
            None if settings.is_empty() => {}
            None => return Err(ReadAheadError::NoPlace),
        }
        let mut settings = settings.to_vec();
        settings.sort();
        settings.dedup();
        let one = |path: PathBuf| {
            let before_bytes = read_ahead_bytes(&path)?;
            Ok(Setting { path, before_bytes })
        };
        let settings: Result<Vec<Setting>, SettingError> = settings.into_iter().map(one).collect();
        let guard = ReadAheadGuard { journal: journal.map(Path::to_path_buf), settings: settings? };
        // Who may not set them shall hear it now, and leave no journal that nobody can work off.
        for setting in &guard.settings {
            check_read_ahead(&setting.path)?;
        }
        if let Some(journal) = guard.journal.as_deref().filter(|_| !guard.settings.is_empty()) {
            guard.write_journal(journal)?;
        }
        Ok(guard)
    }

    /// Sets one of them.
    pub fn set(&self, path: &Path, bytes: u64) -> Result<(), ReadAheadError> {
        assert!(
            self.settings.iter().any(|setting| setting.path == path),
            "only what can be put back is changed"
        );
        Ok(set_read_ahead(path, bytes)?)
    }

    /// Puts everything back and removes the journal.
    pub fn put_back(&mut self) -> Result<(), ReadAheadError> {
        let settings = std::mem::take(&mut self.settings);
        if settings.is_empty() {
            return Ok(());
        }
        // All of them are tried; the journal stays as long as one is not as it was.
        let mut failed = None;
        for setting in &settings {
            failed = setting.put_back().err().or(failed);
        }
        if let Some(error) = failed {
            return Err(error.into());
        }
        self.journal.as_deref().map_or(Ok(()), journal::remove)
    }

    fn write_journal(&self, path: &Path) -> Result<(), ReadAheadError> {
        let pid = std::process::id();
        let process_start = process_start(pid).unwrap_or(0);
        let settings = self.settings.clone();
        let found = Journal { pid, process_start, boot: boot(), settings };
        let text = serde_json::to_string(&found).expect("paths and numbers can be written");
        journal::write(path, &text)
    }
}

impl Drop for ReadAheadGuard {
    /// What `put_back` did not do: the way out through an error or a panic.
    fn drop(&mut self) {
        let _ = self.put_back();
    }
}

/// Puts back what a killed experiment left. Returns how many settings that were.
///
/// # Errors
/// When others may have made the journal, or it names what is no read-ahead: then nothing is
/// written. When the experiment that made it still runs, or a setting cannot be put back.
pub fn recover(journal: &Path) -> Result<usize, ReadAheadError> {
    let Some(text) = journal::read(journal)? else { return Ok(0) };
    // Cut off before it was whole: nothing had been changed yet.
    let Ok(found) = serde_json::from_str::<Journal>(&text) else {
        return journal::remove(journal).map(|()| 0);
    };
    if found.boot.is_some() && found.boot != boot() {
        return journal::remove(journal).map(|()| 0);
    }
    if process_start(found.pid) == Some(found.process_start) {
        return Err(ReadAheadError::Busy { pid: found.pid });
    }
    // All are looked at before the first is written.
    let mut there = Vec::new();
    for setting in &found.settings {
        match read_ahead_bytes(&setting.path) {
            Ok(_) => there.push(setting),
            // A device that is gone has no setting to put back.
            Err(SettingError::Setting { source, .. })
                if source.kind() == io::ErrorKind::NotFound => {}
            Err(error @ SettingError::NoReadAhead { .. }) => {
                let why = format!("it names what is none: {error}");
                return Err(ReadAheadError::Untrusted { path: journal.to_owned(), why });
            }
            Err(error) => return Err(error.into()),
        }
    }
    for setting in there {
        setting.put_back()?;
    }
    journal::remove(journal)?;
    Ok(found.settings.len())
}

/// The number that the kernel gives to each start of the machine (random(4)).
fn boot() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

fn process_start(pid: u32) -> Option<u64> {
    ProcessTimes::of(pid).map(|times| times.start_ticks)
}

#[cfg(test)]
mod tests;
