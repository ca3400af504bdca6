//! Where operations begin: at the end of others, within the last one, or where something was
//! before.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use super::Places;

/// Most of the last operations that a next one may follow.
const MOST: usize = 128;
/// That many at least: several readers of one file stand side by side.
const LEAST: usize = 8;
/// In the place of an offset: none.
const NONE: u64 = u64::MAX;

/// Operations of one kind on one file, as far as the next one may follow them.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    /// In a ring, of the last ones: where they ended if nothing began there so far; where they
    /// began if that was at no end; and when.
    ends: Vec<u64>,
    begins: Vec<u64>,
    times: Vec<u64>,
    next: usize,
    /// How many followed another one.
    pub sequential: u64,
}

impl Sequence {
    /// One of `bytes` at `offset` that began at `at_ns`, with `in_flight` in flight. They come in
    /// the order in which they ended: one that follows another may come before it.
    pub fn add(&mut self, at_ns: u64, offset: u64, bytes: u64, in_flight: u32) {
        // Of random operations on a small file some follow another one by chance: the fewer are
        // looked at the fewer these are.
        let in_flight = usize::try_from(in_flight).unwrap_or(MOST).min(MOST);
        let limit = if in_flight <= 1 { LEAST } else { LEAST + 3 * in_flight }.min(MOST);
        let end = offset.saturating_add(bytes);
        let before = self.find(&self.ends, limit, offset);
        self.sequential += u64::from(before.is_some());
        if bytes == 0 {
            // Nothing at the end of the file: where the last one ended, and so will the next.
            return;
        }
        if let Some(at) = before {
            self.ends[at] = NONE;
        }
        // One that ended sooner although it was asked for later. At depth 1 that is a file read
        // backwards.
        let after = self.find(&self.begins, limit, end).filter(|at| self.times[*at] >= at_ns);
        if let Some(at) = after {
            self.begins[at] = NONE;
            self.sequential += 1;
        }
        // Of a block that is written again and again only one is followed.
        let is_there = self.find(&self.ends, limit, end).is_some();
        let begin = if before.is_some() { NONE } else { offset };
        self.put(at_ns, begin, if after.is_some() || is_there { NONE } else { end });
    }

    /// The place of `value` among the last `limit`.
    fn find(&self, values: &[u64], limit: usize, value: u64) -> Option<usize> {
        let from = self.next.saturating_sub(limit);
        let wrapped = limit.min(values.len()).saturating_sub(self.next);
        let position = |from: usize, to: usize| {
            values[from..to].iter().position(|it| *it == value).map(|at| from + at)
        };
        let found = position(from, self.next);
        found.or_else(|| position(values.len() - wrapped, values.len()))
    }

    fn put(&mut self, at_ns: u64, begin: u64, end: u64) {
        if self.ends.len() < MOST {
            self.ends.push(end);
            self.begins.push(begin);
            self.times.push(at_ns);
            // The ring is as long as what it holds until it is full.
            self.next = self.ends.len();
            return;
        }
        let at = self.next % MOST;
        (self.ends[at], self.begins[at], self.times[at]) = (end, begin, at_ns);
        self.next = at + 1;
    }
}

/// Most cells of a [`Spread`].
const CELLS_MAX: usize = 128;
/// The smallest cell.
const CELL_BYTES_MIN: u64 = 4096;

/// How often operations began in which part of a file: in cells of one size, which is doubled
/// when there are too many of them.
#[derive(Clone, Debug)]
pub struct Spread {
    cell_bytes: u64,
    cells: BTreeMap<u64, u64>,
}

impl Default for Spread {
    fn default() -> Spread {
        Spread { cell_bytes: CELL_BYTES_MIN, cells: BTreeMap::new() }
    }
}

impl Spread {
    /// One more.
    pub fn add(&mut self, offset: u64) {
        *self.cells.entry(offset / self.cell_bytes).or_default() += 1;
        while self.cells.len() > CELLS_MAX {
            self.cell_bytes *= 2;
            let mut halved = BTreeMap::new();
            for (cell, count) in std::mem::take(&mut self.cells) {
                *halved.entry(cell / 2).or_default() += count;
            }
            self.cells = halved;
        }
    }

