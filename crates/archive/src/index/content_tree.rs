//! The content hash of a large file, computed by many threads.
//!
//! blake3 is a tree over chunks of 1 KiB. So a stretch of a file can be hashed by itself, in any
//! order and on any thread: into the chaining values of the largest subtrees inside it, and the
//! incomplete chunks at its two ends. Only joining these needs the order of the file, about twenty
//! values of 32 bytes for a stretch of 1 MiB. The result equals that of
//! [`ContentHasher`](super::ContentHasher).
//!
//! The rules of the tree are those of the BLAKE3 paper, sections 2.1 and 2.4, reached through the
//! interface that the crate documents for this (`blake3::hazmat`).

use blake3::hazmat::{
    ChainingValue, ContextKey, HasherExt, Mode, hash_derive_key_context, merge_subtrees_non_root,
    merge_subtrees_root,
};
use blake3::{CHUNK_LEN, Hasher};

use super::content::{SPARSE_CONTEXT, encode_runs};
use crate::member::Extent;

const CHUNK_BYTES: u64 = CHUNK_LEN as u64;
/// Binary logarithm of the chunks of a step: 256 KiB, which fit the second-level cache.
const STEP_HEIGHT: u32 = 8;

/// Parameters for hashing one file in stretches, shared by the threads that do it.
#[derive(Clone, Debug)]
pub struct ContentTree {
    /// Context of the derived mode; `None` in plain mode.
    context: Option<ContextKey>,
    /// Bytes before the content: the map of a sparse file.
    front: Vec<u8>,
    /// Total input of the hash in bytes.
    input_bytes: u64,
}

/// The result for one stretch.
#[derive(Clone, Debug)]
pub struct Stretch {
    start_bytes: u64,
    /// Bytes of a chunk that began before the stretch, or that the stretch does not fill.
    head: Vec<u8>,
    /// Complete subtrees behind it, each with the binary logarithm of its chunks.
    subtrees: Vec<(u32, ChainingValue)>,
    /// Bytes of a chunk that continues behind the stretch, or that is the last one.
    tail: Vec<u8>,
}

/// The joined stretches of a file, in order.
#[derive(Debug)]
pub struct JoinedContent {
    context: Option<ContextKey>,
    position_bytes: u64,
    /// Subtrees from the left, each at least as high as the next; at most one for each bit of the
    /// length and one more.
    subtrees: Vec<(u32, ChainingValue)>,
    /// Where the incomplete chunk begins, and its bytes.
    chunk: Vec<u8>,
}

impl ContentTree {
    /// For a file of this many bytes that is stored whole.
    pub fn whole(content_bytes: u64) -> ContentTree {
        ContentTree { context: None, front: Vec::new(), input_bytes: content_bytes }
    }

    /// For a sparse file of `size_bytes` with these stored runs.
    pub fn sparse(size_bytes: u64, runs: &[Extent]) -> ContentTree {
        let front = encode_runs(size_bytes, runs);
        let stored_bytes: u64 = runs.iter().map(|run| run.length_bytes).sum();
        let input_bytes = front.len() as u64 + stored_bytes;
        ContentTree { context: Some(hash_derive_key_context(SPARSE_CONTEXT)), front, input_bytes }
    }

    /// Stored bytes of the content.
    pub fn stored_bytes(&self) -> u64 {
        self.input_bytes - self.front.len() as u64
    }

    /// Hashes the stored bytes from `at_bytes` of the content on.
    ///
    /// It works in steps of up to 256 KiB, and calls `hashed` with its position in `stored` after
    /// each. A caller with other work on the same bytes does it there, while they are in the
    /// processor's cache. If that work is a checksum, hashing is the slower of the two, so memory
    /// accesses overlap with its computation.
    pub fn hash(&self, at_bytes: u64, stored: &[u8], hashed: impl FnMut(usize)) -> Stretch {
        self.hash_input(self.front.len() as u64 + at_bytes, stored, hashed)
    }

