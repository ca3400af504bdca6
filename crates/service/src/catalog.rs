//! The catalogue: which archive has which version of which file.
//!
//! It is a file on this machine that is made of the indexes of archives, and can be made again from
//! them. No command needs it to restore.

mod answer;
mod diff;
mod why;

use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use archive::index::{About, IndexError};
use base::escape::{escape, escape_path};
use catalogue::{
    Catalogue, CatalogueError, Found, IndexFile, KnownSet, Loaded, SetDescription, SetRecord,
    Sources,
};
use device::source::Source;
use flow::cancel::Cancel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, with_causes};
use crate::outcome::Outcome;
use crate::state;

pub use answer::{
    CatalogFindAnswer, CatalogLoadAnswer, CatalogSetAnswer, CatalogSetsAnswer,
    CatalogVersionAnswer, FoundFileAnswer, LeftOutArchive,
};
pub use diff::{
    CatalogDiff, CatalogDiffAnswer, CatalogDiffRequest, Differing, DifferingKind, DifferingObject,
    DifferingObjectAnswer, diff,
};
pub use why::{CatalogWhy, CatalogWhyAnswer, CatalogWhyRequest, WhyAnswer, WhyDay, because, why};

/// Most sources of an archive; one with more is said to have these.
const SOURCES_MAX: usize = 10_000;
/// Folders inside of each other that are searched for archives.
const FOLDERS_DEEP_MAX: usize = 64;

/// Which archives come into a catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CatalogLoadRequest {
    /// Archives, and folders with archives in them.
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

/// How archives came into a catalogue.
#[derive(Clone, Debug)]
pub struct CatalogLoaded {
    /// The catalogue.
    pub path: PathBuf,
    pub existing: ExistingCatalogue,
    /// Its length now.
    pub bytes: u64,
    /// Sets that are new.
    pub added: u64,
    /// Objects and files of these.
    pub members: u64,
    pub files: u64,
    /// Sets that it had before.
    pub known: u64,
    /// Objects that sets have which are not in the catalogue, and which the new ones count on.
    pub elsewhere: u64,
    /// Files in the named folders that have no index.
    pub without_index: u64,
    /// What was to come in and did not.
    pub left_out: Vec<LeftOutArchive>,
    pub seconds: f64,
}

impl CatalogLoaded {
    /// How the command has ended.
    pub fn outcome(&self) -> Outcome {
        if self.left_out.is_empty() { Outcome::Done } else { Outcome::Warned }
    }
}

/// What was found in a catalogue.
#[derive(Clone, Debug)]
pub struct CatalogFound {
    pub found: Found,
    /// All sets of the catalogue.
    pub sets: Vec<KnownSet>,
}

/// Puts the indexes of archives into a catalogue.
///
/// # Errors
/// When there is no place for a catalogue, it cannot be written, or a named path cannot be read.
pub fn load(request: &CatalogLoadRequest, cancel: &Cancel) -> Result<CatalogLoaded, Failure> {
    let begun = Instant::now();
    let path = place(request.catalog.as_deref())?;
    let (candidates, left_out) = Candidate::all(&request.from)?;
    let mut loaded = CatalogLoaded {
        path: path.clone(),
        existing: request.existing,
        bytes: 0,
        added: 0,
        members: 0,
        files: 0,
        known: 0,
        elsewhere: 0,
        without_index: 0,
        left_out,
        seconds: 0.0,
    };
    let mut fill = |catalogue: &mut Catalogue| -> Result<(), LoadError> {
        for candidate in &candidates {
            loaded.take(candidate, catalogue, cancel)?;
        }
        Ok(())
    };
    let filled = match request.existing {
        ExistingCatalogue::Kept => {
            let opened = Catalogue::open_or_create(&path).map_err(LoadError::from);
            opened.and_then(|mut catalogue| fill(&mut catalogue))
        }
        ExistingCatalogue::Replaced => Catalogue::rebuild(&path, fill),
    };
    filled.map_err(|error| match error {
        LoadError::Catalogue(error) => failure(&error),
        LoadError::Cancelled => {
            let kept = match request.existing {
                ExistingCatalogue::Kept => "the sets before that are in the catalogue",
                ExistingCatalogue::Replaced => "the catalogue is as it was",
            };
            Failure::of(format!("cancelled: {kept}"), None)
        }
    })?;
    loaded.bytes = path.metadata().map_or(0, |status| status.len());
    loaded.seconds = begun.elapsed().as_secs_f64();
    Ok(loaded)
}

