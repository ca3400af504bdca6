//! Why a window is large enough: Little's law, and the model of the kernel's read-ahead.
//!
//! A device that answers after L and is to give R has R x L under way (Little 1961). The kernel
//! reads two windows ahead of the reader, so a window of half of that is enough. How the windows
//! grow and when the next one is asked for, `model::read_ahead` plays.

use base::format::{rate, size};
use base::rounding::Rounding;
use experiment::judgement::Judgement;
use experiment::record::{Level, binary_size};
use model::disk::DiskParameters;
use model::read_ahead::{Policy, Reader, sequential_bytes_per_second};
use serde::Serialize;
use storage::layers::Storage;
use storage::stack::VxfsReadAhead;

/// Windows that are under way when the reader waits.
const WINDOWS: f64 = 2.0;
/// What nobody would notice: the band of the judgement.
const AS_GOOD: f64 = 0.98;
/// Requests that the device of the model serves at once.
const SERVERS: usize = 64;
/// Nothing but the device is to hold it back.
const COPY_BYTES_PER_SECOND: u64 = 20_000_000_000;

/// Where the time of an answer is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The curve through the rates.
    Sweep,
    /// Single pages at random places, which pay for a seek, too, where there are heads.
    RandomReads,
}

/// What a window has to hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// After which the device answers.
    pub answer_seconds: f64,
    /// Where that is known from.
    pub answer_from: Source,
    /// What it gives at its best here.
    pub bytes_per_second: f64,
    /// What has to be under way for that.
    pub under_way_bytes: f64,
    /// Rates of the model, by the window.
    pub model: Vec<(u64, f64)>,
    /// The smallest window with which the model is as fast as it gets.
    pub model_knee_bytes: u64,
    /// The same of what was measured, where several windows were.
    pub measured_knee_bytes: Option<u64>,
    /// Whether the read-ahead is that of VxFS, which is not set by takeup.
    pub vxfs: bool,
}

/// What is known of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// After which it answers.
    pub answer_seconds: f64,
    /// Where that is known from.
    pub answer_from: Source,
    /// What it gives at its best.
    pub bytes_per_second: f64,
    /// Bytes that the program asks for at once.
    pub request_bytes: u64,
    /// Larger requests are cut on their way to the device.
    pub request_bytes_max: u64,
    /// How a VxFS reads ahead, which no kernel does for it.
    pub vxfs: Option<VxfsReadAhead>,
}

impl Known {
    /// From an experiment, where it tells enough.
    pub fn of(judgement: &Judgement, storage: &Storage, request_bytes: u64) -> Option<Known> {
        let sweep = judgement.sweeps.iter().find(|sweep| sweep.factor == "read_ahead_bytes");
        // With heads that move, a page anywhere takes a seek, which a stream does not.
        let has_heads = storage.queue_setting("rotational").as_deref() == Some("1");
        let curve = sweep.and_then(|sweep| sweep.model.as_ref()).filter(|model| {
            has_heads && model.rising >= 2 && model.overhead_ns > 0.0 && model.holds()
        });
        let read = judgement
            .cells
            .iter()
            .filter_map(|cell| cell.measures.get("random_read_p50_ns").map(|ns| ns / 1e9));
        let (answer_seconds, answer_from) = match curve {
            // The curve is that of one window; two are under way.
            Some(curve) => (WINDOWS * curve.overhead_ns / 1e9, Source::Sweep),
            None => (read.min_by(f64::total_cmp)?, Source::RandomReads),
        };
        let rates = judgement.cells.iter().map(|cell| cell.bytes_per_second);
        let limit = storage.queue_setting("max_sectors_kb");
        let limit_kib: u64 = limit.and_then(|text| text.parse().ok()).unwrap_or(128);
        Some(Known {
            answer_seconds,
            answer_from,
            bytes_per_second: rates.max_by(f64::total_cmp)?,
            request_bytes,
            request_bytes_max: limit_kib << 10,
            vxfs: None,
        })
    }