    /// An empty join of stretches.
    pub fn begin(&self) -> JoinedContent {
        let mut joined = JoinedContent {
            context: self.context,
            position_bytes: 0,
            subtrees: Vec::new(),
            chunk: Vec::with_capacity(CHUNK_LEN),
        };
        joined.add(self.hash_input(0, &self.front, |_| ()));
        joined
    }

    fn hash_input(&self, start_bytes: u64, input: &[u8], mut hashed: impl FnMut(usize)) -> Stretch {
        let to_chunk = start_bytes.next_multiple_of(CHUNK_BYTES) - start_bytes;
        // A single chunk is the root, for which other rules hold.
        let is_one_chunk = self.input_bytes <= CHUNK_BYTES;
        let head_bytes =
            if is_one_chunk { input.len() } else { input.len().min(to_chunk as usize) };
        let (head, mut rest) = input.split_at(head_bytes);
        let mut subtrees = Vec::new();
        let mut at = start_bytes + head_bytes as u64;
        while rest.len() >= CHUNK_LEN {
            let height = self.height(at, rest.len() as u64);
            let (own, behind) = rest.split_at(CHUNK_LEN << height);
            let mut hasher = new_hasher(self.context.as_ref());
            hasher.set_input_offset(at).update(own);
            subtrees.push((height, hasher.finalize_non_root()));
            at += own.len() as u64;
            rest = behind;
            hashed(input.len() - rest.len());
        }
        hashed(input.len());
        Stretch { start_bytes, head: head.to_vec(), subtrees, tail: rest.to_vec() }
    }

    /// Height of the largest subtree that begins at a place and lies in the next `bytes`. It is at
    /// most a step, and not the whole tree.
    fn height(&self, at: u64, bytes: u64) -> u32 {
        let by_place = (at / CHUNK_BYTES).trailing_zeros();
        let height = by_place.min((bytes / CHUNK_BYTES).ilog2()).min(STEP_HEIGHT);
        if CHUNK_BYTES << height == self.input_bytes { height - 1 } else { height }
    }
}

impl JoinedContent {
    /// Adds the next stretch.
    ///
    /// # Panics
    /// If the stretch does not follow the previous one.
    pub fn add(&mut self, stretch: Stretch) {
        assert_eq!(stretch.start_bytes, self.position_bytes, "stretches are joined in order");
        self.fill(&stretch.head);
        for (height, value) in stretch.subtrees {
            self.close_chunk();
            self.push(height, value);
            self.position_bytes += CHUNK_BYTES << height;
        }
        self.fill(&stretch.tail);
    }

    /// The hash of everything added.
    pub fn finish(mut self) -> [u8; 32] {
        if self.subtrees.is_empty() {
            let mut hasher = new_hasher(self.context.as_ref());
            return *hasher.update(&self.chunk).finalize().as_bytes();
        }
        self.close_chunk();
        let mode = mode(self.context.as_ref());
        let (_, mut right) = self.subtrees.pop().expect("there is one");
        while self.subtrees.len() > 1
            && let Some((_, left)) = self.subtrees.pop()
        {
            right = merge_subtrees_non_root(&left, &right, mode);
        }
        let (_, left) = self.subtrees.pop().expect("a tree of one subtree is never made");
        *merge_subtrees_root(&left, &right, mode).as_bytes()
    }

    /// Adds bytes to the incomplete chunk, and begins the next one when it is full.
    fn fill(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.chunk.len() == CHUNK_LEN {
            self.close_chunk();
        }
        self.chunk.extend_from_slice(bytes);
        self.position_bytes += bytes.len() as u64;
        debug_assert!(self.chunk.len() <= CHUNK_LEN, "a stretch ends its head at a chunk's end");
    }

    /// Makes the incomplete chunk a subtree. More data follow, or it is the last one of several.
    fn close_chunk(&mut self) {
        if self.chunk.is_empty() {
            return;
        }
        let start_bytes = self.position_bytes - self.chunk.len() as u64;
        let mut hasher = new_hasher(self.context.as_ref());
        hasher.set_input_offset(start_bytes).update(&self.chunk);
        let value = hasher.finalize_non_root();
        self.chunk.clear();
        self.push(0, value);
    }

