//! Which medium holds parts of which sets, and which were written over: a text that only grows.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Mutex;

use archive::label::{MediumName, hex};
use base::failures::lock;
use jiff::Timestamp;
use jobs::Journal;
use serde::{Deserialize, Serialize};
use tapeset::{MediaLog, NamedMedium};

use crate::failure::Failure;

/// The name of the account in its folder.
const NAME: &str = "media.jsonl";

/// A line of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct MediaEntry {
    /// When it was written, in UTC.
    at: Timestamp,
    #[serde(flatten)]
    event: MediaEvent,
}

/// What became of a medium or a set. Media have the identity that is in their labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum MediaEvent {
    /// A medium gets a part of a set.
    Takes {
        medium: String,
        set: String,
        volume: u32,
        /// `None`: the set is of no job.
        job: Option<String>,
        /// What people call the medium.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// Its sets are gone, and what counts on them.
    WrittenOver { medium: String },
    /// A set has ended early: nothing counts on it.
    Abandoned { set: String },
}

/// What became of media.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    /// Media in the order in which they were first written to.
    media: Vec<MediumAccount>,
    /// Sets that lost a part.
    written_over: HashSet<String>,
    /// Sets that ended early.
    abandoned: HashSet<String>,
}

/// A medium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MediumAccount {
    pub(crate) medium: String,
    /// What people call it.
    pub(crate) name: Option<String>,
    /// The sets with a part on it, oldest first.
    pub(crate) sets: Vec<String>,
    /// Whether one of them is of no job, so that no rule says how long it is kept.
    pub(crate) has_other_sets: bool,
    /// When the last of them began.
    pub(crate) last_used: Timestamp,
}

impl MediumAccount {
    fn new(medium: &str, at: Timestamp) -> MediumAccount {
        let medium = medium.to_owned();
        let (name, sets) = (None, Vec::new());
        MediumAccount { medium, name, sets, has_other_sets: false, last_used: at }
    }
}

impl Account {
    pub(crate) fn read(folder: &Path) -> Result<Account, Failure> {
        let journal = Journal::<MediaEntry>::at(folder.join(NAME));
        let (entries, _) = journal.read().map_err(|error| Failure::new(&error, None))?;
        Ok(Account::of(&entries))
    }

    fn of(entries: &[MediaEntry]) -> Account {
        let mut account = Account::default();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for MediaEntry { at, event } in entries {
            match event {
                MediaEvent::Takes { medium, set, job, name, .. } => {
                    let next = account.media.len();
                    let place = *places.entry(medium).or_insert(next);
                    if place == next {
                        account.media.push(MediumAccount::new(medium, *at));
                    }
                    let of_medium = &mut account.media[place];
                    if !of_medium.sets.contains(set) {
                        of_medium.sets.push(set.clone());
                    }
                    of_medium.has_other_sets |= job.is_none();
                    of_medium.last_used = *at;
                    if name.is_some() {
                        of_medium.name.clone_from(name);
                    }
                }
                MediaEvent::WrittenOver { medium } => {
                    let Some(place) = places.get(&**medium) else { continue };
                    account.written_over.extend(account.media[*place].sets.drain(..));
                }
                MediaEvent::Abandoned { set } => {
                    account.abandoned.insert(set.clone());
                }
            }
        }
        account.media.retain(|medium| !medium.sets.is_empty());
        account
    }

    /// The media none of whose sets is needed. `goes` says of a set of a job whether it is known,
    /// and not kept.
    pub(crate) fn freed(&self, goes: impl Fn(&str) -> bool) -> Vec<&MediumAccount> {
        let is_needed = |set: &String| !self.abandoned.contains(set) && !goes(set);
        let is_free =
            |medium: &&MediumAccount| !medium.has_other_sets && !medium.sets.iter().any(is_needed);
        self.media.iter().filter(is_free).collect()
    }

    /// Whether a part of a set is lost.
    pub(crate) fn is_written_over(&self, set: [u8; 16]) -> bool {
        self.written_over.contains(&hex(&set))
    }

    /// Whether a set has ended early.
    pub(crate) fn is_abandoned(&self, set: &str) -> bool {
        self.abandoned.contains(set)
    }

