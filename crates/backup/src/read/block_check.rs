//! The checksums that the index keeps of the archive's blocks, held against what goes by, or, where
//! the index comes behind the blocks, kept until it does.

use std::sync::{Mutex, PoisonError};

use archive::index::{BlockChecksum, BlockHasher, IndexReader, Section};

use super::index_file::IndexFile;

/// Blocks that differ and are kept by number; of more only the count.
const DIFFERING_MAX: usize = 10_000;
/// Most checksums that are held at once: 8 bytes each, 4 TiB of blocks of 1 MiB.
const CHECKSUMS_MAX: u64 = 1 << 22;

/// Bytes of a block whose checksum is kept for later: what archives have unless told otherwise.
/// Only the trailer, which comes last, says what they are.
pub(crate) const KEPT_BLOCK_BYTES: u32 = 1 << 20;

/// Checksums of all blocks that went by. Fed by one thread, 8 bytes for each of up to
/// [`CHECKSUMS_MAX`] blocks.
pub(crate) struct KeptChecksums(Mutex<(BlockHasher, Vec<u64>)>);

impl Default for KeptChecksums {
    fn default() -> KeptChecksums {
        let hasher = BlockHasher::new(KEPT_BLOCK_BYTES as usize);
        KeptChecksums(Mutex::new((hasher, Vec::new())))
    }
}

impl KeptChecksums {
    /// The next bytes.
    pub fn update(&self, bytes: &[u8]) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (hasher, kept) = &mut *state;
        if (kept.len() as u64) < CHECKSUMS_MAX {
            hasher.update(bytes, |checksum| kept.push(checksum));
        }
    }

    /// Checksum of a block, once all of it has gone by.
    pub fn get(&self, number: u64) -> Option<u64> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.1.get(usize::try_from(number).ok()?).copied()
    }
}

/// Expected checksums and what came of them. Fed by one thread.
pub(crate) struct BlockCheck {
    pub index: IndexFile,
    expected: Vec<u64>,
    state: Mutex<Seen>,
}

struct Seen {
    hasher: BlockHasher,
    /// Where the next bytes are expected.
    next_bytes: u64,
    /// From where on they are hashed: the start of a block.
    start_bytes: u64,
    /// Number of the block that is being hashed.
    number: u64,
    /// Blocks seen in all.
    blocks: u64,
    differing: Vec<u64>,
    differing_count: u64,
}

impl BlockCheck {
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
        let state = Seen {
            hasher: BlockHasher::new(block_bytes),
            next_bytes: 0,
            start_bytes: 0,
            number: 0,
            blocks: 0,
            differing: Vec::new(),
            differing_count: 0,
        };
        Some(BlockCheck { index, expected, state: Mutex::new(state) })
    }

    /// Bytes of the archive, in ascending order. Where some are left out, checking goes on with the
    /// next whole block.
    pub fn update(&self, offset_bytes: u64, bytes: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        let block_bytes = u64::from(self.index.trailer.block_bytes);
        if offset_bytes != state.next_bytes {
            state.hasher = BlockHasher::new(block_bytes as usize);
            state.start_bytes = offset_bytes.next_multiple_of(block_bytes);
            state.number = state.start_bytes / block_bytes;
        }
        state.next_bytes = offset_bytes + bytes.len() as u64;
        // The index itself lies behind the archive and has checksums of its own.
        let archive_bytes = self.index.trailer.archive_bytes;
        let to = archive_bytes.saturating_sub(offset_bytes).min(bytes.len() as u64) as usize;
        let from = state.start_bytes.saturating_sub(offset_bytes).min(to as u64) as usize;
        if from == to {
            return;
        }
        let mut found = Vec::new();
        state.hasher.update(&bytes[from..to], |checksum| found.push(checksum));
        if offset_bytes + to as u64 == archive_bytes {
            let fresh = BlockHasher::new(block_bytes as usize);
            found.extend(std::mem::replace(&mut state.hasher, fresh).finish());
        }
        for checksum in found {
            if self.expected.get(state.number as usize) != Some(&checksum) {
                state.differing_count += 1;
                if state.differing.len() < DIFFERING_MAX {
                    state.differing.push(state.number);
                }
            }
            state.number += 1;
            state.blocks += 1;
        }
    }

    /// Says that what follows the last bytes was left out on purpose.
    pub fn leave_out_the_rest(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.number = self.expected.len() as u64;
    }

    /// Blocks seen, blocks that differ, and the numbers of the first of those. Behind the last
    /// bytes that were seen no block may be left.
    pub fn outcome(&self) -> (u64, u64, Vec<u64>) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = (self.expected.len() as u64).saturating_sub(state.number);
        let first_missing = state.number;
        let mut differing = state.differing.clone();
        let room = DIFFERING_MAX - differing.len();
        differing.extend((first_missing..first_missing + missing).take(room));
        (state.blocks, state.differing_count + missing, differing)
    }
}
