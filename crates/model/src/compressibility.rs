//! Estimates how a drive's own compression shrinks data.
//!
//! LTO drives compress with SLDC (ECMA-321). It codes matches within the last 1,024 bytes, 2 to 271
//! long, with 1 bit, 2 to 12 bits for the length and 10 for the distance. Everything else is a
//! literal of 9 bits. A second scheme copies bytes unchanged, for data that do not compress.
//! [`Compressibility`] searches the same window for the same matches and counts bits, a page at a
//! time, with the better scheme for each page. So it agrees with a drive on which data are
//! compressible, but a drive may choose other matches: the result is an estimate, within some
//! percent.
//!
//! Not here: the compressed stream itself, which is never made.

/// Bytes for which one scheme is chosen.
pub const PAGE_BYTES: usize = 4096;

/// History in which a match may start (ECMA-321).
pub const HISTORY_BYTES: usize = 1024;
const MATCH_MAX: usize = 271;
const DISTANCE_BITS: u64 = 10;
const LITERAL_BITS: u64 = 9;
/// Change of scheme: a control symbol.
const CONTROL_BITS: u64 = 13;
/// Candidates tried for each place; hardware tries all of them.
const CANDIDATES: usize = 64;
const HASH_BITS: u32 = 12;
const NOWHERE: u32 = u32::MAX;

/// A step of the compression, for callers that follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// A byte coded unchanged.
    Literal(u8),
    /// A repetition of earlier bytes.
    Copy {
        /// Distance back, bytes.
        distance: usize,
        bytes: usize,
    },
}

/// Counts the data and their size on the medium.
#[derive(Clone, Debug)]
pub struct Compressibility {
    /// The last [`HISTORY_BYTES`] and the page behind them.
    window: Vec<u8>,
    /// Newest place of each hash, and for each place the previous one, counted from `base`.
    newest: Vec<u32>,
    before: Vec<u32>,
    host_bytes: u64,
    compressed_bits: u64,
}

impl Default for Compressibility {
    fn default() -> Compressibility {
        Compressibility::new()
    }
}

impl Compressibility {
    /// A counter without data so far.
    pub fn new() -> Compressibility {
        Compressibility {
            window: Vec::with_capacity(HISTORY_BYTES + PAGE_BYTES),
            newest: vec![NOWHERE; 1 << HASH_BITS],
            before: vec![NOWHERE; HISTORY_BYTES + PAGE_BYTES],
            host_bytes: 0,
            compressed_bits: 0,
        }
    }

    /// Bytes on the medium for `data`, which follow the earlier data.
    pub fn add(&mut self, data: &[u8]) -> u64 {
        let before = self.compressed_bytes();
        for page in data.chunks(PAGE_BYTES) {
            self.host_bytes += page.len() as u64;
            self.compressed_bits += self.page_bits(page, |_| {});
        }
        self.compressed_bytes() - before
    }

    /// Drops the history: the next data come from another place.
    pub fn jump(&mut self) {
        self.window.clear();
    }

    /// Bytes that passed.
    pub fn host_bytes(&self) -> u64 {
        self.host_bytes
    }

    /// Bytes on the medium so far.
    pub fn compressed_bytes(&self) -> u64 {
        self.compressed_bits.div_ceil(8)
    }

    /// Host bytes for each byte on the medium; 1 before the first data.
    pub fn ratio(&self) -> f64 {
        match self.compressed_bytes() {
            0 => 1.0,
            compressed => self.host_bytes as f64 / compressed as f64,
        }
    }

    /// The symbols of `page`, which follows the earlier data, and the bits of the better scheme.
    pub fn page_bits(&mut self, page: &[u8], mut each: impl FnMut(Symbol)) -> u64 {
        let keep = self.window.len().saturating_sub(HISTORY_BYTES);
        self.window.drain(..keep);
        let start = self.window.len();
        self.window.extend_from_slice(page);
        self.index_history(start);
        let mut bits = 0;
        let mut at = start;
        while at < self.window.len() {
            let (distance, bytes) = self.longest_match(at);
            if bytes < 2 {
                bits += LITERAL_BITS;
                each(Symbol::Literal(self.window[at]));
                self.remember(at);
                at += 1;
                continue;
            }
            bits += 1 + length_bits(bytes) + DISTANCE_BITS;
            each(Symbol::Copy { distance, bytes });
            (at..at + bytes).for_each(|place| self.remember(place));
            at += bytes;
        }
        bits.min(page.len() as u64 * 8 + CONTROL_BITS)
    }

    /// The places of the kept history have moved, so they are entered again.
    fn index_history(&mut self, end: usize) {
        self.newest.fill(NOWHERE);
        self.before.resize(self.window.len(), NOWHERE);
        (0..end).for_each(|place| self.remember(place));
    }

    fn remember(&mut self, place: usize) {
        if let Some(hash) = self.hash(place) {
            self.before[place] = self.newest[hash];
            self.newest[hash] = u32::try_from(place).expect("a place in the window");
        }
    }

