//! A directory of a scan, open as long as something in it is in flight.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use archive::member::Timestamp;

use crate::entry_kind::EntryKind;
use crate::listing::Names;
use crate::status::Status;

/// A directory that stays open as long as one of its entries is in flight.
#[derive(Debug)]
pub struct Directory {
    descriptor: OwnedFd,
    names: Arc<Names>,
}

impl Directory {
    pub(crate) fn new(descriptor: OwnedFd, names: Names) -> Arc<Directory> {
        Arc::new(Directory { descriptor, names: Arc::new(names) })
    }

    pub(crate) fn reopened(descriptor: OwnedFd, names: Arc<Names>) -> Arc<Directory> {
        Arc::new(Directory { descriptor, names })
    }

    pub(crate) fn names(&self) -> &Arc<Names> {
        &self.names
    }

    /// Number of names that are not left out.
    pub fn count(&self) -> u32 {
        self.names.len()
    }

    /// A name, by its position in archive order, and what getdents(2) says of it.
    pub fn name(&self, index: u32) -> (&[u8], EntryKind) {
        (self.names.name_bytes(index), self.names.kind(index))
    }

    /// Position of the first directory among the names, if the scan was to look: they come last.
    pub fn first_directory(&self) -> u32 {
        self.names.first_directory()
    }

    /// The state of an object, if the scan was to look ([`crate::Look::Status`]) and it was there.
    pub fn status(&self, index: u32) -> Option<&Status> {
        self.names.status(index)
    }

    /// The names that are there and left out by a glob, if the scan was to look.
    pub fn excluded(&self) -> impl Iterator<Item = &[u8]> {
        let names = self.names.excluded.split(|byte| *byte == 0);
        names.filter(|name| !name.is_empty())
    }

    /// The clock before the directory was read, and after everything in it was looked at: changes
    /// from the first on may be missing in the states.
    pub fn looked(&self) -> (Timestamp, Timestamp) {
        self.names.looked
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
