//! The hashes in the index, defined once for writers and readers.

use std::hash::Hasher as _;
use std::ops::Range;

use twox_hash::XxHash3_64;

use crate::member::Extent;
use crate::stream::ArchiveOffset;

/// Context of the derived key for the content of sparse files (blake3's own rule: a constant,
/// globally unique, with date and purpose).
pub(super) const SPARSE_CONTEXT: &str = "takeup 2026-11-20 content of a sparse file";
const SET_CONTEXT: &str = "takeup 2026-11-20 set id";
const INDEX_CONTEXT: &str = "takeup 2026-11-22 index";

/// Hashes the content of a regular file into the 32 bytes that the index keeps.
///
/// A file that is stored whole has the plain blake3 of its content, as `b3sum` prints it. Of a
/// sparse file the archive holds runs and a map. Hashing the zeros of its holes could take hours,
/// so its hash is blake3 in key-derivation mode over: size of the file (8 bytes, little endian,
/// like all), number of runs (8), offset and length of every run (8 + 8), and then the bytes of the
/// runs. It can be computed from the archive alone, and from a live file with the archive's map.
#[derive(Clone, Debug)]
pub struct ContentHasher {
    hasher: blake3::Hasher,
}

impl ContentHasher {
    /// For a file that is stored whole.
    pub fn whole() -> ContentHasher {
        ContentHasher { hasher: blake3::Hasher::new() }
    }

    /// For a sparse file of `size_bytes` with these runs.
    pub fn sparse(size_bytes: u64, runs: &[Extent]) -> ContentHasher {
        let mut hasher = blake3::Hasher::new_derive_key(SPARSE_CONTEXT);
        hasher.update(&encode_runs(size_bytes, runs));
        ContentHasher { hasher }
    }

    /// Adds the next bytes, in the order in which the archive stores them.
    pub fn update(&mut self, stored: &[u8]) {
        self.hasher.update(stored);
    }

    /// The hash of everything added.
    pub fn finish(&self) -> [u8; 32] {
        *self.hasher.finalize().as_bytes()
    }

    /// The hash of a whole file whose content is in memory in one piece.
    pub fn hash_whole(content: &[u8]) -> [u8; 32] {
        *blake3::hash(content).as_bytes()
    }
}

/// The input to the hash of a sparse file before the bytes of its runs.
pub(super) fn encode_runs(size_bytes: u64, runs: &[Extent]) -> Vec<u8> {
    let numbers = runs.iter().flat_map(|run| [run.offset_bytes, run.length_bytes]);
    let all = [size_bytes, runs.len() as u64].into_iter().chain(numbers);
    all.flat_map(u64::to_le_bytes).collect()
}

/// Derives the id of a set from its content: from the bytes of its files section, then those of its
/// blocks section. The same tree and the same options give the same id.
#[derive(Clone, Debug)]
pub struct SetIdHasher {
    hasher: blake3::Hasher,
}

/// Hashes an index archive from its first byte up to the header of its trailer. It detects sections
/// whose own checksums match but which belong to another index.
#[derive(Clone, Debug)]
pub struct IndexHasher {
    hasher: blake3::Hasher,
}

impl Default for IndexHasher {
    fn default() -> Self {
        IndexHasher { hasher: blake3::Hasher::new_derive_key(INDEX_CONTEXT) }
    }
}

impl IndexHasher {
    /// Adds the next bytes of the index archive.
    pub fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    /// The hash of everything added.
    pub fn finish(&self) -> [u8; 32] {
        *self.hasher.finalize().as_bytes()
    }
}

impl Default for SetIdHasher {
    fn default() -> Self {
        SetIdHasher::new()
    }
}

impl SetIdHasher {
    /// A hasher without input.
    pub fn new() -> SetIdHasher {
        SetIdHasher { hasher: blake3::Hasher::new_derive_key(SET_CONTEXT) }
    }

    /// Adds the next bytes of the sections.
    pub fn update(&mut self, section: &[u8]) {
        self.hasher.update(section);
    }

    /// The id.
    pub fn finish(&self) -> [u8; 32] {
        *self.hasher.finalize().as_bytes()
    }
}

/// Checksum of one block of the uncompressed archive: xxh3-64 with seed 0.
pub fn block_checksum(block: &[u8]) -> u64 {
    XxHash3_64::oneshot(block)
}

/// Checksums of the blocks of an archive that comes in pieces of any length.
#[derive(Clone)]
pub struct BlockHasher {
    block_bytes: usize,
    /// Hasher of the block that is not complete yet.
    begun: Option<XxHash3_64>,
    filled_bytes: usize,
}

impl BlockHasher {
    /// For blocks of `block_bytes`, which is at least 1.
    pub fn new(block_bytes: usize) -> BlockHasher {
        assert!(block_bytes > 0, "a block holds something");
        BlockHasher { block_bytes, begun: None, filled_bytes: 0 }
    }

    /// Adds the next bytes and returns the checksum of every block that they complete.
    pub fn update(&mut self, mut bytes: &[u8], mut completed: impl FnMut(u64)) {
        while !bytes.is_empty() {
            let wanted = self.block_bytes - self.filled_bytes;
            let (part, rest) = bytes.split_at(wanted.min(bytes.len()));
            bytes = rest;
            if part.len() == self.block_bytes {
                completed(block_checksum(part));
                continue;
            }
            let mut hasher = self.begun.take().unwrap_or_default();
            hasher.write(part);
            self.filled_bytes += part.len();
            if self.filled_bytes == self.block_bytes {
                completed(hasher.finish());
                self.filled_bytes = 0;
            } else {
                self.begun = Some(hasher);
            }
        }
    }

    /// The part of a piece at `start` that consists of whole blocks. Their checksums may be
    /// computed anywhere ([`block_checksum`]) and passed to [`BlockHasher::update_around`].
    pub fn whole_blocks(block_bytes: usize, start: ArchiveOffset, length: usize) -> Range<usize> {
        let over = (start % block_bytes as u64) as usize;
        let first = if over == 0 { 0 } else { block_bytes - over };
        let first = first.min(length);
        first..first + (length - first) / block_bytes * block_bytes
    }

    /// [`BlockHasher::update`] for a piece whose whole blocks already have their checksums.
    pub fn update_around(
        &mut self,
        bytes: &[u8],
        whole: Range<usize>,
        checksums: &[u64],
        mut completed: impl FnMut(u64),
    ) {
        self.update(&bytes[..whole.start], &mut completed);
        checksums.iter().copied().for_each(&mut completed);
        self.update(&bytes[whole.end..], completed);
    }

    /// The checksum of the last, short block; `None` if the archive ended with a full one.
    pub fn finish(self) -> Option<u64> {
        self.begun.map(|hasher| hasher.finish())
    }
}
