//! Sets of a chain in a folder: which one a backup writes, and which one a restore reads.
//!
//! The archives in the folder say themselves what they are, so there is nothing else to keep. A
//! backup that cannot be an incremental one is a full one, and says why.

mod changed;
mod entries;
mod lock;
mod on_tape;
mod wanted;

use std::num::NonZero;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive::chunk::Compression;
use archive::index::{About, AboutSource, CHAIN_SETS_MAX, ChainSet, StoreReason};
use archive::label::hex;
use base::calendar::time_text;
use base::escape::escape_path;
use base::failures::with_causes;
use catalogue::{ChainError, FolderSet, SetsFolder, WantedSet};
use flow::monitor::{Level, Monitor, Notice};
use jobs::JobName;
use runs::backup::SetOptions;
use rustix::fs::{statfs, statvfs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::backup::BackupRequest;
use crate::failure::{Failure, without_error_numbers};
use crate::journal;
use crate::tape_sets::{Account, Copy, Log, TapeSets};
use changed::Given;
pub use changed::{ChangedListAnswer, ListUsed};
pub(crate) use entries::{entries, not_whole, unreadable};
pub(crate) use lock::{FolderLock, LOCK, LockWait};
pub(crate) use wanted::{Gaps, WantedChain, chain, chain_in, end_of_day, part_of_chain};

/// Name of a job that has none.
const JOB: &str = "backup";
/// ext2 to ext4: file systems whose identity lasts from mount to mount. That of ZFS is another for
/// each snapshot, so it says nothing.
const EXT: u64 = 0xef53;
/// Its identity lasts in the low half; the high half is another for each snapshot and subvolume
/// (`btrfs_statfs` in the kernel's fs/btrfs/super.c).
const BTRFS: u64 = 0x9123_683e;

/// Which set of a chain a backup is to be; only where the target is a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SetSettings {
    /// Whether only what has changed is stored.
    pub incremental: bool,
    /// The set since which changes count: the start of its id, or its archive's name; `None`: the
    /// last one of the job.
    pub since: Option<String>,
    /// Level as in dump: changes count since the last set of a lower level; 0 is a full set.
    pub level: Option<u8>,
    /// The job that the set belongs to; `None`: `backup`.
    pub job: Option<String>,
    /// Whether a source may be empty now, or lie on another file system than in the last set.
    pub source_may_change: bool,
    /// A file with what has changed since the set before: paths, each with a NUL behind it; `-` is
    /// standard input. Only the folders that it leads to are looked at. Or `btrfs:SUBVOLUME`.
    pub changed_from: Option<PathBuf>,
    /// Every so many sets, everything is looked at in spite of the list, and what it missed is
    /// named.
    pub audit_every: Option<NonZero<u32>>,
}

/// Which set of a folder is restored; only where the source is a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SetSelection {
    /// The last set that began before the end of this day, local time, or before this point in
    /// time: `2026-11-27`, or `2026-11-27T14:30`.
    pub at: Option<String>,
    /// Of this job; needed where the folder has sets of several.
    pub job: Option<String>,
}

/// A set of a chain that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WrittenSetAnswer {
    /// Its identity.
    pub set: String,
    pub job: String,
    /// Its number among the sets of the job.
    pub number: u64,
    /// 0 for a full set.
    pub level: u8,
    /// The archives that a restore of it reads, the full set's first.
    pub chain: Vec<String>,
    /// Objects that were stored, by reason.
    pub stored: Vec<ReasonCount>,
    /// Objects that an earlier set of the chain has.
    pub unchanged: u64,
    /// Objects of the set before that are gone.
    pub deleted: u64,
    /// Objects that were left out, since the set ended early; the next one begins with them.
    pub left: u64,
}

/// Objects that were stored for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReasonCount {
    /// `full`, `new`, `size`, `mtime`, `owner`, `ctime`, `identity`, `doubtful`, `again`,
    /// `content`, `untrusted` or `linked`.
    pub reason: String,
    pub objects: u64,
}

impl From<&About> for WrittenSetAnswer {
    fn from(about: &About) -> WrittenSetAnswer {
        let count = |(reason, objects): &(StoreReason, u64)| ReasonCount {
            reason: reason.name().to_owned(),
            objects: *objects,
        };
        WrittenSetAnswer {
            set: hex(&about.set),
            job: about.job.clone(),
            number: about.number,
            level: about.level,
            chain: about.chain.iter().map(|set| set.name.clone()).collect(),
            stored: about.stored.iter().map(count).collect(),
            unchanged: about.unchanged,
            deleted: about.deleted,
            left: about.left,
        }
    }
}

