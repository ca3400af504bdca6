//! Where the entries of a set go as they are decided on.

use archive::index::{SectionSummary, TreeEntry, TreeWriter};

use super::error::BackupError;
use crate::spool::Spool;

/// Takes the entries of a set in the order of the walk.
pub(super) trait Entries {
    fn add(&mut self, entry: &TreeEntry) -> Result<(), BackupError>;
}

/// The section of the index that has them.
#[derive(Default)]
pub(super) struct TreeSection {
    spool: Spool,
    writer: TreeWriter,
}

impl TreeSection {
    /// The section, when all entries are in it.
    pub(super) fn finish(mut self) -> (Spool, SectionSummary) {
        let summary = self.writer.finish(self.spool.buffer());
        (self.spool, summary)
    }
}

impl Entries for TreeSection {
    fn add(&mut self, entry: &TreeEntry) -> Result<(), BackupError> {
        self.writer.push(entry, self.spool.buffer()).map_err(BackupError::Index)?;
        self.spool.settle().map_err(BackupError::Spool)
    }
}
