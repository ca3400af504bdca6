//! The directory of frames at the end of a zstd stream, in zstd's seekable format (version 0.1.0,
//! `contrib/seekable_format` of zstd): a skippable frame, so `zstd -d` skips it.
//!
//! ```text
//! 0x184D2A5E  size of the rest                 4 + 4 bytes, little endian like all that follows
//! compressed size, content size, [checksum]    4 + 4 [+ 4] bytes for every frame
//! frames, descriptor, 0x8F92EAB1               4 + 1 + 4 bytes: the footer
//! ```
//!
//! The table is built in memory: 8 bytes for every 8 MiB of archive is 1 MiB for a terabyte.

use super::error::ChunkError;
use crate::stream::{ArchiveOffset, StoredOffset};

const SKIPPABLE_MAGIC: u32 = 0x184d_2a5e;
const SEEKABLE_MAGIC: u32 = 0x8f92_eab1;
const HEADER_BYTES: usize = 8;
/// Length of the footer, the last bytes of a seekable stream.
pub const FOOTER_BYTES: usize = 9;
/// Most frames of a table that is written or read: 128 TiB of 8 MiB chunks. The format itself
/// allows 2^27.
pub const FRAMES_MAX: usize = 1 << 24;

/// One frame in a seek table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeekFrame {
    /// Where the frame starts, counted from the first frame of the table.
    pub compressed_offset_bytes: StoredOffset,
    /// Length of the frame.
    pub compressed_bytes: u32,
    /// Where its content starts in the decompressed stream.
    pub content_offset_bytes: ArchiveOffset,
    /// Length of its content. 0 for a skippable frame.
    pub content_bytes: u32,
    /// Low 32 bits of the XXH64 of its content.
    pub checksum: Option<u32>,
}

/// Collects the frames of a stream and writes their table.
#[derive(Clone, Debug, Default)]
pub struct SeekTableBuilder {
    entries: Vec<(u32, u32)>,
    checksums: Vec<u32>,
}

impl SeekTableBuilder {
    /// An empty table.
    pub fn new() -> SeekTableBuilder {
        SeekTableBuilder::default()
    }

    /// Adds the next frame. Either all frames have a checksum or none. If a frame has its own
    /// checksum at its end, it is the same number.
    ///
    /// # Errors
    /// `TooManyFrames`, `FrameTooLarge`, `MixedChecksums`.
    pub fn push(
        &mut self,
        compressed_bytes: u64,
        content_bytes: u64,
        checksum: Option<u32>,
    ) -> Result<(), ChunkError> {
        let field = |length_bytes: u64| {
            u32::try_from(length_bytes).map_err(|_| ChunkError::FrameTooLarge { length_bytes })
        };
        if self.entries.len() == FRAMES_MAX {
            return Err(ChunkError::TooManyFrames);
        }
        let entry = (field(compressed_bytes)?, field(content_bytes)?);
        let checksums_after = self.checksums.len() + usize::from(checksum.is_some());
        if checksums_after != 0 && checksums_after != self.entries.len() + 1 {
            return Err(ChunkError::MixedChecksums);
        }
        self.entries.push(entry);
        self.checksums.extend(checksum);
        Ok(())
    }

    /// Number of frames so far.
    pub fn frames(&self) -> usize {
        self.entries.len()
    }

    /// The table as a skippable frame, to be written behind the last frame.
    pub fn encode(&self) -> Vec<u8> {
        let entry_bytes = if self.checksums.is_empty() { 8 } else { 12 };
        let rest_bytes = self.entries.len() * entry_bytes + FOOTER_BYTES;
        let mut table = Vec::with_capacity(HEADER_BYTES + rest_bytes);
        table.extend_from_slice(&SKIPPABLE_MAGIC.to_le_bytes());
        table.extend_from_slice(&(rest_bytes as u32).to_le_bytes());
        for (number, (compressed_bytes, content_bytes)) in self.entries.iter().enumerate() {
            table.extend_from_slice(&compressed_bytes.to_le_bytes());
            table.extend_from_slice(&content_bytes.to_le_bytes());
            if let Some(checksum) = self.checksums.get(number) {
                table.extend_from_slice(&checksum.to_le_bytes());
            }
        }
        table.extend_from_slice(&(self.entries.len() as u32).to_le_bytes());
        table.push(if self.checksums.is_empty() { 0 } else { 0x80 });
        table.extend_from_slice(&SEEKABLE_MAGIC.to_le_bytes());
        table
    }
}