/// Whether a target means a folder of sets: it ends with a slash. Without one, the name of a folder
/// is more likely one of a file that is missing.
pub fn is_folder_target(path: &Path) -> bool {
    path.as_os_str().as_bytes().ends_with(b"/")
}

/// Whether a source means a folder of sets.
pub fn is_folder(path: &Path) -> bool {
    is_folder_target(path) || path.is_dir()
}

/// A set that is about to be written. Its place is locked as long as it lives.
pub(crate) struct NewSet {
    pub(crate) path: PathBuf,
    pub(crate) options: SetOptions,
    /// What else it has where it goes to tape.
    pub(crate) tape: Option<NewTapeSet>,
    /// The list of changes, if one was named.
    pub(crate) list: Option<ListUsed>,
    /// Held by this, unless the caller holds it.
    _lock: Option<FolderLock>,
}

/// What else a set on tape has.
pub(crate) struct NewTapeSet {
    /// The copy of its index; `None` where it cannot be made.
    pub(crate) copy: Option<Copy>,
    pub(crate) log: Arc<Log>,
}

impl NewSet {
    /// Chooses the set's place in a chain.
    pub(crate) fn plan(
        request: &BackupRequest,
        compression: Compression,
        hold: Hold<'_>,
        monitor: &dyn Monitor,
    ) -> Result<NewSet, Failure> {
        let folder = &request.to;
        check_job(job(request))?;
        let sources = sources(request)?;
        let lock = match hold {
            Hold::Take => Some(FolderLock::take(folder)?),
            Hold::Held(_) | Hold::None => None,
        };
        let known = match hold {
            Hold::None if !folder.exists() => SetsFolder::default(),
            _ => read(folder)?,
        };
        tell_unusable(monitor, &known.unusable);
        if !matches!(hold, Hold::None) {
            remove_left_overs(monitor, folder);
        }
        if lies_in_a_source(folder, &sources) {
            let text = "lies in what is backed up: each set would store the sets before it; leave \
                        it out with --exclude";
            tell(monitor, folder, text.to_owned());
        }
        let place = Place { known: &known, path: folder, tape: None };
        let end = archive_end(compression);
        let (options, list) = options(request, sources, &place, end, monitor)?;
        let path = folder.join(own_name(&options.about));
        Ok(NewSet { path, options, tape: None, list, _lock: lock })
    }
}

/// The job of a request.
fn job(request: &BackupRequest) -> &str {
    request.set.job.as_deref().unwrap_or(JOB)
}

/// The name that a set gives its own archive.
fn own_name(about: &About) -> String {
    about.chain.last().map(|link| link.name.clone()).unwrap_or_default()
}

/// What is known of the sets before a new one.
#[derive(Clone, Copy)]
struct Place<'a> {
    known: &'a SetsFolder,
    /// The folder of the sets, or of what is known of them.
    path: &'a Path,
    /// Of sets on tape.
    tape: Option<Tapes<'a>>,
}

/// What else is known of sets on tape.
#[derive(Clone, Copy)]
struct Tapes<'a> {
    /// What became of the media.
    account: &'a Account,
    /// Whether the run may write over whatever is in the drive.
    overwrites: bool,
}

impl Place<'_> {
    /// Why a set of the chain cannot be read any more. A tape need not be known to be there.
    fn gap(&self, parent: &FolderSet) -> Option<String> {
        let Some(Tapes { account, overwrites }) = self.tape else {
            return self.known.chain_of(parent).err().map(|error| error.to_string());
        };
        if overwrites {
            return Some("what is written over may be what the set would count on".to_owned());
        }
        let lost = |link: &&ChainSet| account.is_written_over(link.set);
        let lost = parent.about.chain.iter().find(lost)?;
        let (set, lost) = (parent.name(), &lost.name);
        Some(format!("the set {set} needs the set {lost}, whose medium was written over"))
    }
}

