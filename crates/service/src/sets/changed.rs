//! A list of what has changed since the set before, by those who know.
//!
//! It comes from outside, so what it says is checked as far as that costs no walk: its form, and
//! whether its paths lie in the sources. What it leaves out an audit finds.

mod btrfs;
mod zfs;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal as _, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use archive::index::{About, AboutSource};
use archive::member::Timestamp;
use base::calendar::time_text;
use base::escape::{escape, escape_path};
use base::format::{count, counted};
use catalogue::IndexFile;
use flow::monitor::{Harm, Level, Monitor, Notice};
use machine::mounts;
use runs::backup::{ChangedList, ListUse, with_doubts};
use runs::report::ListReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tree::{ChangedPaths, ChangedPathsBuilder, ChangesFrom, TooManyPaths};

use super::{Parent, SetSettings, tell, unusable};
use crate::failure::Failure;

/// Most bytes of a list.
const LIST_BYTES_MAX: u64 = 512 << 20;
/// Missed objects that the warning names.
const MISSED_TOLD: usize = 5;

/// How a list of changes was used.
#[derive(Clone, Debug, Default)]
pub struct ListUsed {
    /// `None`: it was not read, or could not be followed.
    pub using: Option<ListUse>,
    /// Its paths in the sources, each once.
    pub paths: u64,
    /// Its paths outside of the sources.
    pub outside: u64,
    pub report: ListReport,
}

/// How a list of changes was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedListAnswer {
    /// `list`: only where it led; `audit`: everywhere, to find what it missed; `everything`:
    /// everywhere, since it could not be used.
    pub looked: String,
    /// Its paths in the sources, each once.
    pub paths: u64,
    /// Its paths that are not in the sources.
    pub outside: u64,
    /// Folders whose names were read.
    pub folders_read: u64,
    /// Changes that the list missed; only an audit knows.
    pub missed: u64,
    /// The first of them, as the archive has them, escaped.
    pub missed_first: Vec<String>,
}

impl From<&ListUsed> for ChangedListAnswer {
    fn from(list: &ListUsed) -> ChangedListAnswer {
        let looked = match list.using {
            Some(ListUse::Follow) => "list",
            Some(ListUse::Audit) => "audit",
            None => "everything",
        };
        ChangedListAnswer {
            looked: looked.to_owned(),
            paths: list.paths,
            outside: list.outside,
            folders_read: list.report.folders_read,
            missed: list.report.missed,
            missed_first: list.report.missed_first.iter().map(|path| escape(path)).collect(),
        }
    }
}

impl ListUsed {
    /// With how the run went. What an audit found is a warning.
    pub(crate) fn done(self, report: Option<ListReport>, monitor: &dyn Monitor) -> ListUsed {
        let report = report.unwrap_or_default();
        if report.missed > 0 {
            let first: Vec<String> =
                report.missed_first.iter().take(MISSED_TOLD).map(|path| escape(path)).collect();
            let more = match report.missed - first.len() as u64 {
                0 => String::new(),
                more => format!(" and {} more", count(more)),
            };
            let changes = counted(report.missed, "change", "changes");
            let text = format!("the list of changes missed {changes}: {}{more}", first.join(", "));
            let level = Level::Warning(Harm::Beside);
            monitor.notice(Notice { level, object: Vec::new(), text });
        }
        ListUsed { report, ..self }
    }
}

/// What a list is planned with.
pub(super) struct Given<'a> {
    pub(super) settings: &'a SetSettings,
    /// The last set of the job.
    pub(super) last: Option<&'a About>,
    pub(super) monitor: &'a dyn Monitor,
}

/// Refuses a list for a set that stores everything.
pub(super) fn check(settings: &SetSettings, parent: &Parent<'_>) -> Result<(), Failure> {
    if settings.changed_from.is_some() && matches!(parent, Parent::None) {
        let message = "a full set stores everything, whatever a list of changes says";
        return Err(Failure::of(message, Some("add --incremental, or leave out --changed-from")));
    }
    Ok(())
}

