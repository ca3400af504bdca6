//! The checksums that the index keeps of the archive's blocks, held against what goes by.

use std::sync::{Mutex, PoisonError};

use archive::index::{BlockChecksum, BlockHasher, IndexReader, Section};
use device::source::Source;

use super::index_file::IndexFile;

/// Blocks that differ and are kept by number; of more only the count.
const DIFFERING_MAX: usize = 10_000;
/// Most checksums that are held at once: 8 bytes each, 4 TiB of blocks of 1 MiB.
const CHECKSUMS_MAX: u64 = 1 << 22;

/// Expected checksums and what came of them. Fed by one thread.
pub(crate) struct BlockCheck {
    pub index: IndexFile,
    expected: Vec<u64>,
    state: Mutex<Seen>,
}

struct Seen {
    hasher: Option<BlockHasher>,
    bytes: u64,
    blocks: u64,
    differing: Vec<u64>,
    differing_count: u64,
}

impl BlockCheck {
    /// The checksums of `source`, if it has an index that can be read now.
    pub fn load(source: &Source) -> Option<BlockCheck> {
        BlockCheck::of(IndexFile::find(source)?)
    }

    /// The checksums of an index.
    pub fn of(index: IndexFile) -> Option<BlockCheck> {
        let block_bytes = index.trailer.block_bytes as usize;
        let count = index.trailer.section(Section::Blocks).summary.records;
        if block_bytes == 0 || count > CHECKSUMS_MAX {
            return None;
        }
        let reader = index.section(Section::Blocks).ok()?;
        let expected: Vec<u64> = IndexReader::<BlockChecksum, _>::new(reader)
            .map(|record| record.map(|checksum| checksum.0))
            .collect::<Result<_, _>>()
            .ok()?;
        let hasher = Some(BlockHasher::new(block_bytes));
        let (differing, differing_count) = (Vec::new(), 0);
        let state = Seen { hasher, bytes: 0, blocks: 0, differing, differing_count };
        Some(BlockCheck { index, expected, state: Mutex::new(state) })
    }

    /// The next bytes of the archive.
    pub fn update(&self, bytes: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        // The index itself lies behind the archive and has checksums of its own.
        let left_bytes = self.index.trailer.archive_bytes.saturating_sub(state.bytes);
        let bytes = &bytes[..(bytes.len() as u64).min(left_bytes) as usize];
        state.bytes += bytes.len() as u64;
        let Some(hasher) = &mut state.hasher else { return };
        let mut found = Vec::new();
        hasher.update(bytes, |checksum| found.push(checksum));
        if state.bytes == self.index.trailer.archive_bytes {
            found.extend(state.hasher.take().and_then(BlockHasher::finish));
        }
        for checksum in found {
            if self.expected.get(state.blocks as usize) != Some(&checksum) {
                state.differing_count += 1;
                if state.differing.len() < DIFFERING_MAX {
                    state.differing.push(state.blocks);
                }
            }
            state.blocks += 1;
        }
    }

    /// Blocks seen, blocks that differ, and the numbers of the first of those.
    pub fn outcome(&self) -> (u64, u64, Vec<u64>) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = (self.expected.len() as u64).saturating_sub(state.blocks);
        let first_missing = state.blocks;
        let mut differing = state.differing.clone();
        let room = DIFFERING_MAX - differing.len();
        differing.extend((first_missing..first_missing + missing).take(room));
        (state.blocks, state.differing_count + missing, differing)
    }
}
