//! Runs that wrote a file, with what each of them shows.

use std::collections::{BTreeMap, BTreeSet};

use base::format::size;

use super::estimate::{Estimate, by_repeat};
use crate::tape::SOURCE_HELD;
use experiment::record::{Cell, RunRecord, binary_size, number_in, word_in};
use statistics::bytes_over_time::Series;

/// What an LTO drive makes of zeros, where it does not count.
const ZEROS_RATIO: f64 = 90.0;
/// Data that a drive compresses by less do not compress.
const COMPRESSING: f64 = 1.05;
/// Shorter runs are filled by the buffer, see the cautions of [`crate::tape`].
const BUFFERS_MIN: f64 = 3.0;
/// A host that a drive makes wait begins faster than it goes on, by more than this.
const FASTER_BEGINNING: f64 = 1.15;
/// Blocks that a beginning has at least, and a second half.
const BLOCKS_MIN: (u64, u64) = (4, 8);
/// Steps of the series in a second half.
const STEPS_MIN: usize = 8;

/// All runs of one combination.
#[derive(Clone, Debug)]
pub(super) struct CellRuns<'a> {
    cell: &'a Cell,
    pub(super) runs: Vec<Written<'a>>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(super) struct Written<'a> {
    run: &'a RunRecord,
    block_bytes: u64,
    /// Host bytes for each byte on the medium, by the data or as the drive counted.
    pub(super) ratio: Option<f64>,
    /// The same where the drive counted.
    pub(super) counted_ratio: Option<f64>,
}

/// The runs that wrote, by their combination.
pub(super) fn groups<'a>(runs: &[&'a RunRecord]) -> Vec<CellRuns<'a>> {
    let mut by_cell: BTreeMap<&Cell, Vec<Written<'a>>> = BTreeMap::new();
    for &run in runs.iter().filter(|run| !is_read(&run.cell)) {
        by_cell.entry(&run.cell).or_default().push(Written::of(run));
    }
    by_cell.into_iter().map(|(cell, runs)| CellRuns { cell, runs }).collect()
}

/// Whether a file was read back there.
pub(super) fn is_read(cell: &Cell) -> bool {
    word_in(cell, "operation").ok().flatten() == Some("read")
}

