//! Folders of a catalogue as they were on a day.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use archive::label::hex;
use base::escape::{escape, escape_path};
use catalogue::{Catalogue, FolderEntry, FoundVersion, KnownSet, Places};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{CatalogObjectAnswer, CatalogSetAnswer, CaughtUpAnswer};
use super::{CaughtUp, failure, open, place};
use crate::Answer;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::sets::{end_of_day, unusable};
use crate::tape_source::SetWanted;

/// Which folder, and as of when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CatalogLsRequest {
    /// As the archives have it; `None`: the top.
    #[serde(default)]
    pub path: Option<PathBuf>,
    /// As of this day, `2026-11-27`, or a point in it, `2026-11-27T14:30`, local time.
    #[serde(default)]
    pub at: Option<String>,
    /// As a set has it: its number in the catalogue, or the start of its identity.
    #[serde(default)]
    pub set: Option<SetWanted>,
    #[serde(default)]
    pub catalog: Option<PathBuf>,
}

/// A folder in each series that has it.
#[derive(Clone, Debug)]
pub struct CatalogLs {
    pub caught_up: CaughtUp,
    pub folders: Vec<FolderOfSet>,
}

/// What a set has in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderOfSet {
    pub set: KnownSet,
    pub path: Vec<u8>,
    /// By their names.
    pub entries: Vec<FolderEntry>,
}

/// A folder in each series that has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CatalogLsAnswer {
    pub caught_up: CaughtUpAnswer,
    pub folders: Vec<FolderAnswer>,
}

/// What a set has in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FolderAnswer {
    pub set: CatalogSetAnswer,
    /// Escaped.
    pub path: String,
    /// By their names.
    pub entries: Vec<FolderEntryAnswer>,
}

/// Something in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FolderEntryAnswer {
    /// Escaped.
    pub name: String,
    /// Null of a folder above the sources, which no archive has.
    pub object: Option<CatalogObjectAnswer>,
}

impl Answer for CatalogLsAnswer {
    const COMMAND: &'static str = "catalog ls";
}

impl CatalogLs {
    /// How the command has ended.
    pub fn outcome(&self) -> Outcome {
        self.caught_up.outcome()
    }

    /// As a document.
    pub fn answer(&self) -> CatalogLsAnswer {
        let entry = |it: &FolderEntry| FolderEntryAnswer {
            name: escape(&it.name),
            object: it.object.as_ref().map(CatalogObjectAnswer::from),
        };
        let folders = self.folders.iter().map(|folder| FolderAnswer {
            set: CatalogSetAnswer::from(&folder.set),
            path: escape(&folder.path),
            entries: folder.entries.iter().map(entry).collect(),
        });
        let caught_up = CaughtUpAnswer::from(&self.caught_up);
        CatalogLsAnswer { caught_up, folders: folders.collect() }
    }
}

/// Lists a folder as it was on a day. The catalogue first takes in what its folders have now.
///
/// # Errors
/// When there is no catalogue, it cannot be read, or no set of that day has the folder.
pub fn ls(request: &CatalogLsRequest, tell: impl FnOnce(&CaughtUp)) -> Result<CatalogLs, Failure> {
    let day = request.at.as_deref().map(end_of_day).transpose()?;
    let (browser, caught_up) = Browser::open(request.catalog.as_deref(), None, tell)?;
    let path = request.path.as_ref().map(|path| path.as_os_str().as_bytes()).unwrap_or_default();
    let mut folders = Vec::new();
    for series in browser.series() {
        let is_wanted = |set: &&KnownSet| match (&request.set, &day) {
            (Some(wanted), _) => is_named(set, wanted),
            (None, Some((end, _))) => u64::try_from(set.time_seconds).is_ok_and(|it| it < *end),
            (None, None) => true,
        };
        let Some(set) = series.sets.iter().rfind(is_wanted) else { continue };
        if let Some(entries) = browser.folder(set, path)? {
            folders.push(FolderOfSet { set: set.clone(), path: trimmed(path), entries });
        }
    }
    if folders.is_empty() {
        let path = if path.is_empty() { "anything".to_owned() } else { escape(path) };
        let message = match (&request.set, &day) {
            (Some(_), _) => format!("the catalogue has no such set, or it has not {path}"),
            (None, Some((_, words))) => format!("no set up to {words} has {path}"),
            (None, None) => format!("the newest sets of the catalogue do not have {path}"),
        };
        let hint = "`takeup catalog sets` lists the sets, `takeup catalog find NAME` the paths";
        return Err(Failure::of(message, Some(hint)));
    }
    Ok(CatalogLs { caught_up, folders })
}

