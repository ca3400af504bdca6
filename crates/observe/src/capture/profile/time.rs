//! When operations came: how unevenly, and how many bytes at which part of the recording.

/// What burstiness is counted in.
pub const INTERVAL_NS: u64 = 100_000_000;
/// Intervals that may still get operations, since these come in the order of their ends: 6.4 s. One
/// that began before counts in the first of them.
const OPEN: usize = 64;

/// Operations in intervals of 100 ms.
#[derive(Clone, Debug)]
pub struct Bursts {
    open: Box<[u32; OPEN]>,
    /// Number of the first open interval.
    first: u64,
    count: f64,
    squares: f64,
}

impl Default for Bursts {
    fn default() -> Bursts {
        Bursts { open: Box::new([0; OPEN]), first: 0, count: 0.0, squares: 0.0 }
    }
}

impl Bursts {
    /// One that began `at_ns` behind the beginning.
    pub fn add(&mut self, at_ns: u64) {
        let interval = (at_ns / INTERVAL_NS).max(self.first);
        let last = self.first + (OPEN as u64 - 1);
        if interval > last {
            self.close((interval - last).min(OPEN as u64));
            self.first = interval - (OPEN as u64 - 1);
        }
        self.open[place(interval)] += 1;
    }

    fn close(&mut self, intervals: u64) {
        for interval in self.first..self.first + intervals {
            let count = f64::from(std::mem::take(&mut self.open[place(interval)]));
            self.count += count;
            self.squares += count * count;
        }
    }

    /// Variance over mean of the counts in all whole intervals of `recorded_ns`; `None` with fewer
    /// than ten of them or no operation.
    pub fn burstiness(mut self, recorded_ns: u64) -> Option<f64> {
        self.close(OPEN as u64);
        let intervals = recorded_ns / INTERVAL_NS;
        if intervals < 10 || self.count == 0.0 {
            return None;
        }
        let mean = self.count / intervals as f64;
        Some((self.squares / intervals as f64 - mean * mean).max(0.0) / mean)
    }
}

fn place(interval: u64) -> usize {
    usize::try_from(interval % OPEN as u64).unwrap_or(0)
}

/// Most cells of a series.
const CELLS: usize = 512;
/// A cell's width at first, in ns.
const WIDTH_NS: u64 = 1 << 20;

/// Bytes read and written over time. Two cells become one as often as is needed for their number to
/// stay below its limit.
#[derive(Clone, Debug)]
pub struct Series {
    cells: Vec<[u64; 2]>,
    width_ns: u64,
}

impl Default for Series {
    fn default() -> Series {
        Series { cells: Vec::new(), width_ns: WIDTH_NS }
    }
}

impl Series {
    /// `bytes` of the kind `which` at `at_ns` behind the beginning.
    pub fn add(&mut self, at_ns: u64, which: usize, bytes: u64) {
        while at_ns / self.width_ns >= CELLS as u64 {
            self.width_ns = self.width_ns.saturating_mul(2);
            self.cells = self.cells.chunks(2).map(joined).collect();
        }
        let at = usize::try_from(at_ns / self.width_ns).unwrap_or(CELLS - 1);
        if at >= self.cells.len() {
            self.cells.resize(at + 1, [0; 2]);
        }
        let cell = &mut self.cells[at][which];
        *cell = cell.saturating_add(bytes);
    }

    /// The same in `parts` equal parts of `recorded_ns`: a cell that lies in two gives each its
    /// share.
    pub fn resampled(&self, recorded_ns: u64, parts: usize) -> Vec<[u64; 2]> {
        let part_ns = recorded_ns.max(1) as f64 / parts as f64;
        let mut series = vec![[0_u64; 2]; parts];
        for which in 0..2 {
            // What has come until a moment, taken at the end of each part, so that no byte is lost.
            let (mut before, mut until, mut cell) = (0_u64, 0_u64, 0);
            for (part, sum) in series.iter_mut().enumerate() {
                let end_ns = part_ns * (part + 1) as f64;
                while cell < self.cells.len() && self.end_of(cell) <= end_ns {
                    until = until.saturating_add(self.cells[cell][which]);
                    cell += 1;
                }
                let rest = self.cells.get(cell).map_or(0.0, |bytes| {
                    let covered = 1.0 - (self.end_of(cell) - end_ns) / self.width_ns as f64;
                    bytes[which] as f64 * covered.clamp(0.0, 1.0)
                });
                let is_last = part + 1 == parts;
                let now = if is_last { self.total(which) } else { until + whole(rest) };
                sum[which] = now.saturating_sub(before);
                before = now.max(before);
            }
        }
        series
    }

