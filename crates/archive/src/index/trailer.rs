//! The trailer: the last member of an index archive, of fixed length, with the places of all
//! others.
//!
//! Its content is one unit; all numbers are little endian:
//!
//! ```text
//!   0  16  "takeup trailer" and two zero bytes
//!  16   4  version: 3 with named sections, else 2
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
//! 240  16  identity of the set, random; from version 3 on, as the next four
//! 256  24  table of the named sections: offset in the index archive, length, rows
//! 280   4  must be understood: a reader that does not know a bit does not use the index
//! 284   4  may be ignored
//! 288 208  0
//! 496   8  xxh3-64 of bytes 0 to 495
//! 504   8  "takeup.\n"
//! ```
//!
//! The last byte is not zero. So the end of the trailer is the last byte of a stream that is not
//! zero, whatever padding a target added.

use twox_hash::XxHash3_64;

use super::envelope::{
    IndexLayout, SectionPlace, SectionSummary, UNIT_BYTES, encode_header, padding_bytes,
};
use super::error::IndexError;
use super::named::TABLE_BYTES_MAX;
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
const SET_AT: usize = HASH_END;
const TABLE_AT: usize = SET_AT + 16;
const MUST_UNDERSTAND_AT: usize = TABLE_AT + 24;
const NAMED_END: usize = MUST_UNDERSTAND_AT + 8;
/// Version of trailers without a hash of the index, of those with one, and of those with named
/// sections.
const VERSION_BARE: u32 = 1;
const VERSION_HASHED: u32 = 2;
const VERSION_NAMED: u32 = 3;