/// Why loading ends.
enum LoadError {
    Catalogue(CatalogueError),
    Cancelled,
}

impl From<CatalogueError> for LoadError {
    fn from(error: CatalogueError) -> LoadError {
        LoadError::Catalogue(error)
    }
}

/// Why the records of a set end early.
enum RecordsEnd {
    Index(IndexError),
    Load(LoadError),
}

impl From<CatalogueError> for RecordsEnd {
    fn from(error: CatalogueError) -> RecordsEnd {
        RecordsEnd::Load(LoadError::Catalogue(error))
    }
}

impl CatalogLoaded {
    fn take(
        &mut self,
        candidate: &Candidate,
        catalogue: &mut Catalogue,
        cancel: &Cancel,
    ) -> Result<(), LoadError> {
        let source = match Source::open(candidate.path.as_os_str()) {
            Ok(source) => source,
            Err(error) => {
                self.leave_out(candidate, with_causes(&error));
                return Ok(());
            }
        };
        let Some(index) = IndexFile::find(&source) else {
            if candidate.is_named {
                self.leave_out(candidate, "it has no whole index".to_owned());
            } else {
                self.without_index += 1;
            }
            return Ok(());
        };
        match add(&index, candidate, catalogue, cancel) {
            Ok(Loaded::Added { members, files, elsewhere }) => {
                self.elsewhere += elsewhere;
                self.added += 1;
                self.members += members;
                self.files += files;
            }
            Ok(Loaded::Known) => self.known += 1,
            Err(RecordsEnd::Index(error)) => self.leave_out(candidate, with_causes(&error)),
            Err(RecordsEnd::Load(error)) => return Err(error),
        }
        Ok(())
    }

    fn leave_out(&mut self, candidate: &Candidate, why: String) {
        self.left_out.push(LeftOutArchive { path: escape_path(&candidate.path), why });
    }
}

fn add(
    index: &IndexFile,
    candidate: &Candidate,
    catalogue: &mut Catalogue,
    cancel: &Cancel,
) -> Result<Loaded, RecordsEnd> {
    let records = || -> Result<_, RecordsEnd> {
        let records = catalogue::set_records(index).map_err(RecordsEnd::Index)?;
        Ok(records.map(|record| {
            if cancel.check().is_err() {
                return Err(RecordsEnd::Load(LoadError::Cancelled));
            }
            record.map_err(RecordsEnd::Index)
        }))
    };
    let about = index.about().map_err(RecordsEnd::Index)?;
    let times = about.as_ref().map(|about| (about.begun_seconds as i64, order_seconds(about)));
    let of_file = (candidate.time_seconds, candidate.time_seconds);
    let (time_seconds, order_seconds) = times.unwrap_or(of_file);
    let set = SetDescription {
        content: match index.trailer.named {
            // Two runs that stored the same are two sets.
            Some(named) => {
                let mut content = [0; 32];
                content[..16].copy_from_slice(&named.set);
                content
            }
            None => index.trailer.set_id,
        },
        time_seconds,
        order_seconds,
        place: candidate.path.clone(),
        compression: index.trailer.compression.to_string(),
        archive_bytes: index.trailer.archive_bytes,
        sources: match about {
            Some(about) => about.sources.into_iter().map(|source| source.archive_path).collect(),
            None => sources(records()?)?,
        },
    };
    catalogue.add(&set, records()?)
}

/// A set of a chain is behind those before it, whatever the clock said: at least a second behind
/// each, for each step.
fn order_seconds(about: &About) -> i64 {
    let steps = about.chain.iter().rev().zip(0..);
    let times = steps.map(|(set, steps)| set.begun_seconds as i64 + steps);
    times.max().unwrap_or(about.begun_seconds as i64)
}

/// What was backed up.
fn sources<E>(records: impl Iterator<Item = Result<SetRecord, E>>) -> Result<Vec<Vec<u8>>, E> {
    let (mut seen, mut sources) = (Sources::default(), Vec::new());
    for record in records {
        let path = record?.record.path;
        if seen.begins_with(&path) && sources.len() < SOURCES_MAX {
            sources.push(path);
        }
    }
    Ok(sources)
}

/// A file that may be an archive.
struct Candidate {
    path: PathBuf,
    /// When it was written: an index outside of a chain does not say when its run began.
    time_seconds: i64,
    /// Whether the user named it, and not a folder above it.
    is_named: bool,
}

