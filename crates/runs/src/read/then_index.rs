//! The index of a set on tape, as if it followed the blocks of the archive.
//!
//! It was copied to a file before. Its unreadable parts are gaps, like those of the tape: a stream
//! that ended there would look like one without an index.

use std::sync::{Arc, Mutex};

use archive::stream::{Archive, ArchiveOffset};
use base::failures::lock;
use flow::account::Account;
use flow::cancel::Stopped;

use super::block_check::KeptChecksums;
use super::cursor::{Lease, Supply};
use flow::gaps::{Gap, Gaps};
use tapeset::TapeIndex;

/// Bytes of an index that are passed on at once.
const INDEX_LEASE_BYTES: u64 = 256 << 10;

/// Blocks, and then the index of a set on tape, from a file of its own.
pub(crate) struct ThenIndex<'a> {
    supply: Box<dyn Supply + 'a>,
    /// The index, available before the blocks end.
    index: &'a Mutex<Option<TapeIndex>>,
    /// Gaps of the index.
    gaps: Gaps<Archive>,
    /// Offset where the blocks ended.
    blocks_bytes: ArchiveOffset,
    /// Bytes of the index passed on so far, once the blocks have ended.
    taken_bytes: Option<u64>,
    /// Block checksums, discarded if the first blocks are missing.
    kept: Option<Arc<KeptChecksums>>,
    begins_bytes: ArchiveOffset,
}

impl<'a> ThenIndex<'a> {
    /// Blocks, and then the index, which is available before the blocks end.
    pub fn new(
        supply: Box<dyn Supply + 'a>,
        index: &'a Mutex<Option<TapeIndex>>,
        gaps: Gaps<Archive>,
        kept: Option<Arc<KeptChecksums>>,
    ) -> ThenIndex<'a> {
        let begins_bytes = ArchiveOffset::START;
        let (blocks_bytes, taken_bytes) = (ArchiveOffset::START, None);
        ThenIndex { supply, index, gaps, blocks_bytes, taken_bytes, kept, begins_bytes }
    }
}

