//! The journal of this user's jobs, and the digest of it that sets carry: what a new one gets, and
//! what a machine that has lost its journal takes back from them.

use std::collections::BTreeMap;
use std::path::Path;

use archive::index::About;
use archive::label::HostName;
use base::escape::escape_path;
use catalogue::IndexFile;
use jiff::Timestamp;
use jobs::{DIGEST_BYTES_MAX, Entry, Event, Journal, digest, read_digest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::state;

/// The journal of this user's jobs.
///
/// # Errors
/// When there is no folder for it.
pub(crate) fn journal() -> Result<Journal, Failure> {
    state::journal_of_jobs().map(Journal::at).ok_or_else(|| {
        let hint = "set XDG_STATE_HOME or HOME to a folder of yours";
        Failure::of("there is no folder for the journal", Some(hint))
    })
}

/// Adds a line to the journal.
///
/// # Errors
/// When it cannot be written; what it was to say has happened all the same.
pub(crate) fn note(job: &str, to: &Path, event: Event) -> Result<(), Failure> {
    let entry = Entry { at: Timestamp::now(), job: job.to_owned(), to: place(to), event };
    journal()?.append(&entry).map_err(|error| Failure::new(&error, None))
}

/// What the journal calls all tape drives: drives are exchanged and get other names; the sets stay.
pub(crate) const TAPE_PLACE: &str = "tape";

/// A folder of sets as the journal names it: with links followed, so that another path to it finds
/// it, too.
pub(crate) fn place(to: &Path) -> String {
    if is_tape_drive(to) {
        return TAPE_PLACE.to_owned();
    }
    let absolute = std::path::absolute(to).unwrap_or_else(|_| to.to_owned());
    let path = absolute.canonicalize().ok().or_else(|| {
        // It is not there now, and has to have the name that it had.
        let (folder, name) = (absolute.parent()?, absolute.file_name()?);
        Some(folder.canonicalize().ok()?.join(name))
    });
    escape_path(&path.unwrap_or(absolute))
}

/// Whether sets of this place are on tape. The drive need not be there.
pub(crate) fn is_tape_drive(place: &Path) -> bool {
    base::drive_names::is_non_rewinding(place) && !place.is_dir()
}

/// The name of this machine, as sets have it.
pub(crate) fn this_host() -> Option<HostName> {
    HostName::new(rustix::system::uname().nodename().to_bytes())
}

/// What of the journal was lost, and is back from a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CarriedJournal {
    pub job: String,
    /// The archive, or the name of a set on tape, from which it is.
    pub set: String,
    /// How many runs and verifications are known again.
    pub lines: u64,
}

/// What a new set of a job carries. A backup needs no journal: nothing, where none can be read.
pub(crate) fn carried(job: &str, to: &Path) -> Vec<u8> {
    let Ok(journal) = journal() else { return Vec::new() };
    journal.read().map_or(Vec::new(), |(entries, _)| digest(&entries, job, &place(to)))
}

/// What the newest set of each job and place carries.
#[derive(Default)]
pub(crate) struct CarriedJournals {
    newest: BTreeMap<(String, String), Newest>,
}

struct Newest {
    number: u64,
    set: String,
    digest: Vec<u8>,
}

impl CarriedJournals {
    /// Looks at a set. What another machine verified says nothing of the archives here, which may
    /// be copies; so does what was verified at another place.
    pub(crate) fn look_at(&mut self, about: &About, index: &IndexFile, place: &str) {
        if about.host != this_host() {
            return;
        }
        let key = (about.job.clone(), place.to_owned());
        if self.newest.get(&key).is_some_and(|newest| newest.number >= about.number) {
            return;
        }
        // One that cannot be read is as one that has nothing.
        let digest = index.journal(DIGEST_BYTES_MAX).unwrap_or_default();
        let set = about.chain.last().map(|link| link.name.clone()).unwrap_or_default();
        self.newest.insert(key, Newest { number: about.number, set, digest });
    }

    /// Adds to the journal what it has lost: of the jobs of which it has no line.
    ///
    /// # Errors
    /// When it cannot be read, or not be written.
    pub(crate) fn take_in(self) -> Result<Vec<CarriedJournal>, Failure> {
        let mut taken = Vec::new();
        let carrying = self.newest.into_iter().filter(|(_, newest)| !newest.digest.is_empty());
        for ((job, place), newest) in carrying {
            let journal = journal()?;
            let (known, _) = journal.read().map_err(|error| Failure::new(&error, None))?;
            if known.iter().any(|entry| entry.job == job && entry.to == place) {
                continue;
            }
            let entries = read_digest(&newest.digest, &job, &place);
            for entry in &entries {
                journal.append(entry).map_err(|error| Failure::new(&error, None))?;
            }
            if !entries.is_empty() {
                let lines = entries.len() as u64;
                taken.push(CarriedJournal { job, set: newest.set, lines });
            }
        }
        Ok(taken)
    }
}
