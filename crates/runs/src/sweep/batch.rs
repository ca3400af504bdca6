//! What passes through the sweep.

use std::sync::Arc;

use flow::budget::Loan;
use tree::{Directory, Entry};

/// Something that may have a file to be fetched.
pub(crate) trait Fetchable: Send {
    /// The object of a folder that it is, whose folder it keeps open.
    fn entry(&self) -> Option<&Entry>;
    /// The file, if it is one.
    fn file(&self) -> Option<&Entry>;
}

/// Works whose files are fetched together, with the number of the batch in the order of names.
#[derive(Debug)]
pub(crate) struct Batch<W> {
    pub(crate) ticket: u64,
    pub(crate) works: Vec<W>,
    /// What it takes of the window of files that are fetched ahead; given back when the last thread
    /// that reads something of it is done.
    pub(crate) held: Option<Arc<Held>>,
}

impl<W> Batch<W> {
    /// Whether the page cache holds the file of a work for this run alone.
    pub(crate) fn is_fetched(&self, number: usize) -> bool {
        self.held.as_ref().is_some_and(|held| held.is_fetched(number))
    }
}

/// A share of the window, and what was fetched for it.
#[derive(Debug)]
pub(crate) struct Held {
    _bytes: Loan,
    _entries: Loan,
    _folders: Folders,
    /// Of each work, whether its file was read into the page cache for it; empty if none was.
    fetched: Vec<bool>,
}

impl Held {
    pub(super) fn new(bytes: Loan, entries: Loan, folders: Folders, fetched: Vec<bool>) -> Held {
        Held { _bytes: bytes, _entries: entries, _folders: folders, fetched }
    }

    fn is_fetched(&self, number: usize) -> bool {
        self.fetched.get(number).copied().unwrap_or(false)
    }
}

/// What a batch takes of the folders that may be open: that which it shares with the batch before,
/// and its own.
pub(super) type Folders = [Option<Arc<Loan>>; 2];

/// The last folder that was counted, and what it is counted with.
pub(super) type LastFolder = Option<(Arc<Directory>, Arc<Loan>)>;

impl<W: Fetchable> Batch<W> {
    /// How many folders it keeps open, of those that come after `last`; and whether it begins in
    /// that one.
    pub(super) fn folders(&self, last: Option<&Arc<Directory>>) -> (usize, bool) {
        let mut before = last;
        let (mut count, mut begins_in_last) = (0, false);
        for (number, entry) in self.works.iter().filter_map(Fetchable::entry).enumerate() {
            let folder = entry.directory();
            let is_same = before.is_some_and(|before| Arc::ptr_eq(before, folder));
            begins_in_last |= is_same && number == 0;
            count += usize::from(!is_same);
            before = Some(folder);
        }
        (count, begins_in_last)
    }

    /// The folder of its last object.
    pub(super) fn last_folder(&self) -> Option<&Arc<Directory>> {
        self.works.iter().rev().find_map(Fetchable::entry).map(Entry::directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tree::LiveEntries;

    impl Fetchable for Entry {
        fn entry(&self) -> Option<&Entry> {
            Some(self)
        }

        fn file(&self) -> Option<&Entry> {
            Some(self)
        }
    }

    #[test]
    fn a_folder_counts_once_as_long_as_its_objects_follow_each_other() {
        let root = tempfile::tempdir().unwrap();
        for name in ["a/1", "a/2", "a/3", "b/1", "b/2"] {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, name).unwrap();
        }
        let mut live = LiveEntries::open(root.path()).unwrap();
        let mut batch = |names: &[&str]| {
            let works = names.iter().map(|name| live.find(name.as_bytes()).unwrap()).collect();
            Batch { ticket: 0, works, held: None }
        };
        let first = batch(&["a/1", "a/2"]);
        assert_eq!(first.folders(None), (1, false));
        let second = batch(&["a/3", "b/1", "b/2"]);
        assert_eq!(second.folders(first.last_folder()), (1, true));
        assert_eq!(second.folders(None), (2, false));
        let third = batch(&["b/2"]);
        assert_eq!(third.folders(second.last_folder()), (0, true));
        assert_eq!(third.folders(first.last_folder()), (1, false));
        let none: Batch<Entry> = Batch { ticket: 0, works: Vec::new(), held: None };
        assert_eq!(none.folders(first.last_folder()), (0, false));
    }
}
