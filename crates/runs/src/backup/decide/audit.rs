//! An audit: everything is looked at, and what a list of changes missed is named.
//!
//! Missed is what changed and what a run with the list would not have seen. So this goes along with
//! the walk and says of each folder what such a run would have looked at
//! ([`super::by_list`] has the rules).

use archive::index::{EntryState, ObjectKind, StoreReason, TreeEntry};
use tree::{Directory, Status};

use super::by_list::is_another;
use super::certainty::nanoseconds;
use super::{Decider, Decision};
use crate::backup::changed::{ListUse, below_source};
use crate::backup::entries::Entries;
use crate::report::MISSED_NAMED_MAX;

/// What a run with the list would look at of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Everything in it, at any depth.
    Whole,
    /// What is directly in it.
    Names,
    /// Itself, on the way to what the list has.
    Way,
    /// It would not come there.
    Nothing,
}

impl<E: Entries> Decider<'_, E> {
    /// What a run with the list would look at of a folder that the walk has come to.
    pub(super) fn reach(
        &mut self,
        source: u32,
        path: &[u8],
        status: Option<&Status>,
        above: &Directory,
    ) -> Reach {
        let Some(list) = self.list.as_ref().filter(|it| it.changed.using == ListUse::Audit) else {
            return Reach::Whole;
        };
        let below = self.below(source, path);
        let (names, leads) =
            (list.changed.paths.names(source, below), list.changed.paths.leads_to(source, below));
        if self.is_listed_whole(source, path) {
            return Reach::Whole;
        }
        match self.open.last().map(|open| open.reach) {
            Some(Reach::Whole) => return Reach::Whole,
            Some(Reach::Nothing) => return Reach::Nothing,
            Some(Reach::Way) if !leads => return Reach::Nothing,
            Some(Reach::Way | Reach::Names) | None => {}
        }
        let Some(status) = status else { return Reach::Whole };
        let trust = self.trust(status.identity.device, above);
        let kind = ObjectKind::Directory;
        let Some(previous) = self.previous.at(source, path, kind, self.monitor).cloned() else {
            return Reach::Whole;
        };
        let difference = self.difference(&previous, status, trust);
        if is_another(&previous, status, trust, difference) {
            Reach::Whole
        } else if names || difference.is_some() || previous.state == EntryState::Unlisted {
            Reach::Names
        } else {
            Reach::Way
        }
    }

    /// Notes an object that is to be stored, if the list missed it.
    pub(super) fn audit(&mut self, source: u32, path: &[u8], status: &Status, decision: &Decision) {
        let is_change = match decision.reason {
            StoreReason::New
            | StoreReason::Size
            | StoreReason::Modified
            | StoreReason::Owner
            | StoreReason::Changed
            | StoreReason::Identity => decision.state == EntryState::Stored,
            StoreReason::Full
            | StoreReason::Doubtful
            | StoreReason::Again
            | StoreReason::Content
            | StoreReason::Untrusted
            | StoreReason::Linked => false,
        };
        let is_seen = self.open.last().is_none_or(|open| {
            let is_itself = open.source == source && open.path == path;
            match open.reach {
                Reach::Whole | Reach::Names => true,
                Reach::Way => is_itself,
                Reach::Nothing => false,
            }
        });
        if is_change && !is_seen {
            self.miss(path, status);
        }
    }

    /// Counts an object that is gone, and notes it if the list missed that.
    pub(super) fn delete(&mut self, entry: &TreeEntry) {
        self.counts.deleted += 1;
        let Some(open) = self.folder_of(entry) else { return };
        if let (Reach::Way | Reach::Nothing, Some(status)) = (open.reach, open.status) {
            self.miss(&entry.path, &status);
        }
    }

    /// `status` is of what changed last: the object itself, or the folder that it is gone from.
    fn miss(&mut self, path: &[u8], status: &Status) {
        let Some(list) = &mut self.list else { return };
        let is_later = nanoseconds(status.version.changed) >= nanoseconds(list.changed.written);
        if list.changed.using != ListUse::Audit || is_later {
            return;
        }
        list.report.missed += 1;
        if list.report.missed_first.len() < MISSED_NAMED_MAX {
            list.report.missed_first.push(path.to_vec());
        }
    }

    /// What of a path follows that of its source.
    pub(super) fn below<'p>(&self, source: u32, path: &'p [u8]) -> &'p [u8] {
        let source = self.sources.get(source as usize);
        below_source(source.map_or(b"", |source| &source.archive_path), path)
    }
}
