//! The framing of a gzip member (RFC 1952): our own header with its length, and a reader for all
//! headers.
//!
//! A gzip member does not state its length; its end is found by decompressing it. Our members have
//! the length in the header's extra field, which other readers skip. So a reader can hop from
//! member to member and let several threads decompress them. The field has a checksum: a damaged
//! length must not make a reader hop over a member unnoticed.
//!
//! The last member of a stream can be *stored* (not compressed). Then its length follows from the
//! length of its content, and a reader that knows the latter finds the member from the end of the
//! file.

use super::error::{ChunkError, Coding};
use crate::stream::StoredOffset;

/// Bytes before the deflate data of our members.
pub const HEADER_BYTES: usize = 28;
/// Bytes behind the deflate data: CRC-32 and length of the content, both 32 bits.
pub const FOOTER_BYTES: usize = 8;
/// Name of our subfield in the extra field ("Takeup, Member").
pub const SUBFIELD_NAME: [u8; 2] = *b"TM";
/// Longest member header that is read: an extra field may have 64 KiB; name and comment, which have
/// no limit of their own, share the rest.
pub const FOREIGN_HEADER_BYTES_MAX: usize = 192 << 10;

const SUBFIELD_BYTES: usize = 12;
const STORED_BLOCK_BYTES_MAX: usize = 65_535;
/// Magic number, deflate, an extra field; no time, no hints, unknown system.
const FIXED: [u8; 10] = [0x1f, 0x8b, 8, FLAG_EXTRA, 0, 0, 0, 0, 0, 255];
const FLAG_HEADER_CRC: u8 = 2;
const FLAG_EXTRA: u8 = 4;
const FLAG_NAME: u8 = 8;
const FLAG_COMMENT: u8 = 16;
const FLAGS_RESERVED: u8 = 0xe0;

/// The data of a gzip member's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberHeader {
    /// Bytes of the header: where the deflate data starts.
    pub header_bytes: usize,
    /// Length of the whole member and of its content, if Takeup wrote it.
    pub lengths: Option<MemberLengths>,
}

/// The lengths in our members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberLengths {
    /// Bytes of the member, including header and footer.
    pub member_bytes: u32,
    pub content_bytes: u32,
}

/// The header of our members, [`HEADER_BYTES`] long: no time, no name, unknown system.
pub fn encode_header(lengths: MemberLengths) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    let extra_bytes = (4 + SUBFIELD_BYTES) as u16;
    header[..10].copy_from_slice(&FIXED);
    header[10..12].copy_from_slice(&extra_bytes.to_le_bytes());
    header[12..14].copy_from_slice(&SUBFIELD_NAME);
    header[14..16].copy_from_slice(&(SUBFIELD_BYTES as u16).to_le_bytes());
    header[16..20].copy_from_slice(&lengths.member_bytes.to_le_bytes());
    header[20..24].copy_from_slice(&lengths.content_bytes.to_le_bytes());
    let check = libdeflater::crc32(&header[12..24]);
    header[24..28].copy_from_slice(&check.to_le_bytes());
    header
}

/// Whether `prefix` starts with a header as [`encode_header`] and the padding write it.
pub(super) fn is_as_written(prefix: &[u8]) -> bool {
    prefix.starts_with(&FIXED) && prefix.get(12..).and_then(our_lengths).is_some()
}

/// Length of a stored member with `content_bytes` of content.
pub fn stored_member_bytes(content_bytes: usize) -> usize {
    let blocks = content_bytes.div_ceil(STORED_BLOCK_BYTES_MAX).max(1);
    HEADER_BYTES + 5 * blocks + content_bytes + FOOTER_BYTES
}

