//! Which sets of a folder are kept, what would be lost with the others, and their end.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use archive::index::{About, AgainRecord, EntryState, ObjectKind, TreeEntry};
use archive::label::hex;
use base::escape::{escape, escape_path};
use catalogue::{FolderSet, SetsFolder, WantedSet};
use jiff::tz::TimeZone;
use jobs::{Because, Event, Fate, Keep, RetainedSet, fates};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Answer;
use crate::failure::Failure;
use crate::jobs::{ForgottenArchive, Verifications};
use crate::journal::{self, note};
use crate::outcome::Outcome;
use crate::sets::{self, FolderLock};
use crate::tape_sets::TapeSets;

/// Versions of files that are compared at most: beyond, it is said that they were not.
const VERSIONS_MAX: usize = 20_000_000;
/// Lost versions whose names are shown for a set.
const NAMES_MAX: usize = 3;

/// Which sets of a folder are to go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForgetRequest {
    /// The folder of sets.
    pub from: PathBuf,
    /// The job, where the folder has sets of several.
    #[serde(default)]
    pub job: Option<String>,
    /// What is kept; the rest goes.
    #[serde(default)]
    pub keep: KeepSettings,
    /// These sets go instead: names of archives, or starts of identities.
    #[serde(default)]
    pub sets: Vec<String>,
    /// Whether it happens, or is only said.
    #[serde(default)]
    pub apply: bool,
}

/// Which sets are kept, by the days on which they were made. All zero: no rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KeepSettings {
    /// The last sets.
    pub last: u32,
    /// The last set of each of the last days that have one.
    pub daily: u32,
    /// The same of weeks.
    pub weekly: u32,
    /// The same of months.
    pub monthly: u32,
    /// The same of years.
    pub yearly: u32,
}

impl From<KeepSettings> for Keep {
    fn from(of: KeepSettings) -> Keep {
        let KeepSettings { last, daily, weekly, monthly, yearly } = of;
        Keep { last, daily, weekly, monthly, yearly }
    }
}

/// What becomes of the sets of a job.
#[derive(Clone, Debug)]
pub struct ForgetDone {
    pub from: PathBuf,
    pub job: String,
    /// In the order in which they were made.
    pub sets: Vec<SetFate>,
    /// Whether it has happened.
    pub applied: bool,
    /// The archives that are gone.
    pub removed: Vec<ForgottenArchive>,
    /// Why the others that were to go are not.
    pub error: Option<String>,
    /// What is to be known besides.
    pub warnings: Vec<String>,
}

/// What becomes of a set.
#[derive(Clone, Debug)]
pub struct SetFate {
    pub archive: String,
    pub bytes: u64,
    pub about: About,
    /// Why it is kept; empty: it goes.
    pub kept: Vec<String>,
    /// What could not be restored any more; of a set that goes.
    pub lost: Option<Lost>,
}

/// Versions of files that no kept set has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    pub versions: u64,
    /// Some of their names.
    pub names: Vec<String>,
}

/// What becomes of the sets of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForgetAnswer {
    pub job: String,
    /// Whether the sets that go are gone.
    pub applied: bool,
    /// Bytes of the archives that go.
    pub freed_bytes: u64,
    pub sets: Vec<ForgetSetAnswer>,
    /// The archives that are gone, also where the removal failed on its way.
    pub removed: Vec<ForgottenArchive>,
    /// Why the others that were to go are not.
    pub error: Option<String>,
    pub warnings: Vec<String>,
}

/// What becomes of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForgetSetAnswer {
    pub set: String,
    pub archive: String,
    pub number: u64,
    pub level: u8,
    /// When its run began, in UTC.
    pub begun: String,
    pub bytes: u64,
    /// Why it is kept; empty: it goes.
    pub kept: Vec<String>,
    /// Versions of files that no kept set has; null where they were not compared, or it is kept.
    pub lost_versions: Option<u64>,
    /// Some of their names, escaped.
    pub lost_names: Vec<String>,
}

impl Answer for ForgetAnswer {
    const COMMAND: &'static str = "catalog forget";
}

impl ForgetDone {
    /// The sets that go.
    pub fn going(&self) -> impl Iterator<Item = &SetFate> {
        self.sets.iter().filter(|set| set.kept.is_empty())
    }

    /// Bytes of their archives.
    pub fn freed_bytes(&self) -> u64 {
        self.going().map(|set| set.bytes).sum()
    }

    /// How the command has ended.
    pub fn outcome(&self) -> Outcome {
        match &self.error {
            Some(_) => Outcome::Bad,
            None if self.warnings.is_empty() => Outcome::Done,
            None => Outcome::Warned,
        }
    }

