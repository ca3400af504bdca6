//! The tar archive around the sections: its headers, and the places of its members.
//!
//! ```text
//! pax global header  1024    type g, one record: comment=takeup index 1
//! section, five times 512 + length, filled up with zeros to a multiple of 512
//! named sections      the same, and their table last; only of a set in a chain
//! trailer            2048    header 512, content 512, two zero units
//! ```
//!
//! Names are short and sizes below 8 GiB, so that a member has one header unit and no pax records:
//! the lengths above are valid for every index.

use super::error::IndexError;
use super::named::NamedSection;
use super::trailer::TRAILER_MEMBER_BYTES;
use super::{INDEX_VERSION, IndexSection, SECTIONS, TRAILER_NAME};
use crate::encode::{encode_global_header, encode_member};
pub use crate::header::UNIT_BYTES;
use crate::header::{self, Unit};
use crate::member::{Member, MemberKind, Timestamp};

/// The comment in the pax global header of an index.
pub const INDEX_COMMENT: &str = "takeup index 1";
/// Length of the pax global header in front of the sections.
pub const INDEX_HEADER_BYTES: usize = 2 * UNIT_BYTES;

const MEMBER_START: &[u8] = b"takeup-index/";
/// Longest name of a member behind that.
const NAME_BYTES_MAX: usize = 27;
const COMMENT_START: &[u8] = b"takeup index ";
/// Eleven octal digits.
const SIZE_MAX: u64 = (1 << 33) - 1;

/// Length of a section and its number of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SectionSummary {
    pub length_bytes: u64,
    pub records: u64,
}

/// A section in the index archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SectionPlace {
    /// Where its content starts, counted from the start of the index archive.
    pub offset_bytes: u64,
    /// Length and number of records.
    pub summary: SectionSummary,
}

/// The places of everything in an index archive whose sections are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexLayout {
    /// The sections in the order of [`IndexSection::ALL`].
    pub sections: [SectionPlace; SECTIONS],
    /// Where the trailer member starts.
    pub trailer_offset_bytes: u64,
    /// Length of the whole index archive.
    pub index_bytes: u64,
}

impl IndexLayout {
    /// Lays out the sections, in the order of [`IndexSection::ALL`].
    ///
    /// # Errors
    /// `SectionTooLarge` from 8 GiB on.
    pub fn new(sections: [SectionSummary; SECTIONS]) -> Result<IndexLayout, IndexError> {
        let mut end_bytes = INDEX_HEADER_BYTES as u64;
        let mut places = [SectionPlace::default(); SECTIONS];
        for ((place, summary), section) in places.iter_mut().zip(sections).zip(IndexSection::ALL) {
            let length_bytes = summary.length_bytes;
            if length_bytes > SIZE_MAX {
                return Err(IndexError::SectionTooLarge { section, length_bytes });
            }
            *place = SectionPlace { offset_bytes: end_bytes + UNIT_BYTES as u64, summary };
            end_bytes = place.offset_bytes + length_bytes + padding_bytes(length_bytes) as u64;
        }
        let index_bytes = end_bytes + TRAILER_MEMBER_BYTES as u64;
        Ok(IndexLayout { sections: places, trailer_offset_bytes: end_bytes, index_bytes })
    }

    /// Puts another section behind the others, in front of the trailer. Returns its place.
    ///
    /// # Errors
    /// `Named` from 8 GiB on.
    pub fn add(
        &mut self,
        section: NamedSection,
        summary: SectionSummary,
    ) -> Result<SectionPlace, IndexError> {
        let length_bytes = summary.length_bytes;
        check_named(section, length_bytes)?;
        let offset_bytes = self.trailer_offset_bytes + UNIT_BYTES as u64;
        self.trailer_offset_bytes =
            offset_bytes + length_bytes + padding_bytes(length_bytes) as u64;
        self.index_bytes = self.trailer_offset_bytes + TRAILER_MEMBER_BYTES as u64;
        Ok(SectionPlace { offset_bytes, summary })
    }
}

fn check_named(section: NamedSection, length_bytes: u64) -> Result<(), IndexError> {
    if length_bytes > SIZE_MAX {
        let reason = "it would be larger than 8 GiB";
        return Err(IndexError::Named { section: section.name(), reason });
    }
    Ok(())
}

/// Zeros to write behind `length_bytes` of content.
pub fn padding_bytes(length_bytes: u64) -> usize {
    header::padding_bytes(length_bytes) as usize
}

