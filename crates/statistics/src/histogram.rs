//! Latencies in fixed memory: 32 buckets for each power of two, so that a quantile is off by at
//! most 3 % and two histograms add up exactly.
//!
//! The layout is that of HdrHistogram and of fio, and is small enough to be written here: a bucket
//! is the power and the five bits behind the first one.

use serde::{Deserialize, Serialize};

/// Bits that distinguish buckets of one power.
const BITS: u32 = 5;
const PER_POWER: u64 = 1 << BITS;
const BUCKETS: usize = ((64 - BITS as usize) + 1) << BITS;

/// Counts of latencies in nanoseconds. Serialised as pairs of the bucket's lower end and its count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; BUCKETS], total: 0 }
    }
}

impl Histogram {
    /// Counts one latency.
    pub fn add(&mut self, latency_ns: u64) {
        self.add_many(latency_ns, 1);
    }

    fn add_many(&mut self, latency_ns: u64, count: u64) {
        // Saturating: a file may claim more than was ever measured.
        let bucket = &mut self.counts[bucket(latency_ns)];
        *bucket = bucket.saturating_add(count);
        self.total = self.total.saturating_add(count);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        self.counts
            .iter_mut()
            .zip(&other.counts)
            .for_each(|(mine, theirs)| *mine = mine.saturating_add(*theirs));
        self.total = self.total.saturating_add(other.total);
    }

    /// The counts of all buckets, which are the same for every histogram: those of several hosts
    /// are added position by position.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The histogram with these counts; `None` unless there is one for each bucket.
    pub fn of_counts(counts: Vec<u64>) -> Option<Histogram> {
        let total = counts.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
        (counts.len() == BUCKETS).then_some(Histogram { counts, total })
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The latency that this share did not exceed; the upper end of its bucket. `None` if it is
    /// empty.
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let wanted = ((share.clamp(0.0, 1.0) * self.total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen = count.saturating_add(seen);
            if seen >= wanted {
                return Some(low(index + 1).saturating_sub(1).max(low(index)));
            }
        }
        None
    }

    /// Buckets that are not empty: lower end, upper end (exclusive) and count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(index, &count)| (low(index), low(index + 1), count))
    }
}

impl From<Histogram> for Vec<(u64, u64)> {
    fn from(histogram: Histogram) -> Vec<(u64, u64)> {
        histogram.buckets().map(|(low, _, count)| (low, count)).collect()
    }
}

impl From<Vec<(u64, u64)>> for Histogram {
    fn from(pairs: Vec<(u64, u64)>) -> Histogram {
        let mut histogram = Histogram::default();
        pairs.into_iter().for_each(|(low, count)| histogram.add_many(low, count));
        histogram
    }
}

fn bucket(value: u64) -> usize {
    if value < PER_POWER {
        return value as usize;
    }
    let power = 63 - value.leading_zeros();
    let within = (value >> (power - BITS)) - PER_POWER;
    (((u64::from(power - BITS) + 1) << BITS) + within) as usize
}

/// Lower end of a bucket.
fn low(index: usize) -> u64 {
    let (row, within) = (index as u64 >> BITS, index as u64 & (PER_POWER - 1));
    match row {
        0 => within,
        _ => {
            let wide = u128::from(PER_POWER + within) << (row - 1);
            u64::try_from(wide).unwrap_or(u64::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_value_lies_in_its_bucket(value in any::<u64>()) {
            let index = bucket(value);
            prop_assert!(low(index) <= value);
            prop_assert!(low(index + 1) > value || low(index + 1) == u64::MAX);
            prop_assert!((value - low(index)) as f64 <= value as f64 / 32.0);
        }

        #[test]
        fn quantiles_are_those_of_the_values(
            mut values in prop::collection::vec(1u64..10_000_000, 1..200), share in 0.0..1.0f64,
        ) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&value| histogram.add(value));
            values.sort_unstable();
            let rank = ((share * values.len() as f64).ceil() as usize).max(1) - 1;
            let found = histogram.quantile_ns(share).unwrap();
            prop_assert!(found >= values[rank]);
            prop_assert!(found as f64 <= values[rank] as f64 * (1.0 + 1.0 / 32.0) + 1.0);
            let pairs: Vec<(u64, u64)> = histogram.clone().into();
            prop_assert_eq!(Histogram::from(pairs), histogram);
        }
    }
}
