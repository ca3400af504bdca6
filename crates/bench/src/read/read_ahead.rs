//! Read-ahead that is set for an experiment and put back, also after a crash.
//!
//! Before the first change the values that are in force are written to a journal and synchronised.
//! They are put back when the experiment ends, is stopped or fails; whoever is killed leaves the
//! journal, and the next experiment (or `takeup bench put-back`) puts back what it names. The
//! journal belongs into a directory that a restart of the machine empties, as `/run`: the kernel
//! forgets the settings then, too.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use device::backing::{BackingError, set_read_ahead};
use serde::{Deserialize, Serialize};

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
    /// Another experiment has it.
    #[error("process {pid} runs an experiment that changes read-ahead")]
    Busy {
        /// The other one.
        pid: u32,
    },
    /// A setting cannot be read or written.
    #[error(transparent)]
    Setting(#[from] BackingError),
}

/// What a journal holds.
#[derive(Debug, Serialize, Deserialize)]
struct Journal {
    pid: u32,
    /// Ticks since the machine was started at which the process began: tells it from a later one
    /// with the same number.
    process_start: u64,
    settings: Vec<Setting>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Setting {
    path: PathBuf,
    before_bytes: u64,
}

impl Setting {
    /// Only what is other than it was is written, which not everybody may.
    fn put_back(&self) -> Result<(), BackingError> {
        match kib_in_force(&self.path) {
            Ok(kib) if kib * 1024 == self.before_bytes => Ok(()),
            _ => set_read_ahead(&self.path, self.before_bytes),
        }
    }
}

/// Holds settings as they were, until they are put back.
#[derive(Debug)]
pub struct ReadAheadGuard {
    journal: PathBuf,
    settings: Vec<Setting>,
}

impl ReadAheadGuard {
    /// Remembers the settings, in memory and in the journal. Of no settings nothing is written.
    pub fn new(journal: &Path, settings: &[PathBuf]) -> Result<ReadAheadGuard, ReadAheadError> {
        recover(journal)?;
        let mut settings = settings.to_vec();
        settings.sort();
        settings.dedup();
        let one = |path: PathBuf| {
            let failed =
                |source| BackingError::Setting { what: "read", path: path.clone(), source };
            let kib = kib_in_force(&path).map_err(failed)?;
            Ok(Setting { path, before_bytes: kib * 1024 })
        };
        let settings: Result<Vec<Setting>, BackingError> = settings.into_iter().map(one).collect();
        let guard = ReadAheadGuard { journal: journal.to_owned(), settings: settings? };
        // Who may not set them shall hear it now, and leave no journal that nobody can work off.
        for setting in &guard.settings {
            let path = &setting.path;
            let opened = OpenOptions::new().write(true).open(path);
            opened.map_err(|source| BackingError::Setting {
                what: "write",
                path: path.clone(),
                source,
            })?;
        }
        if !guard.settings.is_empty() {
            guard.write_journal()?;
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
        remove(&self.journal)
    }

    fn write_journal(&self) -> Result<(), ReadAheadError> {
        let failed =
            |source| ReadAheadError::Journal { what: "write", path: self.journal.clone(), source };
        if let Some(directory) = self.journal.parent() {
            fs::create_dir_all(directory).map_err(failed)?;
        }
        let pid = std::process::id();
        let process_start = process_start(pid).unwrap_or(0);
        let journal = Journal { pid, process_start, settings: self.settings.clone() };
        let text = serde_json::to_string(&journal).expect("paths and numbers can be written");
        let opened = OpenOptions::new().write(true).create_new(true).open(&self.journal);
        let mut file = opened.map_err(failed)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)
    }
}

impl Drop for ReadAheadGuard {
    /// What `put_back` did not do: the way out through an error or a panic.
    fn drop(&mut self) {
        let _ = self.put_back();
    }
}

/// Puts back what a killed experiment left. Returns how many settings that were.
pub fn recover(journal: &Path) -> Result<usize, ReadAheadError> {
    let failed =
        |what| move |source| ReadAheadError::Journal { what, path: journal.to_owned(), source };
    let text = match fs::read_to_string(journal) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(failed("read")(error)),
    };
    // Cut off before it was whole: nothing had been changed yet.
    let Ok(found) = serde_json::from_str::<Journal>(&text) else {
        return remove(journal).map(|()| 0);
    };
    if process_start(found.pid) == Some(found.process_start) {
        return Err(ReadAheadError::Busy { pid: found.pid });
    }
    for setting in &found.settings {
        // A device that is gone has no setting to put back.
        if setting.path.exists() {
            setting.put_back()?;
        }
    }
    remove(journal)?;
    Ok(found.settings.len())
}