/// The sizes of their blocks in words.
pub(super) fn block_range(groups: &[&CellRuns<'_>]) -> String {
    let sizes: BTreeSet<u64> = groups.iter().map(|group| group.block_bytes()).collect();
    match (sizes.first(), sizes.last()) {
        (Some(least), Some(most)) if least != most => {
            format!("blocks of {} to {}", binary_size(*least), binary_size(*most))
        }
        (Some(only), _) => format!("blocks of {}", binary_size(*only)),
        _ => String::new(),
    }
}

impl<'a> CellRuns<'a> {
    /// Its combination.
    pub(super) fn cell(&self) -> &'a Cell {
        self.cell
    }

    /// How often it ran.
    pub(super) fn repeats(&self) -> usize {
        self.runs.iter().map(|one| one.run.repeat).collect::<BTreeSet<_>>().len()
    }

    /// The data, as they are named.
    pub(super) fn data(&self) -> &'a str {
        data(self.cell)
    }

    pub(super) fn block_bytes(&self) -> u64 {
        self.runs.first().map_or(0, |one| one.block_bytes)
    }

    /// `1.07 GB of zeros in blocks of 1 MiB`.
    pub(super) fn shown(&self) -> String {
        let bytes = self.runs.first().map_or(0, |one| one.run.bytes);
        let block = binary_size(self.block_bytes());
        format!("{} of {} in blocks of {block}", size(bytes), self.data())
    }

    /// One number of each run that has it, with its repeat; none where the generator of the data
    /// was the limit.
    pub(super) fn values(&self, number: impl Fn(&Written<'a>) -> Option<f64>) -> Vec<(u64, f64)> {
        let own = self.runs.iter().filter(|one| !one.is_held_by_source());
        own.filter_map(|one| Some((one.run.repeat, number(one)?))).collect()
    }

    /// What they come to.
    pub(super) fn estimate(
        &self,
        number: impl Fn(&Written<'a>) -> Option<f64>,
    ) -> Option<Estimate> {
        by_repeat(&self.values(number))
    }

    /// Whether the drive compressed them.
    pub(super) fn is_compressed(&self) -> bool {
        self.runs.iter().all(|one| one.compression() == Some("on"))
    }

    /// Whether they go onto the medium as they are.
    pub(super) fn is_plain(&self) -> bool {
        self.runs.iter().all(|one| one.ratio.is_some_and(|ratio| ratio < COMPRESSING))
    }

    /// Whether most of the runs had to wait for the tape.
    pub(super) fn is_held_by_tape(&self) -> bool {
        let held = self.values(|one| one.is_held_by_tape().then_some(1.0));
        2 * held.len() > self.runs.len()
    }

    /// Whether it shows what the tape gives, and nothing else.
    pub(super) fn is_of_tape(&self) -> bool {
        self.is_plain()
            && self.is_held_by_tape()
            && self.runs.iter().all(Written::is_long)
            && self.estimate(Written::steady).is_some()
    }

    /// Whether its blocks are written as they come, by a thread that does nothing else.
    pub(super) fn is_of_commands(&self) -> bool {
        let framing = word_in(self.cell, "framing").ok().flatten();
        let ring_bytes = number_in(self.cell, "ring_bytes", 0).unwrap_or(0);
        matches!(framing, None | Some("raw")) && ring_bytes > 0 && !self.is_held_by_tape()
    }
}

impl<'a> Written<'a> {
    fn of(run: &'a RunRecord) -> Written<'a> {
        let counted = run.measures.get("drive_compression_ratio").copied();
        let counted_ratio = counted.filter(|ratio| ratio.is_finite() && *ratio > 0.0);
        let block_bytes = number_in(&run.cell, "block_bytes", 1 << 20).unwrap_or(1 << 20);
        let mut written = Written { run, block_bytes, ratio: None, counted_ratio };
        written.ratio = match (written.compression(), data(&run.cell)) {
            (Some("off" | "none"), _) | (_, "random") => Some(1.0),
            (Some("on"), text) => counted_ratio.or(match text {
                "zeros" => Some(ZEROS_RATIO),
                text => text.strip_prefix("text:").and_then(|ratio| ratio.parse().ok()),
            }),
            _ => counted_ratio,
        };
        written
    }

    /// `on`, `off`, or `none` where the drive cannot; as it was set, or as it was found.
    fn compression(&self) -> Option<&'a str> {
        let set = word_in(&self.run.cell, "drive_compression").ok().flatten();
        set.or_else(|| self.run.environment.get("drive compression").map(String::as_str))
    }

    fn is_held_by_source(&self) -> bool {
        self.run.notes.iter().any(|note| note.ends_with(SOURCE_HELD))
    }

    /// Whether its second half is one in which the drive's buffer is full.
    fn is_long(&self) -> bool {
        self.buffer_bytes().is_none_or(|buffer| self.run.bytes as f64 >= BUFFERS_MIN * buffer)
    }

    /// Whether the tape had no need to move before the filemark.
    pub(super) fn is_in_buffer(&self) -> bool {
        self.native_bytes().zip(self.buffer_bytes()).is_some_and(|(native, buffer)| native < buffer)
    }

    /// The drive's buffer, as the run was told of it.
    fn buffer_bytes(&self) -> Option<f64> {
        self.run.environment.get("drive buffer bytes")?.parse().ok()
    }

    fn is_held_by_tape(&self) -> bool {
        let series = self.run.series.as_ref();
        let began = series.and_then(|series| began(series, self.block_bytes));
        began.zip(self.steady()).is_some_and(|(began, steady)| began > FASTER_BEGINNING * steady)
    }

    /// Rate over the second half of what was handed over, bytes per second.
    pub(super) fn steady(&self) -> Option<f64> {
        steady(self.run.series.as_ref()?, self.block_bytes)
    }

    /// Rate without the filemark.
    pub(super) fn bare(&self) -> Option<f64> {
        self.measure("without_filemark_bytes_per_second")
    }

    /// What the filemark took.
    pub(super) fn filemark_seconds(&self) -> Option<f64> {
        self.measure("filemark_seconds")
    }

    /// Bytes on the medium.
    pub(super) fn native_bytes(&self) -> Option<f64> {
        let counted = self.measure("drive_native_bytes");
        counted.or_else(|| Some(self.run.bytes as f64 / self.ratio?))
    }

    /// One stop, by the drive's own count.
    pub(super) fn back_hitch_seconds(&self) -> Option<f64> {
        Some(self.measure("drive_back_hitch_seconds")? / self.measure("drive_back_hitches")?)
    }

    /// Whether the drive says how often it stopped.
    pub(super) fn counts_stops(&self) -> bool {
        self.run.measures.contains_key("drive_back_hitches")
    }

    fn measure(&self, name: &str) -> Option<f64> {
        self.run.measures.get(name).copied().filter(|value| value.is_finite() && *value > 0.0)
    }
}

fn data(cell: &Cell) -> &str {
    word_in(cell, "data").ok().flatten().unwrap_or("random")
}

/// The highest rate from the start to any later moment.
fn began(series: &Series, block_bytes: u64) -> Option<f64> {
    let mut passed = 0;
    let mut highest: Option<f64> = None;
    for (steps, bytes) in (1u32..).zip(&series.bytes) {
        passed += bytes;
        if passed >= BLOCKS_MIN.0 * block_bytes {
            let rate = passed as f64 / (f64::from(steps) * series.step_seconds);
            highest = Some(highest.map_or(rate, |known| known.max(rate)));
        }
    }
    highest
}

/// Slope of the bytes over time, by least squares, from the moment in which half of them are handed
/// over to the last step in which there was more to come. A line through all steps, because bytes
/// come in blocks: the two ends alone would be wrong by up to one each, in every repeat alike.
fn steady(series: &Series, block_bytes: u64) -> Option<f64> {
    let last = series.bytes.iter().rposition(|&bytes| bytes > 0)?;
    let total: u64 = series.bytes.iter().sum();
    let mut passed = 0;
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (step, bytes) in series.bytes[..=last].iter().enumerate() {
        // What has passed when this step begins.
        if 2 * passed >= total {
            points.push((step as f64 * series.step_seconds, passed as f64));
        }
        passed += bytes;
    }
    let ((from, before), (to, behind)) = (*points.first()?, *points.last()?);
    if points.len() <= STEPS_MIN || behind - before < (BLOCKS_MIN.1 * block_bytes) as f64 {
        return None;
    }
    let (middle, mean) = ((from + to) / 2.0, points.iter().map(|(_, y)| y).sum::<f64>());
    let mean = mean / points.len() as f64;
    let products = points.iter().map(|(x, y)| (x - middle) * (y - mean)).sum::<f64>();
    let squares = points.iter().map(|(x, _)| (x - middle).powi(2)).sum::<f64>();
    Some(products / squares).filter(|rate| *rate > 0.0)
}
