//! What the walk passes on to the readers.

use archive::member::{Member, Timestamp};
use tree::{Captured, Entry, Identity, Item, ScanProblem, Version};

use crate::sweep::{self, Fetchable};

/// What is to be stored, with its number in archive order.
pub(super) type Batch = sweep::Batch<Work>;

/// An object to be stored, or a problem to be told in its place.
#[derive(Debug)]
pub(super) enum Work {
    Entry(Entry),
    /// A folder of a set in a chain, with GNU tar's record of what is in it.
    Folder {
        entry: Entry,
        listing: Option<Vec<u8>>,
    },
    Problem(Box<ScanProblem>),
    /// A link at the end of the archive, or its folder.
    Relink(Box<Relinked>),
    /// The path of an object for which there is no room.
    Left(Vec<u8>),
}

impl Fetchable for Work {
    fn entry(&self) -> Option<&Entry> {
        match self {
            Work::Entry(entry) | Work::Folder { entry, .. } => Some(entry),
            Work::Problem(_) | Work::Relink(_) | Work::Left(_) => None,
        }
    }

    fn file(&self) -> Option<&Entry> {
        match self {
            Work::Entry(entry) => Some(entry),
            _ => None,
        }
    }
}

impl Work {
    /// What becomes of it when there is no more room: it is left out, also a link at the end of the
    /// archive, which the next set makes then.
    pub(super) fn without_room(self) -> Work {
        match self {
            Work::Entry(entry) | Work::Folder { entry, .. } => Work::Left(entry.path()),
            Work::Relink(relinked) => Work::Left(relinked.member.path),
            Work::Problem(_) | Work::Left(_) => self,
        }
    }

    /// All that the walk found, of an archive outside of a chain.
    pub(super) fn all(items: Vec<Item>) -> Vec<Work> {
        let work = |item| match item {
            Item::Entry(entry) => Work::Entry(entry),
            Item::Folder(folder) => Work::Folder { entry: folder.entry, listing: None },
            Item::Problem(problem) => Work::Problem(problem),
        };
        items.into_iter().map(work).collect()
    }
}

/// A member that is made of what was noted, not of what is there.
#[derive(Debug)]
pub(super) struct Relinked {
    pub(super) member: Member,
    /// Time of the last change of its inode.
    pub(super) changed: Timestamp,
}

impl Relinked {
    /// The object as if it had been looked at.
    pub(super) fn captured(&self) -> Captured {
        let (modified, changed) = (self.member.modified, self.changed);
        Captured {
            member: self.member.clone(),
            file: None,
            identity: Identity { device: 0, inode: 0 },
            links: 1,
            generation: None,
            version: Version { size_bytes: 0, modified, changed },
            allocated_units: 0,
            turned_from: None,
            attributes_problem: None,
        }
    }
}