    /// As a profile has it.
    pub fn places(&self) -> Places {
        let cell = |(cell, count): (&u64, &u64)| (cell * self.cell_bytes, *count);
        Places { cell_bytes: self.cell_bytes, counts: self.cells.iter().map(cell).collect() }
    }
}

/// Bytes of a sector, what the smallest write of a device has.
const SECTOR: u64 = 512;
/// Sectors that have a bit each in one word.
const SECTORS: u64 = 64;
/// Words that one operation marks at most: 128 MiB.
const MOST_OF_ONE: u64 = 4096;

/// Which sectors of a file were read or written, of a sample of its places: those whose hash is
/// below a limit that is halved when they become too many (Waldspurger and others, "Efficient MRC
/// Construction with SHARDS", FAST 2015).
#[derive(Clone, Debug, Default)]
pub struct Touched {
    words: HashMap<u64, u64, BuildHasherDefault<Mixing>>,
    /// How often the sample was halved.
    halved: u32,
    /// Behind the last byte that was touched.
    end: u64,
    /// Operations that began at a place of the sample, each as many as it stands for now.
    sampled: f64,
    /// Those of them whose first byte had been touched.
    again: f64,
}

impl Touched {
    /// Words that are kept.
    pub fn words(&self) -> usize {
        self.words.len()
    }

    /// An operation; returns how many words came anew.
    pub fn add(&mut self, offset: u64, bytes: u64) -> usize {
        let before = self.words.len();
        let sector = offset / SECTOR;
        if self.is_sampled(sector / SECTORS) {
            self.sampled += 1.0;
            // What is appended in pieces that are no sectors begins in one that was touched.
            let is_new = offset >= self.end;
            let word = self.words.get(&(sector / SECTORS)).copied().unwrap_or(0);
            if !is_new && word & (1 << (sector % SECTORS)) != 0 {
                self.again += 1.0;
            }
        }
        if bytes == 0 {
            return 0;
        }
        let last = offset.saturating_add(bytes - 1);
        self.end = self.end.max(last.saturating_add(1));
        self.mark(sector, last / SECTOR);
        self.words.len() - before
    }

    fn mark(&mut self, first: u64, last: u64) {
        let (from, to) = (first / SECTORS, last / SECTORS);
        for at in from..=to.min(from + MOST_OF_ONE) {
            if !self.is_sampled(at) {
                continue;
            }
            let low = if at == from { first % SECTORS } else { 0 };
            let high = if at == to { last % SECTORS } else { SECTORS - 1 };
            *self.words.entry(at).or_default() |= (u64::MAX >> (63 - (high - low))) << low;
        }
    }

    /// Share of operations whose first byte had been touched; `None` without any in the sample.
    pub fn again_share(&self) -> Option<f64> {
        (self.sampled > 0.0).then(|| self.again / self.sampled)
    }

    /// Keeps half of the places: operations on the others count no more.
    pub fn halve(&mut self) {
        // Those before came of twice as many places: without this they would count twice as much as
        // those that are to come.
        self.sampled /= 2.0;
        self.again /= 2.0;
        self.halved += 1;
        let halved = self.halved;
        self.words.retain(|at, _| is_below(*at, halved));
    }

    fn is_sampled(&self, at: u64) -> bool {
        self.halved == 0 || is_below(at, self.halved)
    }
}

fn is_below(at: u64, halved: u32) -> bool {
    mixed(at).checked_shr(64_u32.saturating_sub(halved)).unwrap_or(0) == 0
}

/// The finaliser of splitmix64 (Steele and others, OOPSLA 2014).
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Hashes one number: the standard library's hash is made for keys chosen to collide,
/// and costs several times as much.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mixing(u64);