impl Candidate {
    /// All files of the named paths, the oldest first, so that the newest set is added last; and
    /// the folders below them that cannot be read.
    fn all(from: &[PathBuf]) -> Result<(Vec<Candidate>, Vec<LeftOutArchive>), Failure> {
        let (mut found, mut left_out) = (Vec::new(), Vec::new());
        for path in from {
            let unreadable = |error: std::io::Error| {
                let why = with_causes(&error);
                Failure::of(format!("cannot read {}: {why}", path.display()), None)
            };
            // The catalogue is used from other folders, too.
            let path = std::path::absolute(path).map_err(unreadable)?;
            let status = path.metadata().map_err(unreadable)?;
            if status.is_dir() {
                Candidate::below(&path, FOLDERS_DEEP_MAX, &mut found, &mut left_out);
            } else if status.is_file() || status.file_type().is_block_device() {
                found.push(Candidate::of(path, &status, true));
            } else {
                let why = if device::tape::find(&path).is_some() {
                    "sets on tape do not come in yet: `takeup list DEVICE --sets` lists them"
                } else {
                    "it is neither a file nor a folder"
                };
                left_out.push(LeftOutArchive { path: escape_path(&path), why: why.to_owned() });
            }
        }
        // Named, and in a named folder, too.
        found.sort_by(|a, b| (&a.path, !a.is_named).cmp(&(&b.path, !b.is_named)));
        found.dedup_by(|a, b| a.path == b.path);
        found.sort_by(|a, b| (a.time_seconds, &a.path).cmp(&(b.time_seconds, &b.path)));
        Ok((found, left_out))
    }

    fn of(path: PathBuf, status: &std::fs::Metadata, is_named: bool) -> Candidate {
        Candidate { path, time_seconds: status.mtime(), is_named }
    }

    /// The files in a folder and below it. Links are not followed.
    fn below(
        folder: &Path,
        levels: usize,
        found: &mut Vec<Candidate>,
        left_out: &mut Vec<LeftOutArchive>,
    ) {
        let mut leave_out = |error: std::io::Error| {
            let why = with_causes(&error);
            left_out.push(LeftOutArchive { path: escape_path(folder), why });
        };
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return leave_out(error),
        };
        let mut folders = Vec::new();
        for entry in entries {
            match entry.and_then(|entry| Ok((entry.path(), entry.metadata()?))) {
                Ok((path, status)) if status.is_dir() => folders.push(path),
                Ok((path, status)) if status.is_file() => {
                    found.push(Candidate::of(path, &status, false));
                }
                Ok(_) => {}
                // It was removed meanwhile.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => leave_out(error),
            }
        }
        for folder in folders {
            match levels.checked_sub(1) {
                Some(levels) => Candidate::below(&folder, levels, found, left_out),
                None => {
                    let why = format!("more than {FOLDERS_DEEP_MAX} folders inside of each other");
                    left_out.push(LeftOutArchive { path: escape_path(&folder), why });
                }
            }
        }
    }
}

/// Looks for files in a catalogue.
///
/// # Errors
/// When there is no catalogue, it cannot be read, or the glob is none.
pub fn find(request: &CatalogFindRequest) -> Result<CatalogFound, Failure> {
    let catalogue = open(request.catalog.as_deref())?;
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
    Ok(CatalogFound { found, sets })
}

/// The sets of a catalogue, the oldest first.
///
/// # Errors
/// When there is no catalogue, or it cannot be read.
pub fn sets(request: &CatalogSetsRequest) -> Result<Vec<KnownSet>, Failure> {
    let catalogue = open(request.catalog.as_deref())?;
    catalogue.sets().map_err(|error| failure(&error))
}

fn open(named: Option<&Path>) -> Result<Catalogue, Failure> {
    let path = place(named)?;
    Catalogue::open(&path).map_err(|error| failure(&error))
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
        CatalogueError::Damaged { .. } => {
            "run `takeup catalog rebuild FROM...` with all archives: they have what was in it"
        }
        CatalogueError::Busy { .. } => "try again when that process has ended",
        CatalogueError::NotOpened { .. } => "name another file with --catalog, or run as its owner",
        CatalogueError::Later { .. }
        | CatalogueError::Database { .. }
        | CatalogueError::File { .. } => return Failure::new(error, None),
    };
    Failure::new(error, Some(hint.to_owned()))
}
