//! The digest of the journal that sets carry: what a new one gets of it, and what a machine that
//! has lost its journal takes back from them.

use std::collections::BTreeMap;
use std::path::Path;

use catalogue::IndexFile;
use jobs::{DIGEST_BYTES_MAX, digest, read_digest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{journal, place};
use crate::failure::Failure;
use crate::sets;

/// What of the journal was lost, and is back from a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CarriedJournal {
    pub job: String,
    /// The set that had it.
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
    pub(crate) fn look_at(&mut self, index: &IndexFile, place: &str) {
        let Ok(Some(about)) = index.about() else { return };
        if about.host != sets::this_host() {
            return;
        }
        let key = (about.job, place.to_owned());
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
