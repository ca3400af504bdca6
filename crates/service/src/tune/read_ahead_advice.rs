//! What follows from measuring read-ahead: the recommended value, or why there is none.

use std::path::PathBuf;

use experiment::judgement::{Advice, CellSummary, Judgement, KEEP, Paid, UNDO, quoted, set_line};
use experiment::record::{Level, binary_size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statistics::interval::Interval;
use storage::settings::SettingKind;
use storage::stack::VxfsReadAhead;

use super::TuneCommandsAnswer;
use super::apply::{AppliedSettingAnswer, typed_path};
use super::explanation::WindowExplanation;
use super::gain::{CostAnswer, GainAnswer, LevelGain};
use super::measuring::Recommended;
use super::read_ahead::TunedReadAhead;
use crate::Answer;

/// What was measured.
#[derive(Clone, Debug)]
pub struct ReadAheadMeasured {
    /// The path, as typed.
    pub path: PathBuf,
    /// The file that was read.
    pub file: PathBuf,
    /// The device or file system that has the read-ahead.
    pub device: String,
    /// The present read-ahead, in bytes.
    pub present: u64,
    /// The smallest gain that is worth a change, as a share.
    pub worth: f64,
    /// Why nothing keeps read-ahead over a restart, if nothing does.
    pub not_kept: Option<String>,
    /// Windows of which no run has finished, each with an upper bound on its rate.
    pub cut: Vec<(u64, Option<f64>)>,
    /// Levels that were not tried as requested, and why.
    pub left_out: Vec<(u64, String)>,
    /// The VxFS of the file, which Takeup does not set, and its read-ahead.
    pub vxfs: Option<(PathBuf, VxfsReadAhead)>,
}

/// The recommended read-ahead, or why there is none.
#[derive(Debug)]
pub struct ReadAheadAdvice {
    pub of: ReadAheadMeasured,
    /// The judgement of all runs.
    pub judgement: Judgement,
    /// `None` if nothing could be varied.
    pub advice: Option<Advice>,
    /// Why a window is large enough, if enough is known.
    pub explanation: Option<WindowExplanation>,
}

/// Costs that read-ahead can have, always shown; other costs only if they are settled.
const OF_WINDOWS: [&str; 3] =
    ["random_read_p50_ns", "random_read_device_bytes", "device_bytes_per_byte"];

impl ReadAheadAdvice {
    /// Bytes to set, if they differ from the present value.
    pub fn other_bytes(&self) -> Option<u64> {
        self.recommended().filter(|&bytes| bytes != self.of.present)
    }

    /// The recommended bytes, possibly the present ones; `None` if that is not settled.
    pub fn recommended(&self) -> Option<u64> {
        match self.gain()?.recommended()? {
            Level::Number(bytes) => Some(*bytes),
            Level::Text(_) => None,
        }
    }

    /// The gain, if something was varied.
    pub fn gain(&self) -> Option<LevelGain<'_>> {
        let shown = |level: &Level| match level {
            Level::Number(bytes) => binary_size(*bytes),
            Level::Text(text) => text.clone(),
        };
        let advice = self.advice.as_ref()?;
        Some(LevelGain { judgement: &self.judgement, advice, worth: self.of.worth, shown })
    }

    /// The commands that set it, keep it over a restart, and undo it.
    pub fn commands(&self) -> Option<TuneCommandsAnswer> {
        let bytes = self.other_bytes()?;
        let kib = storage::settings::read_ahead_value(bytes);
        let path = typed_path(&self.of.path);
        Some(TuneCommandsAnswer {
            apply: set_line(&path, &[("read_ahead_kb", &kib)]),
            keep: self.of.not_kept.is_none().then(|| KEEP.to_owned()),
            undo: UNDO.to_owned(),
        })
    }

    /// The costs to show.
    pub fn costs(&self) -> Vec<&Paid> {
        let costs = self.advice.iter().flat_map(|advice| &advice.costs);
        let is_some = |paid: &&Paid| paid.present > 0.0 || paid.recommended > 0.0;
        let is_told = |paid: &&Paid| paid.is_settled || OF_WINDOWS.contains(&paid.measure);
        costs.filter(is_some).filter(is_told).collect()
    }

    /// The commands for a VxFS: the value of the model, the comparison, and the present value.
    pub fn vxfs_commands(&self) -> Option<VxfsCommandsAnswer> {
        let (place, own) = self.of.vxfs.as_ref()?;
        let place = place.to_string_lossy();
        let knee = self.explanation.as_ref().map_or(0, |it| it.model_knee_bytes);
        let file = quoted(&self.of.file.display().to_string());
        let wanted = knee.max(own.window_bytes());
        if wanted <= own.window_bytes() {
            return None;
        }
        Some(VxfsCommandsAnswer {
            attempt: Some(own.command(wanted, &place)),
            measure: Some(format!("takeup bench read {file}, before and after")),
            keep: Some("a line in /etc/vx/tunefstab".to_owned()),
            undo: Some(own.command(own.window_bytes(), &place)),
        })
    }
}

impl Recommended for ReadAheadAdvice {
    fn to_apply(&self) -> Vec<(SettingKind, String)> {
        let value = self.other_bytes().map(storage::settings::read_ahead_value);
        value.map(|value| (SettingKind::ReadAhead, value)).into_iter().collect()
    }

    fn is_settled(&self) -> bool {
        self.recommended().is_some()
    }
}