    /// Adds a subtree. Earlier ones of the same height are joined only now: the very last join is
    /// that of the root, and it is known to be the last only when nothing follows.
    fn push(&mut self, height: u32, value: ChainingValue) {
        while let [.., (left_height, left), (right_height, right)] = self.subtrees[..]
            && left_height == right_height
        {
            let joined = merge_subtrees_non_root(&left, &right, mode(self.context.as_ref()));
            self.subtrees.truncate(self.subtrees.len() - 2);
            self.subtrees.push((left_height + 1, joined));
        }
        self.subtrees.push((height, value));
    }
}

fn new_hasher(context: Option<&ContextKey>) -> Hasher {
    context.map_or_else(Hasher::new, Hasher::new_from_context_key)
}

fn mode(context: Option<&ContextKey>) -> Mode<'_> {
    context.map_or(Mode::Hash, Mode::DeriveKeyMaterial)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::index::ContentHasher;

    fn content(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at * 31 + at / 257) as u8).collect()
    }

    /// Hashes in stretches that end at `cuts`, the last ones first, and joins them.
    fn in_stretches(tree: &ContentTree, content: &[u8], cuts: &[usize]) -> [u8; 32] {
        let mut ends: Vec<usize> = cuts.iter().map(|cut| content.len().min(*cut)).collect();
        ends.push(content.len());
        ends.sort_unstable();
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let parts: Vec<_> = starts.zip(&ends).map(|(start, end)| start..*end).collect();
        let mut stretches: Vec<Stretch> = parts
            .into_iter()
            .rev()
            .map(|part| tree.hash(part.start as u64, &content[part], |_| ()))
            .collect();
        stretches.reverse();
        let mut joined = tree.begin();
        stretches.into_iter().for_each(|stretch| joined.add(stretch));
        joined.finish()
    }

    fn check(content: &[u8], cuts: &[usize]) {
        let tree = ContentTree::whole(content.len() as u64);
        let hash = in_stretches(&tree, content, cuts);
        assert_eq!(hash, ContentHasher::hash_whole(content), "{} at {cuts:?}", content.len());
    }

    #[test]
    fn every_length_around_every_power_of_two_with_every_kind_of_cut() {
        let content = content((64 << 10) + 1);
        for chunks in [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64] {
            for over in [-513i64, -1, 0, 1, 512] {
                let Ok(length) = usize::try_from(chunks * 1024 + over) else { continue };
                let content = &content[..length.min(content.len())];
                for step in [512, 1000, 1024, 1536, 4096, 5000, 32 << 10] {
                    let cuts: Vec<usize> =
                        (1..).map(|it| it * step).take_while(|at| *at < length).collect();
                    check(content, &cuts);
                }
                check(content, &[]);
            }
        }
    }

    proptest! {
        #[test]
        fn any_cuts(
            bytes in 0usize..200_000,
            cuts in proptest::collection::vec(0usize..200_000, 0..12),
        ) {
            check(&content(bytes), &cuts);
        }

        #[test]
        fn sparse_files(
            runs in proptest::collection::vec((0u64..5000, 0u64..40_000), 0..90),
            cuts in proptest::collection::vec(0usize..200_000, 0..8),
        ) {
            let runs: Vec<Extent> = runs
                .into_iter()
                .map(|(offset_bytes, length_bytes)| Extent { offset_bytes, length_bytes })
                .collect();
            let stored: u64 = runs.iter().map(|run| run.length_bytes).sum();
            let content = content(stored as usize);
            let mut hasher = ContentHasher::sparse(1 << 40, &runs);
            hasher.update(&content);
            let tree = ContentTree::sparse(1 << 40, &runs);
            prop_assert_eq!(in_stretches(&tree, &content, &cuts), hasher.finish());
        }
    }
}
