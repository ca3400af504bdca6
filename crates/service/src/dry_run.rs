//! What a backup would store, and why, before it does.

use std::path::PathBuf;

use archive::chunk::Compression;
use base::escape::{escape, escape_path};
use flow::cancel::Cancel;
use runs::backup::DryRun;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tapeset::Media;

use crate::Answer;
use crate::backup::{BackupRequest, new_set, options};
use crate::change::NoChanger;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::run::{RunMonitor, RunObserver, destination};
use crate::sets::{self, ChangedListAnswer, Hold, ListUsed, WrittenSetAnswer};

/// What a backup would store.
#[derive(Debug)]
pub struct DryRunDone {
    /// The archive that would be written.
    pub to: PathBuf,
    /// Whether it would be a set of a chain.
    pub is_set: bool,
    /// The list of changes, if one was named.
    pub list: Option<ListUsed>,
    pub found: DryRun,
}

impl DryRunDone {
    /// How the command has ended.
    pub fn outcome(&self) -> Outcome {
        let has_missed = self.list.as_ref().is_some_and(|list| list.report.missed > 0);
        if self.found.problems > 0 || has_missed { Outcome::Warned } else { Outcome::Done }
    }

    /// As an answer.
    pub fn answer(&self) -> DryRunAnswer {
        let found = &self.found;
        let folder = |it: &runs::backup::StoredFolder| FolderBytesAnswer {
            path: escape(&it.path),
            bytes: it.bytes,
        };
        let file = |it: &runs::backup::StoredFile| LargeFileAnswer {
            path: escape(&it.path),
            bytes: it.bytes,
            reason: it.reason.name().to_owned(),
        };
        DryRunAnswer {
            archive: escape_path(&self.to),
            set: WrittenSetAnswer::from(&found.about),
            changed_from: self.list.as_ref().map(ChangedListAnswer::from),
            files: found.files,
            bytes: found.bytes,
            hole_bytes: found.hole_bytes,
            links: found.links,
            unlisted: found.problems,
            folders: found.folders.iter().map(folder).collect(),
            largest: found.largest.iter().map(file).collect(),
        }
    }
}

/// What a backup would store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DryRunAnswer {
    /// The archive that would be written; each run gives a set another name.
    pub archive: String,
    /// The set, and the objects that would be stored by reason. An archive outside of a chain is
    /// told as a full set.
    pub set: WrittenSetAnswer,
    /// The list of changes, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_from: Option<ChangedListAnswer>,
    /// Files with a content, each once whatever names it has.
    pub files: u64,
    /// Their bytes, without holes, before compression.
    pub bytes: u64,
    /// Bytes of holes, which are not stored.
    pub hole_bytes: u64,
    /// Further names of files.
    pub links: u64,
    /// Folders that could not be listed.
    pub unlisted: u64,
    /// The folders with most of the bytes.
    pub folders: Vec<FolderBytesAnswer>,
    /// The largest files that would be stored.
    pub largest: Vec<LargeFileAnswer>,
}

/// A folder and the bytes that would be stored of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FolderBytesAnswer {
    /// As the archive has it, escaped.
    pub path: String,
    pub bytes: u64,
}

/// A file that would be stored, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LargeFileAnswer {
    /// As the archive has it, escaped.
    pub path: String,
    pub bytes: u64,
    /// As in `set.stored`.
    pub reason: String,
}

impl Answer for DryRunAnswer {
    const COMMAND: &'static str = "backup dry-run";

    fn command(&self) -> &str {
        "backup"
    }
}

/// Says what a backup would store. No content is read, and nothing is written.
///
/// # Errors
/// When a source cannot be found, the folder of sets cannot be read, or the run was stopped.
pub fn dry_run(
    request: &BackupRequest,
    observer: &dyn RunObserver,
    cancel: &Cancel,
) -> Result<DryRunDone, Failure> {
    let monitor = RunMonitor::new(observer);
    let set = new_set(request, None, Hold::None, cancel, &monitor)?;
    let (to, wanted, list) = match set {
        Some(set) => (set.path, Some(set.options), set.list),
        None => (request.to.clone(), None, None),
    };
    let is_set = wanted.is_some();
    let wanted = wanted.map_or_else(|| sets::alone(request), Ok)?;
    // Where it would go plays no part.
    let nowhere =
        destination("-".as_ref(), Default::default(), Media::default(), NoChanger::shared());
    let options = options(request, nowhere, Compression::None)?;
    let found = runs::backup::dry_run(&options, &wanted, &monitor, cancel)?;
    let list = list.map(|list| list.done(found.list.clone(), &monitor));
    Ok(DryRunDone { to, is_set, list, found })
}
