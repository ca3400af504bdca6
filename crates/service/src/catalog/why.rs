//! Why the sets of a chain stored an object, or did not.

use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use archive::index::{About, EntryState, StoreReason, TreeEntry};
use archive::label::hex;
use base::calendar::time_text;
use base::escape::escape;
use catalogue::FolderSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Answer;
use crate::failure::Failure;
use crate::sets::{self, SetSelection};

/// Which object of which chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CatalogWhyRequest {
    /// A folder of sets: the chain of its newest set.
    pub from: PathBuf,
    /// The path, as the archives have it.
    pub path: PathBuf,
    /// The job, where the folder has sets of several.
    #[serde(default)]
    pub job: Option<String>,
}

/// What each set of a chain did with an object.
#[derive(Clone, Debug)]
pub struct CatalogWhy {
    pub path: Vec<u8>,
    /// The newest set last.
    pub days: Vec<WhyDay>,
}

/// What a set did with an object.
#[derive(Clone, Debug)]
pub struct WhyDay {
    pub about: About,
    /// `None`: it was not there.
    pub entry: Option<TreeEntry>,
}

/// What each set of a chain did with an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CatalogWhyAnswer {
    pub path: String,
    /// The newest set last.
    pub sets: Vec<WhyAnswer>,
}

/// What a set did with an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WhyAnswer {
    pub set: String,
    pub number: u64,
    pub level: u8,
    /// When its run began, in UTC.
    pub begun: String,
    /// `stored`, `unchanged`, `unlisted` (its folder could not be listed) or `absent`.
    pub state: String,
    /// Why it was stored, in this set or in that of `archive`.
    pub reason: Option<String>,
    /// Name of the file with the set that has it.
    pub archive: Option<String>,
    pub bytes: Option<u64>,
}

impl Answer for CatalogWhyAnswer {
    const COMMAND: &'static str = "catalog why";
}

impl CatalogWhy {
    /// As an answer.
    pub fn answer(&self) -> CatalogWhyAnswer {
        let sets = self.days.iter().map(WhyDay::answer).collect();
        CatalogWhyAnswer { path: escape(&self.path), sets }
    }
}

impl WhyDay {
    /// The archive that has the object.
    pub fn archive(&self) -> Option<&str> {
        let place = self.entry.as_ref()?.place as usize;
        self.about.chain.get(place).map(|set| &*set.name)
    }

    fn answer(&self) -> WhyAnswer {
        let About { set, number, level, begun_seconds, .. } = &self.about;
        let state = match self.entry.as_ref().map(|entry| entry.state) {
            Some(EntryState::Stored) => "stored",
            Some(EntryState::Unchanged) => "unchanged",
            Some(EntryState::Unlisted) => "unlisted",
            None => "absent",
        };
        WhyAnswer {
            set: hex(set),
            number: *number,
            level: *level,
            begun: time_text(*begun_seconds as i64),
            state: state.to_owned(),
            reason: self.entry.as_ref().map(|entry| entry.reason.name().to_owned()),
            archive: self.archive().map(str::to_owned),
            bytes: self.entry.as_ref().map(|entry| entry.size_bytes),
        }
    }
}

/// What a reason says of an object.
pub fn because(reason: StoreReason) -> &'static str {
    match reason {
        StoreReason::Full => "the set is a full one",
        StoreReason::New => "the set before has no object of this name and kind",
        StoreReason::Size => "the size is another",
        StoreReason::Modified => "the time of modification is another",
        StoreReason::Owner => "owner, group or permissions are others",
        StoreReason::Changed => {
            "only the time of the last change of its inode is another: attributes, links, or a \
             content whose time was set back"
        }
        StoreReason::Identity => "the inode number is another: it is another file",
        StoreReason::Doubtful => {
            "the set before found it just written: a change after that would not show"
        }
        StoreReason::Again => "the set before could not read all of it",
        StoreReason::Content => "something in the folder was stored, or is gone",
        StoreReason::Linked => "another name of the file was stored",
        StoreReason::Untrusted => "the times of folders on its file system are not trusted",
    }
}

/// Finds out what the sets of a chain did with an object.
///
/// # Errors
/// When the folder has no such chain, or none of its sets has the path.
pub fn why(request: &CatalogWhyRequest) -> Result<CatalogWhy, Failure> {
    let selection = SetSelection { at: None, job: request.job.clone() };
    let chain = sets::chain(&request.from, None, &selection)?.sets;
    let path = request.path.as_os_str().as_bytes();
    let trimmed = path.strip_suffix(b"/").unwrap_or(path);
    let path = trimmed.strip_prefix(b"/").unwrap_or(trimmed).to_vec();
    let days = chain.iter().map(|set| day(set, &path)).collect::<Result<Vec<_>, _>>()?;
    if days.iter().all(|day| day.entry.is_none()) {
        let message = format!("no set of the chain has {}", escape(&path));
        let hint = "write the path as `takeup list ARCHIVE` prints it";
        return Err(Failure::of(message, Some(hint)));
    }
    Ok(CatalogWhy { path, days })
}

fn day(set: &FolderSet, path: &[u8]) -> Result<WhyDay, Failure> {
    let is_it = |entry: &Result<TreeEntry, Failure>| match entry {
        Ok(entry) => entry.path == path,
        Err(_) => true,
    };
    let entry = sets::entries(set)?.find(is_it).transpose()?;
    Ok(WhyDay { about: set.about.clone(), entry })
}
