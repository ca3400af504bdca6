//! Where the bytes of a set are on its media: what a restore reads from which, in order.
//!
//! The same arithmetic as the reading itself, without a drive.

use std::ops::Range;

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
        let block_bytes = u64::from(self.index.trailer.block_bytes).max(1);
        let mut wanted: Vec<WantedBlocks> = Vec::new();
        for range in ranges {
            let mut at = range.start;
            for extent in self.extents.iter() {
                let to = range.end.min(extent.stream_end_bytes());
                if at >= to {
                    continue;
                }
                at = at.max(extent.stream_offset_bytes);
                let label_bytes = u64::from(extent.label_bytes);
                let in_part =
                    |offset: StoredOffset| (offset - extent.stream_offset_bytes) + label_bytes;
                let first = in_part(at) / block_bytes;
                let blocks = in_part(to).div_ceil(block_bytes) - first;
                let first = extent.label_block.map(|label| label + first);
                let next = WantedBlocks {
                    medium: extent.medium,
                    volume: extent.volume,
                    first,
                    blocks,
                    block_bytes,
                };
                push(&mut wanted, next);
                at = to;
            }
        }
        wanted
    }
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