impl Hasher for Mixing {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = mixed(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        // Apart from the hash that the sample goes by, or a halved table would be half empty.
        self.0 = mixed(value.rotate_left(32) ^ 0x5851_f42d_4c95_7f2d);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn sequential(operations: &[(u64, u64)], in_flight: u32) -> u64 {
        let mut sequence = Sequence::default();
        for (number, &(offset, bytes)) in (0..).zip(operations) {
            sequence.add(number, offset, bytes, in_flight);
        }
        sequence.sequential
    }

    #[test]
    fn one_after_the_other() {
        let operations: Vec<(u64, u64)> = (0..1000).map(|number| (number * 4096, 4096)).collect();
        assert_eq!(sequential(&operations, 1), 999);
        // The read that finds the end.
        assert_eq!(sequential(&[(0, 100), (100, 0), (100, 0)], 1), 2);
        assert_eq!(sequential(&[(0, 100), (0, 100), (0, 100)], 1), 0);
    }

    #[test]
    fn six_readers_side_by_side() {
        let operations: Vec<(u64, u64)> =
            (0..1200).map(|number| ((number % 6) * (1 << 30) + number / 6 * 8192, 8192)).collect();
        assert_eq!(sequential(&operations, 1), 1194);
    }

    #[test]
    fn backwards_is_not_sequential_although_each_ends_where_the_last_began() {
        let operations: Vec<(u64, u64)> =
            (0..1000).rev().map(|number| (number * 4096, 4096)).collect();
        assert_eq!(sequential(&operations, 1), 0);
    }

    proptest! {
        #[test]
        fn requests_that_end_out_of_order_are_sequential(
            depth in 2_usize..32,
            seed in prop::collection::vec(0.0_f64..1.0, 500),
        ) {
            // `depth` in flight, of which any ends next.
            let (mut flying, mut next, mut ended) = (Vec::new(), 0_u64, Vec::new());
            for choice in seed {
                while flying.len() < depth {
                    flying.push(next);
                    next += 1;
                }
                // The oldest does not wait for longer than a turn of the others.
                let oldest = flying[0];
                let stays = ((flying.len() as f64 * choice) as usize).min(flying.len() - 1);
                let at = if next - oldest > depth as u64 + 8 { 0 } else { stays };
                ended.push(flying.remove(at));
            }
            let mut sequence = Sequence::default();
            for number in &ended {
                sequence.add(*number, number * 4096, 4096, depth as u32);
            }
            // The first follows none, and what follows one that is still in flight is not known.
            let count = ended.len() as u64;
            prop_assert!(sequence.sequential <= count);
            prop_assert!(sequence.sequential + depth as u64 >= count, "{}", sequence.sequential);
        }

        #[test]
        fn touched_is_what_a_set_of_sectors_says(
            operations in prop::collection::vec((0_u64..4000, 0_u64..300), 1..200),
        ) {
            let mut touched = Touched::default();
            let (mut sectors, mut again) = (BTreeSet::new(), 0_u64);
            for (first, count) in &operations {
                again += u64::from(sectors.contains(first));
                sectors.extend(*first..first + count);
                touched.add(first * SECTOR, count * SECTOR);
            }
            let truth = again as f64 / operations.len() as f64;
            prop_assert_eq!(touched.again_share(), Some(truth));
        }

        #[test]
        fn a_sample_of_the_places_says_nearly_the_same(seed in any::<u64>()) {
            let mut touched = Touched::default();
            let mut seen = BTreeSet::new();
            let (mut state, mut again, count) = (seed, 0_u64, 60_000);
            for _ in 0..count {
                state = mixed(state);
                // Half of them in a hundredth of the file.
                let blocks = if state & 1 == 0 { 1 << 12 } else { 1 << 19 };
                let block = (state >> 8) % blocks;
                again += u64::from(!seen.insert(block));
                touched.add(block * 4096, 4096);
                if touched.words() > 2_000 {
                    touched.halve();
                }
            }
            let truth = again as f64 / f64::from(count);
            let found = touched.again_share().unwrap();
            prop_assert!((found - truth).abs() < 0.08, "{found} for {truth}");
        }
    }

    #[test]
    fn cells_grow_until_there_are_few_and_none_is_lost() {
        let mut spread = Spread::default();
        let base = 3 << 40;
        for number in 0..100_000_u64 {
            spread.add(base + number * 8192);
        }
        spread.add(u64::MAX);
        let places = spread.places();
        assert!(places.counts.len() <= CELLS_MAX, "{}", places.counts.len());
        assert_eq!(places.counts.iter().map(|(_, count)| count).sum::<u64>(), 100_001);
        assert!(places.counts[0].0 <= base && base < places.counts[0].0 + places.cell_bytes);
    }

    #[test]
    fn pieces_that_are_no_sectors_are_not_read_again() {
        let mut touched = Touched::default();
        for number in 0..1000_u64 {
            touched.add(number * 100, 100);
        }
        assert_eq!(touched.again_share(), Some(0.0));
    }
}
