//! The stored stream on its way to the medium: what of it may be needed again.

use std::collections::VecDeque;

use archive::chunk::Compression;
use archive::label::LabelKind;
use archive::stream::StoredOffset;
use flow::ring::Block;

use super::members::MemberTracker;
use crate::segments::Segments;

/// The stored stream that passes: the data, or the index.
pub(super) struct Stream {
    pub(super) kind: LabelKind,
    /// Place of the next byte to write.
    pub(super) position_bytes: StoredOffset,
    /// Blocks that are not written yet, and earlier ones that may be needed again.
    pub(super) held: VecDeque<Block>,
    /// The last chunk that was looked up: number and start.
    chunk: (usize, StoredOffset),
    /// Follows the members of a stream that is not compressed.
    pub(super) members: Option<MemberTracker>,
    /// The place up to which some volume holds the stream.
    reached_bytes: StoredOffset,
}

impl Stream {
    pub(super) fn new(kind: LabelKind, compression: Compression) -> Stream {
        let is_plain = kind == LabelKind::Index || compression == Compression::None;
        Stream {
            kind,
            position_bytes: StoredOffset::START,
            held: VecDeque::new(),
            chunk: (0, StoredOffset::START),
            members: is_plain.then(MemberTracker::new),
            reached_bytes: StoredOffset::START,
        }
    }

    /// The block with the next byte to write, and the byte's offset in it.
    pub(super) fn next(&self) -> Option<(Block, usize)> {
        let block = self.held.iter().find(|block| end_of(block) > self.position_bytes)?;
        Some((block.clone(), (self.position_bytes - start_of(block)) as usize))
    }

    /// The next bytes are on the medium. True if no earlier volume had them.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> bool {
        if let Some(members) = &mut self.members {
            members.feed(bytes);
        }
        self.position_bytes += bytes.len() as u64;
        let is_new = self.position_bytes > self.reached_bytes;
        self.reached_bytes = self.position_bytes.max(self.reached_bytes);
        is_new
    }

    /// Where the stream must restart on another volume: at the start of the chunk with the next
    /// byte.
    pub(super) fn restart_bytes(&mut self, segments: &Segments) -> StoredOffset {
        if self.members.is_some() {
            return self.position_bytes;
        }
        let chunks = segments.chunks();
        let (mut number, mut start) = self.chunk;
        while let Some(&(compressed_bytes, _)) = chunks.get(number)
            && start + u64::from(compressed_bytes) <= self.position_bytes
        {
            start += u64::from(compressed_bytes);
            number += 1;
        }
        self.chunk = (number, start);
        start
    }

    /// Returns the blocks that are not needed again.
    pub(super) fn let_go(&mut self, segments: &Segments) {
        let wanted = self.restart_bytes(segments);
        while let Some(first) = self.held.front()
            && end_of(first) <= wanted
        {
            self.held.pop_front();
        }
    }
}

/// Start of a block in the stored stream, which the ring before the sink holds.
pub(super) fn start_of(block: &Block) -> StoredOffset {
    block.position_bytes().same_in()
}

fn end_of(block: &Block) -> StoredOffset {
    start_of(block) + block.len() as u64
}
