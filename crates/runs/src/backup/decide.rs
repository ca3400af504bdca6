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

mod audit;
mod by_list;
mod certainty;

use std::collections::{HashMap, VecDeque};

use archive::index::{
    AboutSource, Certainty, EntryState, ObjectKind, SectionSummary, StoreReason, TreeEntry,
    TreeWriter,
};
use archive::member::Timestamp;
use flow::monitor::Monitor;
use tree::{
    Directory, Entry, EntryKind, Extent, FolderContents, FolderEntry, Identity, Item, Scan, Status,
};

use super::changed::ChangedList;
use super::error::BackupError;
use super::options::SetOptions;
use super::passed::PassedNames;
use super::previous::Previous;
use super::relink::{Named, Relinking};
use super::work::Work;
use crate::report::ListReport;
use crate::spool::Spool;
use audit::Reach;
use certainty::Trust;

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
    /// What a list of changes did.
    pub(super) list: Option<ListReport>,
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
    sources: Vec<AboutSource>,
    /// A list of what has changed.
    list: Option<List>,
    /// More of the folder that came last has to be looked at.
    demand: Option<Extent>,
}

/// A list of what has changed, and how the run with it goes.
struct List {
    changed: ChangedList,
    report: ListReport,
    /// Names in folders that are not looked at.
    passed: PassedNames,
    /// The last folder that was taken over.
    taken: Option<TreeEntry>,
}

struct OpenFolder {
    source: u32,
    path: Vec<u8>,
    seen: Seen,
    /// In an audit: what a run with the list would have looked at.
    reach: Reach,
    /// Its state, if it could be seen.
    status: Option<Status>,
}

/// What is known of the names in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// What is not among them is gone.
    Listed,
    /// They could not be read, or were not to be.
    Unlisted,
    /// They are those of the set before.
    NotRead,
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
        let mut previous = Previous::new(options.parent.as_ref(), options.about.place())?;
        if options.followed().is_some() {
            previous.need();
        }
        Ok(Decider {
            monitor,
            previous,
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
            sources: options.about.sources.clone(),
            list: options.changed.clone().map(List::new),
            demand: None,
        })
    }

    /// Passes on what is to be stored of a batch of the walk.
    pub(super) fn decide(
        &mut self,
        items: Vec<Item>,
        scan: &mut Scan,
    ) -> Result<Vec<Work>, BackupError> {
        let mut works = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Item::Entry(entry) => works.extend(self.object(entry)?),
                Item::Folder(folder) => {
                    works.extend(self.folder(*folder)?);
                    if let Some(extent) = self.demand.take() {
                        // It comes again, with what is behind it.
                        scan.list_last(extent);
                        break;
                    }
                }
                Item::Problem(problem) => {
                    // A folder that was given up: what was not seen of it is not gone.
                    for open in self.open.iter_mut().filter(|open| open.path == problem.path) {
                        open.seen = Seen::Unlisted;
                    }
                    self.waiting.clear();
                    works.push(Work::Problem(problem));
                }
            }
        }
        self.previous.check()?;
        Ok(works)
    }

    /// Passes on what is to be stored at the end of the archive, when the walk has ended.
    pub(super) fn late(
        &mut self,
        mut each: impl FnMut(Vec<Work>) -> Result<(), BackupError>,
    ) -> Result<(), BackupError> {
        self.end_walk()?;
        if let Some(list) = &self.list {
            list.passed.late(&self.sources, self.monitor, &mut each)?;
        }
        self.relinking.late(each)
    }

    /// The entries, when the walk has ended.
    pub(super) fn finish(mut self) -> Result<Decided, BackupError> {
        self.end_walk()?;
        let summary = self.writer.finish(self.spool.buffer());
        let list = self.list.map(|list| list.report);
        Ok(Decided { entries: (self.spool, summary), counts: self.counts, list })
    }

    /// Decides on what the set before has behind the last that the walk came to.
    fn end_walk(&mut self) -> Result<(), BackupError> {
        while let Some(entry) = self.previous.take(self.monitor) {
            self.gone(entry)?;
        }
        self.previous.check()
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
        let (path, source) = (folder.entry.path(), folder.entry.source() as u32);
        self.waiting.clear();
        self.pass(source, &path, ObjectKind::Directory)?;
        self.demand = self.more_of(&folder, source, &path);
        if self.demand.is_some() {
            return Ok(None);
        }
        let FolderEntry { entry, status, contents, .. } = folder;
        if let (Some(status), Some(directory)) = (&status, contents.directory()) {
            // Its file system is another than that of its parent, if one is mounted there.
            self.trust(status.identity.device, directory);
        }
        let reach = self.reach(source, &path, status.as_ref(), entry.directory());
        let seen = Seen::of(&contents);
        self.open.push(OpenFolder { source, path: path.clone(), seen, reach, status });
        let Some(status) = status else {
            return Ok(Some(Work::Folder { entry, listing: None }));
        };
        let previous = self.previous.take_at(source, &path, ObjectKind::Directory, self.monitor);
        let mut decision = self.judge(previous.as_ref(), &status, entry.directory());
        if seen == Seen::NotRead {
            decision.certainty = self.certainty_now(&status, entry.directory());
        }
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
            self.list.iter_mut().for_each(|list| list.report.folders_read += 1);
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
            let Some(entry) = self.previous.take(self.monitor) else { break };
            self.delete(&entry);
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
            let Some(entry) = self.previous.take(self.monitor) else { break };
            self.delete(&entry);
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
        match self.folder_of(&entry).map_or(Seen::Listed, |folder| folder.seen) {
            Seen::Listed => {
                self.delete(&entry);
                return Ok(());
            }
            Seen::NotRead => return self.take_over(entry),
            Seen::Unlisted => {}
        }
        let Some(place) = self.previous.has(&entry) else { return Ok(()) };
        let unlisted = TreeEntry { state: EntryState::Unlisted, place, before: None, ..entry };
        self.push(&unlisted)
    }

    /// The innermost open folder that something of the set before lies in.
    fn folder_of(&self, entry: &TreeEntry) -> Option<&OpenFolder> {
        let is_in =
            |open: &&OpenFolder| open.source == entry.source && is_below(&open.path, &entry.path);
        self.open.iter().rev().find(is_in)
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
        if let (EntryState::Stored, Some(list)) = (decided.state, &mut self.list) {
            list.passed.store(name).map_err(BackupError::Spool)?;
        }
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
        self.audit(source, &path, status, &decision);
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