/// Appends `content` as a member of stored deflate blocks (RFC 1951, 3.2.4).
///
/// # Errors
/// `ChunkError::ChunkTooLarge` if the content is larger than [`super::CHUNK_BYTES_MAX`].
pub fn encode_stored_member(content: &[u8], out: &mut Vec<u8>) -> Result<(), ChunkError> {
    let limit_bytes = super::CHUNK_BYTES_MAX;
    if content.len() > limit_bytes {
        return Err(ChunkError::ChunkTooLarge { length_bytes: content.len(), limit_bytes });
    }
    let member_bytes = stored_member_bytes(content.len()) as u32;
    let content_bytes = content.len() as u32;
    out.extend_from_slice(&encode_header(MemberLengths { member_bytes, content_bytes }));
    let mut rest = content;
    loop {
        let (block, after) = rest.split_at(rest.len().min(STORED_BLOCK_BYTES_MAX));
        let length = block.len() as u16;
        out.push(u8::from(after.is_empty()));
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
        out.extend_from_slice(block);
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    out.extend_from_slice(&libdeflater::crc32(content).to_le_bytes());
    out.extend_from_slice(&content_bytes.to_le_bytes());
    Ok(())
}

/// The content of the stored member of `content_bytes` that ends where `tail` ends. `None` if the
/// tail does not end in such a member of ours, complete and undamaged.
pub fn find_stored_member(tail: &[u8], content_bytes: usize) -> Option<Vec<u8>> {
    let member_bytes = stored_member_bytes(content_bytes);
    let member = &tail[tail.len().checked_sub(member_bytes)?..];
    let mut content = vec![0; content_bytes];
    libdeflater::Decompressor::new().gzip_decompress(member, &mut content).ok()?;
    // There is only one way to store the content, so any other bytes are damage.
    let mut expected = Vec::with_capacity(member_bytes);
    encode_stored_member(&content, &mut expected).ok()?;
    (member == expected).then_some(content)
}

/// Reads the header at the start of `prefix`. `None` means that more bytes are needed.
///
/// # Errors
/// `NotAFrame` if no gzip member starts here; `Damaged` for a method other than deflate, unknown
/// flags, or a header longer than [`FOREIGN_HEADER_BYTES_MAX`].
pub fn decode_header(
    prefix: &[u8],
    offset_bytes: StoredOffset,
) -> Result<Option<MemberHeader>, ChunkError> {
    let coding = Coding::Gzip;
    let magic = [0x1f, 0x8b];
    if !magic.starts_with(&prefix[..prefix.len().min(2)]) {
        return Err(ChunkError::NotAFrame { coding, offset_bytes });
    }
    let damaged =
        |reason: &str| ChunkError::Damaged { coding, offset_bytes, reason: reason.to_owned() };
    let Some(fixed) = prefix.first_chunk::<10>() else { return Ok(None) };
    let flags = fixed[3];
    if fixed[2] != 8 {
        return Err(damaged("compression method is not deflate"));
    }
    if flags & FLAGS_RESERVED != 0 {
        return Err(damaged("unknown flags in the member header"));
    }
    let header_bytes = header_length(prefix, flags);
    if header_bytes.unwrap_or(prefix.len()) > FOREIGN_HEADER_BYTES_MAX {
        return Err(damaged("member header is too long"));
    }
    let Some(header_bytes) = header_bytes.filter(|&length| length <= prefix.len()) else {
        return Ok(None);
    };
    let lengths = if flags & FLAG_EXTRA == 0 { None } else { our_lengths(&prefix[12..]) };
    Ok(Some(MemberHeader { header_bytes, lengths }))
}

/// Length of a header with these flags; `None` if its end is not in the prefix.
fn header_length(prefix: &[u8], flags: u8) -> Option<usize> {
    let mut length = 10;
    if flags & FLAG_EXTRA != 0 {
        let field = prefix.get(length..length + 2)?;
        length += 2 + usize::from(u16::from_le_bytes([field[0], field[1]]));
    }
    for flag in [FLAG_NAME, FLAG_COMMENT] {
        if flags & flag != 0 {
            length += prefix.get(length..)?.iter().position(|&byte| byte == 0)? + 1;
        }
    }
    if flags & FLAG_HEADER_CRC != 0 {
        length += 2;
    }
    Some(length)
}

/// Our subfield, if it is the first in the extra field and its checksum matches.
fn our_lengths(extra: &[u8]) -> Option<MemberLengths> {
    let field = extra.first_chunk::<16>()?;
    let word =
        |at: usize| u32::from_le_bytes([field[at], field[at + 1], field[at + 2], field[at + 3]]);
    let named = field[..2] == SUBFIELD_NAME && field[2..4] == (SUBFIELD_BYTES as u16).to_le_bytes();
    if !named || word(12) != libdeflater::crc32(&field[..12]) {
        return None;
    }
    let lengths = MemberLengths { member_bytes: word(4), content_bytes: word(8) };
    let least_bytes = HEADER_BYTES + 2 + FOOTER_BYTES;
    (lengths.member_bytes as usize >= least_bytes).then_some(lengths)
}
