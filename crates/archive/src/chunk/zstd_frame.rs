//! The framing of a zstd frame (RFC 8878, 3.1): its header, and the walk over its blocks.
//!
//! The walk finds the end of a frame by hopping over the block headers, three bytes each, without
//! decompressing. It keeps its place between calls, so that input that arrives piece by piece is
//! not walked twice. The library checks the contents of the blocks.

use super::error::{ChunkError, Coding};
use crate::stream::StoredOffset;

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const BLOCK_BYTES_MAX: u64 = 128 << 10;
/// Longest frame header: magic, descriptor, window, dictionary, content size.
pub(crate) const HEADER_BYTES_MAX: usize = 18;

/// The data of a zstd frame header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub header_bytes: usize,
    pub window_bytes: u64,
    pub content_bytes: Option<u64>,
    pub dictionary_id: u32,
    pub checksum_bytes: usize,
}

/// What starts at a place in a zstd stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    Frame(FrameHeader),
    /// A frame for other readers: eight bytes of header and this much content.
    Skippable {
        content_bytes: u32,
    },
    /// The prefix is too short to decide.
    NeedMore,
}

pub(crate) fn is_skippable_magic(magic: [u8; 4]) -> bool {
    magic[0] & 0xf0 == 0x50 && magic[1..] == [0x2a, 0x4d, 0x18]
}

pub(crate) fn is_magic(magic: [u8; 4]) -> bool {
    magic == MAGIC
}

/// Reads the start of `prefix`.
pub(crate) fn decode_opening(
    prefix: &[u8],
    offset_bytes: StoredOffset,
) -> Result<Opening, ChunkError> {
    let coding = Coding::Zstd;
    let Some(&magic) = prefix.first_chunk::<4>() else { return Ok(Opening::NeedMore) };
    if is_skippable_magic(magic) {
        return Ok(match prefix[4..].first_chunk::<4>() {
            Some(&length) => Opening::Skippable { content_bytes: u32::from_le_bytes(length) },
            None => Opening::NeedMore,
        });
    }
    if magic != MAGIC {
        return Err(ChunkError::NotAFrame { coding, offset_bytes });
    }
    let Some(&descriptor) = prefix.get(4) else { return Ok(Opening::NeedMore) };
    if descriptor & 8 != 0 {
        let reason = "reserved bit in the frame header".to_owned();
        return Err(ChunkError::Damaged { coding, offset_bytes, reason });
    }
    let single_segment = descriptor & 0x20 != 0;
    let window_field = usize::from(!single_segment);
    let dictionary_field = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size_field = match descriptor >> 6 {
        0 => usize::from(single_segment),
        flag => 1 << flag,
    };
    let header_bytes = 5 + window_field + dictionary_field + size_field;
    let Some(fields) = prefix.get(5..header_bytes) else { return Ok(Opening::NeedMore) };
    let (window, fields) = fields.split_at(window_field);
    let (dictionary, size) = fields.split_at(dictionary_field);
    let content_bytes = match size_field {
        0 => None,
        2 => Some(little_endian(size) + 256),
        _ => Some(little_endian(size)),
    };
    let window_bytes = match (window.first(), content_bytes) {
        (Some(&byte), _) => window_size(byte),
        (None, content) => content.unwrap_or(0),
    };
    Ok(Opening::Frame(FrameHeader {
        header_bytes,
        window_bytes,
        content_bytes,
        dictionary_id: little_endian(dictionary) as u32,
        checksum_bytes: if descriptor & 4 == 0 { 0 } else { 4 },
    }))
}

/// Whether the frame at the start of `prefix` leaves the unused bit unset (RFC 8878, 3.1.1.1.1.3:
/// an encoder must write 0, a decoder must ignore it).
pub(super) fn is_as_written(prefix: &[u8]) -> bool {
    prefix.get(4).is_some_and(|descriptor| descriptor & 0x10 == 0)
}

/// RFC 8878, 3.1.1.1.2: five bits of exponent, three of mantissa.
fn window_size(byte: u8) -> u64 {
    let base = 1u64 << (10 + (byte >> 3));
    base + base / 8 * u64::from(byte & 7)
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// A walk over the blocks of one frame. Positions count from the first byte of the frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockWalk {
    header: FrameHeader,
    /// Offset of the next block header, or of the checksum after the last block.
    position_bytes: u64,
    /// The most content that the blocks so far can hold.
    content_bytes_max: u64,
    after_last_block: bool,
}

/// The progress of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walked {
    /// The frame's length is known; the prefix may end before it.
    End { frame_bytes: u64, content_bytes_max: u64 },
    /// The prefix must reach this far for the next step.
    NeedMore { prefix_bytes: u64 },
}

impl BlockWalk {
    pub(crate) fn new(header: FrameHeader) -> BlockWalk {
        let position_bytes = header.header_bytes as u64;
        BlockWalk { header, position_bytes, content_bytes_max: 0, after_last_block: false }
    }

    /// Continues the walk as far as the prefix reaches. `prefix` starts with the frame.
    pub(crate) fn walk(
        &mut self,
        prefix: &[u8],
        offset_bytes: StoredOffset,
    ) -> Result<Walked, ChunkError> {
        let block_bytes_max = self.header.window_bytes.min(BLOCK_BYTES_MAX);
        while !self.after_last_block {
            let at = usize::try_from(self.position_bytes).unwrap_or(usize::MAX);
            let Some(block) = prefix.get(at..).and_then(|rest| rest.first_chunk::<3>()) else {
                return Ok(Walked::NeedMore { prefix_bytes: self.position_bytes + 3 });
            };
            let block = u64::from(u32::from_le_bytes([block[0], block[1], block[2], 0]));
            let size_bytes = block >> 3;
            let (stored_bytes, content_bytes_max) = match block >> 1 & 3 {
                0 => (size_bytes, size_bytes),
                1 => (1, size_bytes),
                2 => (size_bytes, block_bytes_max),
                _ => return Err(damaged(offset_bytes, "reserved block type")),
            };
            // The library accepts some such blocks in one call and refuses them in a stream: the
            // byte of a run that is repeated no times is too much for an empty window.
            if size_bytes.max(stored_bytes) > block_bytes_max {
                return Err(damaged(offset_bytes, "block is larger than the window or 128 KiB"));
            }
            self.position_bytes += 3 + stored_bytes;
            self.content_bytes_max += content_bytes_max;
            self.after_last_block = block & 1 == 1;
        }
        let content_bytes_max = match self.header.content_bytes {
            Some(exact) if exact > self.content_bytes_max => {
                return Err(damaged(offset_bytes, "blocks are too small for the content size"));
            }
            Some(exact) => exact,
            None => self.content_bytes_max,
        };
        let frame_bytes = self.position_bytes + self.header.checksum_bytes as u64;
        Ok(Walked::End { frame_bytes, content_bytes_max })
    }
}

fn damaged(offset_bytes: StoredOffset, reason: &str) -> ChunkError {
    ChunkError::Damaged { coding: Coding::Zstd, offset_bytes, reason: reason.to_owned() }
}
