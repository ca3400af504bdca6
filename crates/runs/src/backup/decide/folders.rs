//! A folder, decided on with all that is in it and is no folder.

use std::sync::Arc;

use archive::index::{EntryState, ObjectKind, StoreReason};
use tree::{Directory, Entry, EntryKind, FolderContents, FolderEntry, Status};

use super::certainty::Trust;
use super::{Decider, Decision, OpenFolder, Seen, object_kind, state_of};
use crate::backup::entries::Entries;
use crate::backup::error::BackupError;
use crate::backup::relink::Named;
use crate::backup::work::Work;

impl<E: Entries> Decider<'_, E> {
    /// A folder, and what in it is no folder.
    pub(super) fn folder(
        &mut self,
        folder: FolderEntry,
        works: &mut Vec<Work>,
    ) -> Result<(), BackupError> {
        let (path, source) = (folder.entry.path(), folder.entry.source() as u32);
        self.pass(source, &path, ObjectKind::Directory)?;
        self.demand = self.more_of(&folder, source, &path);
        if self.demand.is_some() {
            return Ok(());
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
            works.push(Work::Folder { entry, listing: None });
            if let FolderContents::Listed(directory) = &contents {
                for index in 0..directory.first_directory() {
                    works.extend(self.object(Entry::of(directory, index))?);
                }
            }
            return Ok(());
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
            listing = (decision.state == EntryState::Stored).then(|| self.listing(directory));
            self.list.iter_mut().for_each(|list| list.report.folders_read += 1);
        }
        self.note(source, &path, &status, decision)?;
        if decision.state == EntryState::Stored {
            works.push(Work::Folder { entry, listing });
        }
        if let FolderContents::Listed(directory) = &contents {
            self.objects(source, path, directory, works)?;
        }
        Ok(())
    }

    /// Notes what in a folder is no folder, and passes on what of it is to be stored.
    fn objects(
        &mut self,
        source: u32,
        folder: Vec<u8>,
        directory: &Arc<Directory>,
        works: &mut Vec<Work>,
    ) -> Result<(), BackupError> {
        let decisions = std::mem::take(&mut self.decisions);
        let mut path = in_folder(folder);
        let folder_bytes = path.len();
        for (index, decision) in (0..).zip(&decisions) {
            path.truncate(folder_bytes);
            path.extend_from_slice(directory.name(index).0);
            works.extend(self.settle(Entry::of(directory, index), source, &path, *decision)?);
        }
        // The memory serves the next folder.
        self.decisions = decisions;
        Ok(())
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
        self.decisions.clear();
        let mut path = in_folder(folder.to_vec());
        let folder_bytes = path.len();
        for index in 0..directory.first_directory() {
            let (name, listed) = directory.name(index);
            path.truncate(folder_bytes);
            path.extend_from_slice(name);
            let status = state_of(directory.status(index));
            let kind = object_kind(status.map_or(listed, |status| status.kind));
            let mut previous = self.previous.take_at(source, &path, kind, self.monitor);
            if previous.is_none() {
                is_touched |= self.drop_before(source, &path, kind);
                previous = self.previous.take_at(source, &path, kind, self.monitor);
            }
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
            self.previous.done_with(previous);
            self.decisions.push(decision);
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
    fn drop_before(&mut self, source: u32, path: &[u8], kind: ObjectKind) -> bool {
        let mut is_any = false;
        while self.previous.is_before(source, path, kind, self.monitor) {
            let Some(entry) = self.previous.take(self.monitor) else { break };
            self.delete(&entry);
            is_any = true;
        }
        is_any
    }

    /// GNU tar's record of what is in a folder.
    fn listing(&self, directory: &Directory) -> Vec<u8> {
        let mut names: Vec<(&[u8], u8)> = Vec::with_capacity(directory.count() as usize);
        let mut decisions = self.decisions.iter();
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
}

/// What the paths in a folder start with.
fn in_folder(mut folder: Vec<u8>) -> Vec<u8> {
    if folder == b"." {
        folder.clear();
    } else {
        folder.push(b'/');
    }
    folder
}
