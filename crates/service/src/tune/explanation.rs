//! Why a window is large enough: Little's law, and the model of the kernel's read-ahead.
//!
//! A device with latency L delivers a rate R only with R x L bytes in flight (Little 1961). The
//! kernel reads two windows ahead of the reader, so half of that is enough for a window.
//! `model::read_ahead` models how windows grow and when the next one is requested.

use experiment::judgement::Judgement;
use experiment::record::Level;
use model::disk::DiskParameters;
use model::read_ahead::{Policy, Reader, sequential_bytes_per_second};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use storage::layers::Storage;
use storage::stack::VxfsReadAhead;

/// Windows in flight when the reader waits.
const WINDOWS: f64 = 2.0;
/// A rate this close to the best counts as equal: the band of the judgement.
const AS_GOOD: f64 = 0.98;
/// Requests that the device of the model serves at once.
const SERVERS: usize = 64;
/// High enough that only the device limits the rate.
const COPY_BYTES_PER_SECOND: u64 = 20_000_000_000;

/// LatencySource of the latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LatencySource {
    /// The curve fitted to the rates.
    Sweep,
    /// Reads of single pages at random places, which include a seek on rotating disks.
    RandomReads,
}

/// The window that a device needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowExplanation {
    /// Latency of the device.
    pub answer_seconds: f64,
    pub answer_from: LatencySource,
    /// Highest measured rate.
    pub bytes_per_second: f64,
    /// Bytes in flight that this rate needs.
    pub under_way_bytes: f64,
    /// Rates of the model, by the window.
    pub model: Vec<(u64, f64)>,
    /// The smallest window with which the model reaches its best rate.
    pub model_knee_bytes: u64,
    /// The same of the measured rates, if several windows were measured.
    pub measured_knee_bytes: Option<u64>,
    /// Whether VxFS does the read-ahead, which Takeup does not set.
    pub vxfs: bool,
}

/// Measured properties of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredDevice {
    /// Latency.
    pub answer_seconds: f64,
    pub answer_from: LatencySource,
    /// Highest measured rate.
    pub bytes_per_second: f64,
    /// Read size of the program.
    pub request_bytes: u64,
    /// Larger requests are split on their way to the device.
    pub request_bytes_max: u64,
    /// The read-ahead of VxFS, if the file lies on one.
    pub vxfs: Option<VxfsReadAhead>,
}

impl MeasuredDevice {
    /// From an experiment, if it has enough data.
    pub fn of(
        judgement: &Judgement,
        storage: &Storage,
        request_bytes: u64,
    ) -> Option<MeasuredDevice> {
        let sweep = judgement.sweeps.iter().find(|sweep| sweep.factor == "read_ahead_bytes");
        // On a rotating disk, a random page takes a seek, which a stream does not.
        let has_heads = storage.queue_setting("rotational").as_deref() == Some("1");
        let curve = sweep.and_then(|sweep| sweep.model.as_ref()).filter(|model| {
            has_heads && model.rising >= 2 && model.overhead_ns > 0.0 && model.holds()
        });
        let read = judgement
            .cells
            .iter()
            .filter_map(|cell| cell.measures.get("random_read_p50_ns").map(|ns| ns / 1e9));
        let (answer_seconds, answer_from) = match curve {
            // The curve is for one window; two are in flight.
            Some(curve) => (WINDOWS * curve.overhead_ns / 1e9, LatencySource::Sweep),
            None => (read.min_by(f64::total_cmp)?, LatencySource::RandomReads),
        };
        let rates = judgement.cells.iter().map(|cell| cell.bytes_per_second);
        let limit = storage.queue_setting("max_sectors_kb");
        let limit_kib: u64 = limit.and_then(|text| text.parse().ok()).unwrap_or(128);
        Some(MeasuredDevice {
            answer_seconds,
            answer_from,
            bytes_per_second: rates.max_by(f64::total_cmp)?,
            request_bytes,
            request_bytes_max: limit_kib << 10,
            vxfs: None,
        })
    }

    /// The explanation for these windows.
    pub fn explain(self, windows: &[u64], measured_knee_bytes: Option<u64>) -> WindowExplanation {
        let disk = DiskParameters {
            servers: SERVERS,
            link_bytes_per_second: self.bytes_per_second as u64,
            request_bytes_max: self.request_bytes_max,
            ..DiskParameters::constant((self.answer_seconds * 1e9) as u64, 1 << 40)
        };
        let reader =
            Reader { read_bytes: self.request_bytes, copy_bytes_per_second: COPY_BYTES_PER_SECOND };
        let of = |&window_bytes: &u64| {
            let policy = match self.vxfs {
                Some(own) => Policy::Ahead { window_bytes, request_bytes: own.read_pref_io },
                None => Policy::Linux { window_bytes },
            };
            (window_bytes, sequential_bytes_per_second(&disk, policy, reader) as f64)
        };
        let mut model: Vec<(u64, f64)> = windows.iter().map(of).collect();
        model.sort_by_key(|(window, _)| *window);
        let best = model.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        let knee = model.iter().find(|(_, rate)| *rate >= best * AS_GOOD);
        WindowExplanation {
            answer_seconds: self.answer_seconds,
            answer_from: self.answer_from,
            bytes_per_second: self.bytes_per_second,
            under_way_bytes: self.bytes_per_second * self.answer_seconds,
            model_knee_bytes: knee.map_or(0, |(window, _)| *window),
            model,
            measured_knee_bytes,
            vxfs: self.vxfs.is_some(),
        }
    }
}

