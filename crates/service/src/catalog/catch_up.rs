//! The catalogue takes in what its folders have now.
//!
//! A backup only notes its folder, so that it does not become slower and nothing of the catalogue
//! can fail it. Each question first looks at the noted folders: a file with another length or time
//! than at the last look is opened, and its index comes in; a set whose archive is gone leaves. A
//! folder that is not there, as that of a disk that is not mounted, keeps its sets.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use base::escape::escape_path;
use catalogue::{Catalogue, CatalogueError, KnownSet, Look, Places};
use flow::cancel::Cancel;
use flow::monitor::{Level, Monitor, Notice};

use super::candidates::Candidate;
use super::load::{LoadError, Loading};
use super::{LeftOutArchive, failure};
use crate::failure::with_causes;
use crate::outcome::Outcome;
use crate::sets::LOCK;
use crate::state;

/// What the catalogue has taken in before it was asked.
#[derive(Clone, Debug, Default)]
pub struct CaughtUp {
    /// Sets that are new in it, and files of these.
    pub added: u64,
    pub files: u64,
    /// Sets that left it, since their archives are gone.
    pub left: u64,
    /// Folders of sets that are not there now. Their sets stay.
    pub absent: Vec<AbsentFolder>,
    /// Archives and folders that cannot be read.
    pub left_out: Vec<LeftOutArchive>,
    /// Why it does not have all of what its folders have.
    pub not_done: Option<NotCaughtUp>,
    pub seconds: f64,
}

/// A folder that is not there now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbsentFolder {
    pub folder: PathBuf,
    /// Sets that the catalogue has of it.
    pub sets: u64,
    /// The time of the newest of them, since 1970.
    pub newest_seconds: i64,
}

/// Why a catalogue is not up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCaughtUp {
    pub why: String,
    /// What to type.
    pub hint: Option<String>,
    /// Whether another process has the catalogue: the next question catches up.
    pub is_in_use: bool,
}

impl CaughtUp {
    /// How the command has ended, whose answer this is part of.
    pub fn outcome(&self) -> Outcome {
        let is_all = self.not_done.is_none() && self.left_out.is_empty();
        if is_all { Outcome::Done } else { Outcome::Warned }
    }

    fn run(&mut self, path: &Path, cancel: &Cancel) -> Result<(), NotCaughtUp> {
        let places = Places::of(path).read().map_err(|error| NotCaughtUp {
            why: with_causes(&error),
            hint: None,
            is_in_use: false,
        })?;
        if places.is_empty() {
            return Ok(());
        }
        let (candidates, unreadable) = Candidate::in_places(&places);
        self.left_out = unreadable;
        let known = match Catalogue::open(path) {
            Ok(catalogue) => Known::of(&catalogue, &places)?,
            Err(CatalogueError::Missing { .. }) => Known::default(),
            Err(error) => return Err(error.into()),
        };
        let (changed, same): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|candidate| {
            known.looks.get(&candidate.path).map(|look| Some(look.stamp)) != Some(candidate.stamp)
        });
        let lost = same.iter().filter(|it| known.looks[&it.path].set.is_none() && it.is_set());
        self.left_out.extend(lost.map(|candidate| candidate.without_index()));
        let mut missing = known.missing();
        if !changed.is_empty() || !missing.gone.is_empty() || !missing.moved.is_empty() {
            missing = self.take(path, changed, (&known, &places), cancel)?;
        }
        self.absent = missing.absent;
        Ok(())
    }

    /// Puts changed files into the catalogue, and takes out of it what is gone.
    fn take(
        &mut self,
        path: &Path,
        changed: Vec<Candidate>,
        (known, places): (&Known, &[PathBuf]),
        cancel: &Cancel,
    ) -> Result<Missing, NotCaughtUp> {
        let mut catalogue = Catalogue::open_or_create(path)?;
        let mut loading = Loading::again(&known.looks);
        let taken = loading.take_all(changed, &mut catalogue, cancel);
        (self.added, self.files) = (loading.added, loading.files);
        self.left_out.append(&mut loading.left_out);
        taken?;
        let now = Known::of(&catalogue, places)?;
        let missing = now.missing();
        for (set, place) in &missing.moved {
            catalogue.move_to(*set, place)?;
        }
        if !missing.gone.is_empty() {
            catalogue.leave(&missing.gone)?;
            self.left = missing.gone.len() as u64;
        }
        catalogue.forget_looks(&now.gone_looks(&missing))?;
        Ok(missing)
    }
}

impl From<CatalogueError> for NotCaughtUp {
    fn from(error: CatalogueError) -> NotCaughtUp {
        let failure = failure(&error);
        let is_in_use = matches!(error, CatalogueError::Busy { .. });
        NotCaughtUp {
            why: failure.message().to_owned(),
            hint: failure.hint().map(str::to_owned),
            is_in_use,
        }
    }
}

impl From<LoadError> for NotCaughtUp {
    fn from(error: LoadError) -> NotCaughtUp {
        match error {
            LoadError::Catalogue(error) => error.into(),
            LoadError::Cancelled => {
                NotCaughtUp { why: "cancelled".to_owned(), hint: None, is_in_use: false }
            }
        }
    }
}

