//! The index record of one member of the archive.

use super::IndexSection;
use super::section::{Record, private::Codec};
use super::varint::{self, Body, Reason};
use crate::member::Timestamp;
use crate::stream::ArchiveOffset;

/// Longest path or hard link target in the index, in bytes.
const PATH_BYTES_MAX: usize = 1 << 20;
const HASHED: u8 = 8;
const SPARSE: u8 = 16;

/// Kind of a member, with the data of only that kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// A regular file.
    File {
        /// Size of the file for its readers, including holes.
        size_bytes: u64,
        /// Bytes of content in the archive: the size, or for a sparse file the sum of its runs. The
        /// sparse map itself is not counted.
        stored_bytes: u64,
        /// Whether the archive stores it as runs and holes.
        layout: FileLayout,
        /// The hash of `ContentHasher`; `None` if it was not computed.
        content_hash: Option<[u8; 32]>,
    },
    Directory,
    /// A symbolic link; its target is in the archive.
    SymbolicLink,
    /// Another name of an earlier member.
    HardLink {
        /// Path of the earlier member, as stored.
        target: Vec<u8>,
    },
    /// A named pipe.
    Fifo,
    CharacterDevice,
    BlockDevice,
}

/// How the archive stores the content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileLayout {
    /// Every byte.
    Whole,
    /// The data runs, after a map of them.
    Sparse,
}

/// One member of the archive. Offsets are in the uncompressed archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRecord {
    /// Path as stored, without a directory's trailing slash.
    pub path: Vec<u8>,
    pub kind: RecordKind,
    /// Offset of the member's first header unit, which is that of its pax header, if it has one.
    pub header_offset_bytes: ArchiveOffset,
    /// Offset of its stored content, behind all headers and the sparse map. Without content, the
    /// offset of the next member.
    pub content_offset_bytes: ArchiveOffset,
    /// The low 12 bits of the mode.
    pub mode: u32,
    /// Numeric owner.
    pub uid: u64,
    /// Numeric group.
    pub gid: u64,
    /// Time of the last change of the content.
    pub modified: Timestamp,
    /// Time of the last change of the live file's inode, when it was read. If a live file still has
    /// the same one, it was not changed since.
    pub changed: Timestamp,
}

impl Record for FileRecord {
    const SECTION: IndexSection = IndexSection::Files;
}

/// The data of a record that the next one in its group needs.
#[derive(Default)]
pub struct RecordState {
    path: Vec<u8>,
    header_offset_bytes: ArchiveOffset,
}

impl Codec for FileRecord {
    type State = RecordState;

    fn encode(&self, state: &mut RecordState, body: &mut Vec<u8>) -> Result<(), Reason> {
        let header_delta = self.check(state)?;
        body.push(self.tag());
        varint::put_suffix(body, &state.path, &self.path);
        varint::put(body, header_delta);
        varint::put(body, self.content_offset_bytes - self.header_offset_bytes);
        varint::put(body, self.mode.into());
        varint::put(body, self.uid);
        varint::put(body, self.gid);
        varint::put_signed(body, self.modified.seconds);
        varint::put(body, self.modified.nanoseconds.into());
        varint::put_signed(body, self.changed.seconds.wrapping_sub(self.modified.seconds));
        varint::put(body, self.changed.nanoseconds.into());
        match &self.kind {
            RecordKind::File { size_bytes, stored_bytes, layout, content_hash } => {
                varint::put(body, *size_bytes);
                if *layout == FileLayout::Sparse {
                    varint::put(body, *stored_bytes);
                }
                body.extend_from_slice(content_hash.as_ref().map_or(&[], |hash| &hash[..]));
            }
            RecordKind::HardLink { target } => varint::put_suffix(body, &self.path, target),
            _ => {}
        }
        state.path.clone_from(&self.path);
        state.header_offset_bytes = self.header_offset_bytes;
        Ok(())
    }