/// The first bytes of an index archive.
pub fn encode_index_header() -> [u8; INDEX_HEADER_BYTES] {
    let mut out = Vec::with_capacity(INDEX_HEADER_BYTES);
    encode_global_header("GlobalHead", &[(b"comment", INDEX_COMMENT.as_bytes())], &mut out)
        .expect("a short keyword and value without NULs");
    *out.first_chunk().expect("a header and one unit of records")
}

/// Whether `bytes` start with the header of an index archive of a version that is read here.
pub fn is_index_header(bytes: &[u8]) -> bool {
    bytes.starts_with(&encode_index_header())
}

/// Whether a unit is the first of an index archive.
pub fn begins_index(unit: &Unit) -> bool {
    encode_index_header().starts_with(unit)
}

/// Whether the bytes contain the name of a section of an index.
pub fn names_index(bytes: &[u8]) -> bool {
    bytes.windows(MEMBER_START.len()).any(|window| window == MEMBER_START)
}

/// The version in the `comment` record of a pax global header, if it is that of an index, for
/// readers that have decoded the header already. Other versions than [`INDEX_VERSION`] are not read
/// here.
pub fn index_version(comment: &[u8]) -> Option<u32> {
    std::str::from_utf8(comment.strip_prefix(COMMENT_START)?).ok()?.parse().ok()
}

/// The header unit of a section.
///
/// # Errors
/// `SectionTooLarge` from 8 GiB on.
pub fn encode_section_header(section: IndexSection, length_bytes: u64) -> Result<Unit, IndexError> {
    if length_bytes > SIZE_MAX {
        return Err(IndexError::SectionTooLarge { section, length_bytes });
    }
    Ok(encode_header(section.member_name(), length_bytes))
}

/// The header unit of a named section.
///
/// # Errors
/// `Named` from 8 GiB on.
pub fn encode_named_header(section: NamedSection, length_bytes: u64) -> Result<Unit, IndexError> {
    check_named(section, length_bytes)?;
    Ok(encode_header(section.name(), length_bytes))
}

/// Whether a path is that of a member of an index: one of those that every index has, or one that a
/// later version adds.
pub fn is_index_member(path: &[u8]) -> bool {
    path.strip_prefix(MEMBER_START).is_some_and(|name| {
        let is_letter = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'-';
        (1..=NAME_BYTES_MAX).contains(&name.len()) && name.iter().all(is_letter)
    })
}

/// Bytes of the content behind a unit, if the unit is exactly the header of a section or of the
/// trailer. An ordinary file of that name has a time and an owner, so its header differs.
pub fn index_member_bytes(unit: &Unit) -> Option<u64> {
    let name = header::text(&unit[header::NAME]);
    let name = std::str::from_utf8(name).ok().filter(|name| is_index_member(name.as_bytes()));
    let size = header::unsigned(&unit[header::SIZE]).filter(|size| *size <= SIZE_MAX);
    name.zip(size).filter(|(name, size)| encode_header(name, *size) == *unit).map(|(_, size)| size)
}

/// Whether a unit is exactly the header of the trailer's member.
pub fn is_trailer_header(unit: &Unit) -> bool {
    index_member_bytes(unit).is_some()
        && header::text(&unit[header::NAME]) == TRAILER_NAME.as_bytes()
}

/// The header of a regular file without owner and time. `size_bytes` must be below 8 GiB.
pub(super) fn encode_header(name: &str, size_bytes: u64) -> Unit {
    let member = Member {
        path: name.as_bytes().to_vec(),
        kind: MemberKind::File,
        mode: 0o644,
        uid: 0,
        gid: 0,
        user: Vec::new(),
        group: Vec::new(),
        modified: Timestamp::default(),
        size_bytes,
        sparse: None,
        xattrs: Vec::new(),
        acl_access: None,
        acl_default: None,
    };
    let mut out = Vec::with_capacity(UNIT_BYTES);
    encode_member(&member, &mut out).expect("a plain name, and a size that fits");
    debug_assert_eq!(out.len(), UNIT_BYTES, "nothing here needs a pax record");
    *out.first_chunk().expect("a member has a header")
}

// The comment and the version must contain the same number.
const _: () = assert!(INDEX_VERSION == 1 && INDEX_COMMENT.as_bytes()[13] == b'1');
