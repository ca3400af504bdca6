//! Counts whose memory has a limit: of numbers, of times, and of what was not told.

use std::collections::BTreeMap;

use super::super::operation::{Known, Unknown};

/// Numbers below this have a cell of their own.
const EXACT: u64 = 64;
/// Cells for each doubling above: the middle of one is 1.6 % away from what it holds at most.
const CELLS: u64 = 32;

/// How often which numbers came, those from 64 on to 1.6 %. At most 1,920 counts.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// The number of the cell that `counts` begins with.
    first: usize,
    counts: Vec<u64>,
    total: u64,
}

impl Histogram {
    /// One more.
    pub fn add(&mut self, value: u64) {
        let cell = cell_of(value);
        if self.counts.is_empty() {
            self.first = cell;
        }
        if cell < self.first {
            let more = self.first - cell;
            self.counts.splice(0..0, std::iter::repeat_n(0, more));
            self.first = cell;
        }
        let at = cell - self.first;
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
        self.total += 1;
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The number that `share` of all are not above; `None` without any.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        quantile(self.cells(), self.total, share)
    }

    /// The middle of each cell, and its count, in order.
    fn cells(&self) -> impl Iterator<Item = (f64, u64)> {
        let counted = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(|(at, count)| (middle_of(self.first + at), *count))
    }
}

fn cell_of(value: u64) -> usize {
    if value < EXACT {
        return usize::try_from(value).unwrap_or(0);
    }
    let doubling = u64::from(63 - value.leading_zeros());
    // The five bits behind the highest one.
    let within = (value >> (doubling - 5)) - CELLS;
    usize::try_from(EXACT + (doubling - 6) * CELLS + within).unwrap_or(usize::MAX)
}

fn middle_of(cell: usize) -> f64 {
    let cell = cell as u64;
    if cell < EXACT {
        return cell as f64;
    }
    let (doubling, within) = ((cell - EXACT) / CELLS + 6, (cell - EXACT) % CELLS);
    let width = 1_u64 << (doubling - 5);
    ((CELLS + within) * width) as f64 + (width - 1) as f64 / 2.0
}

fn quantile(cells: impl Iterator<Item = (f64, u64)>, total: u64, share: f64) -> Option<f64> {
    // The number of the one that is asked for, from 1.
    let wanted = ((total as f64 * share).ceil()).max(1.0);
    let mut passed = 0;
    for (value, count) in cells {
        passed += count;
        if passed as f64 >= wanted {
            return Some(value);
        }
    }
    None
}

/// How often which numbers came: the first of them exactly, up to a limit, the rest as a
/// [`Histogram`].
#[derive(Clone, Debug)]
pub struct Numbers {
    /// Number and count, in the order of the numbers.
    exact: Vec<(u64, u64)>,
    limit: usize,
    /// Where the last one stands: mostly the next is the same.
    last: usize,
    rest: Histogram,
}

impl Numbers {
    /// None so far, and `limit` of them with a count of their own.
    pub fn new(limit: usize) -> Numbers {
        Numbers { exact: Vec::new(), limit, last: 0, rest: Histogram::default() }
    }

    /// So many more.
    pub fn add_often(&mut self, value: u64, count: u64) {
        (0..count).for_each(|_| self.add(value));
    }

    /// One more.
    pub fn add(&mut self, value: u64) {
        if let Some((it, count)) = self.exact.get_mut(self.last)
            && *it == value
        {
            *count += 1;
            return;
        }
        match self.exact.binary_search_by_key(&value, |(it, _)| *it) {
            Ok(at) => {
                self.exact[at].1 += 1;
                self.last = at;
            }
            Err(at) if self.exact.len() < self.limit => {
                self.exact.insert(at, (value, 1));
                self.last = at;
            }
            Err(_) => self.rest.add(value),
        }
    }

    /// The `most` most frequent numbers, most frequent first, and how many of others came.
    pub fn most_frequent(&self, most: usize) -> (Vec<(u64, u64)>, u64) {
        let mut numbers = self.exact.clone();
        numbers.sort_by_key(|&(value, count)| (std::cmp::Reverse(count), value));
        let others = numbers.iter().skip(most).map(|(_, count)| count).sum::<u64>();
        numbers.truncate(most);
        (numbers, others + self.rest.total())
    }

