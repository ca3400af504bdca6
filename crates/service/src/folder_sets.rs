//! The sets of a folder, and whether each can be restored.

use std::collections::BTreeSet;
use std::path::PathBuf;

use archive::index::About;
use archive::label::hex;
use base::calendar::time_text;
use base::escape::escape_path;
use catalogue::FolderSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Answer;
use crate::failure::Failure;
use crate::jobs::Verifications;
use crate::outcome::Outcome;
use crate::sets;

/// The folder whose sets are listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FolderSetsRequest {
    pub from: PathBuf,
}

/// The sets of a folder.
#[derive(Clone, Debug)]
pub struct FolderSetsDone {
    pub from: PathBuf,
    /// By job, in the order in which they were made.
    pub sets: Vec<ListedSet>,
    /// Further archives of the same sets.
    pub copies: Vec<String>,
    /// What is named like a set and cannot be read as one.
    pub unusable: Vec<String>,
}

/// A set of a folder.
#[derive(Clone, Debug)]
pub struct ListedSet {
    pub about: About,
    pub archive: String,
    pub bytes: u64,
    /// The archive that it needs and that is not there.
    pub missing: Option<String>,
    /// When it was last read back, in seconds since 1970, and whether it was sound.
    pub verified: Option<(u64, bool)>,
}

/// The sets of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FolderSetsAnswer {
    pub sets: Vec<FolderSetAnswer>,
    /// Further archives of the same sets.
    pub copies: Vec<String>,
    /// What is named like a set and cannot be read as one.
    pub unusable: Vec<String>,
}

/// A set of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FolderSetAnswer {
    pub set: String,
    pub job: String,
    pub number: u64,
    pub level: u8,
    /// When its run began, in UTC.
    pub begun: String,
    pub archive: String,
    pub bytes: u64,
    /// Objects that it stored.
    pub stored: u64,
    /// Objects that an earlier set of its chain has.
    pub unchanged: u64,
    pub deleted: u64,
    /// The archives of its chain, the full set's first.
    pub chain: Vec<String>,
    /// The archive that it needs and that is not there; null: it can be restored.
    pub missing: Option<String>,
    /// When it was last read back, in UTC; null: that is not known.
    pub verified: Option<String>,
    /// Whether it was sound then.
    pub sound: Option<bool>,
}

impl Answer for FolderSetsAnswer {
    const COMMAND: &'static str = "list folder";

    fn command(&self) -> &str {
        "list"
    }
}

impl FolderSetsDone {
    /// How the command has ended.
    pub fn outcome(&self) -> Outcome {
        let is_whole = |set: &ListedSet| set.missing.is_none();
        let is_fine = self.unusable.is_empty() && self.sets.iter().all(is_whole);
        if is_fine { Outcome::Done } else { Outcome::Warned }
    }

    /// As an answer.
    pub fn answer(&self) -> FolderSetsAnswer {
        let sets = self.sets.iter().map(ListedSet::answer).collect();
        let (copies, unusable) = (self.copies.clone(), self.unusable.clone());
        FolderSetsAnswer { sets, copies, unusable }
    }
}

impl ListedSet {
    fn answer(&self) -> FolderSetAnswer {
        let about = &self.about;
        FolderSetAnswer {
            set: hex(&about.set),
            job: about.job.clone(),
            number: about.number,
            level: about.level,
            begun: time_text(about.begun_seconds as i64),
            archive: self.archive.clone(),
            bytes: self.bytes,
            stored: about.stored.iter().map(|(_, objects)| objects).sum(),
            unchanged: about.unchanged,
            deleted: about.deleted,
            chain: about.chain.iter().map(|set| set.name.clone()).collect(),
            missing: self.missing.clone(),
            verified: self.verified.map(|(seconds, _)| time_text(seconds as i64)),
            sound: self.verified.map(|(_, sound)| sound),
        }
    }
}

/// Lists the sets of a folder.
///
/// # Errors
/// When the folder cannot be read, or has no set.
pub fn folder_sets(request: &FolderSetsRequest) -> Result<FolderSetsDone, Failure> {
    let known = sets::read(&request.from)?;
    if known.sets.is_empty() && known.unusable.is_empty() {
        let message = format!("{} has no set of backups", escape_path(&request.from));
        let hint = "sets are made with `takeup backup SOURCE --to FOLDER/`; to list an archive, \
                    name its file";
        return Err(Failure::of(message, Some(hint)));
    }
    let jobs: BTreeSet<&str> = known.sets.iter().map(|set| &*set.about.job).collect();
    // Without a journal nothing is known of verifications, and that is all.
    let verifications = Verifications::of(&request.from).ok();
    let mut listed = Vec::new();
    for job in jobs {
        for set in known.sets.iter().filter(|set| set.about.job == job) {
            listed.push(ListedSet {
                about: set.about.clone(),
                archive: set.name(),
                bytes: set.length_bytes,
                missing: known.chain_of(set).err().map(|error| error.to_string()),
                verified: verifications.as_ref().and_then(|it| it.of_set(set.about.set)),
            });
        }
    }
    let copy = |set: &FolderSet| {
        let job = &set.about.job;
        format!("{} is a copy of set {} of {job}", set.name(), set.about.number)
    };
    let copies = known.copies.iter().map(copy).collect();
    let unusable = known
        .unusable
        .iter()
        .map(|(path, why)| format!("{} cannot be read as a set: {why}", escape_path(path)))
        .collect();
    Ok(FolderSetsDone { from: request.from.clone(), sets: listed, copies, unusable })
}