/// The recommended read-ahead, as an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneReadAheadAnswer {
    /// The path, as typed.
    pub path: String,
    /// The file that was read.
    pub file: String,
    /// The device or file system that has the read-ahead.
    pub device: String,
    /// The present read-ahead, in bytes.
    pub present: u64,
    /// The recommended read-ahead in bytes, possibly the present one; null if it is not settled.
    pub recommended: Option<u64>,
    /// The gain; null if nothing was varied.
    pub gain: Option<GainAnswer>,
    pub costs: Vec<CostAnswer>,
    /// What was measured with each value.
    pub levels: Vec<WindowAnswer>,
    /// Values that were not tried as requested.
    pub left_out: Vec<WindowLeftOutAnswer>,
    /// Why a window is large enough.
    pub explanation: Option<WindowExplanation>,
    /// What to type; null if there is nothing to set.
    pub commands: Option<TuneCommandsAnswer>,
    /// The VxFS of the file, which Takeup does not set.
    pub vxfs: Option<VxfsAnswer>,
    pub applied: Option<Vec<AppliedSettingAnswer>>,
}

impl Answer for TuneReadAheadAnswer {
    const COMMAND: &'static str = "tune readahead";
}

/// What was measured with one value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum WindowAnswer {
    /// Runs with this value have finished.
    Measured(MeasuredWindowAnswer),
    /// No run has finished.
    Cut(CutWindowAnswer),
}

/// Runs with one value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredWindowAnswer {
    /// The read-ahead; null if it was not varied.
    pub read_ahead_bytes: Option<u64>,
    /// Through the page cache, or past it.
    pub cache: Option<String>,
    /// Requests in flight, if they were varied.
    pub depth: Option<u64>,
    pub runs: usize,
    /// Mean rate.
    pub bytes_per_second: f64,
    /// Its interval, from two runs on.
    pub interval: Option<Interval>,
    /// Median of the latency of a random page.
    pub random_read_ns: Option<f64>,
}

/// A value of which no run has finished.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CutWindowAnswer {
    pub read_ahead_bytes: u64,
    /// 0.
    pub runs: u64,
    /// Upper bound on the rate.
    pub slower_than_bytes_per_second: Option<f64>,
}

/// A value that was not tried as requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WindowLeftOutAnswer {
    pub read_ahead_bytes: u64,
    pub why: String,
}

/// A VxFS, which does its own read-ahead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VxfsAnswer {
    /// Where it is mounted.
    pub mount_point: String,
    /// Bytes of a request.
    pub read_pref_io: u64,
    /// Requests in flight.
    pub read_nstream: u64,
    /// What to type; without fields if there is nothing to try.
    pub commands: VxfsCommandsAnswer,
}

/// The commands for a VxFS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VxfsCommandsAnswer {
    /// Sets the value of the model.
    #[serde(rename = "try", default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<String>,
    /// Compares it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<String>,
    /// Keeps it over a restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<String>,
    /// Sets the present value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
}

impl TunedReadAhead {
    /// As an answer.
    pub fn answer(&self) -> TuneReadAheadAnswer {
        let applied = self.ending.answer();
        TuneReadAheadAnswer { applied, ..self.advice.answer() }
    }
}

impl ReadAheadAdvice {
    /// As an answer, before anything is set.
    pub fn answer(&self) -> TuneReadAheadAnswer {
        let of = &self.of;
        let left_out = |(bytes, why): &(u64, String)| WindowLeftOutAnswer {
            read_ahead_bytes: *bytes,
            why: why.clone(),
        };
        let vxfs = |(place, own): &(PathBuf, VxfsReadAhead)| VxfsAnswer {
            mount_point: place.display().to_string(),
            read_pref_io: own.read_pref_io,
            read_nstream: own.read_nstream,
            commands: self.vxfs_commands().unwrap_or_default(),
        };
        TuneReadAheadAnswer {
            path: of.path.display().to_string(),
            file: of.file.display().to_string(),
            device: of.device.clone(),
            present: of.present,
            recommended: self.recommended(),
            gain: self.gain().map(|gain| gain.answer()),
            costs: self.costs().into_iter().map(CostAnswer::from).collect(),
            levels: self.levels(),
            left_out: of.left_out.iter().map(left_out).collect(),
            explanation: self.explanation.clone(),
            commands: self.commands(),
            vxfs: of.vxfs.as_ref().map(vxfs),
            applied: None,
        }
    }

    fn levels(&self) -> Vec<WindowAnswer> {
        let number = |cell: &CellSummary, name: &str| match cell.cell.get(name) {
            Some(Level::Number(number)) => Some(*number),
            _ => None,
        };
        let measured = |cell: &CellSummary| {
            WindowAnswer::Measured(MeasuredWindowAnswer {
                read_ahead_bytes: number(cell, "read_ahead_bytes"),
                cache: match cell.cell.get("cache") {
                    Some(Level::Text(text)) => Some(text.clone()),
                    _ => None,
                },
                depth: number(cell, "depth"),
                runs: cell.rates.len(),
                bytes_per_second: cell.bytes_per_second,
                interval: cell.interval,
                random_read_ns: cell.measures.get("random_read_p50_ns").copied(),
            })
        };
        let cut = |(bytes, below): &(u64, Option<f64>)| {
            WindowAnswer::Cut(CutWindowAnswer {
                read_ahead_bytes: *bytes,
                runs: 0,
                slower_than_bytes_per_second: *below,
            })
        };
        let measured = self.judgement.cells.iter().map(measured);
        measured.chain(self.of.cut.iter().map(cut)).collect()
    }
}
