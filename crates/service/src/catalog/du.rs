//! Where the bytes of the sets of a catalogue are, and how that changed from set to set.

use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use base::escape::escape;
use catalogue::{SeriesUsage, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{CatalogSetAnswer, CaughtUpAnswer};
use super::{CaughtUp, failure, open};
use crate::Answer;
use crate::failure::Failure;
use crate::outcome::Outcome;

/// Folders that are listed where nothing else is said.
pub const MOST_FOLDERS: usize = 20;

/// Of which folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CatalogDuRequest {
    /// As the archives have it; `None`: all that was backed up.
    #[serde(default)]
    pub path: Option<PathBuf>,
    /// Most folders and files that are listed of a series.
    #[serde(default = "most_folders")]
    pub most: usize,
    #[serde(default)]
    pub catalog: Option<PathBuf>,
}

fn most_folders() -> usize {
    MOST_FOLDERS
}

/// Where the bytes are.
#[derive(Clone, Debug)]
pub struct CatalogDu {
    pub caught_up: CaughtUp,
    /// For each series that has the path.
    pub series: Vec<SeriesUsage>,
    /// Most folders and files that are listed.
    pub most: usize,
}

/// Where the bytes are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CatalogDuAnswer {
    pub caught_up: CaughtUpAnswer,
    pub series: Vec<SeriesUsageAnswer>,
}

/// What the sets of a series have at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesUsageAnswer {
    /// Escaped.
    pub path: String,
    /// In the order in which they were made.
    pub sets: Vec<CatalogSetAnswer>,
    /// Bytes of files in each of these sets, as readers see them, before compression.
    pub bytes: Vec<u64>,
    /// What is in it, the most bytes in the newest set first.
    pub below: Vec<UsageAnswer>,
    /// How many further ones there are.
    pub not_listed: u64,
}

/// The bytes of a file, or of the files in a folder and below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageAnswer {
    /// Escaped.
    pub path: String,
    pub is_folder: bool,
    /// In each of the sets.
    pub bytes: Vec<u64>,
    /// Of all versions that any of the sets has, each counted once.
    pub versions_bytes: u64,
}

impl Answer for CatalogDuAnswer {
    const COMMAND: &'static str = "catalog du";
}

impl CatalogDu {
    /// How the command has ended.
    pub fn outcome(&self) -> Outcome {
        self.caught_up.outcome()
    }

    /// As a document.
    pub fn answer(&self) -> CatalogDuAnswer {
        let usage = |it: &Usage| UsageAnswer {
            path: escape(&it.path),
            is_folder: it.is_folder,
            bytes: it.bytes.clone(),
            versions_bytes: it.versions_bytes,
        };
        let series = self.series.iter().map(|series| SeriesUsageAnswer {
            path: escape(&series.path),
            sets: series.sets.iter().map(CatalogSetAnswer::from).collect(),
            bytes: all_bytes(series),
            below: series.below.iter().take(self.most).map(usage).collect(),
            not_listed: series.below.len().saturating_sub(self.most) as u64,
        });
        let caught_up = CaughtUpAnswer::from(&self.caught_up);
        CatalogDuAnswer { caught_up, series: series.collect() }
    }
}

/// The bytes of all that is at the path, in each set.
pub fn all_bytes(series: &SeriesUsage) -> Vec<u64> {
    let of = |at: usize| series.below.iter().map(|usage| usage.bytes[at]).sum();
    (0..series.sets.len()).map(of).collect()
}

/// Says where the bytes of the sets are. The catalogue first takes in what its folders have now.
///
/// # Errors
/// When there is no catalogue, it cannot be read, or no set of it has the path.
pub fn du(request: &CatalogDuRequest, tell: impl FnOnce(&CaughtUp)) -> Result<CatalogDu, Failure> {
    let (catalogue, caught_up) = open(request.catalog.as_deref(), tell)?;
    let path = request.path.as_ref().map(|path| path.as_os_str().as_bytes()).unwrap_or_default();
    let series = catalogue.usage(path).map_err(|error| failure(&error))?;
    if series.is_empty() {
        let message = match path {
            [] => "no set of the catalogue has a file with content".to_owned(),
            path => format!("no set of the catalogue has a file with content at {}", escape(path)),
        };
        let hint = "write the path as `takeup catalog find` prints it";
        return Err(Failure::of(message, Some(hint)));
    }
    Ok(CatalogDu { caught_up, series, most: request.most })
}