/// What only the index of a set in a chain has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedSections {
    /// Identity of the set: random, so that two runs over the same tree are two sets.
    pub set: [u8; 16],
    /// The table of the named sections, which is the last member before the trailer.
    pub table: SectionPlace,
}

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
    /// Named sections, which need a hash of the index.
    pub named: Option<NamedSections>,
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

    /// Where the trailer's member starts in the index archive.
    ///
    /// # Errors
    /// Those of [`IndexLayout::new`].
    pub fn offset_bytes(&self) -> Result<u64, IndexError> {
        let layout = IndexLayout::new(self.sections.map(|place| place.summary))?;
        Ok(match self.named {
            None => layout.trailer_offset_bytes,
            Some(NamedSections { table, .. }) => {
                let length_bytes = table.summary.length_bytes;
                table.offset_bytes + length_bytes + padding_bytes(length_bytes) as u64
            }
        })
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
        let table = self.named.map(|named| named.table);
        if table.is_some_and(|table| table.summary.length_bytes > TABLE_BYTES_MAX) {
            return Err("table of the sections is too long");
        }
        if self.named.is_some() && self.index_hash.is_none() {
            return Err("named sections without a hash of the index");
        }
        for place in self.sections.iter().chain(&table) {
            if place.offset_bytes < end_bytes || !place.offset_bytes.is_multiple_of(512) {
                return Err("sections are not in order");
            }
            let end = place.offset_bytes.checked_add(place.summary.length_bytes);
            // Padding and trailer follow.
            let end = end.filter(|end| *end < 1 << 63);
            end_bytes = end.ok_or("section is larger than 63 bits")?;
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
    let version = match (trailer.named, trailer.index_hash) {
        (Some(_), _) => VERSION_NAMED,
        (None, Some(_)) => VERSION_HASHED,
        (None, None) => VERSION_BARE,
    };
    put(16, &version.to_le_bytes());
    put(20, &coding.to_le_bytes());
    put(24, &level.to_le_bytes());
    put(28, &trailer.chunk_bytes.to_le_bytes());
    put(32, &trailer.block_bytes.to_le_bytes());
    put(40, &trailer.set_id);
    put(72, &trailer.archive_bytes.to_le_bytes());
    put(80, &trailer.index_compressed_offset_bytes.bytes().to_le_bytes());
    let table = trailer.named.map(|named| (TABLE_AT, named.table));
    let sections = trailer.sections.into_iter().zip(0..);
    let sections = sections.map(|(place, number)| (SECTIONS_AT + 24 * number, place));
    for (at, place) in sections.chain(table) {
        put(at, &place.offset_bytes.to_le_bytes());
        put(at + 8, &place.summary.length_bytes.to_le_bytes());
        put(at + 16, &place.summary.records.to_le_bytes());
    }
    put(HASH_AT, &trailer.index_hash.unwrap_or_default());
    put(SET_AT, &trailer.named.map_or([0; 16], |named| named.set));
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
/// `IndexError::Trailer` if the trailer is damaged, `Later` if it is of a later version.
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
    let trailer = decode_content(content)?;
    Ok(Some(FoundTrailer { trailer, member_to_end_bytes }))
}

fn decode_content(content: &[u8; TRAILER_CONTENT_BYTES]) -> Result<Trailer, IndexError> {
    let damaged = |reason| IndexError::Trailer { reason };
    let long = |at: usize| {
        let bytes = content[at..].first_chunk().expect("an offset inside the trailer");
        u64::from_le_bytes(*bytes)
    };
    let short = |at: usize| long(at) as u32;
    if XxHash3_64::oneshot(&content[..CHECKSUM_AT]) != long(CHECKSUM_AT) {
        return Err(damaged("checksum differs"));
    }
    let hash = || Some(*content[HASH_AT..].first_chunk().expect("an offset inside"));
    let (index_hash, reserved_at) = match short(16) {
        VERSION_BARE => (None, HASH_AT),
        VERSION_HASHED => (hash(), HASH_END),
        VERSION_NAMED => (hash(), NAMED_END),
        0 => return Err(damaged("unknown version")),
        _ => return Err(IndexError::Later { what: "the index" }),
    };
    if short(36) != 0 || content[reserved_at..CHECKSUM_AT].iter().any(|&byte| byte != 0) {
        return Err(damaged("reserved bytes are set"));
    }
    let is_named = reserved_at == NAMED_END;
    if is_named && short(MUST_UNDERSTAND_AT) != 0 {
        return Err(IndexError::Later { what: "the index" });
    }
    let level = short(24) as i32;
    let compression = match short(20) {
        0 if level == 0 => Compression::None,
        1 => Compression::Gzip { level },
        2 => Compression::Zstd { level },
        _ => return Err(damaged("unknown coding")),
    };
    let place = |at: usize| {
        let summary = SectionSummary { length_bytes: long(at + 8), records: long(at + 16) };
        SectionPlace { offset_bytes: long(at), summary }
    };
    let sections = std::array::from_fn(|number| place(SECTIONS_AT + 24 * number));
    let set = *content[SET_AT..].first_chunk().expect("an offset inside the trailer");
    let named = is_named.then(|| NamedSections { set, table: place(TABLE_AT) });
    let trailer = Trailer {
        set_id: *content[40..].first_chunk().expect("an offset inside the trailer"),
        compression,
        chunk_bytes: short(28),
        block_bytes: short(32),
        archive_bytes: long(72),
        index_compressed_offset_bytes: StoredOffset::new(long(80)),
        sections,
        index_hash,
        named,
    };
    trailer.check().map(|()| trailer).map_err(damaged)
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
        named: None,
    };

    fn with_change(trailer: &Trailer, change: impl Fn(&mut [u8])) -> Result<Trailer, IndexError> {
        let member = encode_trailer(trailer).unwrap();
        let mut content: [u8; TRAILER_CONTENT_BYTES] =
            member[UNIT_BYTES..2 * UNIT_BYTES].try_into().unwrap();
        change(&mut content);
        let checksum = XxHash3_64::oneshot(&content[..CHECKSUM_AT]);
        content[CHECKSUM_AT..CHECKSUM_AT + 8].copy_from_slice(&checksum.to_le_bytes());
        decode_content(&content)
    }

    /// Data that a later version puts there must not be skipped, wherever they are.
    #[test]
    fn each_reserved_byte_has_to_be_zero() {
        assert_eq!(with_change(&LEAST, |_| ()).unwrap(), LEAST);
        for at in [36, 39, HASH_AT, HASH_END, CHECKSUM_AT - 1] {
            let changed = with_change(&LEAST, |content| content[at] ^= 1);
            assert!(
                matches!(changed, Err(IndexError::Trailer { reason: "reserved bytes are set" })),
                "{at}"
            );
        }
        for at in [NAMED_END, CHECKSUM_AT - 1] {
            let changed = with_change(&named(), |content| content[at] ^= 1);
            assert!(matches!(changed, Err(IndexError::Trailer { .. })), "{at}");
        }
    }

    fn named() -> Trailer {
        let summary = SectionSummary { length_bytes: 100, records: 3 };
        let table = SectionPlace { offset_bytes: 4096, summary };
        let named = Some(NamedSections { set: [3; 16], table });
        Trailer { index_hash: Some([9; 32]), named, ..LEAST }
    }

    #[test]
    fn named_sections_are_read_back_and_a_later_version_is_not_damaged() {
        assert_eq!(with_change(&named(), |_| ()).unwrap(), named());
        assert_eq!(named().offset_bytes().unwrap(), 4096 + 512);
        let ignored = with_change(&named(), |content| content[MUST_UNDERSTAND_AT + 4] = 1);
        assert_eq!(ignored.unwrap(), named());
        for (at, value) in [(16, 4), (MUST_UNDERSTAND_AT, 1)] {
            let later = with_change(&named(), |content| content[at] = value);
            assert!(matches!(later, Err(IndexError::Later { .. })), "{at}");
        }
        let without_hash = Trailer { index_hash: None, ..named() };
        assert!(encode_trailer(&without_hash).is_err());
    }

    #[test]
    fn an_archive_ends_where_its_index_starts() {
        let trailer = Trailer { archive_bytes: 4096, ..LEAST };
        assert_eq!(trailer.archive_end_bytes(), ArchiveOffset::new(4096));
    }
}