/// The knee of a sweep over windows; `None` for single runs, which cannot distinguish windows.
pub fn measured_knee(judgement: &Judgement) -> Option<u64> {
    let sweep = judgement.sweeps.iter().find(|sweep| sweep.factor == "read_ahead_bytes")?;
    if sweep.cells.iter().any(|&cell| judgement.cells[cell].rates.len() < 2) {
        return None;
    }
    match judgement.cells[sweep.cells[sweep.knee]].cell.get("read_ahead_bytes")? {
        Level::Number(bytes) => Some(*bytes),
        Level::Text(_) => None,
    }
}

impl WindowExplanation {
    /// Whether the measured knee is within one power of two of the model's.
    pub fn agrees(&self) -> Option<bool> {
        let (measured, model) = (self.measured_knee_bytes? as f64, self.model_knee_bytes as f64);
        Some((0.5..=2.0).contains(&(measured / model)))
    }

    /// The window that the bytes in flight need.
    pub fn window_bytes(&self) -> f64 {
        self.under_way_bytes / WINDOWS
    }
}

#[cfg(test)]
mod tests {
    use experiment::judgement::{JudgementOptions, judge};
    use experiment::record::{Factor, RunRecord};

    use super::*;

    const WINDOWS_TRIED: [u64; 9] =
        [64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20];

    fn known(answer_seconds: f64, bytes_per_second: f64) -> MeasuredDevice {
        MeasuredDevice {
            answer_seconds,
            answer_from: LatencySource::RandomReads,
            bytes_per_second,
            request_bytes: 128 << 10,
            request_bytes_max: 1280 << 10,
            vxfs: None,
        }
    }

    /// VxFS keeps a fixed amount in flight: it needs all of what Little's law gives, not half.
    #[test]
    fn a_vxfs_needs_all_that_is_under_way_in_one_window() {
        let own = VxfsReadAhead { read_pref_io: 64 << 10, read_nstream: 1 };
        let vxfs = MeasuredDevice { vxfs: Some(own), ..known(5.5e-3, 200e6) };
        let explained = vxfs.explain(&WINDOWS_TRIED, None);
        let knee = explained.model_knee_bytes as f64;
        assert!((1.0..=4.0).contains(&(knee / explained.under_way_bytes)), "{explained:?}");
        assert!(explained.vxfs);
    }

    /// With one run of each window there is no knee, and no statement about another limit.
    #[test]
    fn single_runs_have_no_knee() {
        let knee = |repeats: u64| {
            let run = |repeat: u64, window: u64| RunRecord {
                cell: [("read_ahead_bytes".to_owned(), Level::Number(window))].into(),
                repeat,
                bytes: if window == WINDOWS_TRIED[0] { 1 << 20 } else { 8 << 20 },
                seconds: 1.0 + 0.001 * repeat as f64,
                ..RunRecord::default()
            };
            let runs: Vec<RunRecord> = (1..=repeats)
                .flat_map(|repeat| WINDOWS_TRIED.map(|window| run(repeat, window)))
                .collect();
            let levels = WINDOWS_TRIED.map(Level::Number).to_vec();
            let factor = Factor::new("read_ahead_bytes", levels);
            measured_knee(&judge(&[factor], &runs, &JudgementOptions::default()))
        };
        assert_eq!((knee(1), knee(4)), (None, Some(WINDOWS_TRIED[1])));
    }

    #[test]
    fn the_window_is_half_of_what_has_to_be_under_way() {
        for (answer, bytes_per_second) in [(5.5e-3, 200e6), (5.5e-3, 80e6), (20e-3, 300e6)] {
            let explanation =
                known(answer, bytes_per_second).explain(&WINDOWS_TRIED, Some(1 << 20));
            let window = explanation.window_bytes();
            let knee = explanation.model_knee_bytes as f64;
            assert!((1.0..=4.0).contains(&(knee / window)), "{explanation:?}");
        }
        let slow = known(5.5e-3, 200e6).explain(&WINDOWS_TRIED, Some(1 << 20));
        assert_eq!((slow.model_knee_bytes, slow.agrees()), (1 << 20, Some(true)));
        let far = known(5.5e-3, 200e6).explain(&WINDOWS_TRIED, Some(8 << 20));
        assert_eq!(far.agrees(), Some(false));
        let fast = known(50e-6, 2.8e9).explain(&WINDOWS_TRIED, None);
        assert!(fast.model_knee_bytes <= 256 << 10, "{fast:?}");
    }
}