impl Supply for ThenIndex<'_> {
    fn next(&mut self, account: &mut Account) -> Result<Option<Lease>, Stopped> {
        if self.taken_bytes.is_none() {
            if let Some(lease) = self.supply.next(account)? {
                self.blocks_bytes += lease.len() as u64;
                return Ok(Some(lease));
            }
            self.taken_bytes = Some(0);
            if let Some(index) = &*lock(self.index) {
                self.begins_bytes = index.stream_begins_bytes;
            }
            if let Some(kept) = self.kept.take_if(|_| self.begins_bytes > ArchiveOffset::START) {
                kept.forget();
            }
        }
        let index = lock(self.index);
        let (Some(index), Some(taken_bytes)) = (&*index, &mut self.taken_bytes) else {
            return Ok(None);
        };
        let bytes = (index.length_bytes - *taken_bytes).min(INDEX_LEASE_BYTES);
        let mut piece = vec![0; bytes as usize];
        if piece.is_empty() {
            return Ok(None);
        }
        match base::interruptible::read_at(&index.file, &mut piece, *taken_bytes) {
            Ok(read @ 1..) => piece.truncate(read),
            // Zeros replace lost bytes, so that the end of the index keeps its place.
            failed => {
                let why = match failed {
                    Ok(_) => "the copy of the index became shorter".to_owned(),
                    Err(error) => {
                        let error = std::io::Error::from(error);
                        format!("the copy of the index cannot be read: {error}")
                    }
                };
                let start_bytes = self.blocks_bytes + *taken_bytes;
                self.gaps.enter(Gap { start_bytes, length_bytes: bytes, why });
            }
        }
        *taken_bytes += piece.len() as u64;
        Ok(Some(Lease::Memory(Arc::new(piece))))
    }

    fn begins_bytes(&self) -> ArchiveOffset {
        self.begins_bytes
    }

    fn pass_over(&mut self, _: u64) -> u64 {
        0
    }

    fn would_wait(&self) -> bool {
        self.taken_bytes.is_none() && self.supply.would_wait()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::run::StageKind;
    use std::os::fd::OwnedFd;

    use archive::chunk::Compression;
    use archive::index::{
        BlockChecksum, ChunkRecord, ExtentRecord, FileRecord, IndexLayout, IndexSection,
        IndexWriter, Record, SectionSummary, Trailer, WarningRecord, encode_index_header,
        encode_section_header, encode_trailer, padding_bytes,
    };
    use flow::account::Stage;

    use catalogue::IndexFile;

    /// No blocks at all.
    struct Nothing;

    impl Supply for Nothing {
        fn next(&mut self, _: &mut Account) -> Result<Option<Lease>, Stopped> {
            Ok(None)
        }
        fn pass_over(&mut self, _: u64) -> u64 {
            0
        }
        fn would_wait(&self) -> bool {
            false
        }
    }

    fn empty<T: Record>() -> (Vec<u8>, SectionSummary) {
        let mut bytes = Vec::new();
        let summary = IndexWriter::<T>::new().finish(&mut bytes);
        (bytes, summary)
    }

    /// The index of an archive without members.
    fn index_bytes() -> Vec<u8> {
        let sections = [
            empty::<FileRecord>(),
            empty::<BlockChecksum>(),
            empty::<ChunkRecord>(),
            empty::<WarningRecord>(),
            empty::<ExtentRecord>(),
        ];
        let layout = IndexLayout::new(std::array::from_fn(|at| sections[at].1)).unwrap();
        let mut out = encode_index_header().to_vec();
        for ((bytes, summary), section) in sections.iter().zip(IndexSection::ALL) {
            out.extend_from_slice(&encode_section_header(section, summary.length_bytes).unwrap());
            out.extend_from_slice(bytes);
            out.resize(out.len() + padding_bytes(summary.length_bytes), 0);
        }
        let trailer = Trailer {
            set_id: [0; 32],
            compression: Compression::None,
            chunk_bytes: 0,
            block_bytes: 512,
            archive_bytes: 0,
            index_compressed_offset_bytes: Default::default(),
            sections: layout.sections,
            index_hash: None,
            named: None,
        };
        out.extend_from_slice(&encode_trailer(&trailer).unwrap());
        out
    }

    #[test]
    fn what_cannot_be_read_of_the_index_is_a_gap_and_not_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index");
        let bytes = index_bytes();
        std::fs::write(&path, &bytes).unwrap();
        let good = Arc::new(OwnedFd::from(std::fs::File::open(&path).unwrap()));
        let length_bytes = bytes.len() as u64;
        let index = IndexFile::alone(Arc::clone(&good), length_bytes).unwrap();
        // Written to, and not read from: every read fails.
        let options = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        for (file, lost) in [(good, false), (Arc::new(OwnedFd::from(options)), true)] {
            let index = index.clone();
            let stream_begins_bytes = ArchiveOffset::START;
            let extents = Arc::default();
            let index = TapeIndex { index, extents, file, length_bytes, stream_begins_bytes };
            let (index, gaps) = (Mutex::new(Some(index)), Gaps::default());
            let mut supply = ThenIndex::new(Box::new(Nothing), &index, gaps.clone(), None);
            let mut account = Stage::new(StageKind::Parse).open();
            let mut found = Vec::new();
            while let Some(lease) = supply.next(&mut account).unwrap() {
                found.extend_from_slice(&lease);
            }
            assert_eq!(found.len(), bytes.len());
            let gap = gaps.take_before(ArchiveOffset::MAX);
            assert_eq!(gap.is_some(), lost);
            if let Some(gap) = gap {
                assert_eq!(
                    (gap.start_bytes, gap.length_bytes),
                    (ArchiveOffset::START, length_bytes)
                );
                assert!(gap.why.contains("cannot be read"), "{}", gap.why);
            } else {
                assert!(found == bytes);
            }
        }
    }
}