    /// What people call a medium.
    pub(crate) fn name_of(&self, medium: [u8; 16]) -> Option<MediumName> {
        let digits = hex(&medium);
        let medium = self.media.iter().find(|it| it.medium == digits)?;
        MediumName::new(medium.name.as_deref()?)
    }

    /// The media that hold sets, in the order in which they were first written to.
    pub(crate) fn media(&self) -> &[MediumAccount] {
        &self.media
    }
}

/// Writes down what becomes of media in a run.
#[derive(Debug)]
pub(crate) struct Log {
    journal: Journal<MediaEntry>,
    job: Option<String>,
    failed: Mutex<Option<Failure>>,
}

impl Log {
    pub(super) fn new(folder: &Path, job: Option<&str>) -> Log {
        let journal = Journal::at(folder.join(NAME));
        Log { journal, job: job.map(str::to_owned), failed: Mutex::default() }
    }

    /// Whether all was written down.
    ///
    /// # Errors
    /// Why something was not.
    pub(crate) fn outcome(&self) -> Result<(), Failure> {
        lock(&self.failed).take().map_or(Ok(()), Err)
    }

    /// A set has ended early.
    pub(crate) fn abandons(&self, set: [u8; 16]) {
        self.add(MediaEvent::Abandoned { set: hex(&set) });
    }

    fn add(&self, event: MediaEvent) {
        let entry = MediaEntry { at: Timestamp::now(), event };
        if let Err(error) = self.journal.append(&entry) {
            lock(&self.failed).get_or_insert(Failure::new(&error, None));
        }
    }
}

impl MediaLog for Log {
    fn overwrites(&self, medium: [u8; 16]) {
        self.add(MediaEvent::WrittenOver { medium: hex(&medium) });
    }

    fn takes(&self, medium: NamedMedium, set: [u8; 16], volume: u32) {
        let name = medium.name.map(|name| name.to_string());
        let (medium, set, job) = (hex(&medium.medium), hex(&set), self.job.clone());
        self.add(MediaEvent::Takes { medium, set, volume, job, name });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn medium(number: u8) -> NamedMedium {
        let name = (number == 2).then(|| MediumName::new("000123L6").unwrap());
        NamedMedium { medium: [number; 16], name }
    }

    #[test]
    fn a_set_is_lost_with_one_of_its_media() {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::new(folder.path(), Some("homes"));
        log.takes(medium(1), [11; 16], 1);
        log.takes(medium(2), [11; 16], 2);
        log.takes(medium(2), [12; 16], 1);
        log.takes(medium(3), [13; 16], 1);
        log.overwrites([1; 16]);
        log.overwrites([9; 16]);
        log.takes(medium(4), [14; 16], 1);
        log.outcome().unwrap();
        let account = Account::read(folder.path()).unwrap();
        let lost: Vec<bool> =
            [11, 12, 13, 14].map(|set| account.is_written_over([set; 16])).to_vec();
        assert_eq!(lost, [true, false, false, false]);
        let media: Vec<_> = account.media().iter().map(|it| it.medium.clone()).collect();
        assert_eq!(media, [2, 3, 4].map(|medium| hex(&[medium; 16])));
        assert_eq!(account.media()[0].sets, [hex(&[11; 16]), hex(&[12; 16])]);
        assert_eq!(account.name_of([2; 16]), MediumName::new("000123L6"));
        assert_eq!(account.name_of([3; 16]), None);
        let outside = Log::new(folder.path(), None);
        outside.takes(medium(3), [15; 16], 1);
        let account = Account::read(folder.path()).unwrap();
        let others: Vec<bool> = account.media().iter().map(|it| it.has_other_sets).collect();
        assert_eq!(others, [false, true, false]);
        // Free is what has nothing that is kept, unknown or of no job.
        let freed = |account: &Account, going: &[u8]| -> Vec<String> {
            let goes = |set: &str| going.iter().any(|it| hex(&[*it; 16]) == set);
            account.freed(goes).iter().map(|it| it.medium.clone()).collect()
        };
        assert_eq!(freed(&account, &[11, 13]), Vec::<String>::new());
        assert_eq!(freed(&account, &[11, 12, 13]), [hex(&[2; 16])]);
        log.abandons([14; 16]);
        let account = Account::read(folder.path()).unwrap();
        assert_eq!(freed(&account, &[11]), [hex(&[4; 16])]);
    }
}
