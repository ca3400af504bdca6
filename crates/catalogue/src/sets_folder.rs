//! The sets of chains whose archives lie in one folder.
//!
//! Each archive says itself which set of which chain it is, so the folder needs nothing beside
//! them: what is moved, renamed or copied into it belongs to it. Archives outside of a chain and
//! other files are passed over.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive::index::{About, ChainSet};
use archive::label::hex;
use device::source::Source;

use crate::IndexFile;

/// Most archives that are looked at.
const ARCHIVES_MAX: usize = 100_000;
/// Ends of the names of archives.
const ENDS: [&str; 8] =
    [".tar", ".tar.zst", ".tzst", ".zst", ".tar.gz", ".tgz", ".gz", INDEX_COPY_END];
/// End of the name of a copy of an index, of a set that is on tape.
pub const INDEX_COPY_END: &str = ".takeup-index";

/// A set in the folder.
#[derive(Clone, Debug)]
pub struct FolderSet {
    /// Its archive, or the copy of its index.
    pub path: PathBuf,
    /// Length of the archive's file; of a copy of an index, of what is on tape.
    pub length_bytes: u64,
    pub about: About,
}

/// The sets of a folder.
#[derive(Clone, Debug, Default)]
pub struct SetsFolder {
    /// In the order in which they were made.
    pub sets: Vec<FolderSet>,
    /// Further archives of the same sets.
    pub copies: Vec<FolderSet>,
    /// Archives that are named like sets and cannot be read as such, and why.
    pub unusable: Vec<(PathBuf, String)>,
}

/// Which set of a folder is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedSet<'a> {
    /// The last of the job.
    Newest,
    /// The one with this number among the sets of the job.
    Number(u64),
    /// The one whose archive has this name, or whose identity begins with these digits.
    Named(&'a str),
    /// The last that began before a point in time, in seconds since 1970, which has these words.
    Before { seconds: u64, words: &'a str },
}

/// Why a set, or the sets that it needs, are not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// The folder has no set.
    #[error("there is no set of backups in it")]
    Empty,
    /// None of the wanted job, day or name.
    #[error("there is no set {wanted}; the {} are {}", what, there.join(", "))]
    NoSuch {
        /// The wish in words.
        wanted: String,
        /// What is named instead: jobs, or sets.
        what: &'static str,
        there: Vec<String>,
    },
    /// Sets of several jobs, and none is named.
    #[error("it has sets of several jobs: {}", jobs.join(", "))]
    SeveralJobs { jobs: Vec<String> },
    /// A set needs one that is not there.
    #[error("the set {set} needs the set {}, which is not in the folder", missing.name)]
    Missing {
        /// The name of the set that needs it.
        set: String,
        missing: ChainSet,
    },
}

impl SetsFolder {
    /// Looks at all archives of a folder.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn read(folder: &Path) -> io::Result<SetsFolder> {
        let mut found = SetsFolder::default();
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder)?.take(ARCHIVES_MAX) {
            let path = entry?.path();
            let name = path.file_name().map(|name| name.as_encoded_bytes()).unwrap_or_default();
            if !name.starts_with(b".") && is_named_as_archive(name) {
                paths.push(path);
            }
        }
        paths.sort();
        for path in paths.into_iter().filter(|path| path.is_file()) {
            match read_set(&path) {
                Ok(Some(set)) => {
                    found.take(set);
                }
                Ok(None) => {}
                Err(why) => found.unusable.push((path, why)),
            }
        }
        found.sets.sort_by(|left, right| order(left).cmp(&order(right)));
        Ok(found)
    }

    /// The sets of both. Where both have a set, that of this one counts.
    pub fn joined(mut self, other: SetsFolder) -> SetsFolder {
        for set in other.sets {
            if self.of(set.about.set).is_none() {
                self.sets.push(set);
            }
        }
        self.unusable.extend(other.unusable);
        self.sets.sort_by(|left, right| order(left).cmp(&order(right)));
        self
    }

    /// A copy of a set is the same set. The one that has the name which the set was given counts.
    fn take(&mut self, set: FolderSet) {
        let is_named =
            |set: &FolderSet| set.about.chain.last().is_some_and(|link| link.name == set.name());
        match self.sets.iter_mut().find(|known| known.about.set == set.about.set) {
            None => self.sets.push(set),
            Some(known) if is_named(&set) && !is_named(known) => {
                self.copies.push(std::mem::replace(known, set));
            }
            Some(_) => self.copies.push(set),
        }
    }

    /// The set of this identity.
    pub fn of(&self, set: [u8; 16]) -> Option<&FolderSet> {
        self.sets.iter().find(|it| it.about.set == set)
    }

    /// The newest set of a job, or of the only one. With `before_seconds`, the newest that began
    /// before that time; with `wanted`, that one.
    ///
    /// # Errors
    /// When there is none, or several jobs.
    pub fn choose(
        &self,
        job: Option<&str>,
        wanted: &WantedSet<'_>,
    ) -> Result<&FolderSet, ChainError> {
        if self.sets.is_empty() {
            return Err(ChainError::Empty);
        }
        let no_such = |wanted: String, what, there| Err(ChainError::NoSuch { wanted, what, there });
        if let WantedSet::Named(named) = wanted {
            let found = self.sets.iter().find(|set| set.is_named(named));
            let names = || self.sets.iter().map(FolderSet::name).collect();
            return found.map_or_else(|| no_such(format!("named {named}"), "sets", names()), Ok);
        }
        let jobs: BTreeSet<&str> = self.sets.iter().map(|set| &*set.about.job).collect();
        let jobs = || jobs.iter().map(|job| (*job).to_owned()).collect::<Vec<_>>();
        let job = match job {
            Some(job) => job,
            None if jobs().len() > 1 => return Err(ChainError::SeveralJobs { jobs: jobs() }),
            None => &self.sets[0].about.job,
        };
        let of_job = || self.sets.iter().filter(|set| set.about.job == job);
        if of_job().next().is_none() {
            return no_such(format!("of the job {job}"), "jobs", jobs());
        }
        let found = match wanted {
            WantedSet::Number(number) => of_job().rfind(|set| set.about.number == *number),
            WantedSet::Before { seconds, .. } => {
                of_job().rfind(|set| set.about.begun_seconds < *seconds)
            }
            WantedSet::Newest | WantedSet::Named(_) => of_job().next_back(),
        };
        let words = || match wanted {
            WantedSet::Before { words, .. } => format!("of {words} or before"),
            WantedSet::Number(number) => format!("number {number}"),
            WantedSet::Newest | WantedSet::Named(_) => String::new(),
        };
        let names = || of_job().map(FolderSet::name).collect();
        found.map_or_else(|| no_such(words(), "sets", names()), Ok)
    }

    /// The sets of a set's chain, from the full one to itself.
    ///
    /// # Errors
    /// When one is not in the folder.
    pub fn chain_of(&self, set: &FolderSet) -> Result<Vec<&FolderSet>, ChainError> {
        let there = |link: &ChainSet| {
            let missing = || ChainError::Missing { set: set.name(), missing: link.clone() };
            self.of(link.set).ok_or_else(missing)
        };
        set.about.chain.iter().map(there).collect()
    }
}

