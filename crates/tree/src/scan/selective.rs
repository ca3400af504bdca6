//! A walk that passes most folders, and reads more of one when it is asked to.

use std::sync::Arc;

use super::{Arrived, Level, Scan, problem, scan_problem};
use crate::entry_kind::EntryKind;
use crate::item::{Entry, Extent, FolderContents, FolderEntry, Item};
use crate::listing::{ListRules, ListingJob, Look};
use crate::scan_problem::ScanProblemKind;

/// A folder of which more may be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastFolder {
    /// It is the innermost level.
    Entered,
    /// It is not walked.
    Passed,
}

impl Scan {
    /// Lists the folder that was the last item anew, if it is not walked as a whole. It comes again
    /// as the next item, and what is in it behind it; what was to come of it does not.
    pub fn list_last(&mut self, extent: Extent) {
        self.relist = Some(extent);
    }

    /// Adds a directory that was listed to the items, and goes on in it.
    pub(super) fn give(&mut self, mut arrived: Arrived, items: &mut Vec<Item>) {
        if let Some(refused) = arrived.level.take_if(|level| self.refuses(&level.names).is_some())
            && let Some(what) = self.refuses(&refused.names)
        {
            arrived.problem = Some(Box::new(scan_problem(&refused.names, what, None)));
            self.drop_ahead(refused);
        }
        let level = self.levels.last().expect("the entry's own directory");
        self.last = None;
        if self.rules.look == Look::Status {
            let directory = level.directory.as_ref().expect("the innermost level is open");
            let entry = Entry { directory: Arc::clone(directory), index: level.next_index - 1 };
            let below = arrived.level.as_ref().and_then(|below| below.directory.clone());
            let is_whole = arrived.level.as_ref().is_none_or(|it| !it.is_selective(&self.rules));
            let contents = match (below, &arrived.problem) {
                (_, Some(_)) => FolderContents::Unlisted,
                (None, None) => FolderContents::NotEntered,
                (below @ Some(_), None) if arrived.is_on_the_way => FolderContents::NotRead(below),
                (Some(below), None) => FolderContents::Listed(below),
            };
            if let (FolderContents::Listed(_), Some(level)) = (&contents, &mut arrived.level) {
                level.next_index = level.names.first_directory();
            }
            let status = arrived.status;
            let extent = if is_whole { Extent::Whole } else { Extent::Names };
            items.push(Item::Folder(Box::new(FolderEntry { entry, status, contents, extent })));
            self.last = (!is_whole).then_some(LastFolder::Passed);
        }
        items.extend(arrived.problem.map(Item::Problem));
        if let Some(level) = arrived.level {
            self.push(level);
            self.last = self.last.map(|_| LastFolder::Entered);
        }
    }

    /// Lists the last folder anew.
    pub(super) fn list_again(&mut self, items: &mut Vec<Item>, extent: Extent) {
        let Some(last) = self.last.take() else { return };
        if last == LastFolder::Entered {
            let depth = self.levels.len();
            if let Some(level) = self.levels.last_mut() {
                let ahead = std::mem::take(&mut level.ahead);
                self.drop_slots(ahead);
            }
            let above = self.levels[depth - 2].names.clone();
            self.leave(items);
            if self.levels.len() != depth - 1 {
                items.push(problem(&above, ScanProblemKind::Moved, None));
                return;
            }
        }
        let level = self.levels.last().expect("the entry's own directory");
        let parent = Arc::clone(level.directory.as_ref().expect("the innermost level is open"));
        let job = ListingJob { parent, index: level.next_index - 1, wanted: Some(extent) };
        let arrived = Arrived::new(self.look_ahead.list_here(&job, &mut self.buffer, None));
        self.give(arrived, items);
    }
}

impl Level {
    /// Whether only some of its directories are walked.
    fn is_selective(&self, rules: &ListRules) -> bool {
        self.names.is_selective(rules)
    }

    /// Whether an entry is a directory that is not to be opened.
    pub(super) fn passes(&self, entry: &Entry, rules: &ListRules) -> bool {
        entry.kind() == EntryKind::Directory
            && self.is_selective(rules)
            && self.subdirectories.get(self.entered) != Some(&entry.index)
    }
}

/// A directory that is not opened.
pub(super) fn passed(entry: Entry) -> Item {
    let status = entry.directory.status(entry.index).copied();
    let contents = FolderContents::NotRead(None);
    Item::Folder(Box::new(FolderEntry { entry, status, contents, extent: Extent::Names }))
}
