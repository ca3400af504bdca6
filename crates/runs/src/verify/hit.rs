//! Members of an archive that are damaged: each counted once, however many checks found it.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use archive::index::{FileRecord, RecordKind};
use archive::stream::ArchiveOffset;

/// Members that are counted once each; beyond that every report counts.
const TOLD_APART_MAX: usize = 1 << 20;
/// Most ranges that are kept, to find the blocks that differ for no other reason.
const RANGES_MAX: usize = 1 << 16;

/// Members that are damaged or lost.
#[derive(Clone, Debug, Default)]
pub struct Hit {
    /// Files among them.
    pub files: u64,
    /// Folders, links and the like.
    pub others: u64,
    /// Path of the first by name; the first in time would depend on the threads.
    pub first: Vec<u8>,
    /// Blocks whose checksum does not hold, although no member in them is damaged: headers or
    /// padding.
    pub blocks: u64,
    seen: HashSet<u64>,
    ranges: Vec<Range<ArchiveOffset>>,
}

/// What a member is counted as.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Object {
    File,
    Other,
}

impl Object {
    fn of(kind: &RecordKind) -> Object {
        match kind {
            RecordKind::File { .. } => Object::File,
            _ => Object::Other,
        }
    }
}

impl Hit {
    /// A member that is in the index.
    pub(crate) fn record(&mut self, record: &FileRecord) {
        let stored_bytes = match &record.kind {
            RecordKind::File { stored_bytes, .. } => *stored_bytes,
            _ => 0,
        };
        self.path(&record.path, Object::of(&record.kind));
        if self.ranges.len() < RANGES_MAX {
            let end_bytes = record.content_offset_bytes + stored_bytes;
            self.ranges.push(record.header_offset_bytes..end_bytes);
        }
    }

    /// A member by its path; none if the path is empty.
    pub(crate) fn path(&mut self, path: &[u8], object: Object) {
        if path.is_empty() {
            return;
        }
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        if self.seen.len() < TOLD_APART_MAX && !self.seen.insert(hasher.finish()) {
            return;
        }
        if self.first.is_empty() || path < &self.first[..] {
            self.first = path.to_vec();
        }
        match object {
            Object::File => self.files += 1,
            Object::Other => self.others += 1,
        }
    }

    /// Blocks that differ: counts those that touch no damaged member.
    pub(crate) fn blocks(&mut self, differing: &[u64], block_bytes: u64) {
        if self.ranges.len() >= RANGES_MAX {
            return;
        }
        self.ranges.sort_by_key(|range| range.start);
        let touched = |block: &&u64| {
            let start = ArchiveOffset::of_block(**block, block_bytes);
            let end = start + block_bytes;
            let before = self.ranges.partition_point(|range| range.start < end);
            self.ranges[..before].iter().rev().any(|range| range.end > start)
        };
        let elsewhere = differing.iter().filter(|block| !touched(block)).count();
        self.blocks += elsewhere as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_counted_that_touch_no_member_that_was_hit() {
        const BLOCK_BYTES: u64 = 4096;
        let mut hit = Hit::default();
        hit.blocks(&[0, 7], BLOCK_BYTES);
        assert_eq!(hit.blocks, 2);
        let mut hit = Hit::default();
        let [start, end] = [3 * BLOCK_BYTES + 512, 5 * BLOCK_BYTES].map(ArchiveOffset::new);
        hit.ranges.push(start..end);
        hit.blocks(&[2, 3, 4, 5], BLOCK_BYTES);
        assert_eq!(hit.blocks, 2);
    }
}
