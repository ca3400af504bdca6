//! The trailer: the last member of an index archive, of fixed length, with the places of all
//! others.
//!
//! Its content is one unit; all numbers are little endian:
//!
//! ```text
//!   0  16  "takeup trailer" and two zero bytes
//!  16   4  version: 2
//!  20   4  coding: 0 none, 1 gzip, 2 zstd
//!  24   4  level, signed
//!  28   4  archive bytes in a chunk, 0 without compression
//!  32   4  block size in bytes
//!  36   4  0
//!  40  32  set id
//!  72   8  length of the archive: where the index starts in the uncompressed stream
//!  80   8  where the chunk that starts the index is in the compressed stream; as above without
//!  88  24  files: offset in the index archive, length, records
//! 112  24  blocks
//! 136  24  chunks
//! 160  24  warnings
//! 184  24  extents
//! 208  32  hash of the index up to the trailer's header; zeros in version 1
//! 240 256  0
//! 496   8  xxh3-64 of bytes 0 to 495
//! 504   8  "takeup.\n"
//! ```
//!
//! The last byte is not zero. So the end of the trailer is the last byte of a stream that is not
//! zero, whatever padding a target added.

use twox_hash::XxHash3_64;

use super::envelope::{SectionPlace, SectionSummary, UNIT_BYTES, encode_header};
use super::error::IndexError;
use super::{IndexSection, SECTIONS, TRAILER_NAME};
use crate::chunk::Compression;
use crate::stream::{ArchiveOffset, StoredOffset};

/// Length of the trailer's content.
pub const TRAILER_CONTENT_BYTES: usize = UNIT_BYTES;
/// Length of the trailer at the end of an archive: header, content, two zero units.
pub const TRAILER_MEMBER_BYTES: usize = 4 * UNIT_BYTES;
/// Most bytes at the end of a stream that are needed to find the trailer: at most 16 MiB of zeros
/// follow it, the padding of a last full block.
pub const TRAILER_TAIL_BYTES_MAX: usize = TRAILER_MEMBER_BYTES + (16 << 20);

const MAGIC: &[u8; 16] = b"takeup trailer\0\0";
const END_MARK: &[u8; 8] = b"takeup.\n";
const CHECKSUM_AT: usize = 496;
const SECTIONS_AT: usize = 88;
const HASH_AT: usize = SECTIONS_AT + 24 * SECTIONS;
const HASH_END: usize = HASH_AT + 32;
/// Version of trailers without a hash of the index, and of those with one.
const VERSION_BARE: u32 = 1;
const VERSION_HASHED: u32 = 2;

/// The data of a trailer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// Id of the set: `SetIdHasher`.
    pub set_id: [u8; 32],
    /// How the archive is compressed.
    pub compression: Compression,
    /// Archive bytes in a full chunk; 0 without compression.
    pub chunk_bytes: u32,
    /// Bytes of the blocks that have checksums.
    pub block_bytes: u32,
    /// Length of the uncompressed archive, including the end-of-archive mark: the start of the
    /// index.
    pub archive_bytes: u64,
    /// Offset in the compressed stream of the chunk with the start of the index. Without
    /// compression it is `archive_bytes`.
    pub index_compressed_offset_bytes: StoredOffset,
    /// The sections in the order of [`IndexSection::ALL`], at the places of `IndexLayout`.
    pub sections: [SectionPlace; SECTIONS],
    /// Hash of the index up to the trailer's header: `IndexHasher`. `None` in a trailer of version
    /// 1.
    pub index_hash: Option<[u8; 32]>,
}

impl Trailer {
    /// Place of a section.
    pub fn section(&self, section: IndexSection) -> SectionPlace {
        self.sections[section as usize]
    }

    /// End of the archive and start of its index.
    pub fn archive_end_bytes(&self) -> ArchiveOffset {
        ArchiveOffset::new(self.archive_bytes)
    }

