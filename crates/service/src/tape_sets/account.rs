//! Which medium holds parts of which sets, and which were written over: a text that only grows.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Mutex;

use archive::label::hex;
use base::failures::lock;
use jiff::Timestamp;
use jobs::Journal;
use serde::{Deserialize, Serialize};
use tapeset::MediaLog;

use crate::failure::Failure;

/// The name of the account in its folder.
const NAME: &str = "media.jsonl";

/// A line of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct MediaEntry {
    /// When it was written, in UTC.
    at: Timestamp,
    /// The identity of the medium, as in its labels.
    medium: String,
    #[serde(flatten)]
    event: MediaEvent,
}

/// What became of a medium.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum MediaEvent {
    /// It gets a part of a set.
    Takes {
        set: String,
        volume: u32,
        /// `None`: the set is of no job.
        job: Option<String>,
    },
    /// All that was on it is written over.
    WrittenOver,
}

/// What became of media.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    /// Media in the order in which they were first written to.
    media: Vec<MediumAccount>,
    /// Sets that lost a part.
    written_over: HashSet<String>,
}

/// A medium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MediumAccount {
    pub(crate) medium: String,
    /// The sets with a part on it, oldest first.
    pub(crate) sets: Vec<String>,
    /// Whether one of them is of no job, so that no rule says how long it is kept.
    pub(crate) has_other_sets: bool,
    /// When the last of them began.
    pub(crate) last_used: Timestamp,
}

impl Account {
    pub(super) fn read(folder: &Path) -> Result<Account, Failure> {
        let journal = Journal::<MediaEntry>::at(folder.join(NAME));
        let (entries, _) = journal.read().map_err(|error| Failure::new(&error, None))?;
        Ok(Account::of(&entries))
    }

    fn of(entries: &[MediaEntry]) -> Account {
        let mut account = Account::default();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for MediaEntry { at, medium, event } in entries {
            let place = places.get(&**medium).copied();
            match event {
                MediaEvent::Takes { set, job, .. } => {
                    let place = place.unwrap_or(account.media.len());
                    if place == account.media.len() {
                        places.insert(medium, place);
                        account.media.push(MediumAccount {
                            medium: medium.clone(),
                            sets: Vec::new(),
                            has_other_sets: false,
                            last_used: *at,
                        });
                    }
                    let of_medium = &mut account.media[place];
                    if !of_medium.sets.contains(set) {
                        of_medium.sets.push(set.clone());
                    }
                    of_medium.has_other_sets |= job.is_none();
                    of_medium.last_used = *at;
                }
                MediaEvent::WrittenOver => {
                    let Some(place) = place else { continue };
                    account.written_over.extend(account.media[place].sets.drain(..));
                }
            }
        }
        account.media.retain(|medium| !medium.sets.is_empty());
        account
    }

    /// Whether a part of a set is lost.
    pub(crate) fn is_written_over(&self, set: [u8; 16]) -> bool {
        self.written_over.contains(&hex(&set))
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

    fn add(&self, medium: [u8; 16], event: MediaEvent) {
        let entry = MediaEntry { at: Timestamp::now(), medium: hex(&medium), event };
        if let Err(error) = self.journal.append(&entry) {
            lock(&self.failed).get_or_insert(Failure::new(&error, None));
        }
    }
}

impl MediaLog for Log {
    fn overwrites(&self, medium: [u8; 16]) {
        self.add(medium, MediaEvent::WrittenOver);
    }

    fn takes(&self, medium: [u8; 16], set: [u8; 16], volume: u32) {
        let (set, job) = (hex(&set), self.job.clone());
        self.add(medium, MediaEvent::Takes { set, volume, job });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_lost_with_one_of_its_media() {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::new(folder.path(), Some("homes"));
        log.takes([1; 16], [11; 16], 1);
        log.takes([2; 16], [11; 16], 2);
        log.takes([2; 16], [12; 16], 1);
        log.takes([3; 16], [13; 16], 1);
        log.overwrites([1; 16]);
        log.overwrites([9; 16]);
        log.takes([4; 16], [14; 16], 1);
        log.outcome().unwrap();
        let account = Account::read(folder.path()).unwrap();
        let lost: Vec<bool> =
            [11, 12, 13, 14].map(|set| account.is_written_over([set; 16])).to_vec();
        assert_eq!(lost, [true, false, false, false]);
        let media: Vec<_> = account.media().iter().map(|it| it.medium.clone()).collect();
        assert_eq!(media, [2, 3, 4].map(|medium| hex(&[medium; 16])));
        assert_eq!(account.media()[0].sets, [hex(&[11; 16]), hex(&[12; 16])]);
        let outside = Log::new(folder.path(), None);
        outside.takes([3; 16], [15; 16], 1);
        let account = Account::read(folder.path()).unwrap();
        let others: Vec<bool> = account.media().iter().map(|it| it.has_other_sets).collect();
        assert_eq!(others, [false, true, false]);
    }
}