/// The list, if one is named and there is a set that it can count from.
pub(super) fn plan(
    given: &Given<'_>,
    about: &mut About,
    parent: Option<&IndexFile>,
) -> Result<(Option<ChangedList>, Option<ListUsed>), Failure> {
    let text = given.settings.changed_from.as_deref();
    let from = text.map(ChangesFrom::of);
    let subvolume = match &from {
        Some(ChangesFrom::Btrfs { subvolume, .. }) => Some(btrfs::Named::open(subvolume)?),
        Some(ChangesFrom::NoSnapshot) => return Err(no_snapshot()),
        Some(ChangesFrom::List(_) | ChangesFrom::Zfs(_)) | None => None,
    };
    btrfs::note(about, subvolume.as_ref());
    let (Some(from), Some(text)) = (from, text) else { return Ok((None, None)) };
    let Some(parent) = parent else { return Ok((None, Some(ListUsed::default()))) };
    let before = || parent.about().map_err(|error| Failure::new(&error, None));
    let list = match (&from, &subvolume) {
        (ChangesFrom::Btrfs { generation, .. }, Some(named)) => match before()? {
            Some(before) => named.list(*generation, about, &before)?,
            None => Err(NoList::NotNoted),
        },
        (ChangesFrom::Zfs(snapshots), _) => match before()? {
            Some(before) => zfs::list(snapshots, about, &before)?,
            None => Err(NoList::MountsNotNoted),
        },
        _ => Ok(GivenList::read(text, &about.sources)?),
    };
    let list = match list {
        Ok(list) => list,
        Err(why) => {
            tell(given.monitor, text, format!("is not used, everything is looked at: {why}"));
            return Ok((None, Some(ListUsed::default())));
        }
    };
    let from = text;
    list.tell(from, given);
    let outside = list.outside;
    let by_list = given.last.map_or(0, |last| last.by_list) + 1;
    let is_audit = given.settings.audit_every.is_some_and(|every| by_list >= every.get().into());
    let mut used = ListUsed { paths: list.paths, outside, ..ListUsed::default() };
    let paths = with_doubts(list.inside, about, parent);
    let paths: ChangedPaths = match paths.map_err(|error| Failure::new(&error, None))? {
        Ok(paths) => paths,
        Err(why) => {
            tell(given.monitor, from, format!("is not used, everything is looked at: {why}"));
            return Ok((None, Some(used)));
        }
    };
    let using = if is_audit { ListUse::Audit } else { ListUse::Follow };
    if !is_audit {
        about.by_list = by_list;
    }
    used.using = Some(using);
    let list = ChangedList { paths: Arc::new(paths), using, written: list.written };
    Ok((Some(list), Some(used)))
}

/// Why there is no list, though it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NoList {
    /// The set before says nothing of this subvolume.
    NotNoted,
    /// The set before does not say what was mounted where.
    MountsNotNoted,
    /// The set before saw a later state.
    Older,
    TooLong,
    /// The kernel does not show what is mounted where.
    Mounts,
    Unknown(String),
}

impl std::fmt::Display for NoList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoList::NotNoted => f.write_str("the set before noted no generation of this subvolume"),
            NoList::MountsNotNoted => f.write_str("the set before noted no mount points"),
            NoList::Older => f.write_str("it is older than what the set before saw"),
            NoList::TooLong => write!(f, "it has {TooManyPaths}"),
            NoList::Mounts => f.write_str("the kernel does not show what is mounted where"),
            NoList::Unknown(why) => f.write_str(why),
        }
    }
}

/// A list as it was read.
struct GivenList {
    inside: ChangedPathsBuilder,
    paths: u64,
    outside: u64,
    first_outside: Vec<u8>,
    /// When it was complete.
    written: Timestamp,
    prefixes: Vec<Prefix>,
    /// Sources that are looked at as a whole, since it cannot have their changes.
    unlisted: Vec<Vec<u8>>,
}