    fn check(&self) -> Result<(), &'static str> {
        self.compression.check().map_err(|_| "unknown compression level")?;
        if self.block_bytes == 0 {
            return Err("block size is 0");
        }
        if !self.archive_bytes.is_multiple_of(UNIT_BYTES as u64) {
            return Err("archive length is not a multiple of 512 bytes");
        }
        if (self.compression == Compression::None) != (self.chunk_bytes == 0) {
            return Err("chunk size and compression contradict each other");
        }
        let mut end_bytes = 0;
        for place in &self.sections {
            if place.offset_bytes < end_bytes || !place.offset_bytes.is_multiple_of(512) {
                return Err("sections are not in order");
            }
            let end = place.offset_bytes.checked_add(place.summary.length_bytes);
            end_bytes = end.ok_or("section is larger than 64 bits")?;
        }
        let blocks = self.archive_bytes.div_ceil(self.block_bytes.into());
        if self.section(IndexSection::Blocks).summary.records != blocks {
            return Err("number of block checksums does not fit the archive");
        }
        Ok(())
    }
}

/// The trailer as the last [`TRAILER_MEMBER_BYTES`] of an index archive.
///
/// # Errors
/// `IndexError::Trailer` if a reader would refuse it.
pub fn encode_trailer(trailer: &Trailer) -> Result<[u8; TRAILER_MEMBER_BYTES], IndexError> {
    trailer.check().map_err(|reason| IndexError::Trailer { reason })?;
    let mut content = [0; TRAILER_CONTENT_BYTES];
    let mut put = |at: usize, bytes: &[u8]| content[at..at + bytes.len()].copy_from_slice(bytes);
    let (coding, level) = match trailer.compression {
        Compression::None => (0u32, 0),
        Compression::Gzip { level } => (1, level),
        Compression::Zstd { level } => (2, level),
    };
    put(0, MAGIC);
    let version = if trailer.index_hash.is_some() { VERSION_HASHED } else { VERSION_BARE };
    put(16, &version.to_le_bytes());
    put(20, &coding.to_le_bytes());
    put(24, &level.to_le_bytes());
    put(28, &trailer.chunk_bytes.to_le_bytes());
    put(32, &trailer.block_bytes.to_le_bytes());
    put(40, &trailer.set_id);
    put(72, &trailer.archive_bytes.to_le_bytes());
    put(80, &trailer.index_compressed_offset_bytes.bytes().to_le_bytes());
    for (number, place) in trailer.sections.iter().enumerate() {
        let at = SECTIONS_AT + 24 * number;
        put(at, &place.offset_bytes.to_le_bytes());
        put(at + 8, &place.summary.length_bytes.to_le_bytes());
        put(at + 16, &place.summary.records.to_le_bytes());
    }
    put(HASH_AT, &trailer.index_hash.unwrap_or_default());
    put(504, END_MARK);
    let checksum = XxHash3_64::oneshot(&content[..CHECKSUM_AT]);
    content[CHECKSUM_AT..CHECKSUM_AT + 8].copy_from_slice(&checksum.to_le_bytes());
    let mut member = [0; TRAILER_MEMBER_BYTES];
    let header = encode_header(TRAILER_NAME, content.len() as u64);
    member[..UNIT_BYTES].copy_from_slice(&header);
    member[UNIT_BYTES..2 * UNIT_BYTES].copy_from_slice(&content);
    Ok(member)
}

/// A trailer and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundTrailer {
    pub trailer: Trailer,
    /// Bytes of the tail from the start of the trailer member to the end. The index archive ends
    /// [`TRAILER_MEMBER_BYTES`] behind that start.
    pub member_to_end_bytes: usize,
}

/// Finds the trailer in the last bytes of an uncompressed stream ([`TRAILER_TAIL_BYTES_MAX`] are
/// enough), or in the last chunk of a compressed one. `None` if the stream does not end with one: a
/// plain archive.
///
/// # Errors
/// `IndexError::Trailer` if the trailer is damaged or of another version.
pub fn find_trailer(tail: &[u8]) -> Result<Option<FoundTrailer>, IndexError> {
    let Some(last) = tail.iter().rposition(|&byte| byte != 0) else { return Ok(None) };
    let (written, _padding) = tail.split_at(last + 1);
    if !written.ends_with(END_MARK) || written.len() < 2 * UNIT_BYTES {
        return Ok(None);
    }
    let start = written.len() - 2 * UNIT_BYTES;
    let content = written.last_chunk::<TRAILER_CONTENT_BYTES>().expect("two units are there");
    if content[..16] != *MAGIC {
        return Ok(None);
    }
    let member_to_end_bytes = tail.len() - start;
    let trailer = decode_content(content).map_err(|reason| IndexError::Trailer { reason })?;
    Ok(Some(FoundTrailer { trailer, member_to_end_bytes }))
}

