//! A run that looks only at what a list of changes leads to.
//!
//! The walk passes the other folders, and what lies in them is taken over from the set before. What
//! a list does not say is asked of the walk: a folder whose own state is not the noted one is read,
//! and one that is new at its path, or another one than before, is walked as a whole.

use archive::index::{Certainty, EntryState, ObjectKind, StoreReason, TreeEntry};
use archive::member::Timestamp;
use tree::{Directory, EntryKind, Extent, FolderContents, FolderEntry, Identity, Status, Version};

use super::certainty::Trust;
use super::{Decider, List, Seen};
use crate::backup::changed::{ChangedList, ListUse};
use crate::backup::entries::Entries;
use crate::backup::error::BackupError;
use crate::backup::passed::PassedNames;
use crate::backup::relink::Named;
use crate::report::ListReport;

impl List {
    pub(super) fn new(changed: ChangedList) -> List {
        let (report, passed) = (ListReport::default(), PassedNames::default());
        List { changed, report, passed, taken: None }
    }
}

impl Seen {
    pub(super) fn of(contents: &FolderContents) -> Seen {
        match contents {
            FolderContents::Listed(_) => Seen::Listed,
            // What lies below a folder that is not entered now is not seen, and so not gone.
            FolderContents::NotEntered | FolderContents::Unlisted => Seen::Unlisted,
            FolderContents::NotRead(_) => Seen::NotRead,
        }
    }
}

impl<E: Entries> Decider<'_, E> {
    /// How much more of a folder has to be looked at than the list says.
    pub(super) fn more_of(
        &mut self,
        folder: &FolderEntry,
        source: u32,
        path: &[u8],
    ) -> Option<Extent> {
        let is_followed = self.list.as_ref().is_some_and(|it| it.changed.using == ListUse::Follow);
        let is_read = match &folder.contents {
            FolderContents::Listed(_) => true,
            FolderContents::NotRead(_) => false,
            FolderContents::NotEntered | FolderContents::Unlisted => return None,
        };
        if !is_followed || folder.extent == Extent::Whole {
            return None;
        }
        if self.is_listed_whole(source, path) {
            return Some(Extent::Whole);
        }
        let unless_read = (!is_read).then_some(Extent::Names);
        let Some(status) = &folder.status else { return unless_read };
        let device = status.identity.device;
        let trust = match folder.contents.directory() {
            Some(directory) => self.trust(device, directory),
            None => match self.file_systems.get(&device) {
                Some(trust) => *trust,
                // A file system that the walk has not seen so far is mounted there.
                None => return unless_read,
            },
        };
        let kind = ObjectKind::Directory;
        let Some(previous) = self.previous.at(source, path, kind, self.monitor).cloned() else {
            return Some(Extent::Whole);
        };
        let difference = self.difference(&previous, status, trust);
        if is_another(&previous, status, trust, difference) {
            return Some(Extent::Whole);
        }
        unless_read.filter(|_| difference.is_some() || previous.state == EntryState::Unlisted)
    }

    /// Whether the list has a folder with all that is in it.
    pub(super) fn is_listed_whole(&self, source: u32, path: &[u8]) -> bool {
        let below = self.below(source, path);
        self.list.as_ref().is_some_and(|list| list.changed.paths.is_whole(source, below))
    }

    /// Takes over what the set before has in a folder that is not looked at.
    pub(super) fn take_over(&mut self, entry: TreeEntry) -> Result<(), BackupError> {
        let Some(place) = self.previous.has(&entry) else { return Ok(()) };
        self.counts.unchanged += 1;
        if entry.kind == ObjectKind::File && entry.links > 1 {
            self.pass_name(&entry)?;
        }
        let state = match entry.state {
            EntryState::Unlisted => EntryState::Unlisted,
            EntryState::Stored | EntryState::Unchanged => EntryState::Unchanged,
        };
        let taken = TreeEntry { state, place, before: None, ..entry };
        self.entries.add(&taken)?;
        if let Some(list) = self.list.as_mut().filter(|_| taken.kind == ObjectKind::Directory) {
            list.taken = Some(taken);
        }
        Ok(())
    }

    /// Notes a name of a file that has others, which may be stored.
    fn pass_name(&mut self, entry: &TreeEntry) -> Result<(), BackupError> {
        let Some(list) = &mut self.list else { return Ok(()) };
        let slash = entry.path.iter().rposition(|byte| *byte == b'/');
        let folder = slash.map_or(&b"."[..], |slash| &entry.path[..slash]);
        let taken = list.taken.as_ref().filter(|it| it.source == entry.source && it.path == folder);
        let folder_status = match taken {
            Some(taken) => Some(status_of(taken)),
            None => self.open.last().filter(|open| open.path == folder).and_then(|it| it.status),
        };
        let Some(folder_status) = folder_status else { return Ok(()) };
        let (status, folder) = (status_of(entry), (folder, &folder_status));
        let name = Named { path: &entry.path, status: &status, folder };
        list.passed.pass(entry.source, &name).map_err(BackupError::Spool)
    }

    /// Whether a change of a folder that is not read would show, from now on.
    pub(super) fn certainty_now(&mut self, status: &Status, above: &Directory) -> Certainty {
        let trust = self.trust(status.identity.device, above);
        self.certainty(status, (above.looked().0, precise_now()), trust)
    }
}

/// Whether a folder is another one than the set before has at its path. Where inode numbers may
/// change from mount to mount, another number counts only beside another difference.
pub(super) fn is_another(
    previous: &TreeEntry,
    status: &Status,
    trust: Trust,
    difference: Option<StoreReason>,
) -> bool {
    let is_trusted = trust == Trust::Full || difference.is_some();
    previous.inode != status.identity.inode && is_trusted
}

/// The state that an entry noted.
fn status_of(entry: &TreeEntry) -> Status {
    Status {
        kind: match entry.kind {
            ObjectKind::Directory => EntryKind::Directory,
            _ => EntryKind::File,
        },
        identity: Identity { device: 0, inode: entry.inode },
        mode: entry.mode,
        uid: entry.uid,
        gid: entry.gid,
        links: entry.links,
        version: Version {
            size_bytes: entry.size_bytes,
            modified: entry.modified,
            changed: entry.changed,
        },
        allocated_bytes: 0,
    }
}

fn precise_now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or_else(
        |_| Timestamp::default(),
        |since| Timestamp { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() },
    )
}
