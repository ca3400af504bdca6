//! What of the sources a set of a chain stores, decided while the tree is walked.
//!
//! The entries of the set before and the walk have the same order
//! ([`archive::index::walk_order`]), so both are gone through in step, and memory does not grow
//! with the number of files. A folder comes with the states of all that is in it and is no
//! folder, since its own member depends on them: it is stored whenever something in it is, so
//! that its times come back, and its listing names what is there, so that GNU tar removes what
//! is not.
//!
//! What an object was like is what the listing of its folder saw, before anything was read. If it
//! changes between that and the read, its times differ from the noted ones, and the next run stores
//! it again. A change that would not show in them, because the clock of the file system has not
//! moved on, makes an entry doubtful.

use std::collections::{HashMap, VecDeque};

use archive::index::{
    Certainty, EntryState, ObjectKind, SectionSummary, StoreReason, TreeEntry, TreeWriter,
};
use archive::member::Timestamp;
use flow::monitor::Monitor;
use rustix::fs::fstatfs;
use tree::{Directory, Entry, EntryKind, FolderContents, FolderEntry, Identity, Item, Status};

use super::error::BackupError;
use super::options::SetOptions;
use super::previous::Previous;
use super::relink::{Named, Relinking};
use super::work::Work;
use crate::spool::Spool;

/// Clocks of trusted file systems move on at least this often.
const TICK_NANOSECONDS: i128 = 50_000_000;
/// Those of others: FAT counts two seconds.
const COARSE_TICK_NANOSECONDS: i128 = 2_100_000_000;
/// Types of file systems whose inode numbers change, or whose times are those of a server: FUSE,
/// CIFS, SMB 1 and 2, NFS, FAT, exFAT, 9p, AFS, Ceph.
const UNTRUSTED: [u64; 10] = [
    0x6573_5546,
    0xff53_4d42,
    0x517b,
    0xfe53_4d42,
    0x6969,
    0x4d44,
    0x2011_bab0,
    0x0102_1997,
    0x5346_414f,
    0x00c3_6400,
];

/// What was decided of all objects.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) stored: HashMap<StoreReason, u64>,
    pub(super) unchanged: u64,
    pub(super) deleted: u64,
}

/// The entries of the set, and what they count.
pub(super) struct Decided {
    pub(super) entries: (Spool, SectionSummary),
    pub(super) counts: Counts,
}

/// Decides on one object after the other.
pub(super) struct Decider<'a> {
    monitor: &'a dyn Monitor,
    previous: Previous,
    /// The place of the set in its chain.
    place: u32,
    spool: Spool,
    writer: TreeWriter,
    counts: Counts,
    begun: Timestamp,
    /// The archive itself, and the one that it replaces.
    left_out: [Option<Identity>; 2],
    /// By device number, which counts within one run only.
    file_systems: HashMap<u64, Trust>,
    /// The folders from the source down to the one being walked.
    open: Vec<OpenFolder>,
    relinking: Relinking,
    /// Decisions on the objects of the folder that was entered last, in their order.
    waiting: VecDeque<Decision>,
}

struct OpenFolder {
    source: u32,
    path: Vec<u8>,
    /// What is not in its listing is gone.
    is_listed: bool,
    /// Its state, if it could be seen.
    status: Option<Status>,
}

/// Whether inode numbers last, and times are the kernel's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    Full,
    Little,
}

/// What becomes of an object.
#[derive(Clone, Copy, Debug)]
struct Decision {
    state: EntryState,
    reason: StoreReason,
    certainty: Certainty,
    place: u32,
    before: Option<u32>,
}