    /// As an answer.
    pub fn answer(&self) -> ForgetAnswer {
        let set = |fate: &SetFate| ForgetSetAnswer {
            set: hex(&fate.about.set),
            archive: fate.archive.clone(),
            number: fate.about.number,
            level: fate.about.level,
            begun: base::calendar::time_text(fate.about.begun_seconds as i64),
            bytes: fate.bytes,
            kept: fate.kept.clone(),
            lost_versions: fate.lost.as_ref().map(|lost| lost.versions),
            lost_names: fate.lost.as_ref().map(|lost| lost.names.clone()).unwrap_or_default(),
        };
        ForgetAnswer {
            job: self.job.clone(),
            applied: self.applied,
            freed_bytes: self.freed_bytes(),
            sets: self.sets.iter().map(set).collect(),
            removed: self.removed.clone(),
            error: self.error.clone(),
            warnings: self.warnings.clone(),
        }
    }
}

/// Says which sets of a folder go and what goes with them, and removes them where that is asked.
///
/// # Errors
/// When the folder has no such set or job, a set is needed by one that is kept, or an archive
/// cannot be removed.
pub fn forget(request: &ForgetRequest) -> Result<ForgetDone, Failure> {
    if request.apply && journal::is_tape_drive(&request.from) {
        let hint = "a run of a job writes over tapes of which its rule keeps nothing; `takeup \
                    catalog media` says which";
        return Err(Failure::of("sets on tape are not removed one by one", Some(hint)));
    }
    sets::read(&request.from)?;
    // Nobody may add a set to a chain while it goes.
    let _lock = if request.apply { Some(FolderLock::take(&request.from)?) } else { None };
    let known = sets::read(&request.from)?;
    let newest = known.choose(request.job.as_deref(), &WantedSet::Newest);
    let newest = newest.map_err(|error| sets::failure(&error, &request.from, &known))?;
    let job = newest.about.job.clone();
    let keep = Keep::from(request.keep);
    if keep == Keep::default() && request.sets.is_empty() {
        let hint = "for example --keep-daily 14 --keep-monthly 12, or --set SET";
        return Err(Failure::of("nothing says which sets are kept or go", Some(hint)));
    }
    let fates = if request.sets.is_empty() {
        fates_of(&known, &job, &keep, &known_damage(&request.from)?)
    } else {
        named_fates(&known, &job, request)?
    };
    let mut done = ForgetDone {
        from: request.from.clone(),
        sets: described(&known, &job, &fates),
        job,
        applied: false,
        removed: Vec::new(),
        error: None,
        warnings: Vec::new(),
    };
    if let Err(failure) = check_readable(&known) {
        done.warnings.push(failure.message().to_owned());
    }
    match lost(&known, &fates) {
        Ok(lost) => {
            let going = done.sets.iter_mut().filter(|set| set.kept.is_empty());
            going.zip(lost).for_each(|(set, lost)| set.lost = Some(lost));
        }
        Err(failure) => done.warnings.push(failure.message().to_owned()),
    }
    if request.apply {
        check_readable(&known)?;
        let removed = remove(&known, &fates, &done.job, &request.from);
        if removed.archives.is_empty()
            && let Some(failure) = removed.failure
        {
            return Err(failure);
        }
        done.applied = removed.failure.is_none();
        done.error = removed.failure.map(|failure| failure.message().to_owned());
        done.removed = removed.archives;
        done.warnings.extend(removed.warnings);
    }
    Ok(done)
}

/// Removes what the rule of a job does not keep. The caller holds the lock of the folder.
pub(crate) fn forget_by_rule(
    known: &SetsFolder,
    job: &str,
    folder: &Path,
    keep: &Keep,
) -> Result<Removed, Failure> {
    check_readable(known)?;
    let fates = fates_at(known, job, folder, keep)?;
    Ok(remove(known, &fates, job, folder))
}

/// Media of which a job's rule keeps no set, nor anything else does.
pub(crate) fn freed_media(
    known: &SetsFolder,
    job: &str,
    place: &Path,
    keep: &Keep,
) -> Result<Vec<[u8; 16]>, Failure> {
    check_readable(known)?;
    let fates = fates_at(known, job, place, keep)?;
    let goes = known.sets.iter().zip(&fates).filter(|(_, fate)| **fate == Fate::Goes);
    let going: HashSet<String> = goes.map(|(set, _)| hex(&set.about.set)).collect();
    TapeSets::of_this_user()?.freed(|set| going.contains(set))
}

/// What becomes of all sets of a place by the rule of a job.
pub(crate) fn fates_at(
    known: &SetsFolder,
    job: &str,
    place: &Path,
    keep: &Keep,
) -> Result<Vec<Fate>, Failure> {
    Ok(fates_of(known, job, keep, &known_damage(place)?))
}