/// Which set of a chain it is to be, and what it counts on.
fn options(
    request: &BackupRequest,
    sources: Vec<AboutSource>,
    place: &Place<'_>,
    end: &str,
    monitor: &dyn Monitor,
) -> Result<(SetOptions, Option<ListUsed>), Failure> {
    let settings = &request.set;
    let last = place.known.choose(Some(job(request)), &WantedSet::Newest).ok();
    if let Some(last) = last.filter(|_| !settings.source_may_change) {
        check_sources(&sources, &last.about)?;
    }
    let mut about = about(request, sources)?;
    about.number = last.map_or(1, |last| last.about.number + 1);
    if let Some(last) = last {
        tell_set_back(monitor, last, about.begun_seconds);
    }
    let parent = parent(place, settings, &about)?;
    changed::check(settings, &parent)?;
    let parent = match parent {
        Parent::None => None,
        Parent::Unfit(why) => {
            tell(monitor, place.path, format!("a full set is written: {why}"));
            None
        }
        Parent::Set(parent) => Some(parent),
    };
    if let Some(parent) = parent {
        about.chain.clone_from(&parent.about.chain);
        about.level = settings.level.unwrap_or(parent.about.level.saturating_add(1));
    }
    let name = name(&about, end);
    let (set, begun_seconds) = (about.set, about.begun_seconds);
    about.chain.push(ChainSet { set, begun_seconds, name });
    let parent = parent.map(FolderSet::index).transpose();
    let parent = parent.map_err(|error| Failure::new(&error, None))?;
    let given = Given { settings, last: last.map(|last| &last.about), monitor };
    let (changed, list) = changed::plan(&given, &mut about, parent.as_ref())?;
    let journal = journal::carried(&about.job, &request.to);
    Ok((SetOptions { about, parent, changed, journal }, list))
}

/// Who keeps others from writing into the folder.
#[derive(Clone, Copy)]
pub(crate) enum Hold<'a> {
    /// The set, from now on.
    Take,
    /// The caller.
    Held(#[expect(dead_code, reason = "it is there for as long as this")] &'a FolderLock),
    /// Nobody: nothing is written, and the folder need not be there.
    None,
}

/// A full set of the sources, that has no number and no name so far.
fn about(request: &BackupRequest, sources: Vec<AboutSource>) -> Result<About, Failure> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let begun_seconds = now.map_or(0, |since| since.as_secs());
    Ok(About {
        set: base::random::id().map_err(|error| Failure::new(&error, None))?,
        chain: Vec::new(),
        job: request.set.job.clone().unwrap_or_else(|| JOB.to_owned()),
        number: 1,
        level: 0,
        host: journal::this_host(),
        begun_seconds,
        ended_seconds: 0,
        sources,
        excludes: request.exclude.clone(),
        one_file_system: request.one_file_system,
        without_attributes: request.no_xattrs,
        deleted: 0,
        stored: Vec::new(),
        unchanged: 0,
        left: 0,
        by_list: 0,
        subvolumes: Vec::new(),
        mounts: Vec::new(),
    })
}

/// What an archive outside of a chain would be as a set.
pub(crate) fn alone(request: &BackupRequest) -> Result<SetOptions, Failure> {
    let mut about = about(request, sources(request)?)?;
    let (set, begun_seconds) = (about.set, about.begun_seconds);
    about.chain.push(ChainSet { set, begun_seconds, name: String::new() });
    Ok(SetOptions { about, parent: None, changed: None, journal: Vec::new() })
}

/// The set that changes count from.
enum Parent<'a> {
    /// None was asked for.
    None,
    /// The one that was asked for cannot be it.
    Unfit(String),
    Set(&'a FolderSet),
}

fn parent<'a>(
    place: &Place<'a>,
    settings: &SetSettings,
    about: &About,
) -> Result<Parent<'a>, Failure> {
    let Place { known, path, .. } = *place;
    let is_incremental = match settings.level {
        Some(level) => level > 0,
        None => settings.incremental || settings.since.is_some(),
    };
    if !is_incremental {
        return Ok(Parent::None);
    }
    let chosen = match &settings.since {
        Some(since) => Some(
            known.choose(None, &WantedSet::Named(since)).map_err(|it| failure(&it, path, known))?,
        ),
        None => {
            let mut of_job = known.sets.iter().filter(|set| set.about.job == about.job);
            let is_lower =
                |set: &&FolderSet| settings.level.is_none_or(|level| set.about.level < level);
            of_job.rfind(is_lower)
        }
    };
    let Some(chosen) = chosen else {
        return Ok(Parent::Unfit(format!("there is none of the job {} to begin from", about.job)));
    };
    Ok(match unfit(place, chosen, about) {
        Some(why) => Parent::Unfit(why),
        None => Parent::Set(chosen),
    })
}