    fn end_of(&self, cell: usize) -> f64 {
        self.width_ns as f64 * (cell + 1) as f64
    }

    fn total(&self, which: usize) -> u64 {
        self.cells.iter().fold(0, |sum, cell| sum.saturating_add(cell[which]))
    }
}

fn joined(pair: &[[u64; 2]]) -> [u64; 2] {
    pair.iter().fold([0; 2], |a, b| [a[0].saturating_add(b[0]), a[1].saturating_add(b[1])])
}

#[expect(clippy::cast_possible_truncation, reason = "a float becomes the nearest number there is")]
fn whole(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_clock_has_no_bursts_and_one_burst_has_many() {
        let mut clock = Bursts::default();
        let mut once = Bursts::default();
        for number in 0..1_000_u64 {
            clock.add(number * 10_000_000);
            once.add(5_000_000_000 + number);
        }
        assert_eq!(clock.burstiness(10_000_000_000), Some(0.0));
        // 1000 in one of 100 intervals: mean 10, variance 10,000 - 100.
        assert!((once.burstiness(10_000_000_000).unwrap() - 990.0).abs() < 1e-6);
        assert_eq!(Bursts::default().burstiness(10_000_000_000), None);
    }

    proptest! {
        #[test]
        fn burstiness_is_that_of_all_counts(
            mut times in prop::collection::vec(0_u64..20_000_000_000, 1..300),
            jitter in prop::collection::vec(0_u64..3_000_000_000, 300),
        ) {
            times.sort_unstable();
            // Out of order by less than what stays open.
            let mut order: Vec<(u64, u64)> =
                times.iter().zip(&jitter).map(|(at, later)| (at + later, *at)).collect();
            order.sort_unstable();
            let mut bursts = Bursts::default();
            let mut counts = vec![0.0_f64; 200];
            for (_, at) in &order {
                bursts.add(*at);
                counts[(at / INTERVAL_NS) as usize] += 1.0;
            }
            let mean = counts.iter().sum::<f64>() / 200.0;
            let variance = counts.iter().map(|it| (it - mean) * (it - mean)).sum::<f64>() / 200.0;
            let found = bursts.burstiness(20_000_000_000).unwrap();
            prop_assert!((found - variance / mean).abs() < 1e-6, "{found} {}", variance / mean);
        }

        #[test]
        fn no_byte_of_a_series_is_lost(
            adds in prop::collection::vec((0_u64..1 << 40, 0_usize..2, 0_u64..1 << 30), 0..200),
            recorded in 1_u64..1 << 41,
        ) {
            let mut series = Series::default();
            let mut sums = [0_u64; 2];
            for (at, which, bytes) in adds {
                series.add(at, which, bytes);
                sums[which] += bytes;
            }
            prop_assert!(series.cells.len() <= CELLS);
            let parts = series.resampled(recorded, 100);
            for which in 0..2 {
                let sum: u64 = parts.iter().map(|part| part[which]).sum();
                prop_assert_eq!(sum, sums[which]);
            }
        }
    }

    #[test]
    fn bytes_stand_where_they_came() {
        let mut series = Series::default();
        series.add(2_500_000_000, 1, 1_000);
        series.add(7_500_000_000, 0, 500);
        let parts = series.resampled(10_000_000_000, 100);
        let around = |at: usize, which: usize| -> u64 {
            parts[at - 1..=at + 1].iter().map(|part| part[which]).sum()
        };
        assert_eq!((around(25, 1), around(75, 0)), (1_000, 500));
    }
}