impl GivenList {
    fn new(sources: &[AboutSource], written: Timestamp) -> GivenList {
        GivenList {
            inside: ChangedPathsBuilder::default(),
            paths: 0,
            outside: 0,
            first_outside: Vec::new(),
            written,
            prefixes: prefixes(sources),
            unlisted: Vec::new(),
        }
    }

    fn read(from: &Path, sources: &[AboutSource]) -> Result<GivenList, Failure> {
        let failed = |error: io::Error| unusable("cannot read the list", from, &error);
        let (input, written): (Box<dyn Read>, _) = if from == Path::new("-") {
            let input = io::stdin();
            if input.is_terminal() {
                let message = "the list of changes is to come from a terminal";
                return Err(Failure::of(message, Some("write it into a file, or into a pipe")));
            }
            (Box::new(input), None)
        } else {
            let file = File::open(from).map_err(failed)?;
            let status = file.metadata().map_err(failed)?;
            let written = status.modified().ok().filter(|_| status.is_file());
            (Box::new(file), written)
        };
        let mut list = GivenList::new(sources, Timestamp::default());
        let mut input = BufReader::new(input.take(LIST_BYTES_MAX));
        let mut path = Vec::new();
        while input.read_until(0, &mut path).map_err(failed)? > 0 {
            if path.pop() != Some(0) {
                return Err(cut_off(from, input.get_ref().limit()));
            }
            list.take(&path).map_err(|error| too_long(from, &error.to_string()))?;
            path.clear();
        }
        if input.get_ref().limit() == 0 {
            return Err(cut_off(from, 0));
        }
        list.written = timestamp(written.unwrap_or_else(SystemTime::now));
        Ok(list)
    }

    fn take(&mut self, path: &[u8]) -> Result<(), TooManyPaths> {
        if path.is_empty() {
            return Ok(());
        }
        let absolute = std::path::absolute(OsStr::from_bytes(path));
        let absolute = absolute.map(|path| path.into_os_string().into_encoded_bytes());
        let absolute = absolute.unwrap_or_default();
        let mut is_inside = false;
        for prefix in &self.prefixes {
            if let Some(rest) = prefix.below(&absolute) {
                self.inside.add(prefix.source, rest)?;
                is_inside = true;
            }
        }
        if is_inside {
            self.paths += 1;
        } else {
            if self.outside == 0 {
                self.first_outside = path.to_vec();
            }
            self.outside += 1;
        }
        Ok(())
    }

    /// Takes an absolute path of a folder in which everything may have changed. A source in it
    /// counts as changed, too.
    fn take_whole(&mut self, path: &[u8]) -> Result<(), TooManyPaths> {
        let above = Prefix { source: 0, path: path.to_vec() };
        for prefix in &self.prefixes {
            if let Some(rest) = prefix.below(path) {
                self.inside.add_whole(prefix.source, rest)?;
            } else if above.below(&prefix.path).is_some() {
                self.inside.add_whole(prefix.source, b"")?;
            }
        }
        Ok(())
    }

    /// Adds what a file system cannot know of that has its root in this folder: what is mounted
    /// over it, or was when the set before began, and the sources that are elsewhere.
    fn with_mounts(
        &mut self,
        root: &Path,
        sources: &[AboutSource],
        before: &About,
    ) -> Result<(), NoList> {
        let now = mounts::now().map_err(|_| NoList::Mounts)?;
        let now = now.into_iter().map(|mount| mount.point.into_os_string().into_encoded_bytes());
        for point in now.chain(before.mounts.iter().cloned()) {
            let path = Path::new(OsStr::from_bytes(&point));
            if path.starts_with(root) && path != root {
                self.take_whole(&point).map_err(|_| NoList::TooLong)?;
            }
        }
        for (source, number) in sources.iter().zip(0..) {
            let path = Path::new(OsStr::from_bytes(&source.path));
            let is_link = path.symlink_metadata().is_ok_and(|status| status.is_symlink());
            let followed = path.canonicalize().ok().filter(|_| !is_link);
            if !followed.is_some_and(|path| path.starts_with(root)) {
                self.inside.add_whole(number, b"").map_err(|_| NoList::TooLong)?;
                self.unlisted.push(source.path.clone());
            }
        }
        Ok(())
    }