/// Why a set cannot be followed by this one.
fn unfit(place: &Place<'_>, parent: &FolderSet, about: &About) -> Option<String> {
    let before = &parent.about;
    let name = parent.name();
    let paths = |about: &About| -> Vec<_> {
        let path = |source: &AboutSource| (source.path.clone(), source.archive_path.clone());
        about.sources.iter().map(path).collect()
    };
    if paths(before) != paths(about) {
        return Some(format!("{name} has other sources"));
    }
    if before.excludes != about.excludes {
        return Some(format!("{name} has other excludes"));
    }
    let options = |about: &About| (about.one_file_system, about.without_attributes);
    if options(before) != options(about) {
        return Some(format!("{name} was made with other options"));
    }
    if before.chain.len() >= CHAIN_SETS_MAX {
        return Some(format!("the chain of {name} has {CHAIN_SETS_MAX} sets"));
    }
    if let Some(why) = place.gap(parent) {
        return Some(why);
    }
    let again = parent.index().map_err(|error| with_causes(&error)).and_then(|index| {
        let again = index.again().map_err(|error| with_causes(&error))?;
        match index.tree_holds() {
            Ok(Some(true)) => Ok(again.len()),
            Ok(Some(false)) => Err("a checksum does not match".to_owned()),
            Ok(None) => Err("it does not have what was there".to_owned()),
            Err(error) => Err(with_causes(&error)),
        }
    });
    match again {
        Ok(objects) if objects >= 1 << 20 => {
            Some(format!("{name} could not read a million objects"))
        }
        Ok(_) => None,
        Err(why) => Some(format!("the index of {name} cannot be used: {why}")),
    }
}

/// The sources, and what shows whether they are still what they were.
fn sources(request: &BackupRequest) -> Result<Vec<AboutSource>, Failure> {
    let source = |path: &PathBuf| {
        let failed = |error: std::io::Error| unusable("cannot look at the source", path, &error);
        let absolute = std::path::absolute(path).map_err(failed)?;
        let status = statfs(path).map_err(|error| failed(error.into()))?;
        let file_system = status.f_type as u64 & 0xffff_ffff;
        let identity = statvfs(path).map_or(0, |status| lasting(file_system, status.f_fsid));
        // Names beyond these are not counted: one is enough to know that it was not empty.
        let names = std::fs::read_dir(path).map_or(0, |names| names.take(1000).count() as u64);
        Ok(AboutSource {
            path: absolute.into_os_string().into_encoded_bytes(),
            archive_path: tree::archive_path(path).0,
            file_system,
            file_system_id: identity,
            names,
        })
    };
    request.sources.iter().map(source).collect()
}

/// What of a file system's identity is the same after each mount, and of each snapshot; 0: nothing.
fn lasting(file_system: u64, identity: u64) -> u64 {
    match file_system {
        EXT => identity,
        BTRFS => identity & 0xffff_ffff,
        _ => 0,
    }
}

/// Whether the sets would be stored in themselves.
fn lies_in_a_source(folder: &Path, sources: &[AboutSource]) -> bool {
    let path = |bytes: &[u8]| Path::new(std::ffi::OsStr::from_bytes(bytes)).canonicalize();
    folder.canonicalize().is_ok_and(|folder| {
        sources.iter().any(|source| path(&source.path).is_ok_and(|it| folder.starts_with(it)))
    })
}

/// Refuses a source that looks like a mount point without its file system: what was deleted with it
/// would soon be the only thing that the sets know.
fn check_sources(sources: &[AboutSource], last: &About) -> Result<(), Failure> {
    for source in sources {
        let Some(before) = last.sources.iter().find(|before| before.path == source.path) else {
            continue;
        };
        let path = String::from_utf8_lossy(&source.path);
        let what = if source.names == 0 && before.names > 0 {
            format!("{path} is empty, and was not in the last set")
        } else if source.file_system != before.file_system
            || source.file_system_id != before.file_system_id
        {
            format!("{path} lies on another file system than in the last set")
        } else {
            continue;
        };
        let hint = "mount what should be there, or add --source-may-change once if it is right";
        return Err(Failure::of(what, Some(hint)));
    }
    Ok(())
}

