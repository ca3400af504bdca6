//! A capture as an answer. What is not known is null.

use std::path::PathBuf;

use base::calendar::time_text;
use base::finding::Finding;
use capture::job::Validation;
use capture::profile::Profile;
use flow::run::StageKind;
use flow::series::StageSeries;
use runs::run_record::RecordedStage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CaptureDone, CapturedCalls, MadeJob, Ran, SampledAnswer, Together};
use crate::Answer;
use crate::watch::DeviceHistoryAnswer;

/// A capture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CaptureAnswer {
    /// Calls, recorded now or read from a record.
    Recorded(Box<RecordedAnswer>),
    /// Calls of a recording of another tool.
    Imported(Box<ImportedAnswer>),
    /// Samples of `/proc`.
    Sampled(Box<SampledAnswer>),
}

impl Answer for CaptureAnswer {
    const COMMAND: &'static str = "capture";
}

/// The calls of a capture: how each file was used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallsAnswer {
    /// The profile: `seconds`, `files`, `lost_events` and what was left out.
    #[serde(flatten)]
    pub profile: Profile,
    /// What stands out.
    pub findings: Vec<Finding>,
}

/// The job for fio that repeats the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobAnswer {
    /// The file of the job.
    pub fio: Option<PathBuf>,
    /// How near a run of it comes to the capture.
    pub validation: Option<Validation>,
}

/// A capture with what was recorded at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapturedAnswer {
    #[serde(flatten)]
    pub calls: CallsAnswer,
    /// What was captured: `process 4711`, or the command as it was typed.
    pub subject: String,
    /// The beginning, in UTC.
    pub began: String,
    /// The same in seconds since 1970.
    pub began_unix_seconds: f64,
    /// Number of recorded events.
    pub events: u64,
    /// How the command failed, if it did.
    pub failed: Option<String>,
    /// Whether a signal stopped it.
    pub is_stopped: bool,
    /// Whether the end of the record is missing.
    pub is_cut: bool,
    /// Null: calls were recorded.
    pub fallback: Option<String>,
    /// The watched devices.
    pub devices: Option<Vec<DeviceHistoryAnswer>>,
    /// The first reading of the devices, in seconds after the beginning of the capture. Times of
    /// devices count from there.
    pub devices_at_seconds: Option<f64>,
    /// Takeup's own runs of the same time.
    pub runs: Vec<RanAnswer>,
}

/// A run of Takeup itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RanAnswer {
    /// Its beginning in seconds after that of the capture; missing where it is alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_seconds: Option<f64>,
    /// Its beginning in seconds since 1970.
    pub began_unix_seconds: f64,
    pub seconds: f64,
    /// What `--json` printed.
    pub run: serde_json::Value,
    /// Its stages in the order of the data.
    pub stages: Vec<RanStageAnswer>,
}

/// A stage of a run over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RanStageAnswer {
    /// Its job.
    pub name: StageKind,
    /// Its times and bytes; null where they were not sampled.
    pub over_time: Option<StageSeries>,
}

/// A capture that was recorded now, or read from a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedAnswer {
    /// The capture.
    #[serde(flatten)]
    pub captured: CapturedAnswer,
    #[serde(flatten)]
    pub job: JobAnswer,
}

/// A recording of another tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedAnswer {
    #[serde(flatten)]
    pub calls: CallsAnswer,
    #[serde(flatten)]
    pub job: JobAnswer,
    /// Number of lines that were read.
    pub lines: u64,
    /// Null: a recording does not say it.
    pub failed: Option<String>,
    /// False: a recording is whole.
    pub is_stopped: bool,
    /// Null: calls were recorded.
    pub fallback: Option<String>,
}

impl CaptureDone {
    /// As an answer.
    pub fn answer(&self) -> CaptureAnswer {
        match self {
            CaptureDone::Calls(calls) => calls.answer(),
            CaptureDone::Samples(samples) => {
                CaptureAnswer::Sampled(Box::new(SampledAnswer::of(samples)))
            }
        }
    }
}

impl CapturedCalls {
    fn answer(&self) -> CaptureAnswer {
        let job = JobAnswer::of(&self.job);
        let Some(lines) = self.lines else {
            let captured = CapturedAnswer::of(&Together::of(&self.captured));
            return CaptureAnswer::Recorded(Box::new(RecordedAnswer { captured, job }));
        };
        let heading = &self.captured.heading;
        CaptureAnswer::Imported(Box::new(ImportedAnswer {
            calls: CallsAnswer::of(&self.captured.profile),
            job,
            lines,
            failed: heading.failed.clone(),
            is_stopped: heading.is_stopped,
            fallback: None,
        }))
    }
}

impl JobAnswer {
    fn of(made: &MadeJob) -> JobAnswer {
        JobAnswer { fio: made.path.clone(), validation: made.validation.clone() }
    }
}

impl CallsAnswer {
    /// The calls of a profile, and what stands out.
    pub fn of(profile: &Profile) -> CallsAnswer {
        CallsAnswer { profile: profile.clone(), findings: capture::words::findings(profile) }
    }
}

impl CapturedAnswer {
    /// A capture, the watched devices, and Takeup's own runs.
    pub fn of(together: &Together<'_>) -> CapturedAnswer {
        let captured = together.captured;
        let heading = &captured.heading;
        let began = heading.began_unix_seconds;
        #[expect(clippy::cast_possible_truncation, reason = "a whole number, or the nearest")]
        let whole = began.floor() as i64;
        let calls_at = together.calls_frame.offset_seconds;
        let with_place = |ran: &Ran<'_>| {
            let at_seconds = Some(ran.frame.offset_seconds - calls_at);
            RanAnswer { at_seconds, ..RanAnswer::of(ran) }
        };
        let devices = together.devices.as_ref();
        CapturedAnswer {
            calls: CallsAnswer::of(&captured.profile),
            subject: heading.subject.clone(),
            began: time_text(whole),
            began_unix_seconds: began,
            events: heading.events,
            failed: heading.failed.clone(),
            is_stopped: heading.is_stopped,
            is_cut: captured.is_cut,
            fallback: None,
            devices: devices.map(DeviceHistoryAnswer::all),
            devices_at_seconds: devices.map(|_| together.devices_frame.offset_seconds - calls_at),
            runs: together.runs.iter().map(with_place).collect(),
        }
    }
}

impl RanAnswer {
    /// A run that is alone: its `--json` document, and its stages over time.
    pub fn of(ran: &Ran<'_>) -> RanAnswer {
        let record = ran.record;
        let stage = |it: &RecordedStage| RanStageAnswer {
            name: it.report.kind,
            over_time: it.over_time.clone(),
        };
        RanAnswer {
            at_seconds: None,
            began_unix_seconds: record.began_unix_seconds,
            seconds: record.seconds,
            run: record.summary.clone(),
            stages: record.stages.iter().map(stage).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