    fn hash(&self, place: usize) -> Option<usize> {
        let pair = self.window.get(place..place + 2)?;
        let value = u32::from(pair[0]) << 8 | u32::from(pair[1]);
        Some((value.wrapping_mul(0x9E37_79B1) >> (32 - HASH_BITS)) as usize)
    }

    fn longest_match(&self, at: usize) -> (usize, usize) {
        let most = MATCH_MAX.min(self.window.len() - at);
        // The loop ends when `best.1` reaches the end, and the last byte has no candidate.
        let mut best = (0, 0);
        let mut candidate = self.hash(at).map_or(NOWHERE, |hash| self.newest[hash]);
        for _ in 0..CANDIDATES {
            let place = candidate as usize;
            if candidate == NOWHERE || at - place >= HISTORY_BYTES {
                break;
            }
            let (old, new) = (&self.window[place..place + most], &self.window[at..at + most]);
            // A longer match must also match the byte at which the best one so far ends.
            if old[best.1] == new[best.1] {
                let same = common_bytes(old, new);
                if same > best.1 {
                    best = (at - place, same);
                }
                if same == most {
                    break;
                }
            }
            candidate = self.before[place];
        }
        best
    }
}

/// Length of the common prefix of two slices of equal length.
fn common_bytes(old: &[u8], new: &[u8]) -> usize {
    const WORD_BYTES: usize = 8;
    let mut same = 0;
    for (old, new) in old.chunks_exact(WORD_BYTES).zip(new.chunks_exact(WORD_BYTES)) {
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        let differs = word(old) ^ word(new);
        if differs != 0 {
            return same + differs.trailing_zeros() as usize / 8;
        }
        same += WORD_BYTES;
    }
    same + new[same..].iter().zip(&old[same..]).take_while(|(new, old)| new == old).count()
}

/// Bits of the match count: 2 to 3 in 2 bits, 4 to 7 in 4, 8 to 15 in 6, 16 to 31 in 8, more in 12.
fn length_bits(bytes: usize) -> u64 {
    match bytes {
        ..=3 => 2,
        4..=7 => 4,
        8..=15 => 6,
        16..=31 => 8,
        _ => 12,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Decodes the symbols, as a reader would.
    fn replay(pages: &[Vec<u8>]) -> Vec<u8> {
        let mut estimate = Compressibility::new();
        let mut out: Vec<u8> = Vec::new();
        for page in pages {
            estimate.page_bits(page, |symbol| match symbol {
                Symbol::Literal(byte) => out.push(byte),
                Symbol::Copy { distance, bytes } => {
                    assert!((1..HISTORY_BYTES).contains(&distance));
                    assert!((2..=MATCH_MAX).contains(&bytes));
                    for _ in 0..bytes {
                        out.push(out[out.len() - distance]);
                    }
                }
            });
        }
        out
    }

    fn noise(length: usize) -> Vec<u8> {
        let mut state = 0x1234_5678_9abc_def0u64;
        let next = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        (0..length).map(next).collect()
    }

    #[test]
    fn noise_does_not_grow_by_more_than_the_change_of_scheme() {
        let mut estimate = Compressibility::new();
        estimate.add(&noise(1 << 20));
        assert!((0.995..1.0).contains(&estimate.ratio()), "{}", estimate.ratio());
    }

    #[test]
    fn zeros_reach_the_ratio_of_the_longest_match() {
        let mut estimate = Compressibility::new();
        estimate.add(&vec![0; 1 << 20]);
        // 271 bytes in 23 bits are 94 to 1, and 16 of them in a page.
        assert!((80.0..95.0).contains(&estimate.ratio()), "{}", estimate.ratio());
    }

    #[test]
    fn a_repeat_is_found_within_the_history_only() {
        let ratio = |distance: usize| {
            let mut estimate = Compressibility::new();
            estimate.add(&noise(distance).repeat((1 << 18) / distance));
            estimate.ratio()
        };
        assert!(ratio(HISTORY_BYTES - 1) > 20.0);
        assert!(ratio(HISTORY_BYTES + 1) < 1.0);
    }

    #[test]
    fn source_text_shrinks_as_small_windows_let_it() {
        let mut estimate = Compressibility::new();
        estimate.add(include_bytes!("compressibility.rs"));
        assert!((1.4..2.6).contains(&estimate.ratio()), "{}", estimate.ratio());
    }

    proptest! {
        #[test]
        fn symbols_give_the_data_back(
            pages in proptest::collection::vec(
                proptest::collection::vec(0u8..4, 0..PAGE_BYTES), 0..6),
        ) {
            prop_assert_eq!(replay(&pages), pages.concat());
        }

        #[test]
        fn counts_do_not_depend_on_how_pages_come(
            data in proptest::collection::vec(0u8..3, 0..5 * PAGE_BYTES),
        ) {
            let mut whole = Compressibility::new();
            whole.add(&data);
            let mut parts = Compressibility::new();
            let sum: u64 = data.chunks(PAGE_BYTES).map(|page| parts.add(page)).sum();
            prop_assert_eq!(whole.compressed_bytes(), parts.compressed_bytes());
            prop_assert_eq!(sum, parts.compressed_bytes());
            prop_assert_eq!(whole.host_bytes(), data.len() as u64);
        }
    }
}
