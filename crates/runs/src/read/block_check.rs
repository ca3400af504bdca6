//! Checks the archive's blocks with the checksums of the index. If the index comes after the
//! blocks, their checksums are kept until then.

use std::sync::{Mutex, MutexGuard};

use archive::index::{BlockChecksum, BlockHasher, IndexReader, IndexSection};
use archive::mark::{MARK_BYTES, Mark};
use archive::stream::ArchiveOffset;
use base::failures::lock;

use super::cursor::Lease;
use catalogue::IndexFile;

/// Most differing blocks that are kept by number; the rest are only counted.
const DIFFERING_MAX: usize = 10_000;
/// Most checksums that are held at once: 8 bytes each, 4 TiB of blocks of 1 MiB.
const CHECKSUMS_MAX: u64 = 1 << 22;

/// Block size for checksums kept for later, if no mark states it: the default of archives.
const KEPT_BLOCK_BYTES: u32 = 1 << 20;

/// Checksums of all blocks so far. Fed by one thread, 8 bytes for each of up to [`CHECKSUMS_MAX`]
/// blocks. The last block of the ring is held back, since the archive may end in it.
pub(crate) struct KeptChecksums(Mutex<Kept>);

struct Kept {
    /// The block size if no mark states it.
    supposed_bytes: u32,
    block_bytes: u32,
    hasher: BlockHasher,
    checksums: Vec<u64>,
    state: KeptState,
    /// The last bytes fed, of which those from `from` on are not hashed.
    pending: Option<Lease>,
    from: usize,
    /// Where these start.
    pending_bytes: ArchiveOffset,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeptState {
    /// Blocks of the archive are being fed.
    Going,
    /// Its last block is known.
    Ended,
    /// Its start or end has passed already.
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

    /// Sets the block size of the index's checksums, if no mark states it.
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

    /// The archive ends at this offset, and its index begins there.
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

    /// An archive begins at this offset, after earlier data.
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

    /// The blocks did not begin with the start of an archive.
    pub fn forget(&self) {
        self.lock().state = KeptState::Lost;
    }

    /// Checksum of a block that is complete.
    pub fn get(&self, number: u64) -> Option<u64> {
        self.lock().checksums.get(usize::try_from(number).ok()?).copied()
    }

    /// Block size and number of blocks, once the archive has ended.
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

    /// Position of an offset in the last bytes fed.
    fn within(&self, offset_bytes: ArchiveOffset) -> Option<usize> {
        let at = usize::try_from(offset_bytes.checked_since(self.pending_bytes)?).ok()?;
        self.pending.as_ref().is_some_and(|pending| at <= pending.len()).then_some(at)
    }
}

/// Expected checksums and the results. Fed by one thread.
pub(crate) struct BlockCheck {
    pub index: IndexFile,
    expected: Vec<u64>,
    state: Mutex<Seen>,
}

struct Seen {
    hasher: BlockHasher,
    /// Offset of the next expected byte.
    next_bytes: ArchiveOffset,
    /// Offset from which bytes are hashed: the start of a block.
    start_bytes: ArchiveOffset,
    /// Number of the current block.
    number: u64,
    /// Number of blocks so far.
    blocks: u64,
    differing: Vec<u64>,
    differing_count: u64,
}

impl BlockCheck {
    /// Loads the checksums of an index.
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

    /// Takes bytes of the archive, in ascending order. After a gap, checking continues with the
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
        // The index follows the archive and has checksums of its own.
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

    /// The bytes after the last ones were left out on purpose.
    pub fn leave_out_the_rest(&self) {
        let mut state = lock(&self.state);
        state.number = self.expected.len() as u64;
    }

    /// Blocks seen, blocks that differ, and the numbers of the first of those. Called after the
    /// last byte.
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