    /// The number that `share` of all of `several` are not above; `None` without any.
    pub fn quantile(several: &[&Numbers], share: f64) -> Option<f64> {
        let mut cells: Vec<(f64, u64)> = Vec::new();
        for numbers in several {
            cells.extend(numbers.exact.iter().map(|&(value, count)| (value as f64, count)));
            cells.extend(numbers.rest.cells());
        }
        cells.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total = cells.iter().map(|(_, count)| count).sum();
        quantile(cells.into_iter(), total, share)
    }
}

/// How many did not tell something, and why.
#[derive(Clone, Debug, Default)]
pub struct Untold {
    by_reason: BTreeMap<Unknown, u64>,
}

impl Untold {
    /// What was told; what was not is counted.
    #[inline]
    pub fn or_count<T>(&mut self, known: Known<T>) -> Option<T> {
        match known {
            Ok(value) => Some(value),
            Err(reason) => {
                *self.by_reason.entry(reason).or_default() += 1;
                None
            }
        }
    }

    /// So many told in the end what they had not told for that reason.
    pub fn told(&mut self, reason: Unknown, count: u64) {
        if let Some(untold) = self.by_reason.get_mut(&reason) {
            *untold = untold.saturating_sub(count);
        }
        self.by_reason.retain(|_, count| *count > 0);
    }

    /// How many did not tell.
    pub fn total(&self) -> u64 {
        self.by_reason.values().sum()
    }

    /// How many did not tell for other reasons than that they had not ended.
    pub fn missing(&self) -> u64 {
        self.total() - self.by_reason.get(&Unknown::NotEnded).copied().unwrap_or(0)
    }

    /// The most frequent reason.
    pub fn reason(&self) -> Option<Unknown> {
        let most = self.by_reason.iter().max_by_key(|(_, count)| **count);
        most.map(|(reason, _)| *reason)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn small_numbers_are_exact() {
        for value in 0..EXACT {
            let mut histogram = Histogram::default();
            histogram.add(value);
            assert_eq!(histogram.quantile(0.5), Some(value as f64));
        }
    }

    #[test]
    fn the_largest_number_has_a_cell() {
        let mut histogram = Histogram::default();
        histogram.add(u64::MAX);
        histogram.add(0);
        assert!(histogram.counts.len() <= 1_920, "{}", histogram.counts.len());
        assert_eq!(histogram.quantile(0.5), Some(0.0));
        assert!(histogram.quantile(1.0).unwrap() > 1.8e19);
    }

    fn any_size() -> impl Strategy<Value = u64> {
        (0_u64..64, 0_u32..58).prop_map(|(a, b)| a << b)
    }

    proptest! {
        #[test]
        fn a_quantile_is_that_of_the_sorted_list(
            mut values in prop::collection::vec(any_size(), 1..200),
            share in 0.01_f64..1.0,
            limit in 0_usize..40,
        ) {
            let mut histogram = Histogram::default();
            let mut numbers = Numbers::new(limit);
            for value in &values {
                histogram.add(*value);
                numbers.add(*value);
            }
            values.sort_unstable();
            let at = ((values.len() as f64 * share).ceil() as usize).clamp(1, values.len()) - 1;
            let truth = values[at] as f64;
            for found in [histogram.quantile(share), Numbers::quantile(&[&numbers], share)] {
                let found = found.unwrap();
                prop_assert!((found - truth).abs() <= truth * 0.016, "{found} for {truth}");
            }
            let (most, others) = numbers.most_frequent(3);
            let told: u64 = most.iter().map(|(_, count)| count).sum();
            prop_assert_eq!(told + others, values.len() as u64);
            for (value, count) in most {
                // Those with a count of their own are counted from the first on.
                let truth = values.iter().filter(|it| **it == value).count() as u64;
                prop_assert_eq!(count, truth);
            }
        }
    }
}