/// Refuses to remove anything beside an archive that cannot be read: nobody knows what it needs.
fn check_readable(known: &SetsFolder) -> Result<(), Failure> {
    let Some((path, why)) = known.unusable.first() else { return Ok(()) };
    let path = escape_path(path);
    let message =
        format!("nothing is removed: {path} cannot be read as a set, and may need it: {why}");
    Err(Failure::of(message, Some("repair that archive, or move it away")))
}

/// Sets whose archives were not sound when they were last read.
pub(crate) type Damaged = HashSet<[u8; 16]>;

fn known_damage(folder: &Path) -> Result<Damaged, Failure> {
    // Of what was read in this folder; the sets themselves are known.
    Verifications::of(folder).map(|it| it.damaged())
}

/// Bytes of the archives of a job.
pub(crate) fn kept_bytes(known: &SetsFolder, job: &str) -> u64 {
    let of_job = known.sets.iter().filter(|set| set.about.job == job);
    of_job.map(|set| set.length_bytes).sum()
}

/// What becomes of all sets of the folder by the rule of a job.
fn fates_of(known: &SetsFolder, job: &str, keep: &Keep, damaged: &Damaged) -> Vec<Fate> {
    let retained: Vec<RetainedSet> = known
        .sets
        .iter()
        .map(|set| RetainedSet {
            set: set.about.set,
            begun_seconds: set.about.begun_seconds,
            chain: set.about.chain.iter().map(|link| link.set).collect(),
            is_ruled: set.about.job == job,
            is_sound: !damaged.contains(&set.about.set),
            is_partial: set.about.left > 0,
        })
        .collect();
    fates(&retained, keep, &TimeZone::system())
}

/// The fates where sets are named that are to go.
fn named_fates(
    known: &SetsFolder,
    job: &str,
    request: &ForgetRequest,
) -> Result<Vec<Fate>, Failure> {
    let mut going = Vec::new();
    for named in &request.sets {
        let wanted = match named.parse() {
            // Longer numbers are identities without a letter.
            Ok(number) if named.len() < 6 => WantedSet::Number(number),
            _ => WantedSet::Named(named),
        };
        let set = known.choose(request.job.as_deref(), &wanted);
        let set = set.map_err(|error| sets::failure(&error, &request.from, known))?;
        if set.about.job != job {
            let message = format!("{} is of the job {}", set.name(), set.about.job);
            return Err(Failure::of(message, Some("name that job with --job")));
        }
        going.push(set.about.set);
    }
    let goes = |set: &FolderSet| going.contains(&set.about.set);
    for set in known.sets.iter().filter(|set| !goes(set)) {
        if let Some(link) = set.about.chain.iter().find(|link| going.contains(&link.set)) {
            let message = format!("{} needs {}", set.name(), link.name);
            let hint = "name it with --set, too, or keep both";
            return Err(Failure::of(message, Some(hint)));
        }
    }
    let fate = |set: &FolderSet| if goes(set) { Fate::Goes } else { Fate::Kept(Vec::new()) };
    Ok(known.sets.iter().map(fate).collect())
}

fn described(known: &SetsFolder, job: &str, fates: &[Fate]) -> Vec<SetFate> {
    let sets = &known.sets;
    let words = |because: &Because| match because {
        Because::Newest => "the newest".to_owned(),
        Because::Last => "last".to_owned(),
        Because::Daily => "daily".to_owned(),
        Because::Weekly => "weekly".to_owned(),
        Because::Monthly => "monthly".to_owned(),
        Because::Yearly => "yearly".to_owned(),
        Because::NeededBy(number) => match &sets[*number].about {
            about if about.job == job => format!("set {} needs it", about.number),
            about => format!("set {} of {} needs it", about.number, about.job),
        },
        Because::OtherJob => "of another job".to_owned(),
        Because::EndedEarly => "it ended early, and no whole set has followed".to_owned(),
        Because::Broken => "an archive that it needs is not there or damaged".to_owned(),
    };
    let described = |(set, fate): (&FolderSet, &Fate)| SetFate {
        archive: set.name(),
        bytes: set.length_bytes,
        about: set.about.clone(),
        kept: match fate {
            Fate::Goes => Vec::new(),
            Fate::Kept(reasons) if reasons.is_empty() => vec!["not named".to_owned()],
            Fate::Kept(reasons) => reasons.iter().map(words).collect(),
        },
        lost: None,
    };
    let of_job = sets.iter().zip(fates).filter(|(set, _)| set.about.job == job);
    of_job.map(described).collect()
}

