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
mod folders;

use std::collections::HashMap;

use archive::index::{AboutSource, Certainty, EntryState, ObjectKind, StoreReason, TreeEntry};
use archive::member::Timestamp;
use flow::monitor::Monitor;
use tree::{Directory, Entry, EntryKind, Extent, Identity, Item, Scan, Status};

use super::changed::ChangedList;
use super::entries::Entries;
use super::error::BackupError;
use super::options::SetOptions;
use super::passed::PassedNames;
use super::previous::Previous;
use super::relink::{Named, Relinking};
use super::work::Work;
use crate::report::ListReport;
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
pub(super) struct Decided<E> {
    pub(super) entries: E,
    pub(super) counts: Counts,
    /// What a list of changes did.
    pub(super) list: Option<ListReport>,
}

/// Decides on one object after the other.
pub(super) struct Decider<'a, E> {
    monitor: &'a dyn Monitor,
    previous: Previous,
    /// The place of the set in its chain.
    place: u32,
    entries: E,
    counts: Counts,
    begun: Timestamp,
    /// The archive itself, and the one that it replaces.
    left_out: [Option<Identity>; 2],
    /// By device number, which counts within one run only.
    file_systems: HashMap<u64, Trust>,
    /// That of the object before, which is nearly always that of the next.
    last_trust: Option<(u64, Trust)>,
    /// The folders from the source down to the one being walked.
    open: Vec<OpenFolder>,
    relinking: Relinking,
    /// Decisions on the objects of the folder that came last, in their order.
    decisions: Vec<Decision>,
    /// Memory for the path of the entry that is noted.
    path: Vec<u8>,
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

impl<'a, E: Entries> Decider<'a, E> {
    pub(super) fn new(
        options: &SetOptions,
        entries: E,
        left_out: [Option<Identity>; 2],
        begun: Timestamp,
        monitor: &'a dyn Monitor,
    ) -> Result<Decider<'a, E>, BackupError> {
        let mut previous = Previous::new(options.parent.as_ref(), options.about.place())?;
        if options.followed().is_some() {
            previous.need();
        }
        Ok(Decider {
            monitor,
            previous,
            place: options.about.place(),
            entries,
            counts: Counts::default(),
            begun,
            left_out,
            file_systems: HashMap::new(),
            last_trust: None,
            open: Vec::new(),
            relinking: Relinking::default(),
            decisions: Vec::new(),
            path: Vec::new(),
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
                    self.folder(*folder, &mut works)?;
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
    pub(super) fn finish(mut self) -> Result<Decided<E>, BackupError> {
        self.end_walk()?;
        let list = self.list.map(|list| list.report);
        Ok(Decided { entries: self.entries, counts: self.counts, list })
    }

    /// Decides on what the set before has behind the last that the walk came to.
    fn end_walk(&mut self) -> Result<(), BackupError> {
        while let Some(entry) = self.previous.take(self.monitor) {
            self.gone(entry)?;
        }
        self.previous.check()
    }

    /// An object that is no folder: a source, or in a folder that could not be listed to its end.
    fn object(&mut self, entry: Entry) -> Result<Option<Work>, BackupError> {
        let (path, source) = (entry.path(), entry.source() as u32);
        let Some(status) = state_of(entry.status()).copied() else {
            return Ok(Some(Work::Entry(entry)));
        };
        let kind = object_kind(status.kind);
        self.pass(source, &path, kind)?;
        let previous = self.previous.take_at(source, &path, kind, self.monitor);
        let mut decision = self.judge(previous.as_ref(), &status, entry.directory());
        let folder = self.open.last().map(|open| (open.path.clone(), open.status));
        if let Some((folder, Some(folder_status))) = folder {
            let folder = (&folder[..], &folder_status);
            decision =
                self.with_links(decision, &Named { path: &path, status: &status, folder })?;
        }
        self.settle(entry, source, &path, decision)
    }

    /// Notes an object that is no folder, and passes it on if it is to be stored.
    fn settle(
        &mut self,
        entry: Entry,
        source: u32,
        path: &[u8],
        decision: Decision,
    ) -> Result<Option<Work>, BackupError> {
        // Without a state it is gone, or cannot be looked at: the reader says which.
        let status = state_of(entry.status()).filter(|status| self.is_stored(status)).copied();
        let Some(status) = status else { return Ok(Some(Work::Entry(entry))) };
        self.note(source, path, &status, decision)?;
        Ok((decision.state == EntryState::Stored).then_some(Work::Entry(entry)))
    }

    fn is_stored(&self, status: &Status) -> bool {
        status.kind != EntryKind::Socket && !self.left_out.contains(&Some(status.identity))
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
        self.entries.add(&unlisted)
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

    /// Adds the entry of an object.
    fn note(
        &mut self,
        source: u32,
        path: &[u8],
        status: &Status,
        decision: Decision,
    ) -> Result<(), BackupError> {
        self.audit(source, path, status, &decision);
        match decision.state {
            EntryState::Stored => *self.counts.stored.entry(decision.reason).or_default() += 1,
            _ => self.counts.unchanged += 1,
        }
        let kind = object_kind(status.kind);
        let mut own_path = std::mem::take(&mut self.path);
        own_path.clear();
        own_path.extend_from_slice(path);
        let entry = TreeEntry {
            source,
            path: own_path,
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
        };
        self.entries.add(&entry)?;
        self.path = entry.path;
        Ok(())
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

/// The state of an object that is no folder. What turned into a folder since it was listed is
/// archived without its content, and comes with it in the next run.
fn state_of(status: Option<&Status>) -> Option<&Status> {
    status.filter(|status| status.kind != EntryKind::Directory)
}

fn is_below(folder: &[u8], path: &[u8]) -> bool {
    folder == b"." && path != b"."
        || path.strip_prefix(folder).is_some_and(|rest| rest.first() == Some(&b'/'))
}
