//! What follows from measuring queue settings: the recommended values, or why there are none.

use std::path::PathBuf;

use experiment::judgement::{Advice, CellSummary, Judgement, KEEP, Paid, UNDO, set_line};
use experiment::record::{Level, RunRecord, binary_size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statistics::interval::Interval;
use storage::settings::SettingKind;

use super::TuneCommandsAnswer;
use super::apply::{AppliedSettingAnswer, typed_path};
use super::gain::{CostAnswer, GainAnswer, LevelGain};
use super::levels::{NotTried, ValueNotTried};
use super::measuring::Recommended;
use super::queue::TunedQueue;
use crate::Answer;

/// The measured load.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredLoad {
    /// Its name in fio.
    pub name: &'static str,
    /// Bytes of a request.
    pub block_bytes: u64,
    /// Requests in flight.
    pub depth: u64,
}

impl MeasuredLoad {
    /// The mean rate of a cell in requests per second. A mean of the counts of the runs would be
    /// another mean, and would disagree with the rate beside it.
    pub fn requests_per_second(&self, cell: &CellSummary) -> f64 {
        cell.bytes_per_second / self.block_bytes as f64
    }
}

/// A setting that was tried.
#[derive(Debug)]
pub struct TunedSetting {
    pub kind: SettingKind,
    /// The judgement of its levels.
    pub judgement: Judgement,
    pub advice: Advice,
    /// Requests in flight with the present value.
    pub little: Option<LittlesLaw>,
}

/// The result for a queue.
#[derive(Debug)]
pub struct QueueAdvice {
    /// The path, as typed.
    pub path: PathBuf,
    /// The file that was read.
    pub file: PathBuf,
    /// The devices whose queues have an effect.
    pub device: String,
    pub load: MeasuredLoad,
    /// The smallest gain that is worth a change, as a share.
    pub worth: f64,
    /// Why nothing keeps these settings over a restart, if nothing does.
    pub not_kept: Option<String>,
    /// Settings that were tried.
    pub tuned: Vec<TunedSetting>,
    /// Without permission to set anything: the load with the present settings.
    pub as_it_is: Option<(Judgement, Option<LittlesLaw>)>,
    /// Settings and values that were not tried, and why.
    pub left_out: Vec<NotTried>,
}

/// Little's law (1961): requests per second times the latency are the requests in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LittlesLaw {
    /// Requests answered per second.
    pub requests_per_second: f64,
    /// Mean latency of a request, from its submission.
    pub answer_seconds: f64,
}

/// Tolerance between the two counts: the latency does not include the time of the submission.
const LITTLE_WITHIN: f64 = 0.15;

impl LittlesLaw {
    /// From the median run: means over scattering runs would fit no run.
    pub fn of<'a>(runs: impl Iterator<Item = &'a RunRecord>) -> Option<LittlesLaw> {
        let one = |run: &RunRecord| {
            Some(LittlesLaw {
                requests_per_second: *run.measures.get("fio_iops")?,
                answer_seconds: run.measures.get("fio_clat_mean_ns")? / 1e9,
            })
        };
        let mut all: Vec<LittlesLaw> = runs.filter_map(one).collect();
        all.sort_by(|one, other| one.in_flight().total_cmp(&other.in_flight()));
        all.get(all.len() / 2).copied()
    }

    /// Their product.
    pub fn in_flight(&self) -> f64 {
        self.requests_per_second * self.answer_seconds
    }

    /// Whether both numbers fit a queue with this many requests.
    pub fn holds(&self, asked: u64) -> bool {
        (self.in_flight() / asked as f64 - 1.0).abs() <= LITTLE_WITHIN
    }
}

/// A level for people.
pub fn shown(kind: SettingKind, level: &Level) -> String {
    match (kind, level) {
        (SettingKind::MaxSectors, Level::Number(bytes)) => binary_size(*bytes),
        (_, Level::Number(number)) => number.to_string(),
        (_, Level::Text(text)) => text.clone(),
    }
}

