//! The hash stage: threads that see every block of the archive once.
//!
//! One thread hashes a block, in any order: the checksums of the archive blocks in it, and the
//! stretches of files that are too large for their reader to hash. What must be in archive order is
//! done in turns: stretches are joined to content hashes, and the readers' results become the
//! sections of the index. That costs microseconds for each block, so the threads share the rest
//! (`cargo run --release -p runs --example serial_rest`).
//!
//! A reader that copies a block from the page cache hashes it itself, while it is in its core's
//! cache ([`Hasher::hash_early`]); only the ordered part is left for this stage.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use archive::index::{
    AgainRecord, BlockChecksum, BlockHasher, FileRecord, IndexError, IndexWriter, RecordKind,
    SectionSummary, SetIdHasher, Stretch, WarningRecord,
};
use archive::stream::ArchiveOffset;
use base::failures::lock;
use flow::account::{Account, ThreadState};
use flow::cancel::Cancel;
use flow::ring::{Block, Consumer};
use flow::turnstile::Turnstile;

use super::error::BackupError;
use super::groups::{Content, Finding, Groups, HashGroup, in_archive};
use crate::spool::Spool;

/// Largest archive block whose checksum is computed in one go, which takes half the time of steps
/// (`cargo run --release -p archive --example hash_limits`). A longer one would have left the cache
/// before its content hash is done.
const CHECKSUM_WHOLE_BYTES_MAX: usize = 4 << 20;

/// Most objects that are noted for the next set: 24 bytes each. With more the next set is a full
/// one.
pub(super) const AGAIN_MAX: usize = 1 << 20;

/// The result of the hash stage at the end of the archive: three sections of the index.
pub(super) struct Gathered {
    pub(super) files: (Spool, SectionSummary),
    pub(super) blocks: (Spool, SectionSummary),
    pub(super) warnings: (Spool, SectionSummary),
    /// What the next set of a chain has to store again.
    pub(super) again: Vec<AgainRecord>,
    pub(super) set_id: [u8; 32],
    pub(super) archive_bytes: u64,
    pub(super) regular_files: u64,
    pub(super) source_bytes: u64,
}

/// What the threads of the stage share.
pub(super) struct Hasher<'a> {
    consumer: &'a Consumer,
    groups: &'a Groups,
    block_bytes: usize,
    turnstile: Turnstile,
    gathering: Mutex<Gathering>,
    /// Hashes that readers computed for blocks that are not yet committed or taken.
    early: Mutex<Vec<(ArchiveOffset, Hashed)>>,
}

/// What is assembled in archive order.
struct Gathering {
    block: BlockHasher,
    files: (Spool, IndexWriter<FileRecord>),
    blocks: (Spool, IndexWriter<BlockChecksum>),
    warnings: (Spool, IndexWriter<WarningRecord>),
    again: Vec<AgainRecord>,
    checksums: Vec<u64>,
    archive_bytes: u64,
    regular_files: u64,
    source_bytes: u64,
}

/// What one thread computed for a block of the ring.
struct Hashed {
    /// The part of it with whole archive blocks, and their checksums.
    whole: Range<usize>,
    checksums: Vec<u64>,
    /// Hashes of the files that are hashed here, in the order of the block.
    stretches: Vec<Stretch>,
}