/// What a catalogue has of the folders that are looked at.
#[derive(Default)]
struct Known {
    /// Sets whose archives are, or were, below one of the folders.
    sets: Vec<KnownSet>,
    looks: HashMap<PathBuf, Look>,
}

/// Sets whose archives are not where they were.
#[derive(Default)]
struct Missing {
    gone: Vec<i64>,
    /// Sets that have a copy elsewhere.
    moved: Vec<(i64, PathBuf)>,
    absent: Vec<AbsentFolder>,
}

impl Known {
    fn of(catalogue: &Catalogue, places: &[PathBuf]) -> Result<Known, CatalogueError> {
        let mut sets = catalogue.sets()?;
        sets.retain(|set| places.iter().any(|place| set.place.starts_with(place)));
        Ok(Known { sets, looks: catalogue.looks()? })
    }

    fn missing(&self) -> Missing {
        let mut missing = Missing::default();
        let mut folders: BTreeMap<&Path, Vec<&KnownSet>> = BTreeMap::new();
        for set in &self.sets {
            folders.entry(set.place.parent().unwrap_or(&set.place)).or_default().push(set);
        }
        let mut copies: HashMap<i64, Vec<&PathBuf>> = HashMap::new();
        for (path, look) in &self.looks {
            if let Some(set) = look.set {
                copies.entry(set).or_default().push(path);
            }
        }
        for (folder, sets) in folders {
            let (there, others): (Vec<_>, Vec<_>) =
                sets.into_iter().partition(|set| self.is_there(set));
            let has_others = || {
                let archives = self.looks.iter().filter(|(_, look)| look.set.is_some());
                let mut paths = archives.map(|(path, _)| path);
                paths.any(|path| path.parent() == Some(folder) && path.exists())
            };
            // A mount point without its disk is an empty folder.
            let is_folder_there = !there.is_empty()
                || folder.join(LOCK).exists()
                || (folder.is_dir() && has_others());
            let mut kept: Vec<&KnownSet> = Vec::new();
            for set in others {
                let copy = copies.get(&set.number).into_iter().flatten();
                let copy = copy.filter(|path| **path != &set.place && path.exists()).min();
                match copy {
                    Some(copy) => missing.moved.push((set.number, (*copy).clone())),
                    None if is_folder_there && !is_unreadable(&set.place) => {
                        missing.gone.push(set.number);
                    }
                    None => kept.push(set),
                }
            }
            if let Some(newest_seconds) = kept.iter().map(|set| set.time_seconds).max() {
                let (folder, sets) = (folder.to_owned(), kept.len() as u64);
                missing.absent.push(AbsentFolder { folder, sets, newest_seconds });
            }
        }
        missing
    }

    /// Whether the archive of a set is where it was, and no other is in its place.
    fn is_there(&self, set: &KnownSet) -> bool {
        let look = self.looks.get(&set.place).and_then(|look| look.set);
        set.place.symlink_metadata().is_ok() && look.is_none_or(|number| number == set.number)
    }

    /// Files that were looked at and are gone, but for those of folders that are not there.
    fn gone_looks(&self, missing: &Missing) -> Vec<PathBuf> {
        let absent: HashSet<&Path> = missing.absent.iter().map(|it| &*it.folder).collect();
        let is_absent = |path: &Path| path.ancestors().any(|above| absent.contains(above));
        let paths = self.looks.keys().filter(|path| !is_absent(path));
        paths.filter(|path| !path.exists() && !is_unreadable(path)).cloned().collect()
    }
}

/// Whether it is not known whether a file is there.
fn is_unreadable(path: &Path) -> bool {
    let status = path.symlink_metadata();
    status.is_err_and(|error| error.kind() != std::io::ErrorKind::NotFound)
}

/// Takes in what the folders of the catalogue at this path have now.
pub(super) fn catch_up(path: &Path) -> CaughtUp {
    let begun = Instant::now();
    let mut caught_up = CaughtUp::default();
    caught_up.not_done = caught_up.run(path, &Cancel::new()).err();
    caught_up.seconds = begun.elapsed().as_secs_f64();
    caught_up
}

/// Notes the folder of a backup for the next question to the user's catalogue. What fails is no
/// failure of the backup.
pub(crate) fn after_backup(folder: &Path, monitor: &dyn Monitor) {
    let Some(path) = state::catalogue() else { return };
    if let Err(error) = Places::of(&path).note(folder) {
        let text = format!(
            "is not in the catalogue: {}; `takeup catalog add FOLDER` adds it",
            with_causes(&error)
        );
        let object = folder.as_os_str().as_bytes().to_vec();
        monitor.notice(Notice { level: Level::Note, object, text });
    }
}

/// Notes the folder of a job, and takes in what it has now. Returns what is to be looked at.
pub(crate) fn after_run(folder: &Path) -> Option<String> {
    let path = state::catalogue()?;
    let next = format!("`takeup catalog add {}` tries it again", escape_path(folder));
    if let Err(error) = Places::of(&path).note(folder) {
        return Some(format!("the catalogue is not up to date: {}; {next}", with_causes(&error)));
    }
    // Where another process has it, the next question catches up.
    let not_done = catch_up(&path).not_done.filter(|it| !it.is_in_use)?;
    let next = not_done.hint.unwrap_or(next);
    Some(format!("the catalogue is not up to date: {}; {next}", not_done.why))
}