/// A level in the form that the kernel accepts.
fn value(kind: SettingKind, level: &Level) -> String {
    match (kind, level) {
        (SettingKind::MaxSectors, Level::Number(bytes)) => (bytes / 1024).to_string(),
        _ => shown(kind, level),
    }
}

impl TunedSetting {
    /// The gain of the setting.
    pub fn gain(&self, worth: f64) -> LevelGain<'_> {
        let shown: fn(&Level) -> String = match self.kind {
            SettingKind::MaxSectors => |level| shown(SettingKind::MaxSectors, level),
            _ => |level| shown(SettingKind::Requests, level),
        };
        LevelGain { judgement: &self.judgement, advice: &self.advice, worth, shown }
    }

    /// The name of its factor.
    pub fn factor(&self) -> &'static str {
        match self.kind {
            SettingKind::MaxSectors => "max_sectors_bytes",
            kind => kind.file_name(),
        }
    }

    /// The settled costs.
    pub fn costs(&self) -> Vec<&Paid> {
        self.advice.costs.iter().filter(|paid| paid.is_settled).collect()
    }
}

impl QueueAdvice {
    /// Requests in flight with the present values.
    pub fn little(&self) -> Option<LittlesLaw> {
        match (self.tuned.first(), &self.as_it_is) {
            (Some(tuned), _) => tuned.little,
            (None, Some((_, little))) => *little,
            (None, None) => None,
        }
    }

    /// The commands that set the recommended values, keep them over a restart, and undo them.
    pub fn commands(&self) -> Option<TuneCommandsAnswer> {
        let settings = self.to_apply();
        let typed: Vec<(&str, &str)> =
            settings.iter().map(|(kind, value)| (kind.file_name(), value.as_str())).collect();
        (!typed.is_empty()).then(|| TuneCommandsAnswer {
            apply: set_line(&typed_path(&self.path), &typed),
            keep: self.not_kept.is_none().then(|| KEEP.to_owned()),
            undo: UNDO.to_owned(),
        })
    }
}

impl Recommended for QueueAdvice {
    fn to_apply(&self) -> Vec<(SettingKind, String)> {
        let one = |tuned: &TunedSetting| {
            let gain = tuned.gain(self.worth);
            gain.to_apply().map(|level| (tuned.kind, value(tuned.kind, level)))
        };
        self.tuned.iter().filter_map(one).collect()
    }

    fn is_settled(&self) -> bool {
        let is_settled = |tuned: &TunedSetting| tuned.gain(self.worth).recommended().is_some();
        !self.tuned.is_empty() && self.tuned.iter().all(is_settled)
    }
}

/// The recommended queue settings, as an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneQueueAnswer {
    /// The path, as typed.
    pub path: String,
    /// The file that was read.
    pub file: String,
    /// The devices whose queues have an effect.
    pub device: String,
    pub load: MeasuredLoadAnswer,
    /// The settings that were tried.
    pub settings: Vec<TunedSettingAnswer>,
    /// The settings and values that were not tried.
    pub not_tried: Vec<NotTriedAnswer>,
    /// Requests in flight, by Little's law.
    pub explanation: Option<LittlesLawAnswer>,
    /// What to type; null if there is nothing to set.
    pub commands: Option<TuneCommandsAnswer>,
    pub applied: Option<Vec<AppliedSettingAnswer>>,
}

impl Answer for TuneQueueAnswer {
    const COMMAND: &'static str = "tune queue";
}

/// The measured load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredLoadAnswer {
    /// Its name in fio.
    pub name: String,
    /// Bytes of a request.
    pub block_bytes: u64,
    /// Requests in flight.
    pub depth: u64,
}

/// A setting that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TunedSettingAnswer {
    /// The setting, by the name of its file.
    pub name: String,
    /// The present value, in the kernel's words.
    pub present: String,
    /// The recommended value, possibly the present one; null if it is not settled.
    pub recommended: Option<String>,
    pub gain: GainAnswer,
    pub costs: Vec<CostAnswer>,
    /// What was measured with each value.
    pub levels: Vec<TunedLevelAnswer>,
}