impl<'a> Hasher<'a> {
    pub(super) fn new(
        consumer: &'a Consumer,
        groups: &'a Groups,
        block_bytes: usize,
        cancel: &Cancel,
    ) -> Hasher<'a> {
        Hasher {
            consumer,
            groups,
            block_bytes,
            turnstile: Turnstile::new(cancel.clone()),
            gathering: Mutex::new(Gathering::new(block_bytes)),
            early: Mutex::default(),
        }
    }

    /// Hashes a whole ring block that its reader has just filled with nothing but a part of
    /// `content`, before it is committed.
    pub(super) fn hash_early(&self, start: ArchiveOffset, block: &[u8], content: &Content) {
        let hashed = self.hash(start, block, [content].into_iter());
        lock(&self.early).push((start, hashed));
    }

    /// What the reader computed for a block.
    fn take_early(&self, start: ArchiveOffset) -> Option<Hashed> {
        let mut early = lock(&self.early);
        let place = early.iter().position(|(place, _)| *place == start)?;
        Some(early.swap_remove(place).1)
    }

    /// One of the threads.
    pub(super) fn run(&self, account: &mut Account) -> Result<(), BackupError> {
        while let Some(block) = self.consumer.next(account)? {
            let bytes = block.len() as u64;
            self.pass(block, account)?;
            account.stage().add_bytes(bytes);
        }
        Ok(())
    }

    /// Does the ordered work of the ready blocks, called by a reader that committed one of them
    /// without waking a thread: it has the block in its cache, and the work takes microseconds.
    /// Time and bytes count for the reader.
    pub(super) fn pass_ready(&self, account: &mut Account) -> Result<(), BackupError> {
        while let Some(block) = self.consumer.try_next()? {
            self.pass(block, account)?;
        }
        Ok(())
    }

    fn pass(&self, block: Block, account: &mut Account) -> Result<(), BackupError> {
        let start = in_archive(block.position_bytes());
        let hashed = self.take_early(start).unwrap_or_else(|| {
            let contents = self.contents(start, block.len());
            self.hash(start, &block, contents.iter().map(Arc::as_ref))
        });
        let turn = self.turnstile.enter(block.number(), account, ThreadState::Blocked)?;
        lock(&self.gathering).add(&block, hashed, self.groups)?;
        turn.pass();
        Ok(())
    }

    /// The result of all threads, when they are done.
    pub(super) fn finish(self) -> Result<Gathered, BackupError> {
        self.gathering.into_inner().unwrap_or_else(PoisonError::into_inner).finish()
    }

    /// Hashes a block of the ring, which holds parts of these contents.
    fn hash<'c>(
        &self,
        start: ArchiveOffset,
        block: &[u8],
        contents: impl Iterator<Item = &'c Content>,
    ) -> Hashed {
        let whole = BlockHasher::whole_blocks(self.block_bytes, start, block.len());
        let (mut blocks, mut checksums) = (BlockHasher::new(self.block_bytes), Vec::new());
        let mut done = whole.start;
        let mut checksum_up_to = |end: usize| {
            let mut end = end.clamp(done, whole.end);
            if self.block_bytes <= CHECKSUM_WHOLE_BYTES_MAX {
                end = done + (end - done) / self.block_bytes * self.block_bytes;
            }
            blocks.update(&block[done..end], |checksum| checksums.push(checksum));
            done = end;
        };
        let stretches = contents.map(|content| {
            let part = content.part(start, block.len());
            let at_bytes = start + part.start as u64 - content.start_bytes;
            let begin = part.start;
            content.tree.hash(at_bytes, &block[part], |end| checksum_up_to(begin + end))
        });
        let stretches = stretches.collect();
        checksum_up_to(block.len());
        Hashed { whole, checksums, stretches }
    }

    /// The contents that have a part in a block. All of them were announced before the block was
    /// filled, and stay until its turn.
    fn contents(&self, start: ArchiveOffset, block_bytes: usize) -> Vec<Arc<Content>> {
        self.groups.change(|groups| {
            let first = groups.partition_point(|(end_bytes, _)| *end_bytes <= start);
            let mut before = start;
            let overlapping = groups.range(first..).take_while(|(end_bytes, _)| {
                let overlaps = before < start + block_bytes as u64;
                before = *end_bytes;
                overlaps
            });
            let contents = overlapping.filter_map(|(_, group)| group.content.clone());
            contents.filter(|content| !content.part(start, block_bytes).is_empty()).collect()
        })
    }
}

impl Gathering {
    fn new(block_bytes: usize) -> Gathering {
        Gathering {
            block: BlockHasher::new(block_bytes),
            files: Default::default(),
            blocks: Default::default(),
            warnings: Default::default(),
            again: Vec::new(),
            checksums: Vec::new(),
            archive_bytes: 0,
            regular_files: 0,
            source_bytes: 0,
        }
    }

