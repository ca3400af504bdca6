//! The kind of an object that a scan finds.

use rustix::fs::{FileType, Stat};

/// The kind of an object by getdents(2), or by stat(2) if getdents does not report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// Neither getdents nor stat reported it.
    Unknown,
    /// Regular file.
    File,
    Directory,
    SymbolicLink,
    /// Named pipe.
    Fifo,
    /// Socket: tar cannot store it.
    Socket,
    CharacterDevice,
    BlockDevice,
}

impl EntryKind {
    pub(crate) fn from_file_type(kind: FileType) -> EntryKind {
        match kind {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => EntryKind::SymbolicLink,
            FileType::Fifo => EntryKind::Fifo,
            FileType::Socket => EntryKind::Socket,
            FileType::CharacterDevice => EntryKind::CharacterDevice,
            FileType::BlockDevice => EntryKind::BlockDevice,
            FileType::Unknown => EntryKind::Unknown,
        }
    }

    pub(crate) fn from_byte(byte: u8) -> EntryKind {
        KINDS.get(usize::from(byte)).copied().unwrap_or(EntryKind::Unknown)
    }
}

/// In the order of the enum's discriminants.
const KINDS: [EntryKind; 8] = [
    EntryKind::Unknown,
    EntryKind::File,
    EntryKind::Directory,
    EntryKind::SymbolicLink,
    EntryKind::Fifo,
    EntryKind::Socket,
    EntryKind::CharacterDevice,
    EntryKind::BlockDevice,
];

/// The kind of object behind a stat result.
pub(crate) fn kind_of(stat: &Stat) -> EntryKind {
    EntryKind::from_file_type(FileType::from_raw_mode(stat.st_mode))
}
