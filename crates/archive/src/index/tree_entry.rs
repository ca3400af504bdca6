//! What a run found at its sources: one entry for each object, whether it was stored or not.
//!
//! The members of an archive say what is in it; the entries say what was there. So the next run
//! reads one index to know what changed, and a restore of a day reads one index to know which
//! archive of the chain has what.

use std::cmp::Ordering;

use crate::member::Timestamp;

/// The kind of an object at a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    File,
    Directory,
    SymbolicLink,
    /// A named pipe.
    Fifo,
    CharacterDevice,
    BlockDevice,
}

impl ObjectKind {
    pub(super) const ALL: [ObjectKind; 6] = [
        ObjectKind::File,
        ObjectKind::Directory,
        ObjectKind::SymbolicLink,
        ObjectKind::Fifo,
        ObjectKind::CharacterDevice,
        ObjectKind::BlockDevice,
    ];
}

/// What a run did with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryState {
    /// It was to be stored in this archive.
    Stored,
    /// It is as an earlier set of the chain has it.
    Unchanged,
    /// Its folder could not be listed: an earlier set has what was known last.
    Unlisted,
}

impl EntryState {
    pub(super) const ALL: [EntryState; 3] =
        [EntryState::Stored, EntryState::Unchanged, EntryState::Unlisted];
}

/// Why an object was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StoreReason {
    /// The set is a full one.
    Full,
    /// The set before has no object of this name and kind.
    New,
    /// The size is another.
    Size,
    /// The time of modification is another.
    Modified,
    /// Owner, group or permissions are others.
    Owner,
    /// Only the time of the last change of the inode is another: attributes, links, or a content
    /// whose time was set back.
    Changed,
    /// It is another file of the same size and times: its inode number is another.
    Identity,
    /// It was changed so shortly before it was read that a change after that would not show.
    Doubtful,
    /// The set before could not read it, or not as a whole.
    Again,
    /// A folder: something in it was stored, so that its time has to be set again.
    Content,
    /// A folder on a file system whose times are not trusted.
    Untrusted,
    /// Another name of the file was stored.
    Linked,
}

impl StoreReason {
    pub(super) const ALL: [StoreReason; 12] = [
        StoreReason::Full,
        StoreReason::New,
        StoreReason::Size,
        StoreReason::Modified,
        StoreReason::Owner,
        StoreReason::Changed,
        StoreReason::Identity,
        StoreReason::Doubtful,
        StoreReason::Again,
        StoreReason::Content,
        StoreReason::Untrusted,
        StoreReason::Linked,
    ];

    /// One word, as in counts.
    pub fn name(self) -> &'static str {
        match self {
            StoreReason::Full => "full",
            StoreReason::New => "new",
            StoreReason::Size => "size",
            StoreReason::Modified => "mtime",
            StoreReason::Owner => "owner",
            StoreReason::Changed => "ctime",
            StoreReason::Identity => "identity",
            StoreReason::Doubtful => "doubtful",
            StoreReason::Again => "again",
            StoreReason::Content => "content",
            StoreReason::Untrusted => "untrusted",
            StoreReason::Linked => "linked",
        }
    }

    /// The reason of that name.
    pub fn named(name: &str) -> Option<StoreReason> {
        StoreReason::ALL.into_iter().find(|reason| reason.name() == name)
    }
}

/// Whether a later change of an object would show in its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Certainty {
    /// It would.
    Settled,
    /// It was changed within a tick of its file system's clock before it was looked at.
    Doubtful,
}

/// An object at a source, when its folder was listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// Number of the source, from 0.
    pub source: u32,
    /// Path in the archive, without a directory's slash.
    pub path: Vec<u8>,
    pub kind: ObjectKind,
    pub state: EntryState,
    /// Why it was stored, in this set or in that of `place`.
    pub reason: StoreReason,
    pub certainty: Certainty,
    /// The low 12 bits of the mode.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// Bytes of a file, 0 for others.
    pub size_bytes: u64,
    pub modified: Timestamp,
    /// `st_ctime`.
    pub changed: Timestamp,
    pub inode: u64,
    /// Names of the object.
    pub links: u64,
    /// Position in the chain of the set that has it, the full set being 0.
    pub place: u32,
    /// Of an object that was to be stored: the set that had it before, which still has it if this
    /// one could not read it.
    pub before: Option<u32>,
}

/// The order of the entries of one source: a folder, then what in it is no folder, then its
/// folders one after the other, each with what is in it; names by their bytes. The members of an
/// archive of a chain have the same order.
pub fn walk_order(left: (&[u8], ObjectKind), right: (&[u8], ObjectKind)) -> Ordering {
    let (left_folder, right_folder) =
        (left.1 == ObjectKind::Directory, right.1 == ObjectKind::Directory);
    let (mut left, mut right) = (below_source(left.0), below_source(right.0));
    loop {
        match (left.is_empty(), right.is_empty()) {
            (true, true) => return left_folder.cmp(&right_folder),
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (false, false) => {}
        }
        let (left_name, left_rest, left_is_folder) = first(left, left_folder);
        let (right_name, right_rest, right_is_folder) = first(right, right_folder);
        let order = left_is_folder.cmp(&right_is_folder).then_with(|| left_name.cmp(right_name));
        if order != Ordering::Equal {
            return order;
        }
        (left, right) = (left_rest, right_rest);
    }
}

/// The source `.` holds everything else of its source.
fn below_source(path: &[u8]) -> &[u8] {
    if path == b"." { b"" } else { path }
}

/// The first name of a path, the rest, and whether the first is a folder.
fn first(path: &[u8], is_folder: bool) -> (&[u8], &[u8], bool) {
    match path.iter().position(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..], true),
        None => (path, b"", is_folder),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_folder_come_before_its_folders() {
        let walk: [(&str, ObjectKind); 9] = [
            (".", ObjectKind::Directory),
            ("b", ObjectKind::File),
            ("z", ObjectKind::SymbolicLink),
            ("a", ObjectKind::Directory),
            ("a/x", ObjectKind::File),
            ("a/b", ObjectKind::Directory),
            ("a/b/c", ObjectKind::File),
            ("a.b", ObjectKind::Directory),
            ("a.b/c", ObjectKind::Fifo),
        ];
        for (at, left) in walk.iter().enumerate() {
            for (other, right) in walk.iter().enumerate() {
                let order = walk_order((left.0.as_bytes(), left.1), (right.0.as_bytes(), right.1));
                assert_eq!(order, at.cmp(&other), "{left:?} {right:?}");
            }
        }
    }
}