    /// Says what looks wrong.
    fn tell(&self, from: &Path, given: &Given<'_>) {
        for source in &self.unlisted {
            let source = Path::new(OsStr::from_bytes(source));
            let text = "is not in it, and looked at as a whole".to_owned();
            tell(given.monitor, from, format!("{} {text}", escape_path(source)));
        }
        if self.outside > 0 {
            let paths = counted(self.outside, "path is", "paths are");
            let first = escape(&self.first_outside);
            let text = format!("{paths} not in the sources, and ignored: {first}");
            tell(given.monitor, from, text);
        }
        let Some(last) = given.last.filter(|_| self.paths > 0) else { return };
        if self.written.seconds < last.begun_seconds as i64 {
            let (written, begun) = (self.written.seconds, last.begun_seconds as i64);
            let text = format!(
                "was last written at {} UTC, before the last set began ({} UTC): it cannot have \
                 what changed since",
                time_text(written),
                time_text(begun)
            );
            tell(given.monitor, from, text);
        }
    }
}

/// A path that a source may be called by.
struct Prefix {
    source: u32,
    path: Vec<u8>,
}

impl Prefix {
    /// What of a path follows the source's own, without slashes at its ends; `None` if the path is
    /// elsewhere.
    fn below<'p>(&self, path: &'p [u8]) -> Option<&'p [u8]> {
        let rest = path.strip_prefix(&self.path[..])?;
        if !(rest.is_empty() || rest.starts_with(b"/")) {
            return None;
        }
        let begin = rest.iter().position(|byte| *byte != b'/').unwrap_or(rest.len());
        let end = rest.iter().rposition(|byte| *byte != b'/').map_or(begin, |last| last + 1);
        let rest = &rest[begin..end];
        let has_parent = rest.split(|byte| *byte == b'/').any(|name| name == b"..");
        (!has_parent).then_some(rest)
    }
}

/// What sources may be called: as typed, and with all links above them followed.
fn prefixes(sources: &[AboutSource]) -> Vec<Prefix> {
    let mut prefixes: Vec<Prefix> = Vec::new();
    for (source, number) in sources.iter().zip(0..) {
        let typed = Path::new(OsStr::from_bytes(&source.path));
        let is_link = typed.symlink_metadata().is_ok_and(|status| status.is_symlink());
        let followed = typed.canonicalize().ok().filter(|_| !is_link);
        let followed = followed.map(|path| path.into_os_string().into_encoded_bytes());
        for path in [Some(source.path.clone()), followed].into_iter().flatten() {
            let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
            let path = path[..end].to_vec();
            let is_known = |known: &Prefix| known.source == number && known.path == path;
            if !prefixes.iter().any(is_known) {
                prefixes.push(Prefix { source: number, path });
            }
        }
    }
    prefixes
}

fn cut_off(from: &Path, left_bytes: u64) -> Failure {
    if left_bytes == 0 {
        return too_long(from, &format!("more than {} MiB", LIST_BYTES_MAX >> 20));
    }
    let message = format!("the list {} does not end with a NUL", escape_path(from));
    let hint = "each path needs a NUL behind it, as `find -print0` writes it; a list without one \
                at its end was cut off";
    Failure::of(message, Some(hint))
}

fn no_snapshot() -> Failure {
    let message = "--changed-from zfs: needs a snapshot";
    Failure::of(message, Some("write it as zfs:POOL/FS@FROM..@UNTIL, or zfs:POOL/FS@FROM"))
}

fn too_long(from: &Path, what: &str) -> Failure {
    let message = format!("the list {} is too long: {what}", escape_path(from));
    Failure::of(message, Some("leave out --changed-from this time: everything is looked at then"))
}

fn timestamp(time: SystemTime) -> Timestamp {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() }
}
