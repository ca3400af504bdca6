//! The catalogue: which archive has which version of which file.
//!
//! It is a file on this machine that is made of the indexes of archives, and can be made again from
//! them. No command needs it to restore.

mod answer;
mod candidates;
mod catch_up;
mod diff;
mod du;
mod folder;
mod load;
mod members;
mod restoring;
mod why;

use std::path::{Path, PathBuf};

use base::escape::escape;
use catalogue::{Catalogue, CatalogueError, Found, KnownSet, Places};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::state;

pub use answer::{
    AbsentFolderAnswer, CatalogFindAnswer, CatalogLoadAnswer, CatalogObjectAnswer,
    CatalogSetAnswer, CatalogSetsAnswer, CatalogVersionAnswer, CaughtUpAnswer, FoundFileAnswer,
    LeftOutArchive,
};
pub use catch_up::{AbsentFolder, CaughtUp, NotCaughtUp};
pub(crate) use catch_up::{after_backup, after_run};
pub use diff::{
    CatalogDiff, CatalogDiffAnswer, CatalogDiffRequest, Differing, DifferingKind, DifferingObject,
    DifferingObjectAnswer, diff,
};
pub use du::{
    CatalogDu, CatalogDuAnswer, CatalogDuRequest, MOST_FOLDERS, SeriesUsageAnswer, UsageAnswer,
    all_bytes, du,
};
pub use folder::{
    BrowsedSeries, Browser, CatalogLs, CatalogLsAnswer, CatalogLsRequest, FolderAnswer,
    FolderEntryAnswer, FolderOfSet, ls,
};
pub use load::{CatalogLoaded, load};
pub use restoring::RestoreFrom;
pub use why::{CatalogWhy, CatalogWhyAnswer, CatalogWhyRequest, WhyAnswer, WhyDay, because, why};

/// Which archives come into a catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CatalogLoadRequest {
    /// Archives, and folders with archives in them. None, where a catalogue is replaced: the
    /// folders that it has looked at so far.
    pub from: Vec<PathBuf>,
    /// The catalogue; the user's own where none is named.
    #[serde(default)]
    pub catalog: Option<PathBuf>,
    /// What becomes of the catalogue as it is.
    #[serde(default)]
    pub existing: ExistingCatalogue,
}

/// What becomes of a catalogue that exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExistingCatalogue {
    /// The archives are added to it.
    #[default]
    Kept,
    /// One with these archives alone takes its place.
    Replaced,
}

/// What to look for in a catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CatalogFindRequest {
    /// Of a name at any depth; with a slash in it, of a path in the archive.
    pub glob: String,
    /// Most paths that are listed.
    #[serde(default = "most_paths")]
    pub most: usize,
    #[serde(default)]
    pub catalog: Option<PathBuf>,
}

/// Paths that are listed where nothing else is said.
pub const MOST_PATHS: usize = 1_000;

fn most_paths() -> usize {
    MOST_PATHS
}

/// The catalogue whose sets are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CatalogSetsRequest {
    #[serde(default)]
    pub catalog: Option<PathBuf>,
}

/// What was found in a catalogue.
#[derive(Clone, Debug)]
pub struct CatalogFound {
    pub caught_up: CaughtUp,
    pub found: Found,
    /// All sets of the catalogue.
    pub sets: Vec<KnownSet>,
}

/// The sets of a catalogue.
#[derive(Clone, Debug)]
pub struct CatalogSets {
    pub caught_up: CaughtUp,
    /// The oldest first.
    pub sets: Vec<KnownSet>,
}

impl CatalogFound {
    /// How the command has ended.
    pub fn outcome(&self) -> Outcome {
        self.caught_up.outcome()
    }
}

impl CatalogSets {
    /// How the command has ended.
    pub fn outcome(&self) -> Outcome {
        self.caught_up.outcome()
    }
}

/// Looks for files in a catalogue, which first takes in what its folders have now. What came of
/// that is given to `tell`, also where the search fails.
///
/// # Errors
/// When there is no catalogue, it cannot be read, or the glob is none.
pub fn find(
    request: &CatalogFindRequest,
    tell: impl FnOnce(&CaughtUp),
) -> Result<CatalogFound, Failure> {
    let (catalogue, caught_up) = open(request.catalog.as_deref(), tell)?;
    let found = catalogue.find(&request.glob, request.most).map_err(|error| {
        let glob = escape(request.glob.as_bytes());
        Failure::of(format!("{glob} is no glob: {}", error.kind()), None)
    })?;
    let found = found.map_err(|error| failure(&error))?;
    let sets = catalogue.sets().map_err(|error| failure(&error))?;
    if found.total == 0 {
        let glob = escape(request.glob.as_bytes());
        let message = format!("no set of the catalogue has {glob}");
        let hint = format!(
            "the catalogue {} has {}: `takeup catalog sets` lists them",
            catalogue.path().display(),
            base::format::counted(sets.len() as u64, "set", "sets")
        );
        return Err(Failure::of(message, Some(&hint)));
    }
    Ok(CatalogFound { caught_up, found, sets })
}

/// The sets of a catalogue, which first takes in what its folders have now.
///
/// # Errors
/// When there is no catalogue, or it cannot be read.
pub fn sets(
    request: &CatalogSetsRequest,
    tell: impl FnOnce(&CaughtUp),
) -> Result<CatalogSets, Failure> {
    let (catalogue, caught_up) = open(request.catalog.as_deref(), tell)?;
    let sets = catalogue.sets().map_err(|error| failure(&error))?;
    Ok(CatalogSets { caught_up, sets })
}

/// Opens the catalogue to ask it. What it could not take in is no reason not to answer.
fn open(
    named: Option<&Path>,
    tell: impl FnOnce(&CaughtUp),
) -> Result<(Catalogue, CaughtUp), Failure> {
    let path = place(named)?;
    let caught_up = catch_up::catch_up(&path);
    let opened = Catalogue::open(&path);
    // The same failure is not told twice.
    if opened.is_ok() || caught_up.not_done.is_none() {
        tell(&caught_up);
    }
    let catalogue = opened.map_err(|error| failure(&error))?;
    Ok((catalogue, caught_up))
}

/// The catalogue that is named, or the user's own.
fn place(named: Option<&Path>) -> Result<PathBuf, Failure> {
    named.map(Path::to_owned).or_else(state::catalogue).ok_or_else(|| {
        let hint = "name it with --catalog, or set XDG_STATE_HOME or HOME to a folder of yours";
        Failure::of("there is no folder for a catalogue", Some(hint))
    })
}

fn failure(error: &CatalogueError) -> Failure {
    let hint = match error {
        CatalogueError::Missing { .. } => {
            "run `takeup catalog add FROM...` with the archives, or the folder that they are in"
        }
        CatalogueError::Other { .. } => "name another file with --catalog",
        CatalogueError::Damaged { path, .. } | CatalogueError::Earlier { path } => {
            match Places::of(path).read() {
                Ok(places) if !places.is_empty() => {
                    "run `takeup catalog rebuild`: the archives have what was in it"
                }
                _ => {
                    "run `takeup catalog rebuild FROM...` with all archives: they have what was \
                     in it"
                }
            }
        }
        CatalogueError::Full { .. } => "make room there: what it has can be read all the same",
        CatalogueError::Busy { .. } => "try again when that process has ended",
        CatalogueError::NotOpened { .. } => "name another file with --catalog, or run as its owner",
        CatalogueError::Later { .. }
        | CatalogueError::Database { .. }
        | CatalogueError::File { .. } => return Failure::new(error, None),
    };
    Failure::new(error, Some(hint.to_owned()))
}
