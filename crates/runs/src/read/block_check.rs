//! The checksums that the index keeps of the archive's blocks, held against what goes by, or, where
//! the index comes behind the blocks, kept until it does.

use std::sync::{Mutex, MutexGuard};

use archive::index::{BlockChecksum, BlockHasher, IndexReader, IndexSection};
use archive::mark::{MARK_BYTES, Mark};
use archive::stream::ArchiveOffset;
use base::failures::lock;

use super::cursor::Lease;
use catalogue::IndexFile;

/// Blocks that differ and are kept by number; of more only the count.
const DIFFERING_MAX: usize = 10_000;
/// Most checksums that are held at once: 8 bytes each, 4 TiB of blocks of 1 MiB.
const CHECKSUMS_MAX: u64 = 1 << 22;

/// Bytes of a block whose checksum is kept for later where no mark says what they are: what
/// archives have unless told otherwise.
const KEPT_BLOCK_BYTES: u32 = 1 << 20;

/// Checksums of all blocks that went by. Fed by one thread, 8 bytes for each of up to
/// [`CHECKSUMS_MAX`] blocks. What came last is held back, as the archive may end in it: a block of
/// the ring.
pub(crate) struct KeptChecksums(Mutex<Kept>);

struct Kept {
    /// What blocks have where no mark says so.
    supposed_bytes: u32,
    block_bytes: u32,
    hasher: BlockHasher,
    checksums: Vec<u64>,
    state: KeptState,
    /// What came last, of which the bytes from `from` on are not hashed.
    pending: Option<Lease>,
    from: usize,
    /// Where that starts.
    pending_bytes: ArchiveOffset,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeptState {
    /// The archive goes by.
    Going,
    /// Its last block is known.
    Ended,
    /// Where it ends or begins has gone by already.
    Lost,
}

impl Default for KeptChecksums {
    fn default() -> KeptChecksums {
        KeptChecksums(Mutex::new(Kept {
            supposed_bytes: KEPT_BLOCK_BYTES,
            block_bytes: KEPT_BLOCK_BYTES,
            hasher: BlockHasher::new(KEPT_BLOCK_BYTES as usize),
            checksums: Vec::new(),
            state: KeptState::Going,
            pending: None,
            from: 0,
            pending_bytes: ArchiveOffset::START,
        }))
    }
}

impl KeptChecksums {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        lock(&self.0)
    }

    /// Says how large the blocks are of which an index has checksums, where no mark does.
    pub fn suppose(&self, block_bytes: u32) {
        self.lock().supposed_bytes = block_bytes;
    }

    /// The next bytes.
    pub fn update(&self, bytes: Lease) {
        let mut kept = self.lock();
        match kept.pending.take() {
            Some(before) => {
                let from = kept.from;
                if kept.state == KeptState::Going {
                    kept.hash(&before[from..]);
                }
                kept.pending_bytes += before.len() as u64;
            }
            None => kept.begin(&bytes),
        }
        kept.from = 0;
        kept.pending = Some(bytes);
    }

    /// Says that the archive ends at this offset, and its index begins there.
    pub fn end_at(&self, offset_bytes: ArchiveOffset) {
        let mut kept = self.lock();
        if kept.state != KeptState::Going {
            return;
        }
        kept.state = KeptState::Lost;
        let (Some(pending), Some(to)) = (kept.pending.clone(), kept.within(offset_bytes)) else {
            return;
        };
        if to >= kept.from {
            let from = kept.from;
            kept.hash(&pending[from..to]);
            let fresh = BlockHasher::new(kept.block_bytes as usize);
            let last = std::mem::replace(&mut kept.hasher, fresh).finish();
            kept.checksums.extend(last);
            kept.state = KeptState::Ended;
        }
    }

    /// Says that an archive begins at this offset, behind what came before.
    pub fn begin_at(&self, offset_bytes: ArchiveOffset) {
        let mut kept = self.lock();
        kept.state = KeptState::Lost;
        let (Some(pending), Some(from)) = (kept.pending.clone(), kept.within(offset_bytes)) else {
            return;
        };
        if pending.len() - from >= MARK_BYTES {
            kept.begin(&pending[from..]);
            kept.from = from;
        }
    }

    /// Says that the blocks were not those of an archive from its beginning on.
    pub fn forget(&self) {
        self.lock().state = KeptState::Lost;
    }

