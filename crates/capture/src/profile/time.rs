//! When operations came: how unevenly, and what was done in which part of the recording.

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
pub const CELLS: usize = 256;
/// A cell's width at first, in ns.
const WIDTH_NS: u64 = 1 << 20;
/// Cells that are told are this wide at least, in ns: about 17 ms.
const TOLD_WIDTH_NS: u64 = 1 << 24;

/// What was done in a part of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Reads, and writes.
    pub operations: [u32; 2],
    /// The bytes of these, as far as they told.
    pub bytes: [u64; 2],
    pub syncs: u32,
    /// In flight when a read or write began, summed over those that told.
    pub in_flight_sum: u64,
    pub in_flight_told: u32,
    pub in_flight_most: u32,
}

impl Cell {
    fn and(self, other: &Cell) -> Cell {
        let both = |which: usize| self.operations[which].saturating_add(other.operations[which]);
        let bytes = |which: usize| self.bytes[which].saturating_add(other.bytes[which]);
        Cell {
            operations: [both(0), both(1)],
            bytes: [bytes(0), bytes(1)],
            syncs: self.syncs.saturating_add(other.syncs),
            in_flight_sum: self.in_flight_sum.saturating_add(other.in_flight_sum),
            in_flight_told: self.in_flight_told.saturating_add(other.in_flight_told),
            in_flight_most: self.in_flight_most.max(other.in_flight_most),
        }
    }
}

/// What was done over time. Two cells become one as often as is needed for their number to stay
/// below its limit.
#[derive(Clone, Debug)]
pub struct Series {
    cells: Vec<Cell>,
    width_ns: u64,
}

impl Default for Series {
    fn default() -> Series {
        Series { cells: Vec::new(), width_ns: WIDTH_NS }
    }
}

impl Series {
    /// The cell of what began `at_ns` behind the beginning.
    fn cell(&mut self, at_ns: u64) -> &mut Cell {
        while at_ns / self.width_ns >= CELLS as u64 {
            self.widen();
        }
        let at = usize::try_from(at_ns / self.width_ns).unwrap_or(CELLS - 1);
        if at >= self.cells.len() {
            self.cells.resize(at + 1, Cell::default());
        }
        &mut self.cells[at]
    }

    fn widen(&mut self) {
        self.width_ns = self.width_ns.saturating_mul(2);
        let joined = |pair: &[Cell]| pair[1..].iter().fold(pair[0], Cell::and);
        self.cells = self.cells.chunks(2).map(joined).collect();
    }

    /// A read (0) or write (1) of so many bytes, where these are known, with so many in flight.
    pub fn add(&mut self, at_ns: u64, which: usize, bytes: u64, in_flight: Option<u32>) {
        let cell = self.cell(at_ns);
        cell.operations[which] = cell.operations[which].saturating_add(1);
        cell.bytes[which] = cell.bytes[which].saturating_add(bytes);
        if let Some(in_flight) = in_flight {
            cell.in_flight_sum = cell.in_flight_sum.saturating_add(in_flight.into());
            cell.in_flight_told = cell.in_flight_told.saturating_add(1);
            cell.in_flight_most = cell.in_flight_most.max(in_flight);
        }
    }

    /// A sync.
    pub fn sync(&mut self, at_ns: u64) {
        let cell = self.cell(at_ns);
        cell.syncs = cell.syncs.saturating_add(1);
    }

    /// The width in ns of cells that all series of so long a recording can be told in: they begin
    /// together, and each is as wide as another one or twice, four times and so on as wide.
    pub fn told_width_ns(recorded_ns: u64) -> u64 {
        let mut width_ns = TOLD_WIDTH_NS;
        while recorded_ns / width_ns >= CELLS as u64 {
            width_ns = width_ns.saturating_mul(2);
        }
        width_ns
    }

    /// Adds its cells to those of others, which are so wide; what lies behind the last of these
    /// belongs to it.
    pub fn add_to(&self, cells: &mut [Cell], width_ns: u64) {
        let Some(last) = cells.len().checked_sub(1) else { return };
        for (number, cell) in self.cells.iter().enumerate() {
            let at_ns = (number as u64).saturating_mul(self.width_ns);
            let at = usize::try_from(at_ns / width_ns).map_or(last, |at| at.min(last));
            cells[at] = cells[at].and(cell);
        }
    }

    /// Bytes read and written in `parts` equal parts of `recorded_ns`: a cell that lies in two
    /// gives each its share.
    pub fn resampled(&self, recorded_ns: u64, parts: usize) -> Vec<[u64; 2]> {
        let part_ns = recorded_ns.max(1) as f64 / parts as f64;
        let mut series = vec![[0_u64; 2]; parts];
        for which in 0..2 {
            // What has come until a moment, taken at the end of each part, so that no byte is lost.
            let (mut before, mut until, mut cell) = (0_u64, 0_u64, 0);
            for (part, sum) in series.iter_mut().enumerate() {
                let end_ns = part_ns * (part + 1) as f64;
                while cell < self.cells.len() && self.end_of(cell) <= end_ns {
                    until = until.saturating_add(self.cells[cell].bytes[which]);
                    cell += 1;
                }
                let rest = self.cells.get(cell).map_or(0.0, |it| {
                    let covered = 1.0 - (self.end_of(cell) - end_ns) / self.width_ns as f64;
                    it.bytes[which] as f64 * covered.clamp(0.0, 1.0)
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
        self.cells.iter().fold(0, |sum, cell| sum.saturating_add(cell.bytes[which]))
    }
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
                series.add(at, which, bytes, None);
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

    proptest! {
        /// Whatever each has been widened to, files of a class are added up in cells of one width,
        /// and what began in a cell stands in it.
        #[test]
        fn series_of_many_files_are_told_in_the_same_cells(
            adds in
                prop::collection::vec((0_usize..3, 0_u64..1 << 38, 0_usize..2, 1_u32..9), 0..200),
        ) {
            let recorded = adds.iter().map(|it| it.1).max().unwrap_or(0);
            let width = Series::told_width_ns(recorded);
            let mut all = vec![Cell::default(); (recorded / width) as usize + 1];
            prop_assert!(all.len() <= CELLS);
            let mut expected = all.clone();
            let mut files = [Series::default(), Series::default(), Series::default()];
            for (file, at, which, in_flight) in &adds {
                files[*file].add(*at, *which, 10, Some(*in_flight));
                files[*file].sync(*at);
                let cell = &mut expected[(at / width) as usize];
                cell.operations[*which] += 1;
                cell.bytes[*which] += 10;
                cell.syncs += 1;
                cell.in_flight_sum += u64::from(*in_flight);
                cell.in_flight_told += 1;
                cell.in_flight_most = cell.in_flight_most.max(*in_flight);
            }
            files.iter().for_each(|file| file.add_to(&mut all, width));
            prop_assert_eq!(all, expected);
        }
    }

    #[test]
    fn bytes_stand_where_they_came() {
        let mut series = Series::default();
        series.add(2_500_000_000, 1, 1_000, None);
        series.add(7_500_000_000, 0, 500, None);
        let parts = series.resampled(10_000_000_000, 100);
        let around = |at: usize, which: usize| -> u64 {
            parts[at - 1..=at + 1].iter().map(|part| part[which]).sum()
        };
        assert_eq!((around(25, 1), around(75, 0)), (1_000, 500));
    }
}
