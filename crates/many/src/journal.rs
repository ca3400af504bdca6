//! The journal of a sharded backup, which is also its manifest.
//!
//! A file of lines of JSON beside the shards, which rank 0 alone appends to. Every line is on the
//! disk before anything is done on its ground. First the sources, then the plan, one line for each
//! shard and one that says that it is whole; then a line for each shard that is sealed, and last
//! one that says that the set is complete. A line that was cut off by a crash is no line.
//!
//! A later run with the same sources goes on where the journal ends: sealed shards stay if their
//! files are as the journal has them, all others are written anew. A plan that is not whole is made
//! anew, before which nothing was sealed.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::Name;
use crate::units::Unit;

/// Version of the lines. New fields do not need a new version.
pub const FORMAT: u32 = 1;
/// Name of the journal in the folder of the shards.
pub const JOURNAL: &str = "takeup-shards.ndjson";
/// Longest journal that is read: some ten million units.
const JOURNAL_BYTES_MAX: u64 = 4 << 30;

/// A line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// What the set is of.
    Begun(Begun),
    /// The units of a shard.
    Planned(PlannedShard),
    /// There are so many shards, and nothing more is planned.
    PlanEnds { shards: u64 },
    /// A shard is complete and on the disk.
    Sealed(SealedShard),
    /// All shards are sealed.
    Complete(Complete),
}

/// The first line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Begun {
    /// [`FORMAT`].
    pub format: u32,
    /// Identity of the set, 32 hexadecimal digits.
    pub set: String,
    /// Folders, as given.
    pub sources: Vec<Name>,
    /// Compression and other options on which the shards depend.
    pub options: String,
    /// Seconds of Unix time.
    pub begun_unix_seconds: u64,
}

/// What a shard is to hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedShard {
    /// Number, from 1; the last one has the folders.
    pub shard: u64,
    pub units: Vec<Unit>,
}

/// A shard that is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SealedShard {
    pub shard: u64,
    /// Name of its file, in the folder of the journal.
    pub file: String,
    /// Length of the file.
    pub stored_bytes: u64,
    /// Hash of its index, which has the checksums of all else; 64 hexadecimal digits.
    pub digest: String,
    pub members: u64,
    /// Regular files among them.
    pub files: u64,
    /// Bytes of their content.
    pub source_bytes: u64,
    /// What was left out or is not as it was.
    pub warnings: u64,
    /// The first of these, in words.
    pub first_warnings: Vec<String>,
    /// Host that wrote it.
    pub host: String,
    pub seconds: f64,
    /// The stage that held it back.
    pub limit: Option<String>,
}

/// The last line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Complete {
    pub shards: u64,
    pub members: u64,
    pub source_bytes: u64,
    pub warnings: u64,
    /// Seconds of Unix time.
    pub ended_unix_seconds: u64,
}

/// What a journal says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub begun: Begun,
    pub planned: Vec<PlannedShard>,
    /// Nothing more is planned.
    pub plan_is_whole: bool,
    pub sealed: BTreeMap<u64, SealedShard>,
    pub complete: Option<Complete>,
    /// Bytes up to the end of the last whole line.
    whole_bytes: u64,
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("{}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// A whole line that cannot be read.
    #[error("{} line {line}: {why}", path.display())]
    Line { path: PathBuf, line: u64, why: String },
    /// Lines that do not follow from each other.
    #[error("{} line {line} does not belong there", path.display())]
    Order { path: PathBuf, line: u64 },
    /// Another job writes it.
    #[error("{} is in use: another job backs up into this folder", path.display())]
    Taken { path: PathBuf },
    /// A later version wrote it.
    #[error("{} was written by a later version of takeup", path.display())]
    Later { path: PathBuf },
}