    /// Checksum of a block, once all of it has gone by.
    pub fn get(&self, number: u64) -> Option<u64> {
        self.lock().checksums.get(usize::try_from(number).ok()?).copied()
    }

    /// Bytes of the blocks and their number, once the archive has ended.
    pub fn ended(&self) -> Option<(u32, u64)> {
        let kept = self.lock();
        let all = (kept.checksums.len() as u64) < CHECKSUMS_MAX && kept.state == KeptState::Ended;
        all.then_some((kept.block_bytes, kept.checksums.len() as u64))
    }
}

impl Kept {
    /// An archive begins with these bytes.
    fn begin(&mut self, bytes: &[u8]) {
        let mark = Mark::of_prefix(bytes).and_then(|mark| mark.block_bytes);
        self.block_bytes = mark.unwrap_or(self.supposed_bytes);
        self.hasher = BlockHasher::new(self.block_bytes as usize);
        self.checksums.clear();
        self.state = KeptState::Going;
    }

    fn hash(&mut self, bytes: &[u8]) {
        let Kept { hasher, checksums, .. } = self;
        if (checksums.len() as u64) < CHECKSUMS_MAX {
            hasher.update(bytes, |checksum| checksums.push(checksum));
        }
    }

    /// Where in what came last an offset lies.
    fn within(&self, offset_bytes: ArchiveOffset) -> Option<usize> {
        let at = usize::try_from(offset_bytes.checked_since(self.pending_bytes)?).ok()?;
        self.pending.as_ref().is_some_and(|pending| at <= pending.len()).then_some(at)
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
    next_bytes: ArchiveOffset,
    /// From where on they are hashed: the start of a block.
    start_bytes: ArchiveOffset,
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
        let count = index.trailer.section(IndexSection::Blocks).summary.records;
        if block_bytes == 0 || count > CHECKSUMS_MAX {
            return None;
        }
        let reader = index.section(IndexSection::Blocks).ok()?;
        let expected: Vec<u64> = IndexReader::<BlockChecksum, _>::new(reader)
            .map(|record| record.map(|checksum| checksum.0))
            .collect::<Result<_, _>>()
            .ok()?;
        let state = Seen {
            hasher: BlockHasher::new(block_bytes),
            next_bytes: ArchiveOffset::START,
            start_bytes: ArchiveOffset::START,
            number: 0,
            blocks: 0,
            differing: Vec::new(),
            differing_count: 0,
        };
        Some(BlockCheck { index, expected, state: Mutex::new(state) })
    }

    /// Bytes of the archive, in ascending order. Where some are left out, checking goes on with the
    /// next whole block.
    pub fn update(&self, offset_bytes: ArchiveOffset, bytes: &[u8]) {
        let mut state = lock(&self.state);
        let state = &mut *state;
        let block_bytes = u64::from(self.index.trailer.block_bytes);
        if offset_bytes != state.next_bytes {
            state.hasher = BlockHasher::new(block_bytes as usize);
            state.start_bytes = offset_bytes.round_up(block_bytes);
            state.number = state.start_bytes.block(block_bytes);
        }
        state.next_bytes = offset_bytes + bytes.len() as u64;
        // The index itself lies behind the archive and has checksums of its own.
        let archive_end = self.index.trailer.archive_end_bytes();
        let to = archive_end.saturating_since(offset_bytes).min(bytes.len() as u64) as usize;
        let from = state.start_bytes.saturating_since(offset_bytes).min(to as u64) as usize;
        if from == to {
            return;
        }
        let mut found = Vec::new();
        state.hasher.update(&bytes[from..to], |checksum| found.push(checksum));
        if offset_bytes + to as u64 == archive_end {
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
        let mut state = lock(&self.state);
        state.number = self.expected.len() as u64;
    }

    /// Blocks seen, blocks that differ, and the numbers of the first of those. Behind the last
    /// bytes that were seen no block may be left.
    pub fn outcome(&self) -> (u64, u64, Vec<u64>) {
        let state = lock(&self.state);
        let missing = (self.expected.len() as u64).saturating_sub(state.number);
        let first_missing = state.number;
        let mut differing = state.differing.clone();
        let room = DIFFERING_MAX - differing.len();
        differing.extend((first_missing..first_missing + missing).take(room));
        (state.blocks, state.differing_count + missing, differing)
    }
}