    fn decode(state: &mut RecordState, body: &mut Body<'_>) -> Result<FileRecord, Reason> {
        let [tag] = body.take()?;
        let path = body.suffix(&state.path, PATH_BYTES_MAX)?;
        let header_delta = body.number()?;
        let header_offset_bytes = add(state.header_offset_bytes, header_delta)?;
        let content_offset_bytes = add(header_offset_bytes, body.number()?)?;
        let (mode, uid, gid) = (body.number_u32()?, body.number()?, body.number()?);
        let modified = Timestamp { seconds: body.signed()?, nanoseconds: body.number_u32()? };
        let changed = Timestamp {
            seconds: modified.seconds.wrapping_add(body.signed()?),
            nanoseconds: body.number_u32()?,
        };
        let kind = decode_kind(tag, &path, body)?;
        let record = FileRecord {
            path,
            kind,
            header_offset_bytes,
            content_offset_bytes,
            mode,
            uid,
            gid,
            modified,
            changed,
        };
        record.check(state)?;
        state.path.clone_from(&record.path);
        state.header_offset_bytes = record.header_offset_bytes;
        Ok(record)
    }
}

fn add(base: ArchiveOffset, delta: u64) -> Result<ArchiveOffset, Reason> {
    base.checked_add(delta).ok_or("offset is larger than 64 bits")
}

fn decode_kind(tag: u8, path: &[u8], body: &mut Body<'_>) -> Result<RecordKind, Reason> {
    if tag & !(7 | HASHED | SPARSE) != 0 || (tag & 7 != 0 && tag & !7 != 0) {
        return Err("unknown flags");
    }
    Ok(match tag & 7 {
        0 => {
            let size_bytes = body.number()?;
            let (layout, stored_bytes) = match tag & SPARSE {
                0 => (FileLayout::Whole, size_bytes),
                _ => (FileLayout::Sparse, body.number()?),
            };
            let content_hash = if tag & HASHED == 0 { None } else { Some(body.take()?) };
            RecordKind::File { size_bytes, stored_bytes, layout, content_hash }
        }
        1 => RecordKind::Directory,
        2 => RecordKind::SymbolicLink,
        3 => RecordKind::HardLink { target: body.suffix(path, PATH_BYTES_MAX)? },
        4 => RecordKind::Fifo,
        5 => RecordKind::CharacterDevice,
        6 => RecordKind::BlockDevice,
        _ => return Err("unknown kind"),
    })
}

impl FileRecord {
    fn tag(&self) -> u8 {
        match &self.kind {
            RecordKind::File { layout, content_hash, .. } => {
                let sparse = if *layout == FileLayout::Sparse { SPARSE } else { 0 };
                sparse | if content_hash.is_some() { HASHED } else { 0 }
            }
            RecordKind::Directory => 1,
            RecordKind::SymbolicLink => 2,
            RecordKind::HardLink { .. } => 3,
            RecordKind::Fifo => 4,
            RecordKind::CharacterDevice => 5,
            RecordKind::BlockDevice => 6,
        }
    }

    /// Checks a record, written or read. Returns the distance to the previous header.
    fn check(&self, state: &RecordState) -> Result<u64, Reason> {
        let path_is_good =
            |path: &[u8]| !path.is_empty() && path.len() <= PATH_BYTES_MAX && !path.contains(&0);
        if !path_is_good(&self.path) {
            return Err("path is empty, longer than 1 MiB or holds a NUL");
        }
        if self.modified.nanoseconds >= 1_000_000_000 || self.changed.nanoseconds >= 1_000_000_000 {
            return Err("nanoseconds are a second or more");
        }
        if self.mode > 0o7777 {
            return Err("mode has more than 12 bits");
        }
        if self.content_offset_bytes < self.header_offset_bytes {
            return Err("content starts before its header");
        }
        match &self.kind {
            RecordKind::File { size_bytes, stored_bytes, layout, .. } => {
                if *layout == FileLayout::Whole && size_bytes != stored_bytes {
                    return Err("stored length of a whole file is not its size");
                }
                if stored_bytes > size_bytes {
                    return Err("stored length is larger than the file");
                }
            }
            RecordKind::HardLink { target } if !path_is_good(target) => {
                return Err("hard link target is empty, longer than 1 MiB or holds a NUL");
            }
            _ => {}
        }
        let before = state.header_offset_bytes;
        self.header_offset_bytes.checked_since(before).ok_or("members are not in archive order")
    }
}
