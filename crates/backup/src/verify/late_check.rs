//! Checksums of blocks where the index comes behind them, as in a pipe.
//!
//! The section with the checksums comes before the trailer, which alone says what they are of.
//! Blocks of the usual size are supposed until then, and nothing is said of others. The last block
//! ends with the archive and is mostly not full; what lies behind it in the stream is the index, so
//! it is not checked then. Contents in it have hashes of their own.

use std::io::Read;

use archive::index::{BlockChecksum, IndexReader, Trailer};

use crate::read::block_check::{KEPT_BLOCK_BYTES, KeptChecksums};

/// Blocks that differ and are kept by number; of more only the count.
const DIFFERING_MAX: usize = 10_000;

/// What was kept of the blocks, and what the index said of them.
pub(crate) struct LateCheck<'a> {
    kept: &'a KeptChecksums,
    records: u64,
    differing: Vec<u64>,
    differing_count: u64,
    last_differs: bool,
}

impl<'a> LateCheck<'a> {
    pub fn new(kept: &'a KeptChecksums) -> LateCheck<'a> {
        let (differing, differing_count) = (Vec::new(), 0);
        LateCheck { kept, records: 0, differing, differing_count, last_differs: false }
    }

    /// Reads the section. Fails with what is wrong with it.
    pub fn hold_against<R: Read>(
        &mut self,
        mut checksums: IndexReader<BlockChecksum, R>,
    ) -> Result<(), String> {
        while let Some(expected) = checksums.next_record().map_err(|error| error.to_string())? {
            self.note_last();
            self.last_differs = self.kept.get(self.records) != Some(expected.0);
            self.records += 1;
        }
        Ok(())
    }

    /// Enters the block that was seen last, once it is known whether it is the very last.
    fn note_last(&mut self) {
        if self.last_differs {
            self.differing_count += 1;
            if self.differing.len() < DIFFERING_MAX {
                self.differing.push(self.records - 1);
            }
        }
    }

    /// Blocks that were checked, blocks that differ, and the numbers of the first of those; `None`
    /// if the checksums are of other blocks than those that were kept.
    pub fn conclude(mut self, trailer: &Trailer) -> Option<(u64, u64, Vec<u64>)> {
        if trailer.block_bytes != KEPT_BLOCK_BYTES || self.records == 0 {
            return None;
        }
        let blocks = trailer.archive_bytes / u64::from(KEPT_BLOCK_BYTES);
        if blocks == self.records {
            self.note_last();
        }
        Some((blocks, self.differing_count, self.differing))
    }
}
