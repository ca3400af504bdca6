//! Where the bytes of a set are on its media: what a restore reads from which, in order.
//!
//! The same arithmetic as the reading itself, without a drive.

use std::ops::Range;

use archive::index::ExtentRecord;
use archive::stream::StoredOffset;

use super::index_segment::TapeIndex;

/// Blocks of a medium that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedBlocks {
    pub medium: [u8; 16],
    /// Number of the volume in the set.
    pub volume: u32,
    /// Blocks and filemarks before the first, from the beginning of the medium, if the index has
    /// it.
    pub first: Option<u64>,
    pub blocks: u64,
    /// Bytes of each.
    pub block_bytes: u64,
}

impl TapeIndex {
    /// The blocks that hold these ranges of the stored stream, which ascend.
    pub fn wanted_blocks(&self, ranges: &[Range<StoredOffset>]) -> Vec<WantedBlocks> {
        let mut wanted: Vec<WantedBlocks> = Vec::new();
        for piece in self.pieces(ranges) {
            if let Some(extent) = piece.extent {
                push(&mut wanted, self.blocks_of(&piece.range, &self.extents[extent]));
            }
        }
        wanted
    }

    /// These ranges, cut where a part of the set ends.
    pub(super) fn pieces(&self, ranges: &[Range<StoredOffset>]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        // Each part ends behind the one before, in indexes that are not damaged.
        let ends_ascend = self.extents.is_sorted_by_key(ExtentRecord::stream_end_bytes);
        for range in ranges {
            let mut at = range.start;
            let is_before = |extent: &ExtentRecord| ends_ascend && extent.stream_end_bytes() <= at;
            let first = self.extents.partition_point(is_before);
            for (number, extent) in self.extents.iter().enumerate().skip(first) {
                let to = range.end.min(extent.stream_end_bytes());
                if at >= range.end {
                    break;
                }
                let begin = range.end.min(extent.stream_offset_bytes);
                if begin > at {
                    pieces.push(Piece { range: at..begin, extent: None });
                    at = begin;
                }
                if at < to {
                    pieces.push(Piece { range: at..to, extent: Some(number) });
                    at = to;
                }
            }
        }
        pieces
    }

    /// The blocks of a part that hold a range of the stored stream.
    pub(super) fn blocks_of(
        &self,
        range: &Range<StoredOffset>,
        extent: &ExtentRecord,
    ) -> WantedBlocks {
        let block_bytes = u64::from(self.index.trailer.block_bytes).max(1);
        let label_bytes = u64::from(extent.label_bytes);
        let in_part = |offset: StoredOffset| (offset - extent.stream_offset_bytes) + label_bytes;
        let first = in_part(range.start) / block_bytes;
        let blocks = in_part(range.end).div_ceil(block_bytes) - first;
        let (medium, volume) = (extent.medium, extent.volume);
        let first = extent.label_block.map(|label| label + first);
        WantedBlocks { medium, volume, first, blocks, block_bytes }
    }
}

/// A stretch of the stored stream that is in one part of the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub range: Range<StoredOffset>,
    /// Number of the part; `None`: the index has no location for it.
    pub extent: Option<usize>,
}

/// Adds blocks, to those before if they follow them or share one with them.
fn push(wanted: &mut Vec<WantedBlocks>, next: WantedBlocks) {
    if let Some(last) = wanted.last_mut()
        && last.medium == next.medium
        && let (Some(first), Some(more)) = (last.first, next.first)
        && (first..=first + last.blocks).contains(&more)
    {
        last.blocks = last.blocks.max(more + next.blocks - first);
        return;
    }
    wanted.push(next);
}
