//! Reads one header unit into a [`Member`], before extended headers are applied.
//!
//! Sources: POSIX.1-2017 `pax`; GNU tar manual, "Basic Tar Format"; star's header of the same
//! place. Numbers that cannot be read become notes here; the caller checks the size.

use super::Note;
use crate::header::{self, Layout, Unit};
use crate::member::{Extent, Member, MemberKind, Timestamp};

/// Used if an owner cannot be read: the user nobody, rather than root.
const NOBODY: u64 = 65534;

/// Entries of a sparse map as old GNU and star keep them: offset and length, 12 bytes each.
const ENTRY_BYTES: usize = 24;
const EXTENSION_ENTRIES: usize = 21;
const EXTENSION_FLAG: usize = 504;

/// Reads a header into a member; `path` may still end in a slash.
pub(super) fn member(unit: &Unit, size_bytes: u64, notes: &mut Vec<Note>) -> Member {
    let layout = Layout::of(unit);
    let mut field = |range, name, fallback| match header::number(&unit[range]) {
        Some(value) => value,
        None => {
            notes.push(Note::BadField { field: name });
            fallback
        }
    };
    let mode = field(header::MODE, "mode", 0) as u32 & 0o7777;
    let uid = owner(field(header::UID, "uid", NOBODY as i64));
    let gid = owner(field(header::GID, "gid", NOBODY as i64));
    let seconds = field(header::MTIME, "mtime", 0);
    let named = layout != Layout::V7;
    let text = |range, held| if held { header::text(&unit[range]).to_vec() } else { Vec::new() };
    let mut member = Member {
        path: path(unit, layout),
        kind: MemberKind::File,
        mode,
        uid,
        gid,
        user: text(header::USER, named),
        group: text(header::GROUP, named),
        modified: Timestamp { seconds, nanoseconds: 0 },
        size_bytes,
        sparse: None,
        xattrs: Vec::new(),
        acl_access: None,
        acl_default: None,
    };
    member.kind = kind(unit, notes);
    member
}

/// Ids are unsigned; negative ones in headers are those of systems with signed 32-bit ids.
fn owner(id: i64) -> u64 {
    u64::try_from(id).unwrap_or(u64::from(id as u32))
}

fn path(unit: &Unit, layout: Layout) -> Vec<u8> {
    let name = header::text(&unit[header::NAME]);
    let prefix = match layout {
        Layout::Ustar => header::text(&unit[header::PREFIX]),
        Layout::Star => header::text(&unit[header::STAR_PREFIX]),
        Layout::V7 | Layout::Gnu => b"",
    };
    // In star's sparse header the prefix is one byte, and another field has the rest of its place.
    if prefix.is_empty() || unit[header::TYPEFLAG] == b'S' {
        return name.to_vec();
    }
    let mut path = Vec::with_capacity(prefix.len() + 1 + name.len());
    path.extend_from_slice(prefix);
    path.push(b'/');
    path.extend_from_slice(name);
    path
}

fn kind(unit: &Unit, notes: &mut Vec<Note>) -> MemberKind {
    let target = || header::text(&unit[header::LINKNAME]).to_vec();
    let mut device = |range, name| match header::unsigned(&unit[range]).map(u32::try_from) {
        Some(Ok(value)) => value,
        _ => {
            notes.push(Note::BadField { field: name });
            0
        }
    };
    match unit[header::TYPEFLAG] {
        b'1' => MemberKind::HardLink { target: target() },
        b'2' => MemberKind::SymbolicLink { target: target() },
        typeflag @ (b'3' | b'4') => {
            let major = device(header::DEVICE_MAJOR, "devmajor");
            let minor = device(header::DEVICE_MINOR, "devminor");
            match typeflag {
                b'3' => MemberKind::CharacterDevice { major, minor },
                _ => MemberKind::BlockDevice { major, minor },
            }
        }
        b'5' | b'D' => MemberKind::Directory,
        b'6' => MemberKind::Fifo,
        b'0' | b'\0' | b'7' | b'S' | b'M' => MemberKind::File,
        other => {
            notes.push(Note::UnknownTypeflag(other));
            MemberKind::File
        }
    }
}

/// Turns "files" whose name ends in a slash into directories, as v7 marked them, and removes the
/// slashes.
pub(super) fn settle_path(member: &mut Member, typeflag: u8) {
    let slash = member.path.last() == Some(&b'/');
    if member.kind == MemberKind::File && slash && matches!(typeflag, b'0' | b'\0' | b'7') {
        member.kind = MemberKind::Directory;
    }
    while member.path.len() > 1 && member.path.last() == Some(&b'/') {
        member.path.pop();
    }
}

/// Reads the sparse part of an `S` header: size of the whole file and whether extensions follow.
pub(super) fn read_sparse_header(unit: &Unit, extents: &mut Vec<Extent>) -> Option<(u64, bool)> {
    if matches!(Layout::of(unit), Layout::Gnu | Layout::V7) {
        let size_bytes = header::unsigned(&unit[483..495])?;
        read_entries(&unit[386..386 + 4 * ENTRY_BYTES], extents)?;
        return Some((size_bytes, unit[482] != 0));
    }
    let size_bytes = header::unsigned(&unit[452..464])?;
    // The first entry's offset distinguishes star's older headers, which hold four entries, from
    // the newer ones, which keep all entries in extensions (GNU tar, sparse.c).
    if unit[345] != 0 || unit[356 + 10] == 0 {
        return Some((size_bytes, true));
    }
    read_entries(&unit[356..356 + 4 * ENTRY_BYTES], extents)?;
    Some((size_bytes, unit[355] != 0))
}

/// Reads an extension of a sparse header; whether another one follows, `None` when unreadable.
pub(super) fn read_sparse_extension(unit: &Unit, extents: &mut Vec<Extent>) -> Option<bool> {
    read_entries(&unit[..EXTENSION_ENTRIES * ENTRY_BYTES], extents)?;
    Some(unit[EXTENSION_FLAG] != 0)
}

/// The entries end at the first one without a length field.
fn read_entries(bytes: &[u8], extents: &mut Vec<Extent>) -> Option<()> {
    for entry in bytes.chunks_exact(ENTRY_BYTES) {
        let (offset, length) = entry.split_at(ENTRY_BYTES / 2);
        if length[0] == 0 {
            break;
        }
        extents.push(Extent {
            offset_bytes: header::unsigned(offset)?,
            length_bytes: header::unsigned(length)?,
        });
    }
    Some(())
}