impl State {
    /// Takes the next line; `false` if it does not belong there.
    fn take(&mut self, line: Line, number: u64) -> bool {
        match line {
            Line::Begun(begun) => {
                let is_first = number == 1;
                self.begun = begun;
                is_first
            }
            _ if number == 1 => false,
            Line::Planned(planned) => {
                let fits = !self.plan_is_whole && planned.shard == self.planned.len() as u64 + 1;
                self.planned.push(planned);
                fits
            }
            Line::PlanEnds { shards } => {
                let fits = !self.plan_is_whole && shards == self.planned.len() as u64;
                self.plan_is_whole = true;
                fits
            }
            Line::Sealed(sealed) => {
                let fits =
                    self.plan_is_whole && (1..=self.planned.len() as u64).contains(&sealed.shard);
                // Files of other shards change the folders, and stand behind links of the last one:
                // it is written anew whenever one of them is.
                let last = self.planned.len() as u64;
                if sealed.shard != last {
                    self.sealed.remove(&last);
                }
                // The last line of a shard holds: one whose file was lost is written anew.
                self.sealed.insert(sealed.shard, sealed);
                self.complete = None;
                fits
            }
            Line::Complete(complete) => {
                let fits = self.sealed.len() == self.planned.len() && self.plan_is_whole;
                self.complete = Some(complete);
                fits
            }
        }
    }

    /// Reads what a journal says; `None` if it has no whole line.
    fn parse(bytes: &[u8], path: &Path) -> Result<Option<State>, JournalError> {
        let mut state = State::default();
        let mut number = 0;
        let mut at = 0;
        while let Some(length) = bytes[at..].iter().position(|byte| *byte == b'\n') {
            number += 1;
            let text = &bytes[at..at + length];
            at += length + 1;
            let line: Line = serde_json::from_slice(text).map_err(|error| JournalError::Line {
                path: path.to_owned(),
                line: number,
                why: error.to_string(),
            })?;
            if matches!(&line, Line::Begun(begun) if begun.format > FORMAT) {
                return Err(JournalError::Later { path: path.to_owned() });
            }
            if !state.take(line, number) {
                return Err(JournalError::Order { path: path.to_owned(), line: number });
            }
            state.whole_bytes = at as u64;
        }
        Ok((number > 0).then_some(state))
    }

    /// Of a plan that is whole, and of which nothing is sealed.
    pub fn of_plan(begun: Begun, planned: Vec<PlannedShard>) -> State {
        State { begun, planned, plan_is_whole: true, ..State::default() }
    }

    /// Shards that are planned and not sealed.
    pub fn open_shards(&self) -> impl Iterator<Item = &PlannedShard> {
        self.planned.iter().filter(|it| !self.sealed.contains_key(&it.shard))
    }
}

/// A journal that is written.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    /// Bytes of whole lines.
    whole_bytes: u64,
    /// A line could not be written; nothing more is.
    is_broken: bool,
}

impl Journal {
    /// What the journal in a folder says; `None` without one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(folder: &Path) -> Result<Option<State>, JournalError> {
        let path = folder.join(JOURNAL);
        match File::open(&path) {
            Ok(mut file) => state_in(&mut file, &path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(JournalError::Io { path, source }),
        }
    }

    /// The journal of a folder, made if there is none, and what it says. What is behind its last
    /// whole line is cut off. No other job can have it meanwhile.
    ///
    /// # Errors
    /// When it cannot be read or written, or another job has it.
    pub fn open(folder: &Path) -> Result<(Journal, Option<State>), JournalError> {
        let path = folder.join(JOURNAL);
        let failed = |source| JournalError::Io { path: path.clone(), source };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::Taken { path }),
            // Some network file systems have no locks; then nobody watches for two jobs.
            Err(TryLockError::Error(_)) => {}
        }
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        let state = state_in(&mut file, &path)?;
        let whole_bytes = state.as_ref().map_or(0, |state| state.whole_bytes);
        file.set_len(whole_bytes).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        Ok((Journal { file, path, whole_bytes, is_broken: false }, state))
    }

    /// Begins anew: what the journal says is given up.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(&mut self, begun: Begun) -> Result<(), JournalError> {
        let emptied = self.file.set_len(0).and_then(|()| self.file.rewind());
        emptied.map_err(|source| JournalError::Io { path: self.path.clone(), source })?;
        self.whole_bytes = 0;
        self.append(&Line::Begun(begun))
    }

    /// Appends a line, and waits until it is on the disk.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, line: &Line) -> Result<(), JournalError> {
        self.append_all(std::slice::from_ref(line))
    }

    /// Appends lines, and waits once until they are on the disk.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn append_all(&mut self, lines: &[Line]) -> Result<(), JournalError> {
        let mut bytes = Vec::new();
        for line in lines {
            let text = serde_json::to_vec(line).expect("a line is made of strings and numbers");
            bytes.extend_from_slice(&text);
            bytes.push(b'\n');
        }
        let failed = |source| JournalError::Io { path: self.path.clone(), source };
        if self.is_broken {
            return Err(failed(io::Error::other("an earlier line could not be written")));
        }
        flow::trap::step("journal");
        let written = self.file.write_all(&bytes).and_then(|()| self.file.sync_data());
        if let Err(source) = written {
            // Half a line in front of the next one would make both unreadable.
            self.is_broken = true;
            let _ = self.file.set_len(self.whole_bytes);
            return Err(failed(source));
        }
        self.whole_bytes += bytes.len() as u64;
        flow::trap::step("journal");
        Ok(())
    }
}