impl<'a> Decider<'a> {
    pub(super) fn new(
        options: &SetOptions,
        left_out: [Option<Identity>; 2],
        begun: Timestamp,
        monitor: &'a dyn Monitor,
    ) -> Result<Decider<'a>, BackupError> {
        Ok(Decider {
            monitor,
            previous: Previous::new(options.parent.as_ref(), options.about.place())?,
            place: options.about.place(),
            spool: Spool::default(),
            writer: TreeWriter::default(),
            counts: Counts::default(),
            begun,
            left_out,
            file_systems: HashMap::new(),
            open: Vec::new(),
            relinking: Relinking::default(),
            waiting: VecDeque::new(),
        })
    }

    /// Passes on what is to be stored of a batch of the walk.
    pub(super) fn decide(&mut self, items: Vec<Item>) -> Result<Vec<Work>, BackupError> {
        let mut works = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Item::Entry(entry) => works.extend(self.object(entry)?),
                Item::Folder(folder) => works.extend(self.folder(*folder)?),
                Item::Problem(problem) => {
                    // A folder that was given up: what was not seen of it is not gone.
                    for open in self.open.iter_mut().filter(|open| open.path == problem.path) {
                        open.is_listed = false;
                    }
                    self.waiting.clear();
                    works.push(Work::Problem(problem));
                }
            }
        }
        Ok(works)
    }

    /// Passes on what is to be stored at the end of the archive.
    pub(super) fn late(
        &self,
        each: impl FnMut(Vec<Work>) -> Result<(), BackupError>,
    ) -> Result<(), BackupError> {
        self.relinking.late(each)
    }

    /// The entries, when the walk has ended.
    pub(super) fn finish(mut self) -> Result<Decided, BackupError> {
        while let Some(entry) = self.previous.take(self.monitor) {
            self.gone(entry)?;
        }
        let summary = self.writer.finish(self.spool.buffer());
        Ok(Decided { entries: (self.spool, summary), counts: self.counts })
    }

    /// An object that is no folder.
    fn object(&mut self, entry: Entry) -> Result<Option<Work>, BackupError> {
        let (path, source) = (entry.path(), entry.source() as u32);
        // What turned into a folder since it was listed is archived without its content, and comes
        // with it in the next run.
        let status = entry.status().filter(|status| status.kind != EntryKind::Directory).copied();
        let decision = match self.waiting.pop_front() {
            Some(decision) => decision,
            None => {
                let Some(status) = &status else {
                    return Ok(Some(Work::Entry(entry)));
                };
                let kind = object_kind(status.kind);
                self.pass(source, &path, kind)?;
                let previous = self.previous.take_at(source, &path, kind, self.monitor);
                let decision = self.judge(previous.as_ref(), status, entry.directory());
                // Of a folder that could not be listed to its end.
                let folder = self.open.last().map(|open| (open.path.clone(), open.status));
                match folder {
                    Some((folder, Some(folder_status))) => {
                        let folder = (&folder[..], &folder_status);
                        self.with_links(decision, &Named { path: &path, status, folder })?
                    }
                    _ => decision,
                }
            }
        };
        // Without a state it is gone, or cannot be looked at: the reader says which.
        let Some(status) = status.filter(|status| self.is_stored(status)) else {
            return Ok(Some(Work::Entry(entry)));
        };
        self.note(source, path, &status, decision)?;
        Ok((decision.state == EntryState::Stored).then_some(Work::Entry(entry)))
    }

    fn is_stored(&self, status: &Status) -> bool {
        status.kind != EntryKind::Socket && !self.left_out.contains(&Some(status.identity))
    }

    fn folder(&mut self, folder: FolderEntry) -> Result<Option<Work>, BackupError> {
        let FolderEntry { entry, status, contents } = folder;
        let (path, source) = (entry.path(), entry.source() as u32);
        self.waiting.clear();
        self.pass(source, &path, ObjectKind::Directory)?;
        // What lies below a folder that is not entered now is not seen, and so not gone.
        let is_listed = matches!(contents, FolderContents::Listed(_));
        self.open.push(OpenFolder { source, path: path.clone(), is_listed, status });
        let Some(status) = status else {
            return Ok(Some(Work::Folder { entry, listing: None }));
        };
        if let FolderContents::Listed(directory) = &contents {
            // Its file system is another than that of its parent, if one is mounted there.
            self.trust(status.identity.device, directory);
        }
        let previous = self.previous.take_at(source, &path, ObjectKind::Directory, self.monitor);
        let mut decision = self.judge(previous.as_ref(), &status, entry.directory());
        let mut listing = None;
        if let FolderContents::Listed(directory) = &contents {
            let is_touched = self.contents(source, &path, &status, directory)?;
            let trust = self.trust(status.identity.device, directory);
            let reason = if is_touched { StoreReason::Content } else { StoreReason::Untrusted };
            if decision.state != EntryState::Stored && (is_touched || trust == Trust::Little) {
                let before = Some(decision.place);
                let (state, place) = (EntryState::Stored, self.place);
                decision = Decision { state, reason, place, before, ..decision };
            }
            listing = Some(self.listing(directory));
        }
        let is_stored = decision.state == EntryState::Stored;
        self.note(source, path, &status, decision)?;
        Ok(is_stored.then_some(Work::Folder { entry, listing }))
    }

    /// Decides on what in a folder is no folder. Returns whether something of it is stored, or
    /// gone.
    fn contents(
        &mut self,
        source: u32,
        folder: &[u8],
        folder_status: &Status,
        directory: &Directory,
    ) -> Result<bool, BackupError> {
        let mut is_touched = false;
        let mut path = if folder == b"." { Vec::new() } else { [folder, b"/"].concat() };
        let folder_bytes = path.len();
        for index in 0..directory.count() {
            let (name, listed) = directory.name(index);
            if listed == EntryKind::Directory {
                break;
            }
            path.truncate(folder_bytes);
            path.extend_from_slice(name);
            let status = directory.status(index);
            let status = status.filter(|status| status.kind != EntryKind::Directory);
            let kind = object_kind(status.map_or(listed, |status| status.kind));
            is_touched |= self.drop_before(source, &path, kind)?;
            let previous = self.previous.take_at(source, &path, kind, self.monitor);
            let decision = match status {
                Some(status) => {
                    let decision = self.judge(previous.as_ref(), status, directory);
                    let folder = (folder, folder_status);
                    self.with_links(decision, &Named { path: &path, status, folder })?
                }
                None => self.stored(StoreReason::New, previous.as_ref()),
            };
            is_touched |= decision.state == EntryState::Stored
                && status.is_none_or(|status| self.is_stored(status));
            self.waiting.push_back(decision);
        }
        path.truncate(folder_bytes);
        // Behind the last of them: what else was there and is no folder.
        while self.previous.is_object_in(source, &path, self.monitor) {
            self.previous.take(self.monitor);
            self.counts.deleted += 1;
            is_touched = true;
        }
        Ok(is_touched)
    }

    /// Takes what the set before had in front of a path of the folder being decided: it is gone.
    fn drop_before(
        &mut self,
        source: u32,
        path: &[u8],
        kind: ObjectKind,
    ) -> Result<bool, BackupError> {
        let mut is_any = false;
        while self.previous.is_before(source, path, kind, self.monitor) {
            self.previous.take(self.monitor);
            self.counts.deleted += 1;
            is_any = true;
        }
        Ok(is_any)
    }

    /// Goes on to a path of the walk.
    fn pass(&mut self, source: u32, path: &[u8], kind: ObjectKind) -> Result<(), BackupError> {
        while self.previous.is_before(source, path, kind, self.monitor) {
            let Some(entry) = self.previous.take(self.monitor) else { break };
            self.gone(entry)?;
        }
        while self
            .open
            .last()
            .is_some_and(|open| open.source != source || !is_below(&open.path, path))
        {
            self.open.pop();
        }
        Ok(())
    }

    /// What the set before had and the walk has not: it is gone, unless its folder could not be
    /// listed.
    fn gone(&mut self, entry: TreeEntry) -> Result<(), BackupError> {
        let folder = self
            .open
            .iter()
            .rev()
            .find(|open| open.source == entry.source && is_below(&open.path, &entry.path));
        if folder.is_none_or(|folder| folder.is_listed) {
            self.counts.deleted += 1;
            return Ok(());
        }
        let Some(place) = self.previous.has(&entry) else { return Ok(()) };
        let unlisted = TreeEntry { state: EntryState::Unlisted, place, before: None, ..entry };
        self.push(&unlisted)
    }

    fn judge(
        &mut self,
        previous: Option<&TreeEntry>,
        status: &Status,
        directory: &Directory,
    ) -> Decision {
        let trust = self.trust(status.identity.device, directory);
        let certainty = self.certainty(status, directory.looked(), trust);
        let reason = match previous {
            None if self.place == 0 => Some(StoreReason::Full),
            None => Some(StoreReason::New),
            Some(previous) => self.difference(previous, status, trust),
        };
        match (reason, previous) {
            (None, Some(previous)) => Decision {
                state: EntryState::Unchanged,
                reason: previous.reason,
                certainty,
                place: self.previous.has(previous).unwrap_or(previous.place),
                before: None,
            },
            (reason, _) => {
                let reason = reason.unwrap_or(StoreReason::New);
                Decision { certainty, ..self.stored(reason, previous) }
            }
        }
    }

    /// The decision on a name, given those on other names of its file.
    fn with_links(
        &mut self,
        decision: Decision,
        name: &Named<'_>,
    ) -> Result<Decision, BackupError> {
        let is_file = name.status.kind == EntryKind::File;
        if !is_file || name.status.links < 2 || self.place == 0 {
            return Ok(decision);
        }
        let mut decided = decision;
        if decision.state != EntryState::Stored && self.relinking.must_be_stored(name.status) {
            decided = Decision {
                state: EntryState::Stored,
                reason: StoreReason::Linked,
                place: self.place,
                before: Some(decision.place),
                ..decision
            };
        }
        self.relinking.note(name, decided.state).map_err(BackupError::Spool)?;
        Ok(decided)
    }

    fn stored(&self, reason: StoreReason, previous: Option<&TreeEntry>) -> Decision {
        Decision {
            state: EntryState::Stored,
            reason,
            certainty: Certainty::Settled,
            place: self.place,
            before: previous.and_then(|previous| self.previous.has(previous)),
        }
    }

    /// Why an object is not taken for the one of the set before.
    fn difference(
        &self,
        previous: &TreeEntry,
        status: &Status,
        trust: Trust,
    ) -> Option<StoreReason> {
        let version = &status.version;
        let is_file = previous.kind == ObjectKind::File;
        if self.previous.is_again(previous) {
            Some(StoreReason::Again)
        } else if previous.certainty == Certainty::Doubtful {
            Some(StoreReason::Doubtful)
        } else if is_file && previous.size_bytes != version.size_bytes {
            Some(StoreReason::Size)
        } else if previous.modified != version.modified {
            Some(StoreReason::Modified)
        } else if (previous.mode, previous.uid, previous.gid)
            != (status.mode, status.uid, status.gid)
        {
            Some(StoreReason::Owner)
        } else if previous.changed != version.changed {
            Some(StoreReason::Changed)
        } else if trust == Trust::Full && previous.inode != status.identity.inode {
            Some(StoreReason::Identity)
        } else {
            None
        }
    }

    fn trust(&mut self, device: u64, directory: &Directory) -> Trust {
        *self.file_systems.entry(device).or_insert_with(|| {
            let kind = fstatfs(directory).map(|status| status.f_type as u64);
            match kind {
                Ok(kind) if !UNTRUSTED.contains(&(kind & 0xffff_ffff)) => Trust::Full,
                _ => Trust::Little,
            }
        })
    }

    fn certainty(
        &self,
        status: &Status,
        looked: (Timestamp, Timestamp),
        trust: Trust,
    ) -> Certainty {
        let tick = match trust {
            Trust::Full => TICK_NANOSECONDS,
            Trust::Little => COARSE_TICK_NANOSECONDS,
        };
        let times = [status.version.modified, status.version.changed];
        // The names of a file must agree, though their folders are listed at different times.
        let has_names = status.links > 1 && status.kind != EntryKind::Directory;
        let first = if has_names { self.begun } else { looked.0 };
        if is_near(times, [first, looked.0, looked.1], tick) {
            Certainty::Doubtful
        } else {
            Certainty::Settled
        }
    }

    /// GNU tar's record of what is in a folder.
    fn listing(&self, directory: &Directory) -> Vec<u8> {
        let mut names: Vec<(&[u8], u8)> = Vec::with_capacity(directory.count() as usize);
        let mut decisions = self.waiting.iter();
        for index in 0..directory.count() {
            let (name, kind) = directory.name(index);
            let letter = if kind == EntryKind::Directory {
                b'D'
            } else {
                let decision = decisions.next();
                let is_stored = decision.is_some_and(|it| it.state == EntryState::Stored)
                    && directory.status(index).is_some_and(|status| self.is_stored(status));
                if is_stored { b'Y' } else { b'N' }
            };
            names.push((name, letter));
        }
        names.extend(directory.excluded().map(|name| (name, b'N')));
        names.sort_unstable();
        let mut listing = Vec::with_capacity(names.iter().map(|(name, _)| name.len() + 2).sum());
        for (name, letter) in names {
            listing.push(letter);
            listing.extend_from_slice(name);
            listing.push(0);
        }
        listing.push(0);
        listing
    }

    /// Adds the entry of an object.
    fn note(
        &mut self,
        source: u32,
        path: Vec<u8>,
        status: &Status,
        decision: Decision,
    ) -> Result<(), BackupError> {
        match decision.state {
            EntryState::Stored => *self.counts.stored.entry(decision.reason).or_default() += 1,
            _ => self.counts.unchanged += 1,
        }
        let kind = object_kind(status.kind);
        self.push(&TreeEntry {
            source,
            path,
            kind,
            state: decision.state,
            reason: decision.reason,
            certainty: decision.certainty,
            mode: status.mode,
            uid: status.uid,
            gid: status.gid,
            size_bytes: if kind == ObjectKind::File { status.version.size_bytes } else { 0 },
            modified: status.version.modified,
            changed: status.version.changed,
            inode: status.identity.inode,
            links: status.links,
            place: decision.place,
            before: decision.before,
        })
    }

    fn push(&mut self, entry: &TreeEntry) -> Result<(), BackupError> {
        self.writer.push(entry, self.spool.buffer()).map_err(BackupError::Index)?;
        self.spool.settle().map_err(BackupError::Spool)
    }
}

