//! What the index of a set says of each object that was there.

use std::collections::HashSet;

use archive::index::{AgainReason, AgainRecord, TreeEntry};
use base::failures::with_causes;
use catalogue::FolderSet;

use crate::failure::{Failure, without_error_numbers};

/// The objects of a set, in the order of its archive.
pub(crate) type Entries = Box<dyn Iterator<Item = Result<TreeEntry, Failure>>>;

/// All that was there, stored in this set or in one before it.
pub(crate) fn entries(set: &FolderSet) -> Result<Entries, Failure> {
    let index = set.index().map_err(|error| unreadable(set, &error))?;
    let tree = index.tree().map_err(|error| unreadable(set, &error))?.ok_or_else(|| {
        let message = format!("the index of {} does not say what was there", set.name());
        Failure::of(message, None)
    })?;
    let set = set.clone();
    Ok(Box::new(tree.map(move |entry| entry.map_err(|error| unreadable(&set, &error)))))
}

/// Hashes of the paths of what the set could not read, or not as a whole
/// ([`archive::index::AgainRecord::path_hash`]).
pub(crate) fn not_whole(set: &FolderSet) -> Result<HashSet<u64>, Failure> {
    let index = set.index().map_err(|error| unreadable(set, &error))?;
    let again = index.again().map_err(|error| unreadable(set, &error))?;
    // A link that was stored after all is whole.
    let is_bad = |record: &AgainRecord| record.reason != AgainReason::Relinked;
    Ok(again.into_iter().filter(is_bad).map(|record| record.path).collect())
}

/// The failure of an index.
pub(crate) fn unreadable(set: &FolderSet, error: &(dyn std::error::Error + 'static)) -> Failure {
    let why = without_error_numbers(&with_causes(error)).to_string();
    Failure::of(format!("the index of {} cannot be read: {why}", set.name()), None)
}
