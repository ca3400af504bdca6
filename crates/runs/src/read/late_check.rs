//! Checksums of blocks where the index comes behind them, as in a pipe: what was kept of them while
//! they went by is held against the index at the end.
//!
//! Which blocks they are says the mark at the front of the archive. Archives from before there were
//! marks have none; blocks of the usual size are supposed then, and nothing is said of others.

use std::io::{self, Read};

use archive::header::UNIT_BYTES;
use archive::index::{
    BlockChecksum, IndexError, IndexReader, IndexSection, TRAILER_CONTENT_BYTES, TRAILER_NAME,
    Trailer, find_trailer,
};

use super::block_check::KeptChecksums;

/// What is wrong with an index that was met while its archive went by.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IndexFault {
    /// A section cannot be read.
    #[error(transparent)]
    IndexSection(#[from] IndexError),
    /// The content of the trailer's member cannot be read.
    #[error("cannot read its trailer")]
    Trailer(#[source] io::Error),
    /// The member of the trailer holds something else.
    #[error("its trailer is none")]
    NoTrailer,
    /// The blocks that went by have another size.
    #[error("its checksums are of other blocks than the archive says")]
    OtherBlocks,
    /// The archive that went by is not so long.
    #[error("its trailer is of an archive of another length")]
    OtherLength,
    /// What went by has another id.
    #[error("its trailer is of another set")]
    OtherSet,
    /// The sections that went by are not those of the trailer.
    #[error("its hash does not hold: part of it is of another index")]
    OtherIndex,
}

/// Blocks that differ and are kept by number; of more only the count.
const DIFFERING_MAX: usize = 10_000;

/// What was kept of the blocks, and what the index says of them.
pub(crate) struct LateCheck<'a> {
    kept: &'a KeptChecksums,
    records: u64,
    differing: Vec<u64>,
    differing_count: u64,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LateOutcome {
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Blocks that were checked.
    pub blocks: u64,
    /// Blocks that differ, and the numbers of the first of them.
    pub differing_count: u64,
    pub differing: Vec<u64>,
}

impl<'a> LateCheck<'a> {
    pub fn new(kept: &'a KeptChecksums) -> LateCheck<'a> {
        LateCheck { kept, records: 0, differing: Vec::new(), differing_count: 0 }
    }

    /// Reads the section. Fails with what is wrong with it.
    pub fn hold_against<R: Read>(
        &mut self,
        mut checksums: IndexReader<BlockChecksum, R>,
    ) -> Result<(), IndexFault> {
        while let Some(expected) = checksums.next_record()? {
            if self.kept.get(self.records) != Some(expected.0) {
                self.enter(self.records);
            }
            self.records += 1;
        }
        Ok(())
    }

    fn enter(&mut self, block: u64) {
        self.differing_count += 1;
        if self.differing.len() < DIFFERING_MAX {
            self.differing.push(block);
        }
    }

    /// What came of it; `None` if the checksums are of other blocks than those that were kept, or
    /// nothing was kept of the last one.
    pub fn conclude(mut self, trailer: &Trailer) -> Option<LateOutcome> {
        let (block_bytes, blocks) = self.kept.ended()?;
        if trailer.block_bytes != block_bytes {
            return None;
        }
        for block in self.records..blocks {
            self.enter(block);
        }
        let LateCheck { differing_count, differing, .. } = self;
        Some(LateOutcome { block_bytes, blocks, differing_count, differing })
    }
}

/// The section that the member of an index holds.
pub(crate) fn section_of(path: &[u8]) -> Option<IndexSection> {
    IndexSection::ALL.into_iter().find(|section| path == section.member_name().as_bytes())
}

/// Whether the member of an index is its trailer.
pub(crate) fn is_trailer(path: &[u8]) -> bool {
    path == TRAILER_NAME.as_bytes()
}

/// Reads the content of the trailer's member.
pub(crate) fn read_trailer(mut content: impl Read) -> Result<Trailer, IndexFault> {
    let mut tail = [0; UNIT_BYTES + TRAILER_CONTENT_BYTES];
    content.read_exact(&mut tail[UNIT_BYTES..]).map_err(IndexFault::Trailer)?;
    io::copy(&mut content, &mut io::sink()).map_err(IndexFault::Trailer)?;
    find_trailer(&tail)?.map(|found| found.trailer).ok_or(IndexFault::NoTrailer)
}