fn decode_content(content: &[u8; TRAILER_CONTENT_BYTES]) -> Result<Trailer, &'static str> {
    let long = |at: usize| {
        let bytes = content[at..].first_chunk().expect("an offset inside the trailer");
        u64::from_le_bytes(*bytes)
    };
    let short = |at: usize| long(at) as u32;
    if XxHash3_64::oneshot(&content[..CHECKSUM_AT]) != long(CHECKSUM_AT) {
        return Err("checksum differs");
    }
    let (index_hash, reserved_at) = match short(16) {
        VERSION_BARE => (None, HASH_AT),
        VERSION_HASHED => {
            (Some(*content[HASH_AT..].first_chunk().expect("an offset inside")), HASH_END)
        }
        _ => return Err("unknown version"),
    };
    if short(36) != 0 || content[reserved_at..CHECKSUM_AT].iter().any(|&byte| byte != 0) {
        return Err("reserved bytes are set");
    }
    let level = short(24) as i32;
    let compression = match short(20) {
        0 if level == 0 => Compression::None,
        1 => Compression::Gzip { level },
        2 => Compression::Zstd { level },
        _ => return Err("unknown coding"),
    };
    let mut sections = [SectionPlace::default(); SECTIONS];
    for (number, place) in sections.iter_mut().enumerate() {
        let at = SECTIONS_AT + 24 * number;
        let summary = SectionSummary { length_bytes: long(at + 8), records: long(at + 16) };
        *place = SectionPlace { offset_bytes: long(at), summary };
    }
    let trailer = Trailer {
        set_id: *content[40..].first_chunk().expect("an offset inside the trailer"),
        compression,
        chunk_bytes: short(28),
        block_bytes: short(32),
        archive_bytes: long(72),
        index_compressed_offset_bytes: StoredOffset::new(long(80)),
        sections,
        index_hash,
    };
    trailer.check().map(|()| trailer)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Trailer = Trailer {
        set_id: [7; 32],
        compression: Compression::None,
        chunk_bytes: 0,
        block_bytes: 512,
        archive_bytes: 0,
        index_compressed_offset_bytes: StoredOffset::START,
        sections: [SectionPlace {
            offset_bytes: 0,
            summary: SectionSummary { length_bytes: 0, records: 0 },
        }; SECTIONS],
        index_hash: None,
    };

    /// Data that a later version puts there must not be skipped, wherever they are.
    #[test]
    fn each_reserved_byte_has_to_be_zero() {
        let member = encode_trailer(&LEAST).unwrap();
        let content: [u8; TRAILER_CONTENT_BYTES] =
            member[UNIT_BYTES..2 * UNIT_BYTES].try_into().unwrap();
        let with = |at: usize| {
            let mut content = content;
            content[at] ^= 1;
            let checksum = XxHash3_64::oneshot(&content[..CHECKSUM_AT]);
            content[CHECKSUM_AT..CHECKSUM_AT + 8].copy_from_slice(&checksum.to_le_bytes());
            decode_content(&content)
        };
        assert_eq!(decode_content(&content), Ok(LEAST));
        for at in [36, 39, HASH_AT, HASH_END, CHECKSUM_AT - 1] {
            assert_eq!(with(at), Err("reserved bytes are set"), "{at}");
        }
    }

    #[test]
    fn an_archive_ends_where_its_index_starts() {
        let trailer = Trailer { archive_bytes: 4096, ..LEAST };
        assert_eq!(trailer.archive_end_bytes(), ArchiveOffset::new(4096));
    }
}