/// What a file of lines says.
fn state_in(file: &mut File, path: &Path) -> Result<Option<State>, JournalError> {
    let failed = |source| JournalError::Io { path: path.to_owned(), source };
    if file.metadata().map_err(failed)?.len() > JOURNAL_BYTES_MAX {
        return Err(failed(io::Error::other("longer than any journal")));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    State::parse(&bytes, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::UnitPart;
    use proptest::prelude::*;

    fn lines(shards: u64, sealed: u64) -> Vec<Line> {
        let begun = Begun { format: FORMAT, set: "a".to_owned(), ..Begun::default() };
        let mut lines = vec![Line::Begun(begun)];
        for shard in 1..=shards {
            let path = Name(vec![b'a', 0xff, shard as u8 + 1]);
            let unit = Unit { path, part: UnitPart::Whole, files: 1, bytes: 2 };
            lines.push(Line::Planned(PlannedShard { shard, units: vec![unit] }));
        }
        lines.push(Line::PlanEnds { shards });
        for shard in 1..=sealed {
            lines.push(Line::Sealed(SealedShard { shard, ..SealedShard::default() }));
        }
        if shards == sealed {
            lines.push(Line::Complete(Complete { shards, ..Complete::default() }));
        }
        lines
    }

    proptest! {
        /// Cut anywhere, a journal says what its whole lines say, and goes on from there.
        #[test]
        fn a_journal_that_was_cut_goes_on(
            shards in 1u64..6, sealed in 0u64..6, share in 0.0..1.0f64,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let written = lines(shards, sealed.min(shards));
            let Line::Begun(begun) = written[0].clone() else { panic!() };
            let mut journal = Journal::open(folder.path()).unwrap().0;
            journal.begin(begun).unwrap();
            let second = Journal::open(folder.path());
            let is_taken = matches!(second, Err(JournalError::Taken { .. }));
            prop_assert!(is_taken, "{second:?}");
            journal.append_all(&written[1..]).unwrap();
            let path = folder.path().join(JOURNAL);
            drop(journal);
            let bytes = std::fs::read(&path).unwrap();
            let cut = (bytes.len() as f64 * share) as usize;
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let whole = bytes[..cut].iter().filter(|byte| **byte == b'\n').count();
            let Some(state) = Journal::read(folder.path()).unwrap() else {
                prop_assert_eq!(whole, 0);
                return Ok(());
            };
            let seals = written[..whole].iter().filter(|line| matches!(line, Line::Sealed(_)));
            prop_assert_eq!(state.sealed.len(), seals.count());
            let (mut journal, again) = Journal::open(folder.path()).unwrap();
            prop_assert_eq!(again, Some(state));
            journal.append_all(&written[whole..]).unwrap();
            prop_assert_eq!(std::fs::read(&path).unwrap(), bytes);
        }
    }

    #[test]
    fn lines_that_do_not_follow_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut wrong = lines(2, 1);
        wrong.swap(1, 2);
        let Line::Begun(begun) = wrong[0].clone() else { panic!() };
        let mut journal = Journal::open(folder.path()).unwrap().0;
        journal.begin(begun).unwrap();
        journal.append_all(&wrong[1..]).unwrap();
        let error = Journal::read(folder.path()).unwrap_err();
        assert!(matches!(error, JournalError::Order { line: 2, .. }), "{error}");
        std::fs::write(folder.path().join(JOURNAL), "{}\n").unwrap();
        assert!(matches!(Journal::read(folder.path()), Err(JournalError::Line { line: 1, .. })));
    }
}