    /// Takes the next block of the ring.
    fn add(&mut self, block: &Block, hashed: Hashed, groups: &Groups) -> Result<(), BackupError> {
        let Hashed { whole, checksums, stretches } = hashed;
        let all = &mut self.checksums;
        self.block.update_around(block, whole, &checksums, |checksum| all.push(checksum));
        self.write_checksums()?;
        self.members(block, stretches, groups)?;
        self.archive_bytes += block.len() as u64;
        Ok(())
    }

    /// Handles the stretches of the archive that this block holds or ends.
    fn members(
        &mut self,
        block: &Block,
        stretches: Vec<Stretch>,
        groups: &Groups,
    ) -> Result<(), BackupError> {
        let start = in_archive(block.position_bytes());
        let end = start + block.len() as u64;
        let mut stretches = stretches.into_iter();
        while let Some((group_end, group)) = groups.first() {
            if let Some(content) = &group.content
                && !content.part(start, block.len()).is_empty()
                && let Some(stretch) = stretches.next()
            {
                content.join(stretch);
            }
            if group_end > end {
                break;
            }
            groups.take_at(group_end);
            for finding in lock(&group.findings).drain(..) {
                match finding {
                    Finding::File(record) => self.file(record, &group)?,
                    Finding::Warning(warning) => self.warning(&warning)?,
                    Finding::Again(again) => self.again(again),
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, mut record: FileRecord, group: &HashGroup) -> Result<(), BackupError> {
        if let RecordKind::File { content_hash, stored_bytes, .. } = &mut record.kind {
            self.source_bytes += *stored_bytes;
            self.regular_files += 1;
            if let Some(content) = &group.content {
                *content_hash = content.finish();
            }
        }
        let (spool, writer) = &mut self.files;
        writer.push(&record, spool.buffer()).map_err(BackupError::Index)?;
        spool.settle().map_err(BackupError::Spool)
    }

    fn again(&mut self, again: AgainRecord) {
        if self.again.len() < AGAIN_MAX {
            self.again.push(again);
        }
    }

    fn warning(&mut self, warning: &WarningRecord) -> Result<(), BackupError> {
        let (spool, writer) = &mut self.warnings;
        match writer.push(warning, spool.buffer()) {
            // Too long to be kept; it was reported when it happened.
            Ok(()) | Err(IndexError::Unwritable { .. }) => {}
            Err(error) => return Err(BackupError::Index(error)),
        }
        spool.settle().map_err(BackupError::Spool)
    }

    fn write_checksums(&mut self) -> Result<(), BackupError> {
        let (spool, writer) = &mut self.blocks;
        for checksum in self.checksums.drain(..) {
            let record = BlockChecksum(checksum);
            writer.push(&record, spool.buffer()).map_err(BackupError::Index)?;
        }
        spool.settle().map_err(BackupError::Spool)
    }

    fn finish(mut self) -> Result<Gathered, BackupError> {
        let block = std::mem::replace(&mut self.block, BlockHasher::new(1));
        self.checksums.extend(block.finish());
        self.write_checksums()?;
        let (mut files, writer) = self.files;
        let file_summary = writer.finish(files.buffer());
        let (mut blocks, writer) = self.blocks;
        let block_summary = writer.finish(blocks.buffer());
        let (mut warnings, writer) = self.warnings;
        let warning_summary = writer.finish(warnings.buffer());
        let mut set_id = SetIdHasher::new();
        for spool in [&files, &blocks] {
            spool.read_through(|bytes| set_id.update(bytes)).map_err(BackupError::Spool)?;
        }
        Ok(Gathered {
            files: (files, file_summary),
            blocks: (blocks, block_summary),
            warnings: (warnings, warning_summary),
            again: self.again,
            set_id: set_id.finish(),
            archive_bytes: self.archive_bytes,
            regular_files: self.regular_files,
            source_bytes: self.source_bytes,
        })
    }
}
