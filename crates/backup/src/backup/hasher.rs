//! The hash stage: one thread that sees every block of the archive once, in order.
//!
//! It computes the checksum of each block, the content hash of the files that are too large for
//! their reader to hash at once, and turns what the readers found out into the sections of the
//! index. All this is in archive order by nature, so the index is too.

use archive::index::{
    BlockChecksum, BlockHasher, FileRecord, IndexError, IndexWriter, RecordKind, SectionSummary,
    SetIdHasher, WarningRecord,
};
use failures::lock;
use flow::account::Account;
use flow::ring::{Block, Consumer};

use super::BackupError;
use super::groups::{Finding, Group, Groups};
use crate::spool::Spool;

/// What the hash stage has gathered when the archive ends: three sections of the index.
pub(super) struct Gathered {
    pub(super) files: (Spool, SectionSummary),
    pub(super) blocks: (Spool, SectionSummary),
    pub(super) warnings: (Spool, SectionSummary),
    pub(super) set_id: [u8; 32],
    pub(super) archive_bytes: u64,
    pub(super) regular_files: u64,
    pub(super) source_bytes: u64,
}

/// The state of the stage.
pub(super) struct Hasher<'a> {
    groups: &'a Groups,
    block: BlockHasher,
    files: (Spool, IndexWriter<FileRecord>),
    blocks: (Spool, IndexWriter<BlockChecksum>),
    warnings: (Spool, IndexWriter<WarningRecord>),
    checksums: Vec<u64>,
    archive_bytes: u64,
    regular_files: u64,
    source_bytes: u64,
}

impl<'a> Hasher<'a> {
    pub(super) fn new(groups: &'a Groups, block_bytes: usize) -> Hasher<'a> {
        Hasher {
            groups,
            block: BlockHasher::new(block_bytes),
            files: Default::default(),
            blocks: Default::default(),
            warnings: Default::default(),
            checksums: Vec::new(),
            archive_bytes: 0,
            regular_files: 0,
            source_bytes: 0,
        }
    }

    pub(super) fn run(
        mut self,
        consumer: &Consumer,
        account: &mut Account,
    ) -> Result<Gathered, BackupError> {
        while let Some(block) = consumer.next(account)? {
            self.block.update(&block, |checksum| self.checksums.push(checksum));
            self.write_checksums()?;
            self.members(&block)?;
            account.stage().add_bytes(block.len() as u64);
            self.archive_bytes += block.len() as u64;
        }
        self.finish()
    }

    /// Goes through the stretches of the archive that this block holds or ends.
    fn members(&mut self, block: &Block) -> Result<(), BackupError> {
        let start = block.position_bytes();
        let end = start + block.len() as u64;
        while let Some((group_end, group)) = self.groups.first() {
            if let Some(content) = &group.content {
                let from = content.start_bytes.clamp(start, end);
                let to = (content.start_bytes + content.length_bytes).clamp(start, end);
                let bytes = &block[(from - start) as usize..(to - start) as usize];
                lock(&content.hasher).update(bytes);
            }
            if group_end > end {
                break;
            }
            self.groups.take_at(group_end);
            for finding in lock(&group.findings).drain(..) {
                match finding {
                    Finding::File(record) => self.file(record, &group)?,
                    Finding::Warning(warning) => self.warning(&warning)?,
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, mut record: FileRecord, group: &Group) -> Result<(), BackupError> {
        if let RecordKind::File { content_hash, stored_bytes, .. } = &mut record.kind {
            self.source_bytes += *stored_bytes;
            self.regular_files += 1;
            if let Some(content) = &group.content {
                *content_hash = Some(lock(&content.hasher).finish());
            }
        }
        let (spool, writer) = &mut self.files;
        writer.push(&record, spool.buffer()).map_err(BackupError::Index)?;
        spool.settle().map_err(BackupError::Spool)
    }

    fn warning(&mut self, warning: &WarningRecord) -> Result<(), BackupError> {
        let (spool, writer) = &mut self.warnings;
        match writer.push(warning, spool.buffer()) {
            // Too long to be kept: it was told when it happened.
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
            set_id: set_id.finish(),
            archive_bytes: self.archive_bytes,
            regular_files: self.regular_files,
            source_bytes: self.source_bytes,
        })
    }
}