/// What was measured with one value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TunedLevelAnswer {
    /// In the kernel's words.
    pub value: Option<String>,
    pub runs: usize,
    /// Mean rate.
    pub bytes_per_second: f64,
    /// Its interval, from two runs on.
    pub interval: Option<Interval>,
    /// The mean rate in requests.
    pub requests_per_second: f64,
    /// 99 % of the requests are answered within this time.
    pub answer_p99_ns: Option<f64>,
}

/// A setting, or one value of it, that was not tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotTriedAnswer {
    /// The setting, by the name of its file.
    pub name: String,
    /// The value; null for the setting as a whole.
    pub value: Option<String>,
    /// The value that the kernel would set; null if it refuses it.
    pub becomes: Option<String>,
    pub why: String,
}

/// Requests in flight, by Little's law.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LittlesLawAnswer {
    /// Requests answered per second.
    pub requests_per_second: f64,
    /// Mean latency of a request, from its submission.
    pub answer_seconds: f64,
    /// Their product.
    pub in_flight: f64,
    /// Requests in flight that were asked for.
    pub asked: u64,
    /// Whether both numbers fit.
    pub holds: bool,
}

impl TunedQueue {
    /// As an answer.
    pub fn answer(&self) -> TuneQueueAnswer {
        let applied = self.ending.answer();
        TuneQueueAnswer { applied, ..self.advice.answer() }
    }
}

impl QueueAdvice {
    /// As an answer, before anything is set.
    pub fn answer(&self) -> TuneQueueAnswer {
        let depth = self.load.depth;
        let little = self.little().map(|little| LittlesLawAnswer {
            requests_per_second: little.requests_per_second,
            answer_seconds: little.answer_seconds,
            in_flight: little.in_flight(),
            asked: depth,
            holds: little.holds(depth),
        });
        TuneQueueAnswer {
            path: self.path.display().to_string(),
            file: self.file.display().to_string(),
            device: self.device.clone(),
            load: MeasuredLoadAnswer {
                name: self.load.name.to_owned(),
                block_bytes: self.load.block_bytes,
                depth,
            },
            settings: self.tuned.iter().map(|it| it.answer(self.worth, &self.load)).collect(),
            not_tried: self.left_out.iter().map(NotTriedAnswer::from).collect(),
            explanation: little,
            commands: self.commands(),
            applied: None,
        }
    }
}

impl TunedSetting {
    fn answer(&self, worth: f64, load: &MeasuredLoad) -> TunedSettingAnswer {
        let gain = self.gain(worth);
        let level = |cell: &CellSummary| TunedLevelAnswer {
            value: cell.cell.get(self.factor()).map(|level| value(self.kind, level)),
            runs: cell.rates.len(),
            bytes_per_second: cell.bytes_per_second,
            interval: cell.interval,
            requests_per_second: load.requests_per_second(cell),
            answer_p99_ns: cell.measures.get("fio_read_clat_p99_ns").copied(),
        };
        TunedSettingAnswer {
            name: self.kind.file_name().to_owned(),
            present: value(self.kind, &self.advice.present),
            recommended: gain.recommended().map(|level| value(self.kind, level)),
            gain: gain.answer(),
            costs: self.costs().into_iter().map(CostAnswer::from).collect(),
            levels: self.judgement.cells.iter().map(level).collect(),
        }
    }
}

impl From<&NotTried> for NotTriedAnswer {
    fn from(one: &NotTried) -> NotTriedAnswer {
        let value = |of: fn(&ValueNotTried) -> Option<String>| one.value.as_ref().and_then(of);
        NotTriedAnswer {
            name: one.kind.file_name().to_owned(),
            value: value(|value| Some(value.value.clone())),
            becomes: value(|value| value.becomes.clone()),
            why: one.why.clone(),
        }
    }
}
