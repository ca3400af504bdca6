//! Collects the pax records of a member by keyword, and applies them to the member.
//!
//! A record with an empty value cancels an earlier one, so that the header's own field counts again
//! (POSIX.1-2017, pax, "pax Extended Header"). Records of GNU tar, star, libarchive and Solaris are
//! read; unknown keywords and access times are ignored.

use super::{DecodeError, DecodeLimits, Note, size_is_sane};
use crate::acl::{self, NameLookup};
use crate::malformed::Malformed;
use crate::member::{Extent, Member, MemberKind, Timestamp};
use crate::pax;
use crate::xattr;

/// Most attributes of a member, more than Linux can list: their names have 64 KiB together
/// (XATTR_LIST_MAX, linux/limits.h), and none is shorter than 7 bytes with its NUL.
const XATTRS_MAX: usize = 16 << 10;
/// Most notes about the records of one member.
const NOTES_MAX: usize = 64;

/// Attributes of a member: names and values.
type Xattrs = Vec<(Vec<u8>, Vec<u8>)>;

/// Values that replace the header's fields.
#[derive(Clone, Default)]
pub(super) struct Overrides {
    path: Option<Vec<u8>>,
    sparse_path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    user: Option<Vec<u8>>,
    group: Option<Vec<u8>>,
    uid: Option<u64>,
    gid: Option<u64>,
    modified: Option<Timestamp>,
    device_major: Option<u32>,
    device_minor: Option<u32>,
    /// Stored size, map included.
    pub(super) size_bytes: Option<u64>,
    /// Size of a sparse file, holes included.
    pub(super) real_size_bytes: Option<u64>,
    /// Runs of sparse formats 0.0 and 0.1.
    pub(super) extents: Vec<Extent>,
    run_offset_bytes: Option<u64>,
    sparse_records: bool,
    sparse_major: Option<u64>,
    sparse_minor: Option<u64>,
    xattrs: Xattrs,
    /// Name, as it is encoded, and value of the last `LIBARCHIVE.xattr` record.
    libarchive_xattr: Option<(Vec<u8>, Vec<u8>)>,
    selinux: Option<Vec<u8>>,
    acl_access: Option<Vec<u8>>,
    acl_default: Option<Vec<u8>>,
}

/// Where GNU sparse records have the map.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SparseFormat {
    /// Not at all.
    None,
    /// In the records themselves: 0.0 and 0.1.
    Records,
    /// At the front of the content: 1.0.
    Map,
    /// Somehow else.
    Unknown { major: u64, minor: u64 },
}

impl Overrides {
    /// Whether a global record of this keyword changes members. Sparse maps belong to a single
    /// file.
    pub(super) fn is_global(keyword: &[u8]) -> bool {
        matches!(
            keyword,
            b"path" | b"linkpath" | b"uname" | b"gname" | b"uid" | b"gid" | b"mtime" | b"size"
        ) || keyword.starts_with(b"SCHILY.xattr.")
            || keyword.starts_with(b"SCHILY.acl.")
            || keyword.starts_with(b"LIBARCHIVE.xattr.")
            || keyword == b"RHT.security.selinux"
    }

    /// Takes in one record.
    ///
    /// # Errors
    /// An invalid size, path or sparse map. Values that a member can do without become notes.
    pub(super) fn apply(
        &mut self,
        keyword: &[u8],
        value: &[u8],
        limits: &DecodeLimits,
        notes: &mut Vec<Note>,
    ) -> Result<(), DecodeError> {
        let vital = || DecodeError::Value { keyword: keyword.to_vec() };
        let mut minor = || note(notes, Note::BadValue { keyword: keyword.to_vec() });
        match keyword {
            b"path" => self.path = name(value).ok_or_else(vital)?,
            b"linkpath" => self.link = name(value).ok_or_else(vital)?,
            b"uname" => self.user = name(value).unwrap_or_else(|| none(&mut minor)),
            b"gname" => self.group = name(value).unwrap_or_else(|| none(&mut minor)),
            // If the owner is invalid, the header's owner could give the rights to another user.
            b"uid" => self.uid = number(value).unwrap_or_else(|| nobody_at_all(&mut minor)),
            b"gid" => self.gid = number(value).unwrap_or_else(|| nobody_at_all(&mut minor)),
            b"mtime" => {
                self.modified = parsed(value, pax::time).unwrap_or_else(|| none(&mut minor));
            }
            b"size" => self.size_bytes = size(value).ok_or_else(vital)?,
            b"SCHILY.devmajor" => {
                self.device_major = parsed(value, id_32).unwrap_or_else(|| none(&mut minor));
            }
            b"SCHILY.devminor" => {
                self.device_minor = parsed(value, id_32).unwrap_or_else(|| none(&mut minor));
            }
            b"SUN.devmajor" => {
                self.device_major = parsed(value, hex_32).unwrap_or_else(|| none(&mut minor));
            }
            b"SUN.devminor" => {
                self.device_minor = parsed(value, hex_32).unwrap_or_else(|| none(&mut minor));
            }
            b"SCHILY.realsize" => self.real_size_bytes = size(value).ok_or_else(vital)?,
            b"SCHILY.acl.access" => self.acl_access = Some(value.to_vec()),
            b"SCHILY.acl.default" => self.acl_default = Some(value.to_vec()),
            b"RHT.security.selinux" => self.selinux = Some(value.to_vec()),
            _ => match split_at_prefix(keyword) {
                Some((Family::Sparse, name)) => self.apply_sparse(name, value, limits, vital)?,
                Some((Family::SchilyXattr, name)) => {
                    // libarchive writes each attribute twice, in this order. It encodes the name in
                    // both, which star and GNU tar do not.
                    let last = self.libarchive_xattr.take();
                    let is_repeated = last.is_some_and(|(n, v)| n == name && v == value);
                    if !is_repeated {
                        self.set_xattr(xattr::name_from_schily(name), value.to_vec(), notes);
                    }
                }
                Some((Family::LibarchiveXattr, name)) => match xattr::base64(value) {
                    Some(value) => {
                        self.libarchive_xattr = Some((name.to_vec(), value.clone()));
                        self.set_xattr(xattr::name_from_libarchive(name), value, notes);
                    }
                    None => minor(),
                },
                None => {}
            },
        }
        Ok(())
    }

