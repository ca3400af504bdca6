//! The tar archive around the sections: its headers, and where everything comes to lie.
//!
//! ```text
//! pax global header  1024    type g, one record: comment=takeup index 1
//! section, four times 512 + length, filled up with zeros to a multiple of 512
//! trailer            2048    header 512, content 512, two zero units
//! ```
//!
//! The headers are plain ustar with constant fields, so they are written here and not by the
//! encoder for members, whose choices depend on the member.

use super::error::IndexError;
use super::trailer::TRAILER_MEMBER_BYTES;
use super::{INDEX_VERSION, Section};

/// Bytes of a unit, tar's own grain.
pub const UNIT_BYTES: usize = 512;
/// What the pax global header of an index says of itself.
pub const INDEX_COMMENT: &str = "takeup index 1";
/// Length of the pax global header in front of the sections.
pub const INDEX_HEADER_BYTES: usize = 2 * UNIT_BYTES;

const COMMENT_START: &[u8] = b"takeup index ";
/// Eleven octal digits.
const SIZE_MAX: u64 = (1 << 33) - 1;

/// Length of a section and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SectionSummary {
    /// Length in bytes.
    pub length_bytes: u64,
    /// Number of records.
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

/// Where everything is in an index archive whose sections are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexLayout {
    /// The sections in the order of [`Section::ALL`].
    pub sections: [SectionPlace; 4],
    /// Where the trailer member starts.
    pub trailer_offset_bytes: u64,
    /// Length of the whole index archive.
    pub index_bytes: u64,
}

impl IndexLayout {
    /// Lays out four sections, in the order of [`Section::ALL`].
    ///
    /// # Errors
    /// `SectionTooLarge` from 8 GiB on.
    pub fn new(sections: [SectionSummary; 4]) -> Result<IndexLayout, IndexError> {
        let mut end_bytes = INDEX_HEADER_BYTES as u64;
        let mut places = [SectionPlace::default(); 4];
        for ((place, summary), section) in places.iter_mut().zip(sections).zip(Section::ALL) {
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
}

/// Zeros to write behind `length_bytes` of content.
pub fn padding_bytes(length_bytes: u64) -> usize {
    (length_bytes.wrapping_neg() % UNIT_BYTES as u64) as usize
}

/// The first bytes of an index archive.
pub fn encode_index_header() -> [u8; INDEX_HEADER_BYTES] {
    let record = comment_record();
    let mut out = [0; INDEX_HEADER_BYTES];
    let header = encode_header("takeup-index/header", b'g', record.len() as u64);
    out[..UNIT_BYTES].copy_from_slice(&header);
    out[UNIT_BYTES..UNIT_BYTES + record.len()].copy_from_slice(record.as_bytes());
    out
}

/// The pax record `comment=takeup index 1`, whose length includes its own digits.
fn comment_record() -> String {
    let rest = format!(" comment={INDEX_COMMENT}\n");
    format!("{}{rest}", rest.len() + 2)
}

/// Whether `bytes` start with the header of an index archive of a version that is read here.
pub fn is_index_header(bytes: &[u8]) -> bool {
    bytes.starts_with(&encode_index_header())
}

/// The version in the `comment` record of a pax global header, when it is that of an index: for
/// readers that have decoded the header already. Versions other than [`INDEX_VERSION`] are not
/// read here.
pub fn index_version(comment: &[u8]) -> Option<u32> {
    std::str::from_utf8(comment.strip_prefix(COMMENT_START)?).ok()?.parse().ok()
}

/// The header unit of a section.
///
/// # Errors
/// `SectionTooLarge` from 8 GiB on.
pub fn encode_section_header(
    section: Section,
    length_bytes: u64,
) -> Result<[u8; UNIT_BYTES], IndexError> {
    if length_bytes > SIZE_MAX {
        return Err(IndexError::SectionTooLarge { section, length_bytes });
    }
    Ok(encode_header(section.member_name(), b'0', length_bytes))
}

/// A ustar header (POSIX.1-2017, pax, "ustar Interchange Format") with no owner and no time.
pub(super) fn encode_header(name: &str, type_flag: u8, size_bytes: u64) -> [u8; UNIT_BYTES] {
    let mut header = [0; UNIT_BYTES];
    let mut put =
        |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000644\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{size_bytes:011o}\0"));
    put(136, "00000000000\0");
    put(148, "        ");
    put(257, "ustar\x0000");
    put(329, "0000000\0");
    put(337, "0000000\0");
    header[156] = type_flag;
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

// The comment and the version are two spellings of one number.
const _: () = assert!(INDEX_VERSION == 1 && INDEX_COMMENT.as_bytes()[13] == b'1');
