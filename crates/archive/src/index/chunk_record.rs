//! The two sections of plain numbers: the places of the chunks, and the checksums of the blocks.

use super::IndexSection;
use super::section::{Record, private::Codec};
use super::varint::{self, Body, Reason};
use crate::stream::{ArchiveOffset, StoredOffset};

/// One chunk of a compressed archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkRecord {
    /// Where the chunk starts in the compressed stream.
    pub compressed_offset_bytes: StoredOffset,
    /// Its length there.
    pub compressed_bytes: u32,
    /// Where its content starts in the uncompressed archive.
    pub content_offset_bytes: ArchiveOffset,
    /// Length of its content.
    pub content_bytes: u32,
}

impl Record for ChunkRecord {
    const SECTION: IndexSection = IndexSection::Chunks;
}

/// End of the previous chunk, in the compressed and in the uncompressed stream. Chunks follow each
/// other without gaps, so only the first of a group stores its start.
#[derive(Default)]
pub struct ChunkState {
    end: Option<(StoredOffset, ArchiveOffset)>,
}

impl ChunkRecord {
    fn end(&self) -> Result<(StoredOffset, ArchiveOffset), Reason> {
        let compressed = self.compressed_offset_bytes.checked_add(self.compressed_bytes.into());
        let content = self.content_offset_bytes.checked_add(self.content_bytes.into());
        compressed.zip(content).ok_or("offset is larger than 64 bits")
    }
}

impl Codec for ChunkRecord {
    type State = ChunkState;

    fn encode(&self, state: &mut ChunkState, body: &mut Vec<u8>) -> Result<(), Reason> {
        let start = (self.compressed_offset_bytes, self.content_offset_bytes);
        let end = self.end()?;
        match state.end {
            Some(before) if before != start => return Err("chunk does not follow the one before"),
            Some(_) => {}
            None => {
                varint::put(body, start.0.bytes());
                varint::put(body, start.1.bytes());
            }
        }
        varint::put(body, self.compressed_bytes.into());
        varint::put(body, self.content_bytes.into());
        state.end = Some(end);
        Ok(())
    }

    fn decode(state: &mut ChunkState, body: &mut Body<'_>) -> Result<ChunkRecord, Reason> {
        let (compressed_offset_bytes, content_offset_bytes) = match state.end {
            Some(end) => end,
            None => (StoredOffset::new(body.number()?), ArchiveOffset::new(body.number()?)),
        };
        let (compressed_bytes, content_bytes) = (body.number_u32()?, body.number_u32()?);
        let record = ChunkRecord {
            compressed_offset_bytes,
            compressed_bytes,
            content_offset_bytes,
            content_bytes,
        };
        state.end = Some(record.end()?);
        Ok(record)
    }
}

/// Checksum of one block of the uncompressed archive: `block_checksum`. The trailer has the length
/// of the blocks; the last one ends with the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockChecksum(pub u64);

impl Record for BlockChecksum {
    const SECTION: IndexSection = IndexSection::Blocks;
}

impl Codec for BlockChecksum {
    type State = ();

    fn encode(&self, _state: &mut (), body: &mut Vec<u8>) -> Result<(), Reason> {
        body.extend_from_slice(&self.0.to_le_bytes());
        Ok(())
    }

    fn decode(_state: &mut (), body: &mut Body<'_>) -> Result<BlockChecksum, Reason> {
        Ok(BlockChecksum(u64::from_le_bytes(body.take()?)))
    }
}