impl FolderSet {
    /// Its index. It is not kept: a folder may have more archives than a process may open files.
    ///
    /// # Errors
    /// When the archive cannot be opened, or has no whole index any more.
    pub fn index(&self) -> io::Result<IndexFile> {
        let source = Source::open(self.path.as_os_str()).map_err(io::Error::other)?;
        let lost = || io::Error::other("it has no whole index");
        find_index(&source, &self.path).ok_or_else(lost)
    }

    /// The name of its archive.
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_suffix(INDEX_COPY_END).unwrap_or(&name).to_owned()
    }

    /// Whether a user means this set: by the name of its archive, or by the first digits of its
    /// identity.
    fn is_named(&self, wanted: &str) -> bool {
        self.name() == wanted || (wanted.len() >= 6 && hex(&self.about.set).starts_with(wanted))
    }
}

fn order(set: &FolderSet) -> (&str, u64, u64, [u8; 16]) {
    let About { job, number, begun_seconds, set, .. } = &set.about;
    (job, *number, *begun_seconds, *set)
}

/// Whether a file has the name of an index alone.
pub fn is_index_copy(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(INDEX_COPY_END.as_bytes())
}

/// The index of an archive, or of a file that is one.
fn find_index(source: &Source, path: &Path) -> Option<IndexFile> {
    if is_index_copy(path) {
        return IndexFile::alone(Arc::clone(&source.file), source.length_bytes?);
    }
    IndexFile::find(source)
}

/// The set of an archive; `None` if it is of no chain.
fn read_set(path: &Path) -> Result<Option<FolderSet>, String> {
    let source = Source::open(path.as_os_str()).map_err(|error| text(&error))?;
    let Some(index) = find_index(&source, path) else {
        // Any archive may lie here, but one with the name of a set must not be lost in silence.
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if is_named_as_set(&name) {
            return Err("its index is lost, damaged, or of a later version".to_owned());
        }
        return Ok(None);
    };
    match index.about() {
        Ok(None) => Ok(None),
        Ok(Some(about)) => {
            let file_bytes = source.length_bytes.unwrap_or(0);
            let length_bytes = if is_index_copy(path) {
                index.trailer.index_compressed_offset_bytes.bytes() + file_bytes
            } else {
                file_bytes
            };
            Ok(Some(FolderSet { path: path.to_owned(), length_bytes, about }))
        }
        Err(error) => Err(text(&error)),
    }
}

/// Whether a file has a name as archives have.
pub fn is_named_as_archive(name: &[u8]) -> bool {
    ENDS.iter().any(|end| name.ends_with(end.as_bytes()))
}

/// Whether a file has a name that is given to sets: job, time, level, eight digits of the identity.
pub fn is_named_as_set(name: &str) -> bool {
    let name = name.strip_suffix(INDEX_COPY_END).unwrap_or(name);
    let stem = name.split_once(".tar").map_or(name, |(stem, _)| stem);
    let mut parts = stem.rsplit('-');
    let (id, level) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    id.len() == 8
        && id.bytes().all(|digit| digit.is_ascii_hexdigit())
        && (level == "full" || level.starts_with("level"))
}

fn text(error: &(dyn std::error::Error + 'static)) -> String {
    base::failures::with_causes(error)
}