fn check_job(job: &str) -> Result<(), Failure> {
    JobName::try_from(job.to_owned()).map(|_| ()).map_err(|what| Failure::of(what, None))
}

/// The end of the name of an archive in a folder.
fn archive_end(compression: Compression) -> &'static str {
    match compression {
        Compression::None => ".tar",
        Compression::Zstd { .. } => ".tar.zst",
        Compression::Gzip { .. } => ".tar.gz",
    }
}

/// The name of the archive: job, time, level, the start of the identity.
fn name(about: &About, end: &str) -> String {
    let time: String = time_text(about.begun_seconds as i64).replace(' ', "T").replace(':', "");
    let level = match about.level {
        0 => "full".to_owned(),
        level => format!("level{level}"),
    };
    format!("{}-{time}Z-{level}-{}{end}", about.job, &hex(&about.set)[..8])
}

/// The sets of a folder; of a tape drive, the sets on tape that this user knows and that are left.
pub(crate) fn read(place: &Path) -> Result<SetsFolder, Failure> {
    if journal::is_tape_drive(place) {
        return TapeSets::of_this_user()?.restorable();
    }
    read_folder(place)
}

pub(crate) fn read_folder(folder: &Path) -> Result<SetsFolder, Failure> {
    SetsFolder::read(folder).map_err(|error| unusable("cannot read the folder", folder, &error))
}

/// Removes what killed runs left. Their names have an identity, so that no later run has the same.
fn remove_left_overs(monitor: &dyn Monitor, folder: &Path) {
    let is_set = |name: &std::ffi::OsStr| catalogue::is_named_as_set(&name.to_string_lossy());
    // It only takes space, so a failure is none of the run.
    for left in device::target::remove_left_overs(folder, is_set).unwrap_or_default() {
        let size = base::format::size(left.bytes);
        let text = format!("was removed: a run that was killed left it ({size})");
        tell(monitor, &folder.join(left.name), text);
    }
}

pub(crate) fn failure(error: &ChainError, folder: &Path, known: &SetsFolder) -> Failure {
    let hint = match error {
        ChainError::Empty => "sets are made with `takeup backup SOURCE --to FOLDER/`",
        ChainError::NoSuch { .. } => "name one of them",
        ChainError::SeveralJobs { .. } => "name one with --job",
        ChainError::Missing { .. } => {
            "put its archive back, or restore an earlier set, whose chain is whole"
        }
    };
    let unreadable = known
        .unusable
        .iter()
        .map(|(path, why)| format!("{} cannot be read as a set: {why}", escape_path(path)));
    let message = format!("{}: {error}", escape_path(folder));
    Failure::of(message, Some(hint)).with_details(unreadable.collect())
}

pub(crate) fn unusable(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    let why = without_error_numbers(&with_causes(error));
    Failure::of(format!("{what} {}: {why}", escape_path(path)), None)
}

/// Names archives that are passed over.
pub(crate) fn tell_unusable(monitor: &dyn Monitor, unusable: &[(PathBuf, String)]) {
    for (path, why) in unusable {
        tell(monitor, path, format!("is passed over, since it cannot be read as a set: {why}"));
    }
}

/// Says that the clock is behind that of the last set.
fn tell_set_back(monitor: &dyn Monitor, last: &FolderSet, begun_seconds: u64) {
    if last.about.begun_seconds > begun_seconds {
        let time = time_text(last.about.begun_seconds as i64);
        let text = format!(
            "began at {time} UTC, later than now: the clock was set back. The new set counts as \
             the newest; --at goes by the clock"
        );
        tell(monitor, &last.path, text);
    }
}

fn tell(monitor: &dyn Monitor, path: &Path, text: String) {
    let object = path.as_os_str().as_bytes().to_vec();
    monitor.notice(Notice { level: Level::Notable, object, text });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_of_a_snapshot_is_that_of_its_file_system() {
        // `stat --file-system` of a subvolume and of its snapshot.
        let [live, snapshot] = [0x1a90_6923_52d8_ec37, 0x1a90_6922_52d8_ec37];
        assert_eq!(lasting(BTRFS, live), lasting(BTRFS, snapshot));
        assert_ne!(lasting(BTRFS, live), lasting(BTRFS, live ^ 1));
        assert_ne!(lasting(EXT, live), lasting(EXT, snapshot));
        assert_eq!(lasting(0x2fc1_2fc1, live), 0);
    }
}
