//! What others say has changed, and what of the set before has to be looked at in spite of them.

use std::collections::HashSet;
use std::sync::Arc;

use archive::index::{
    About, AgainReason, AgainRecord, Certainty, EntryState, IndexError, TreeEntry,
};
use archive::member::Timestamp;
use catalogue::IndexFile;
use tree::{ChangedPaths, ChangedPathsBuilder};

use super::options::SetOptions;
use super::previous::Previous;

/// A list of what has changed since the set before, by those who know.
#[derive(Clone, Debug)]
pub struct ChangedList {
    pub paths: Arc<ChangedPaths>,
    pub using: ListUse,
    /// When the list was complete: it cannot have what changed later.
    pub written: Timestamp,
}

/// What a list is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListUse {
    /// Only the folders that it leads to are looked at.
    Follow,
    /// Everything is looked at, and what the list missed is named.
    Audit,
}

/// Why a list cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfollowable {
    /// Too many doubtful and unread objects.
    #[error("the set before leaves too much to be looked at again")]
    TooMuch,
    /// It could not even note the path of an object.
    #[error("the set before could not look at some objects, and does not say where")]
    Unknown,
}

/// The list, with what the set before could not see for certain, or not read as a whole: no list
/// needs to have that.
///
/// # Errors
/// When the index of the set before cannot be read; inside, when there is too much of it.
pub fn with_doubts(
    mut list: ChangedPathsBuilder,
    about: &About,
    parent: &IndexFile,
) -> Result<Result<ChangedPaths, Unfollowable>, IndexError> {
    let mut unseen = HashSet::new();
    for AgainRecord { path, reason, .. } in parent.again()? {
        if reason != AgainReason::Relinked {
            unseen.insert(path);
        }
    }
    let previous = Previous::records(parent)?;
    let Some(entries) = parent.tree()? else { return Ok(Ok(list.finish())) };
    for entry in entries {
        let entry = entry?;
        if !unseen.is_empty() {
            unseen.remove(&AgainRecord::path_hash(&entry.path));
        }
        let is_sure = entry.certainty == Certainty::Settled
            && entry.state != EntryState::Unlisted
            && !previous.is_again(&entry);
        if !is_sure && list.add(entry.source, in_source(about, &entry)).is_err() {
            return Ok(Err(Unfollowable::TooMuch));
        }
    }
    Ok(if unseen.is_empty() { Ok(list.finish()) } else { Err(Unfollowable::Unknown) })
}

fn in_source<'a>(about: &About, entry: &'a TreeEntry) -> &'a [u8] {
    let source = about.sources.get(entry.source as usize);
    below_source(source.map_or(b"", |source| &source.archive_path), &entry.path)
}

/// What of a path in the archive follows that of its source.
pub(super) fn below_source<'a>(source: &[u8], path: &'a [u8]) -> &'a [u8] {
    if path == source {
        return b"";
    }
    if source == b"." {
        return path;
    }
    path.strip_prefix(source).and_then(|rest| rest.strip_prefix(b"/")).unwrap_or(path)
}

impl SetOptions {
    /// The paths that the walk follows, if it does not look at everything.
    pub(super) fn followed(&self) -> Option<Arc<ChangedPaths>> {
        let list = self.changed.as_ref().filter(|list| list.using == ListUse::Follow)?;
        Some(Arc::clone(&list.paths))
    }
}

#[cfg(test)]
mod tests {
    use super::below_source;

    #[test]
    fn paths_below_their_source() {
        assert_eq!(below_source(b"usr/share", b"usr/share"), b"");
        assert_eq!(below_source(b"usr/share", b"usr/share/x/y"), b"x/y");
        assert_eq!(below_source(b".", b"."), b"");
        assert_eq!(below_source(b".", b"x/y"), b"x/y");
    }
}
