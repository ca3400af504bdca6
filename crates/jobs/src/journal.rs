//! What became of runs, verifications and sets: a text that only grows, a line of JSON each.
//!
//! Nothing depends on it: without it nothing is known of verifications, and all are due.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::marker::PhantomData;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rustix::fs::FlockOperation;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What is read of the end of a journal: a hundred thousand lines.
const READ_BYTES_MAX: u64 = 64 << 20;

/// A line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// When it was written, in UTC.
    pub at: Timestamp,
    pub job: String,
    /// The folder of sets, escaped.
    pub to: String,
    #[serde(flatten)]
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A run of a job ended.
    Run(Box<Journaled>),
    /// An archive was read from its medium and compared with its checksums.
    Verified { set: String, archive: String, sound: bool, bytes: u64, text: String },
    /// Of an archive the bytes from `from_bytes` to `to_bytes`, counted before compression, were
    /// read from its medium and compared with its checksums. The last part has the index with it.
    Sampled {
        set: String,
        archive: String,
        sound: bool,
        from_bytes: u64,
        to_bytes: u64,
        /// Bytes of the whole archive, before compression.
        archive_bytes: u64,
        text: String,
    },
    /// An archive was removed.
    Forgotten { set: String, archive: String, bytes: u64 },
    /// Files were restored for a trial and compared with their hashes.
    Tried { set: String, files: u64, sound: bool, text: String },
}

/// How a run of a job ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Journaled {
    pub result: RunResult,
    /// The set that was written, if one was.
    pub set: Option<String>,
    pub archive: Option<String>,
    pub level: Option<u8>,
    pub files: u64,
    /// Of the archive.
    pub bytes: u64,
    pub seconds: f64,
    pub warnings: u64,
    /// What held the backup back.
    pub limit: Option<String>,
    /// What went wrong, of a run without a backup.
    pub error: Option<String>,
    /// What is to be looked at, the first few.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Whether a run did its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunResult {
    Done,
    /// A set was written, and something is to be looked at.
    Warned,
    Failed,
}

/// Why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what} the journal {}", path.display())]
pub struct JournalError {
    what: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// A text that only grows, with an entry in each line; by default that of a user's jobs.
#[derive(Clone, Debug)]
pub struct Journal<E = Entry> {
    path: PathBuf,
    entries: PhantomData<fn() -> E>,
}

impl<E: Serialize + DeserializeOwned> Journal<E> {
    /// The journal at this place; it is made with its first line.
    pub fn at(path: PathBuf) -> Journal<E> {
        Journal { path, entries: PhantomData }
    }

    /// Adds a line, and waits until it is on the disk.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&self, entry: &E) -> Result<(), JournalError> {
        let failed = |source| self.failed("write to", source);
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true).mode(0o600);
        let mut file = options.open(&self.path).map_err(failed)?;
        base::interruptible::flock(&file, FlockOperation::LockExclusive)
            .map_err(|error| failed(error.into()))?;
        let mut line = serde_json::to_vec(entry).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        // A crash can leave a line without its end, which must not swallow this one.
        if !ends_with_a_line(&mut file).map_err(failed)? {
            line.insert(0, b'\n');
        }
        file.write_all(&line).and_then(|()| file.sync_data()).map_err(failed)
    }

    /// All lines, the oldest first, and the number of those that nobody can read.
    ///
    /// # Errors
    /// When there is a journal and it cannot be read.
    pub fn read(&self) -> Result<(Vec<E>, u64), JournalError> {
        let failed = |source| self.failed("read", source);
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
            file => file.map_err(failed)?,
        };
        let length = file.metadata().map_err(failed)?.len();
        let skipped = length.saturating_sub(READ_BYTES_MAX);
        file.seek(SeekFrom::Start(skipped)).map_err(failed)?;
        let (mut entries, mut unreadable) = (Vec::new(), 0);
        let lines = BufReader::new(file.take(READ_BYTES_MAX)).split(b'\n');
        // The first may be the rest of one.
        for line in lines.skip(usize::from(skipped > 0)) {
            let line = line.map_err(failed)?;
            match serde_json::from_slice(&line) {
                Ok(entry) => entries.push(entry),
                Err(_) => unreadable += u64::from(!line.is_empty()),
            }
        }
        Ok((entries, unreadable))
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn failed(&self, what: &'static str, source: io::Error) -> JournalError {
        JournalError { what, path: self.path.clone(), source }
    }
}

fn ends_with_a_line(file: &mut File) -> io::Result<bool> {
    let mut last = [b'\n'];
    if file.seek(SeekFrom::End(0))? > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    Ok(last == [b'\n'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(set: &str) -> Entry {
        let event = Event::Forgotten { set: set.to_owned(), archive: "a.tar".to_owned(), bytes: 7 };
        let at = Timestamp::from_second(1_793_584_800).unwrap();
        Entry { at, job: "homes".to_owned(), to: "/mnt/sets/".to_owned(), event }
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::at(folder.path().join("new/journal"));
        assert_eq!(journal.read().unwrap(), (vec![], 0));
        journal.append(&entry("one")).unwrap();
        journal.append(&entry("two")).unwrap();
        assert_eq!(journal.read().unwrap(), (vec![entry("one"), entry("two")], 0));
        let line = std::fs::read_to_string(journal.path()).unwrap();
        let expected = "{\"at\":\"2026-11-02T02:00:00Z\",\"job\":\"homes\",\"to\":\"/mnt/sets/\",\
                        \"event\":\"forgotten\",\"set\":\"one\",\"archive\":\"a.tar\",\"bytes\":7}";
        assert_eq!(line.lines().next(), Some(expected));
    }

    #[test]
    fn half_a_line_costs_itself_alone() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::at(folder.path().join("journal"));
        journal.append(&entry("one")).unwrap();
        let text = std::fs::read_to_string(journal.path()).unwrap();
        std::fs::write(journal.path(), format!("{text}{}", &text[..40])).unwrap();
        journal.append(&entry("two")).unwrap();
        assert_eq!(journal.read().unwrap(), (vec![entry("one"), entry("two")], 1));
    }
}
