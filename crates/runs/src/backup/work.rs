//! What the walk passes on to the readers.

use std::sync::Arc;

use archive::member::{Member, Timestamp};
use flow::budget::Loan;
use tree::{Captured, Entry, Identity, Item, ScanProblem, Version};

/// What is to be stored, with its number in archive order.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) ticket: u64,
    pub(super) works: Vec<Work>,
    /// What it takes of the window of files that are fetched ahead; given back when the last thread
    /// that reads something of it is done.
    pub(super) held: Option<Arc<Held>>,
}

impl Batch {
    /// Whether the page cache holds the file of a work for this run alone.
    pub(super) fn is_fetched(&self, number: usize) -> bool {
        self.held.as_ref().is_some_and(|held| held.is_fetched(number))
    }
}

/// A share of the window, and what was fetched for it.
#[derive(Debug)]
pub(super) struct Held {
    _bytes: Loan,
    _entries: Loan,
    /// Of each work, whether its file was read into the page cache for it; empty if none was.
    fetched: Vec<bool>,
}

impl Held {
    pub(super) fn new(bytes: Loan, entries: Loan, fetched: Vec<bool>) -> Held {
        Held { _bytes: bytes, _entries: entries, fetched }
    }

    fn is_fetched(&self, number: usize) -> bool {
        self.fetched.get(number).copied().unwrap_or(false)
    }
}

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
}

impl Work {
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