    /// What follows for windows.
    pub fn explain(self, windows: &[u64], measured_knee_bytes: Option<u64>) -> Explanation {
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
        Explanation {
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

/// The knee of a sweep over windows; none of single runs, which do not tell windows apart.
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

impl Explanation {
    /// Whether the measured knee is within one power of two of the model's.
    pub fn agrees(&self) -> Option<bool> {
        let (measured, model) = (self.measured_knee_bytes? as f64, self.model_knee_bytes as f64);
        Some((0.5..=2.0).contains(&(measured / model)))
    }

    /// In lines.
    pub fn lines(&self) -> Vec<String> {
        let from = match self.answer_from {
            Source::Sweep => "by the curve of the rates",
            Source::RandomReads => "a single page anywhere",
        };
        let mut lines = vec![format!(
            "Little's law: {} from a device that answers after {} ({from}) are {} under way: two \
             windows of {}",
            rate(self.bytes_per_second),
            Rounding::digits(2).seconds(self.answer_seconds),
            size(self.under_way_bytes as u64),
            size((self.under_way_bytes / WINDOWS) as u64)
        )];
        let knee = binary_size(self.model_knee_bytes);
        lines.push(match (self.measured_knee_bytes.map(binary_size), self.agrees()) {
            (Some(own), Some(true)) => {
                format!("the model of the kernel's read-ahead needs {knee}, {own} was measured")
            }
            (Some(own), _) => format!(
                "the model of the kernel's read-ahead needs {knee}, but {own} was measured: \
                 something else than the time of an answer decides, or the runs do not tell \
                 the windows apart"
            ),
            (None, _) if self.vxfs => format!("the model of the read-ahead of VxFS needs {knee}"),
            (None, _) => format!("the model of the kernel's read-ahead needs {knee}"),
        });
        lines
    }
}

#[cfg(test)]
mod tests {
    use experiment::judgement::{JudgementOptions, judge};
    use experiment::record::{Factor, RunRecord};

    use super::*;

    const WINDOWS_TRIED: [u64; 9] =
        [64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20];

    fn known(answer_seconds: f64, bytes_per_second: f64) -> Known {
        Known {
            answer_seconds,
            answer_from: Source::RandomReads,
            bytes_per_second,
            request_bytes: 128 << 10,
            request_bytes_max: 1280 << 10,
            vxfs: None,
        }
    }

    /// VxFS keeps a fixed amount under way: as much as Little's law asks for, and not half of it.
    #[test]
    fn a_vxfs_needs_all_that_is_under_way_in_one_window() {
        let own = VxfsReadAhead { read_pref_io: 64 << 10, read_nstream: 1 };
        let vxfs = Known { vxfs: Some(own), ..known(5.5e-3, 200e6) };
        let explained = vxfs.explain(&WINDOWS_TRIED, None);
        let knee = explained.model_knee_bytes as f64;
        assert!((1.0..=4.0).contains(&(knee / explained.under_way_bytes)), "{explained:?}");
        assert!(explained.lines()[1].contains("the read-ahead of VxFS"), "{explained:?}");
    }

    /// One run of each window tells no knee, so that nothing is said of what else decides.
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
            let window = explanation.under_way_bytes / WINDOWS;
            let knee = explanation.model_knee_bytes as f64;
            assert!((1.0..=4.0).contains(&(knee / window)), "{explanation:?}");
        }
        let slow = known(5.5e-3, 200e6).explain(&WINDOWS_TRIED, Some(1 << 20));
        assert_eq!((slow.model_knee_bytes, slow.agrees()), (1 << 20, Some(true)));
        let far = known(5.5e-3, 200e6).explain(&WINDOWS_TRIED, Some(8 << 20));
        assert_eq!(far.agrees(), Some(false));
        assert!(far.lines()[1].contains("but 8 MiB was measured"), "{:?}", far.lines());
        let fast = known(50e-6, 2.8e9).explain(&WINDOWS_TRIED, None);
        assert!(fast.model_knee_bytes <= 256 << 10, "{fast:?}");
    }
}