/// A seek table as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeekTable {
    /// The frames in the order of the stream.
    pub frames: Vec<SeekFrame>,
    /// Length of the table itself, as a frame.
    pub table_bytes: usize,
}

impl SeekTable {
    /// Where the last frame ends and the table starts.
    pub fn compressed_end_bytes(&self) -> StoredOffset {
        let last = self.frames.last();
        let end =
            |frame: &SeekFrame| frame.compressed_offset_bytes + u64::from(frame.compressed_bytes);
        last.map_or(StoredOffset::START, end)
    }

    /// Where the content of the last frame ends.
    pub fn content_end_bytes(&self) -> ArchiveOffset {
        let last = self.frames.last();
        let end = |frame: &SeekFrame| frame.content_offset_bytes + u64::from(frame.content_bytes);
        last.map_or(ArchiveOffset::START, end)
    }

    /// The frame that holds the byte at `content_offset_bytes` of the decompressed stream.
    pub fn frame_at(&self, content_offset_bytes: ArchiveOffset) -> Option<&SeekFrame> {
        let after =
            self.frames.partition_point(|frame| frame.content_offset_bytes <= content_offset_bytes);
        // Frames without content have the same offset as the next one; the later one is meant.
        let frame = self.frames.get(after.checked_sub(1)?)?;
        let end = frame.content_offset_bytes + u64::from(frame.content_bytes);
        (content_offset_bytes < end).then_some(frame)
    }
}

/// The result of reading the end of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeekTableLookup {
    /// No seek table.
    Absent,
    /// The table starts before the tail: call again with this many bytes from the end.
    NeedTail {
        /// Length of the table.
        tail_bytes: usize,
    },
    Found(SeekTable),
}

/// Reads the seek table that ends where `tail`, the last bytes of a file, ends.
///
/// # Errors
/// `TooManyFrames` or `DamagedSeekTable` if the footer is there but the table is invalid.
pub fn parse_seek_table(tail: &[u8]) -> Result<SeekTableLookup, ChunkError> {
    let damaged = |reason| Err(ChunkError::DamagedSeekTable { reason });
    let Some(&[a, b, c, d, descriptor, ref magic @ ..]) = tail.last_chunk::<FOOTER_BYTES>() else {
        return Ok(SeekTableLookup::Absent);
    };
    if *magic != SEEKABLE_MAGIC.to_le_bytes() {
        return Ok(SeekTableLookup::Absent);
    }
    let frames = u32::from_le_bytes([a, b, c, d]) as usize;
    if descriptor & 0x7c != 0 {
        return damaged("reserved bits are set");
    }
    if frames > FRAMES_MAX {
        return Err(ChunkError::TooManyFrames);
    }
    let entry_bytes = if descriptor & 0x80 == 0 { 8 } else { 12 };
    let table_bytes = HEADER_BYTES + frames * entry_bytes + FOOTER_BYTES;
    let Some(start) = tail.len().checked_sub(table_bytes) else {
        return Ok(SeekTableLookup::NeedTail { tail_bytes: table_bytes });
    };
    let (header, rest) = tail[start..].split_at(HEADER_BYTES);
    if header[..4] != SKIPPABLE_MAGIC.to_le_bytes() {
        return damaged("no skippable frame where the table should start");
    }
    if header[4..] != ((table_bytes - HEADER_BYTES) as u32).to_le_bytes() {
        return damaged("length and number of frames do not agree");
    }
    let entries = &rest[..frames * entry_bytes];
    Ok(SeekTableLookup::Found(SeekTable {
        frames: decode_entries(entries, entry_bytes),
        table_bytes,
    }))
}

fn decode_entries(entries: &[u8], entry_bytes: usize) -> Vec<SeekFrame> {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u32::from(byte));
    let (mut compressed_offset_bytes, mut content_offset_bytes) =
        (StoredOffset::START, ArchiveOffset::START);
    let frame = |entry: &[u8]| {
        let (compressed_bytes, content_bytes) = (word(&entry[..4]), word(&entry[4..8]));
        let checksum = (entry_bytes == 12).then(|| word(&entry[8..]));
        let frame = SeekFrame {
            compressed_offset_bytes,
            compressed_bytes,
            content_offset_bytes,
            content_bytes,
            checksum,
        };
        // 2^24 frames of less than 2^32 bytes stay below 2^64.
        compressed_offset_bytes += u64::from(compressed_bytes);
        content_offset_bytes += u64::from(content_bytes);
        frame
    };
    entries.chunks_exact(entry_bytes).map(frame).collect()
}
