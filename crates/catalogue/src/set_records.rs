//! What an index says of each object of its set: those that its archive has, and of a set in a
//! chain those that earlier ones have.
//!
//! The entries of what was found and the members of the archive have the same order, so they are
//! gone through in step.

use std::iter::Peekable;

use archive::index::{
    EntryState, FileLayout, FileRecord, IndexError, IndexSection, ObjectKind, RecordKind, TreeEntry,
};
use archive::stream::ArchiveOffset;

use crate::IndexFile;
use crate::store::loading::{Held, SetRecord};

type Entries = Box<dyn Iterator<Item = Result<TreeEntry, IndexError>>>;
type Members = Box<dyn Iterator<Item = Result<FileRecord, IndexError>>>;

/// The objects of a set, in the order of its archive.
///
/// # Errors
/// When the index cannot be read up to them.
pub fn set_records(
    index: &IndexFile,
) -> Result<Box<dyn Iterator<Item = Result<SetRecord, IndexError>>>, IndexError> {
    let unreadable = |source| IndexError::Read { section: IndexSection::Files, source };
    let members: Members = Box::new(index.files().map_err(unreadable)?);
    Ok(match index.tree()? {
        None => Box::new(members.map(|record| record.map(SetRecord::from))),
        Some(entries) => {
            let entries: Entries = Box::new(entries);
            Box::new(InStep { entries, members: members.peekable() })
        }
    })
}

struct InStep {
    entries: Entries,
    members: Peekable<Members>,
}

impl Iterator for InStep {
    type Item = Result<SetRecord, IndexError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = match self.entries.next()? {
            Ok(entry) => entry,
            Err(error) => return Some(Err(error)),
        };
        if entry.state == EntryState::Stored {
            // What could not be read is no member.
            let is_it = |member: &Result<FileRecord, IndexError>| {
                member.as_ref().map_or(true, |member| member.path == entry.path)
            };
            if let Some(member) = self.members.next_if(is_it) {
                return Some(member.map(SetRecord::from));
            }
        }
        Some(Ok(SetRecord { record: record_of(entry), held: Held::Earlier }))
    }
}

/// What the entry says, in the form of a member.
fn record_of(entry: TreeEntry) -> FileRecord {
    let (size_bytes, stored_bytes) = (entry.size_bytes, entry.size_bytes);
    let (layout, content_hash) = (FileLayout::Whole, None);
    FileRecord {
        kind: match entry.kind {
            ObjectKind::File => RecordKind::File { size_bytes, stored_bytes, layout, content_hash },
            ObjectKind::Directory => RecordKind::Directory,
            ObjectKind::SymbolicLink => RecordKind::SymbolicLink,
            ObjectKind::Fifo => RecordKind::Fifo,
            ObjectKind::CharacterDevice => RecordKind::CharacterDevice,
            ObjectKind::BlockDevice => RecordKind::BlockDevice,
        },
        path: entry.path,
        header_offset_bytes: ArchiveOffset::START,
        content_offset_bytes: ArchiveOffset::START,
        mode: entry.mode,
        uid: entry.uid.into(),
        gid: entry.gid.into(),
        modified: entry.modified,
        changed: entry.changed,
    }
}
