//! Block checksums where the index comes after the blocks, as in a pipe: checksums are kept while
//! the blocks pass, and compared with the index at the end.
//!
//! The mark at the front of the archive has the block size. Archives older than the mark have none;
//! the usual size is assumed, and other sizes are not checked.

use std::io::{self, Read};

use archive::header::UNIT_BYTES;
use archive::index::{
    BlockChecksum, IndexError, IndexReader, IndexSection, TRAILER_CONTENT_BYTES, TRAILER_NAME,
    Trailer, find_trailer,
};

use archive::stream::ArchiveOffset;
use base::failures::with_causes;

use super::block_check::KeptChecksums;
use super::damage::{Damage, DamageKind};

/// What is wrong with an index that was read with its archive.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IndexFault {
    /// A section cannot be read.
    #[error(transparent)]
    IndexSection(#[from] IndexError),
    /// The content of the trailer's member cannot be read.
    #[error("cannot read its trailer")]
    Trailer(#[source] io::Error),
    /// The member of the trailer does not hold a trailer.
    #[error("its trailer is invalid")]
    NoTrailer,
    /// The blocks have another size.
    #[error("its checksums are for other blocks than those of the archive")]
    OtherBlocks,
    /// The archive has another length.
    #[error("its trailer belongs to an archive of another length")]
    OtherLength,
    /// The set has another id.
    #[error("its trailer belongs to another set")]
    OtherSet,
    /// The sections do not match the trailer.
    #[error("its hash does not match: part of it belongs to another index")]
    OtherIndex,
}

impl IndexFault {
    /// The damage that it is, with what follows from it; an index of a later version is not
    /// damaged.
    pub(crate) fn damage(&self, consequence: &str) -> Damage {
        if let IndexFault::IndexSection(IndexError::Later { .. }) = self {
            return Damage::new(ArchiveOffset::START, 0, DamageKind::Later { version: None });
        }
        Damage::of_index(format!("{}{consequence}", with_causes(self)))
    }
}

/// Most differing blocks that are kept by number; the rest are only counted.
const DIFFERING_MAX: usize = 10_000;

/// Kept checksums, and those of the index.
pub(crate) struct LateCheck<'a> {
    kept: &'a KeptChecksums,
    records: u64,
    differing: Vec<u64>,
    differing_count: u64,
}

/// The result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LateOutcome {
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

    /// Reads the section. Fails if that is damaged.
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

    /// The result; `None` if the checksums are for other blocks than those kept, or the last one
    /// was not kept.
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

/// The section in a member of an index.
pub(crate) fn section_of(path: &[u8]) -> Option<IndexSection> {
    IndexSection::ALL.into_iter().find(|section| path == section.member_name().as_bytes())
}

/// Whether a member of an index is its trailer.
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
