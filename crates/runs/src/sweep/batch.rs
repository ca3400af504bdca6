//! What passes through the sweep.

use std::sync::Arc;

use flow::budget::Loan;
use tree::Entry;

/// Something that may have a file to be fetched.
pub(crate) trait Fetchable: Send {
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