    fn apply_sparse(
        &mut self,
        name_of_value: &[u8],
        value: &[u8],
        limits: &DecodeLimits,
        vital: impl Fn() -> DecodeError,
    ) -> Result<(), DecodeError> {
        match name_of_value {
            b"major" => self.sparse_major = number(value).ok_or_else(vital)?,
            b"minor" => self.sparse_minor = number(value).ok_or_else(vital)?,
            b"name" => self.sparse_path = name(value).ok_or_else(vital)?,
            b"realsize" | b"size" => self.real_size_bytes = size(value).ok_or_else(vital)?,
            b"numblocks" => self.sparse_records = true,
            b"offset" => self.run_offset_bytes = number(value).ok_or_else(&vital)?,
            b"numbytes" => {
                let offset_bytes = self.run_offset_bytes.take().ok_or_else(&vital)?;
                let length_bytes = pax::decimal(value).ok_or_else(&vital)?;
                self.push_run(offset_bytes, length_bytes, limits)?;
            }
            b"map" => {
                self.sparse_records = true;
                self.extents.clear();
                let mut numbers = value.split(|byte| *byte == b',').map(pax::decimal);
                while let Some(offset) = numbers.next() {
                    if value.is_empty() {
                        break;
                    }
                    let length = numbers.next().flatten();
                    let (offset, length) = offset.zip(length).ok_or_else(&vital)?;
                    self.push_run(offset, length, limits)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn push_run(
        &mut self,
        offset_bytes: u64,
        length_bytes: u64,
        limits: &DecodeLimits,
    ) -> Result<(), DecodeError> {
        self.sparse_records = true;
        if self.extents.len() > limits.extents_max {
            let path = self.sparse_path.clone().or_else(|| self.path.clone()).unwrap_or_default();
            let source = Malformed::MapTooMany { limit: limits.extents_max };
            return Err(DecodeError::Sparse { path, source });
        }
        self.extents.push(Extent { offset_bytes, length_bytes });
        Ok(())
    }

    fn set_xattr(&mut self, name: Vec<u8>, value: Vec<u8>, notes: &mut Vec<Note>) {
        if self.xattrs.len() >= XATTRS_MAX {
            return note(notes, Note::TooManyAttributes { limit: XATTRS_MAX });
        }
        self.xattrs.push((name, value));
    }

    /// Which kind of map the records announce.
    pub(super) fn sparse_format(&self) -> SparseFormat {
        match (self.sparse_major, self.sparse_minor) {
            (None | Some(0), _) if self.sparse_records => SparseFormat::Records,
            (None, None) => SparseFormat::None,
            (Some(1), None | Some(0)) => SparseFormat::Map,
            (major, minor) => SparseFormat::Unknown {
                major: major.unwrap_or_default(),
                minor: minor.unwrap_or_default(),
            },
        }
    }

    /// Applies everything except sizes and sparse map to the member.
    pub(super) fn apply_to(
        &mut self,
        member: &mut Member,
        names: &mut dyn NameLookup,
        notes: &mut Vec<Note>,
    ) {
        set(&mut member.path, self.sparse_path.take().or_else(|| self.path.take()));
        set(&mut member.user, self.user.take());
        set(&mut member.group, self.group.take());
        set(&mut member.uid, self.uid);
        set(&mut member.gid, self.gid);
        set(&mut member.modified, self.modified);
        match &mut member.kind {
            MemberKind::SymbolicLink { target } | MemberKind::HardLink { target } => {
                set(target, self.link.take());
            }
            MemberKind::CharacterDevice { major, minor }
            | MemberKind::BlockDevice { major, minor } => {
                set(major, self.device_major);
                set(minor, self.device_minor);
            }
            _ => {}
        }
        let mut xattrs = self.take_xattrs();
        let mut acl = |text: Option<Vec<u8>>, name: &[u8]| {
            settle_acl(text, take_xattr(&mut xattrs, name), names, notes)
        };
        member.acl_access = acl(self.acl_access.take(), b"system.posix_acl_access");
        member.acl_default = acl(self.acl_default.take(), b"system.posix_acl_default");
        member.xattrs = xattrs;
    }

    /// Attributes in ascending order of name, the last record of each name.
    fn take_xattrs(&mut self) -> Xattrs {
        let mut xattrs = std::mem::take(&mut self.xattrs);
        if let Some(mut label) = self.selinux.take().filter(|label| !label.is_empty()) {
            // The kernel keeps the label with its final NUL, the record without it.
            if label.last() != Some(&0) {
                label.push(0);
            }
            xattrs.insert(0, (b"security.selinux".to_vec(), label));
        }
        // Stable, and reversed around it: of equal names the last one comes first.
        xattrs.reverse();
        xattrs.sort_by(|left, right| left.0.cmp(&right.0));
        xattrs.dedup_by(|right, left| right.0 == left.0);
        xattrs
    }
}

/// An ACL from its text, or from the attribute in the kernel's form that GNU tar's `--xattrs`
/// stores beside it. The text has names, which are right on another system too. The attribute is
/// used if the text is missing or has unknown names.
fn settle_acl(
    text: Option<Vec<u8>>,
    attribute: Option<Vec<u8>>,
    names: &mut dyn NameLookup,
    notes: &mut Vec<Note>,
) -> Option<Vec<u8>> {
    let attribute = attribute.filter(|binary| match acl::text_bytes(binary) {
        Ok(_) => true,
        Err(error) => {
            notes.push(Note::BadAcl(error));
            false
        }
    });
    let Some(text) = text else { return attribute };
    match acl::from_text(&text, names) {
        Ok(read) if read.unknown_names.is_empty() => read.binary,
        _ if attribute.is_some() => attribute,
        Ok(read) => {
            let unknown = read.unknown_names.into_iter();
            unknown.for_each(|name| note(notes, Note::UnknownAclName { name }));
            read.binary
        }
        Err(error) => {
            notes.push(Note::BadAcl(error));
            None
        }
    }
}

/// Adds a note, up to [`NOTES_MAX`] and a final one for all further notes.
fn note(notes: &mut Vec<Note>, more: Note) {
    match notes.len() {
        0..NOTES_MAX => notes.push(more),
        NOTES_MAX => notes.push(Note::More),
        _ => {}
    }
}

fn take_xattr(xattrs: &mut Xattrs, name: &[u8]) -> Option<Vec<u8>> {
    let at = xattrs.binary_search_by(|(known, _)| known.as_slice().cmp(name)).ok()?;
    Some(xattrs.remove(at).1)
}

enum Family {
    Sparse,
    SchilyXattr,
    LibarchiveXattr,
}

fn split_at_prefix(keyword: &[u8]) -> Option<(Family, &[u8])> {
    if let Some(name) = keyword.strip_prefix(b"GNU.sparse.") {
        Some((Family::Sparse, name))
    } else if let Some(name) = keyword.strip_prefix(b"SCHILY.xattr.") {
        (!name.is_empty()).then_some((Family::SchilyXattr, name))
    } else if let Some(name) = keyword.strip_prefix(b"LIBARCHIVE.xattr.") {
        (!name.is_empty()).then_some((Family::LibarchiveXattr, name))
    } else {
        None
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn none<T>(note: &mut impl FnMut()) -> Option<T> {
    note();
    None
}

/// A number that no user or group has.
fn nobody_at_all(note: &mut impl FnMut()) -> Option<u64> {
    note();
    Some(u64::MAX)
}

/// `Some(None)` for an empty value, `None` for one that cannot be read.
fn parsed<T>(value: &[u8], parse: impl Fn(&[u8]) -> Option<T>) -> Option<Option<T>> {
    if value.is_empty() { Some(None) } else { parse(value).map(Some) }
}

fn number(value: &[u8]) -> Option<Option<u64>> {
    parsed(value, pax::decimal)
}

fn size(value: &[u8]) -> Option<Option<u64>> {
    parsed(value, |text| pax::decimal(text).filter(|size| size_is_sane(*size)))
}

fn name(value: &[u8]) -> Option<Option<Vec<u8>>> {
    parsed(value, |text| (!text.contains(&0)).then(|| text.to_vec()))
}

fn id_32(value: &[u8]) -> Option<u32> {
    pax::decimal(value).and_then(|id| u32::try_from(id).ok())
}

fn hex_32(value: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(value).ok()?;
    u32::from_str_radix(text, 16).ok()
}
