//! A large file of the archive that is verified in stretches: any free thread hashes a stretch, and
//! they are joined in order.
//!
//! No thread waits for another's stretch. The thread that adds the last missing item, a stretch or
//! the end, gets the hash.

use std::collections::BTreeMap;
use std::sync::Mutex;

use archive::index::{ContentTree, JoinedContent, Stretch};
use archive::member::Extent;
use base::failures::lock;

/// The result for a large file: its other data, and the hash if nothing is missing.
pub(super) type Finished<T> = (T, Option<[u8; 32]>);

/// What the workers share of one large file. `T` is the other data, returned with its end.
#[derive(Debug)]
pub(super) struct LargeFile<T> {
    tree: ContentTree,
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    /// `None` if a part is missing: there is no hash then.
    joined: Option<JoinedContent>,
    /// Stretches whose turn has not come, by number.
    waiting: BTreeMap<u64, Stretch>,
    /// Number of the stretch that is joined next.
    next: u64,
    /// Number of all stretches, and the other data, once the whole file has passed.
    end: Option<(u64, T)>,
}

impl<T> LargeFile<T> {
    /// A file of a size, with all of it or these runs stored, of which so many bytes exist.
    pub fn new(size_bytes: u64, sparse: Option<&[Extent]>, stored_bytes: u64) -> LargeFile<T> {
        let tree = match sparse {
            Some(runs) => ContentTree::sparse(size_bytes, runs),
            None => ContentTree::whole(stored_bytes),
        };
        let fits = tree.stored_bytes() == stored_bytes;
        let joined = fits.then(|| tree.begin());
        let state = State { joined, waiting: BTreeMap::new(), next: 0, end: None };
        LargeFile { tree, state: Mutex::new(state) }
    }

    /// Marks bytes as missing from here on. Later stretches have nothing to be joined to.
    pub fn miss(&self) {
        lock(&self.state).joined = None;
    }

    /// Hashes the stretch of this number, which begins at a byte of the stored data. Returns the
    /// result, if this was the last missing item.
    pub fn hash(&self, number: u64, at_bytes: u64, bytes: &[u8]) -> Option<Finished<T>> {
        let stretch = self.tree.hash(at_bytes, bytes, |_| ());
        let mut state = lock(&self.state);
        state.waiting.insert(number, stretch);
        state.join();
        state.finish()
    }

    /// Marks the end of the file, with its number of stretches.
    pub fn end(&self, stretches: u64, rest: T) -> Option<Finished<T>> {
        let mut state = lock(&self.state);
        state.end = Some((stretches, rest));
        state.finish()
    }
}

impl<T> State<T> {
    fn join(&mut self) {
        while let Some(stretch) = self.waiting.remove(&self.next) {
            self.next += 1;
            if let Some(joined) = &mut self.joined {
                joined.add(stretch);
            }
        }
    }

    fn finish(&mut self) -> Option<Finished<T>> {
        let (_, rest) = self.end.take_if(|(stretches, _)| *stretches == self.next)?;
        Some((rest, self.joined.take().map(JoinedContent::finish)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archive::index::ContentHasher;
    use proptest::prelude::*;

    fn content(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect()
    }

    /// Ends of stretches in the order of the file, and each with its number and place.
    fn stretches(length: usize, cuts: &[usize]) -> Vec<(u64, std::ops::Range<usize>)> {
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (length + 1)).collect();
        ends.push(length);
        ends.sort_unstable();
        let starts = [0].into_iter().chain(ends.clone());
        starts
            .zip(&ends)
            .map(|(from, &to)| from..to)
            .enumerate()
            .map(|(n, r)| (n as u64, r))
            .collect()
    }

    proptest! {
        #[test]
        fn any_order_gives_the_hash_once(
            length in 1usize..300_000,
            cuts in prop::collection::vec(any::<usize>(), 0..12),
            order in any::<u64>(),
            end_at in 0usize..13,
        ) {
            let data = content(length);
            let file = LargeFile::new(length as u64, None, length as u64);
            let mut parts = stretches(length, &cuts);
            let count = parts.len();
            parts.sort_by_key(|(number, _)| (number ^ order).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let mut results = Vec::new();
            for (place, (number, range)) in parts.into_iter().enumerate() {
                if place == end_at.min(count - 1) {
                    results.extend(file.end(count as u64, "rest"));
                }
                results.extend(file.hash(number, range.start as u64, &data[range]));
            }
            prop_assert_eq!(results, [("rest", Some(ContentHasher::hash_whole(&data)))]);
        }
    }

    #[test]
    fn what_is_missing_leaves_no_hash_and_ends_all_the_same() {
        let data = content(5000);
        let file = LargeFile::new(9000, None, 9000);
        assert_eq!(file.hash(0, 0, &data[..3000]), None);
        file.miss();
        assert_eq!(file.end(2, ()), None);
        assert_eq!(file.hash(1, 7000, &data[3000..]), Some(((), None)));
        let all_missing = LargeFile::new(9000, None, 9000);
        all_missing.miss();
        assert_eq!(all_missing.end(0, ()), Some(((), None)));
    }

    #[test]
    fn a_map_that_does_not_fit_what_is_stored_is_no_reason_to_fall_over() {
        let runs = [Extent { offset_bytes: 0, length_bytes: 4096 }];
        let data = content(8192);
        let file = LargeFile::new(1 << 20, Some(&runs), 8192);
        assert_eq!(file.hash(0, 0, &data), None);
        assert_eq!(file.end(1, ()), Some(((), None)));
        let fits = LargeFile::new(1 << 20, Some(&runs), 4096);
        let mut plain = ContentHasher::sparse(1 << 20, &runs);
        plain.update(&data[..4096]);
        assert_eq!(fits.end(1, ()), None);
        assert_eq!(fits.hash(0, 0, &data[..4096]), Some(((), Some(plain.finish()))));
    }
}
