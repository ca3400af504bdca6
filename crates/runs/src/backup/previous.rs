//! The set before in its chain, as the walk of the next one meets it.

use std::collections::{HashMap, HashSet};
use std::io::Read;

use archive::index::{
    AgainReason, AgainRecord, EntryState, IndexError, ObjectKind, TreeEntry, TreeReader, walk_order,
};
use base::failures::with_causes;
use catalogue::IndexFile;
use flow::monitor::{Harm, Level, Monitor, Notice};

use super::error::BackupError;

type Entries = TreeReader<Box<dyn Read + Send>>;

/// The entries of the set before, in step with the walk.
#[derive(Default)]
pub(super) struct Previous {
    entries: Option<Entries>,
    next: Option<TreeEntry>,
    again: HashMap<u64, AgainReason>,
    /// Inode numbers of files with other names.
    again_inodes: HashSet<u64>,
    /// The place of the set before in the chain.
    place: u32,
    is_needed: bool,
    failed: Option<IndexError>,
}

impl Previous {
    pub(super) fn new(parent: Option<&IndexFile>, place: u32) -> Result<Previous, BackupError> {
        let Some(parent) = parent else { return Ok(Previous::default()) };
        let mut previous = Previous::records(parent).map_err(BackupError::Index)?;
        previous.place = place.saturating_sub(1);
        if let Some(entries) = parent.tree().map_err(BackupError::Index)? {
            previous.entries = Some(entries);
        }
        Ok(previous)
    }

    /// What the set before has besides its entries.
    pub(super) fn records(parent: &IndexFile) -> Result<Previous, IndexError> {
        let mut previous = Previous::default();
        for AgainRecord { path, inode, reason } in parent.again()? {
            previous.again.insert(path, reason);
            if inode != 0 {
                previous.again_inodes.insert(inode);
            }
        }
        Ok(previous)
    }

    /// Whatever is not seen now comes from these entries: that they cannot be read ends the run.
    pub(super) fn need(&mut self) {
        self.is_needed = true;
    }

    /// # Errors
    /// Where entries that are needed could not be read.
    pub(super) fn check(&mut self) -> Result<(), BackupError> {
        self.failed.take().map_or(Ok(()), |error| Err(BackupError::Index(error)))
    }

    pub(super) fn peek(&mut self, monitor: &dyn Monitor) -> Option<&TreeEntry> {
        if self.next.is_none() {
            match self.entries.as_mut()?.next() {
                Some(Ok(entry)) => self.next = Some(entry),
                Some(Err(error)) if self.is_needed => {
                    self.entries = None;
                    self.failed = Some(error);
                }
                Some(Err(error)) => {
                    self.entries = None;
                    let text = format!(
                        "the index of the set before cannot be read to its end ({}): what follows \
                         is stored again",
                        with_causes(&error)
                    );
                    let level = Level::Warning(Harm::Beside);
                    monitor.notice(Notice { level, object: Vec::new(), text });
                }
                None => self.entries = None,
            }
        }
        self.next.as_ref()
    }

    pub(super) fn take(&mut self, monitor: &dyn Monitor) -> Option<TreeEntry> {
        self.peek(monitor);
        self.next.take()
    }

    /// Takes back an entry that is needed no longer: its memory serves the next one.
    pub(super) fn done_with(&mut self, entry: Option<TreeEntry>) {
        if let (Some(entries), Some(entry)) = (&mut self.entries, entry) {
            entries.reuse(entry);
        }
    }

    /// Whether the next entry comes before an object of the walk.
    pub(super) fn is_before(
        &mut self,
        source: u32,
        path: &[u8],
        kind: ObjectKind,
        monitor: &dyn Monitor,
    ) -> bool {
        self.peek(monitor).is_some_and(|next| {
            let order = next.source.cmp(&source);
            order.then_with(|| walk_order((&next.path, next.kind), (path, kind))).is_lt()
        })
    }

    /// The next entry, if it is of this object.
    pub(super) fn take_at(
        &mut self,
        source: u32,
        path: &[u8],
        kind: ObjectKind,
        monitor: &dyn Monitor,
    ) -> Option<TreeEntry> {
        self.at(source, path, kind, monitor)?;
        self.next.take()
    }

    /// The next entry, if it is of this object; it stays the next.
    pub(super) fn at(
        &mut self,
        source: u32,
        path: &[u8],
        kind: ObjectKind,
        monitor: &dyn Monitor,
    ) -> Option<&TreeEntry> {
        let next = self.peek(monitor)?;
        (next.source == source && next.path == path && next.kind == kind).then_some(next)
    }

    /// Whether the next entry is no folder, and directly in a folder, whose path ends with a slash.
    pub(super) fn is_object_in(
        &mut self,
        source: u32,
        folder: &[u8],
        monitor: &dyn Monitor,
    ) -> bool {
        self.peek(monitor).is_some_and(|next| {
            let name = next.path.strip_prefix(folder);
            next.source == source
                && next.kind != ObjectKind::Directory
                && name.is_some_and(|name| !name.is_empty() && !name.contains(&b'/'))
        })
    }

    pub(super) fn is_again(&self, entry: &TreeEntry) -> bool {
        if self.again.is_empty() {
            return false;
        }
        let by_inode = entry.links > 1 && self.again_inodes.contains(&entry.inode);
        let reason = self.again.get(&AgainRecord::path_hash(&entry.path));
        by_inode || matches!(reason, Some(AgainReason::Unread | AgainReason::Flawed))
    }

    /// The place in the chain of the set that has an object; `None` if none has.
    pub(super) fn has(&self, entry: &TreeEntry) -> Option<u32> {
        if self.again.is_empty() {
            return Some(entry.place);
        }
        match self.again.get(&AgainRecord::path_hash(&entry.path)) {
            Some(AgainReason::Unread) if entry.state == EntryState::Stored => entry.before,
            Some(AgainReason::Relinked) => Some(self.place),
            _ => Some(entry.place),
        }
    }
}