fn kib_in_force(path: &Path) -> io::Result<u64> {
    let text = fs::read_to_string(path)?;
    text.trim().parse().map_err(|_| io::ErrorKind::InvalidData.into())
}

fn remove(journal: &Path) -> Result<(), ReadAheadError> {
    fs::remove_file(journal).map_err(|source| ReadAheadError::Journal {
        what: "remove",
        path: journal.to_owned(),
        source,
    })?;
    if let Some(directory) = journal.parent() {
        // So that the journal does not come back with the next crash.
        let _ = File::open(directory).and_then(|directory| directory.sync_all());
    }
    Ok(())
}

/// Field 22 of proc_pid_stat(5), counted behind the name, which may hold blanks.
fn process_start(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn value(path: &Path) -> String {
        fs::read_to_string(path).unwrap()
    }

    #[test]
    fn settings_come_back_whichever_way_it_ends() {
        let directory = tempfile::tempdir().unwrap();
        let journal = directory.path().join("run/read-ahead.json");
        let setting = directory.path().join("read_ahead_kb");
        let settings = [setting.clone(), setting.clone()];
        fs::write(&setting, "128\n").unwrap();
        let mut guard = ReadAheadGuard::new(&journal, &settings).unwrap();
        guard.set(&setting, 4 << 20).unwrap();
        assert_eq!(value(&setting), "4096");
        let busy = ReadAheadGuard::new(&journal, &settings).unwrap_err();
        assert!(matches!(busy, ReadAheadError::Busy { pid } if pid == std::process::id()));
        guard.put_back().unwrap();
        assert_eq!((value(&setting).as_str(), journal.exists()), ("128", false));
        // Dropped on the way out.
        drop(ReadAheadGuard::new(&journal, &settings).map(|guard| guard.set(&setting, 0)));
        assert_eq!((value(&setting).as_str(), journal.exists()), ("128", false));
        // Killed: the guard never runs, and the process is gone.
        let guard = ReadAheadGuard::new(&journal, &settings).unwrap();
        guard.set(&setting, 64 << 10).unwrap();
        let text = value(&journal);
        std::mem::forget(guard);
        let own = format!("\"pid\":{}", std::process::id());
        assert!(text.contains(&own));
        fs::write(&journal, text.replace(&own, "\"pid\":4194305")).unwrap();
        assert_eq!(recover(&journal).unwrap(), 1);
        assert_eq!((value(&setting).as_str(), journal.exists()), ("128", false));
        // Killed before it changed anything; what is as it was needs no right to write.
        let unchanged = text.replace(&own, "\"pid\":4194305");
        fs::write(&journal, &unchanged).unwrap();
        fs::set_permissions(&setting, fs::Permissions::from_mode(0o444)).unwrap();
        assert_eq!((recover(&journal).unwrap(), journal.exists()), (1, false));
        fs::set_permissions(&setting, fs::Permissions::from_mode(0o644)).unwrap();
        // A setting that cannot be written leaves no journal.
        let missing = directory.path().join("gone");
        fs::create_dir(&missing).unwrap();
        assert!(ReadAheadGuard::new(&journal, &[missing]).is_err());
        assert!(!journal.exists());
        // Killed while it wrote the journal.
        fs::write(&journal, &text[..text.len() / 2]).unwrap();
        assert_eq!(recover(&journal).unwrap(), 0);
        assert!(!journal.exists());
        assert_eq!(recover(&journal).unwrap(), 0);
    }
}