/// Notes a folder in the list of a catalogue, and returns it as sets have it.
fn note(catalog: Option<&Path>, folder: &Path) -> Result<PathBuf, Failure> {
    let status = folder.metadata();
    let status = status.map_err(|error| unusable("cannot read", folder, &error))?;
    if !status.is_dir() {
        let hint = "`takeup list ARCHIVE` shows what is in an archive";
        return Err(Failure::of(format!("{} is no folder", escape_path(folder)), Some(hint)));
    }
    let folder = std::path::absolute(folder);
    let folder = folder.map_err(|error| unusable("cannot read", Path::new("."), &error))?;
    Places::of(&place(catalog)?).note(&folder).map_err(|error| Failure::new(&error, None))?;
    // Without the slash at its end.
    Ok(folder.components().collect())
}

fn is_named(set: &KnownSet, wanted: &SetWanted) -> bool {
    match wanted {
        SetWanted::Number(number) => set.number == i64::from(*number),
        SetWanted::Id(id) => set.identity.is_some_and(|it| hex(&it).starts_with(&**id)),
    }
}

fn trimmed(path: &[u8]) -> Vec<u8> {
    let names: Vec<&[u8]> =
        path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect();
    names.join(&b'/')
}

/// The sets of a catalogue, and the folders that they have.
pub struct Browser {
    catalogue: Catalogue,
    series: Vec<BrowsedSeries>,
}

/// Sets of the same sources in the same folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowsedSeries {
    /// In the order in which they were made; at least one.
    pub sets: Vec<KnownSet>,
}

impl Browser {
    /// Opens the catalogue, which first takes in what its folders have now. With a folder, that one
    /// is among them from now on, and its sets alone are browsed.
    ///
    /// # Errors
    /// When there is no catalogue, it cannot be read, or the folder has no set.
    pub fn open(
        catalog: Option<&Path>,
        folder: Option<&Path>,
        tell: impl FnOnce(&CaughtUp),
    ) -> Result<(Browser, CaughtUp), Failure> {
        let folder = folder.map(|folder| note(catalog, folder)).transpose()?;
        let (catalogue, caught_up) = open(catalog, tell)?;
        let series = catalogue.series().map_err(|error| failure(&error))?;
        let is_wanted = |sets: &Vec<KnownSet>| match &folder {
            None => true,
            Some(folder) => sets.iter().any(|set| set.place.starts_with(folder)),
        };
        let series = series.into_iter().filter(is_wanted).map(|sets| BrowsedSeries { sets });
        let series: Vec<BrowsedSeries> = series.collect();
        if series.is_empty() {
            let message = match &folder {
                Some(folder) => format!("{} has no set with an index", escape_path(folder)),
                None => "the catalogue has no set".to_owned(),
            };
            let hint = "`takeup catalog add FROM...` takes archives in, also without an index";
            return Err(Failure::of(message, Some(hint)));
        }
        Ok((Browser { catalogue, series }, caught_up))
    }

    /// At least one.
    pub fn series(&self) -> &[BrowsedSeries] {
        &self.series
    }

    /// What a set has in a folder; `None` if it has no such folder.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub fn folder(&self, set: &KnownSet, path: &[u8]) -> Result<Option<Vec<FolderEntry>>, Failure> {
        self.catalogue.folder(set, path).map_err(|error| failure(&error))
    }

    /// Whether a set has something at a path.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub fn has(&self, set: &KnownSet, path: &[u8]) -> Result<bool, Failure> {
        self.catalogue.has(set, path).map_err(|error| failure(&error))
    }

    /// The versions of a path in the series of a set, the oldest first.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub fn versions(&self, set: &KnownSet, path: &[u8]) -> Result<Vec<FoundVersion>, Failure> {
        self.catalogue.versions_at(set.series, path).map_err(|error| failure(&error))
    }
}