fn object_kind(kind: EntryKind) -> ObjectKind {
    match kind {
        EntryKind::Directory => ObjectKind::Directory,
        EntryKind::SymbolicLink => ObjectKind::SymbolicLink,
        EntryKind::Fifo => ObjectKind::Fifo,
        EntryKind::CharacterDevice => ObjectKind::CharacterDevice,
        EntryKind::BlockDevice => ObjectKind::BlockDevice,
        // A socket has no entry.
        EntryKind::File | EntryKind::Unknown | EntryKind::Socket => ObjectKind::File,
    }
}

fn is_below(folder: &[u8], path: &[u8]) -> bool {
    folder == b"." && path != b"."
        || path.strip_prefix(folder).is_some_and(|rest| rest.first() == Some(&b'/'))
}

/// Whether a time lies between these moments, or within a tick of them. They may come in any order:
/// clocks are set back while a folder is listed, too.
fn is_near(times: [Timestamp; 2], moments: [Timestamp; 3], tick: i128) -> bool {
    let [first, second, third] = moments.map(nanoseconds);
    let (from, until) = (first.min(second).min(third), first.max(second).max(third));
    times.iter().any(|time| (from - tick..=until + tick).contains(&nanoseconds(*time)))
}

fn nanoseconds(time: Timestamp) -> i128 {
    i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_during_a_listing_makes_doubtful() {
        let at = |seconds| Timestamp { seconds, nanoseconds: 0 };
        let near = |time, looked: [i64; 2]| {
            let looked = looked.map(at);
            is_near([at(0), at(time)], [looked[0], looked[0], looked[1]], TICK_NANOSECONDS)
        };
        assert!(near(1000, [1000, 1001]) && near(1001, [1000, 1001]));
        assert!(!near(999, [1000, 1001]) && !near(1002, [1000, 1001]));
        // From 1000 to 1001, then back to 940: what was written at any of these times.
        assert!(near(1000, [1000, 940]) && near(940, [1000, 940]) && near(970, [1000, 940]));
        assert!(!near(939, [1000, 940]) && !near(1002, [1000, 940]));
    }
}