/// For each set that goes, what no kept set has. A version that several of them have is lost with
/// the last.
fn lost(known: &SetsFolder, fates: &[Fate]) -> Result<Vec<Lost>, Failure> {
    let sets = &known.sets;
    let goes = |(_, fate): &(usize, &Fate)| **fate == Fate::Goes;
    let going: Vec<usize> = fates.iter().enumerate().filter(goes).map(|(at, _)| at).collect();
    // The version, and which of the sets that go has it last.
    let mut versions: HashMap<u64, usize> = HashMap::new();
    for (number, at) in going.iter().enumerate() {
        each_version(&sets[*at], |version, _| {
            versions.insert(version, number);
            versions.len() <= VERSIONS_MAX
        })?;
    }
    if versions.len() > VERSIONS_MAX {
        let message = format!("more than {VERSIONS_MAX} versions of files: they were not compared");
        return Err(Failure::of(message, None));
    }
    for (at, set) in sets.iter().enumerate() {
        // Of a set that cannot be restored nothing comes back.
        let is_good = matches!(&fates[at], Fate::Kept(why) if !why.contains(&Because::Broken))
            && known.chain_of(set).is_ok();
        if is_good && !versions.is_empty() {
            each_version(set, |version, _| {
                versions.remove(&version);
                true
            })?;
        }
    }
    let mut lost = vec![Lost::default(); going.len()];
    for number in versions.values() {
        lost[*number].versions += 1;
    }
    for (number, at) in going.iter().enumerate() {
        if lost[number].versions == 0 {
            continue;
        }
        let mut names = Vec::new();
        each_version(&sets[*at], |version, entry| {
            if versions.get(&version) == Some(&number) {
                names.push(escape(&entry.path));
            }
            names.len() < NAMES_MAX
        })?;
        lost[number].names = names;
    }
    Ok(lost)
}

/// Calls for each object but folders that a set gives back, until `take` wants no more. What the
/// set could not read, or not as a whole, it does not give back.
fn each_version(
    set: &FolderSet,
    mut take: impl FnMut(u64, &TreeEntry) -> bool,
) -> Result<(), Failure> {
    let not_whole = sets::not_whole(set)?;
    for entry in sets::entries(set)? {
        let entry = entry?;
        let is_here = entry.state == EntryState::Stored;
        let is_whole = !is_here || !not_whole.contains(&AgainRecord::path_hash(&entry.path));
        if entry.kind == ObjectKind::Directory || !is_whole {
            continue;
        }
        let mut hasher = DefaultHasher::new();
        (&entry.path, entry.kind as u8, entry.size_bytes).hash(&mut hasher);
        // The time of the inode too: contents may change under the same size and time.
        (entry.changed.seconds, entry.changed.nanoseconds).hash(&mut hasher);
        (entry.modified.seconds, entry.modified.nanoseconds).hash(&mut hasher);
        if !take(hasher.finish(), &entry) {
            break;
        }
    }
    Ok(())
}

/// What a removal came to.
#[derive(Default)]
pub(crate) struct Removed {
    /// They are gone.
    pub(crate) archives: Vec<ForgottenArchive>,
    /// Why the others are not.
    pub(crate) failure: Option<Failure>,
    warnings: Vec<String>,
}

/// Removes the archives that go, the last of a chain first: what stops it leaves whole chains.
fn remove(known: &SetsFolder, fates: &[Fate], job: &str, folder: &Path) -> Removed {
    let mut going: BTreeMap<(usize, usize), &FolderSet> = BTreeMap::new();
    for (at, (set, fate)) in known.sets.iter().zip(fates).enumerate() {
        if *fate == Fate::Goes {
            going.insert((set.about.chain.len(), at), set);
        }
    }
    let mut removed = Removed::default();
    for set in going.values().rev() {
        if let Err(error) = remove_set(known, set, folder) {
            removed.failure = Some(sets::unusable("cannot remove", &set.path, &error));
            break;
        }
        let (archive, bytes) = (set.name(), set.length_bytes);
        let forgotten = ForgottenArchive { set: hex(&set.about.set), archive, bytes };
        let event = Event::Forgotten {
            set: forgotten.set.clone(),
            archive: forgotten.archive.clone(),
            bytes,
        };
        if let Err(failure) = note(job, folder, event) {
            removed.warnings.push(failure.message().to_owned());
        }
        removed.archives.push(forgotten);
    }
    removed.warnings.dedup();
    removed
}

/// Removes the archive of a set, with its copies.
fn remove_set(known: &SetsFolder, set: &FolderSet, folder: &Path) -> std::io::Result<()> {
    let copies = known.copies.iter().filter(|copy| copy.about.set == set.about.set);
    for path in copies.map(|copy| &copy.path).chain([&set.path]) {
        std::fs::remove_file(path)?;
        // What the hook of PostgreSQL has put beside it; most sets have none.
        let mut label = path.clone().into_os_string();
        label.push(".backup_label");
        let _ = std::fs::remove_file(label);
    }
    // Those before it must not be gone sooner.
    std::fs::File::open(folder).and_then(|folder| folder.sync_all())
}
