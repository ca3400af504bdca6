//! What a file holds: an experiment, or the record of a watch, a capture or a run.

use std::iter;
use std::path::{Path, PathBuf};

use capture::record::{CaptureRecordError, Captured};
use experiment::judgement::Judgement;
use experiment::record::{Experiment, Header, load};
use flow::run::StageKind;
use flow::series::StageSeries;
use runs::run_record::{self, RecordedStage, RunRecord, RunRecordError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use watch::history::{History, frames};

use crate::Answer;
use crate::bench::{JudgementAnswer, PhysicalLimit, judged};
use crate::capture::{CapturedAnswer, Together};
use crate::failure::Failure;
use crate::output_file::{OutputFile, is_same};
use crate::recorded::{self, RecordedWatch};
use crate::watch::DeviceHistoryAnswer;

/// What to report, and where to. `-` is standard output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportRequest {
    /// The file of runs, or the record of a watch, a capture or a run.
    pub runs: PathBuf,
    /// Records of runs, to draw above a capture of the same time.
    #[serde(default)]
    pub beside: Vec<PathBuf>,
    /// The page that will be written.
    #[serde(default)]
    pub html: Option<PathBuf>,
    /// The table of all runs.
    #[serde(default)]
    pub csv: Option<PathBuf>,
    /// The lines of JSON.
    #[serde(default)]
    pub ndjson: Option<PathBuf>,
    /// The folder for the figures.
    #[serde(default)]
    pub svg: Option<PathBuf>,
    /// Known limits of the hardware.
    #[serde(default)]
    pub limits: Vec<PhysicalLimit>,
}

/// What was read, and the page, which is open.
pub struct Reported {
    /// What the file holds.
    pub what: ReportedFile,
    /// The page to write; without its name until it is complete. That of an experiment is not open.
    pub page: Option<OutputFile>,
}

/// What a file holds.
pub enum ReportedFile {
    Experiment {
        /// Its runs.
        experiment: Box<Experiment>,
        /// What follows from them.
        judgement: Box<Judgement>,
    },
    /// The record of a watch.
    Watch(Box<History>),
    /// The record of a capture.
    Capture {
        /// The capture.
        captured: Box<Captured>,
        /// Runs of Takeup of the same time.
        beside: Vec<RunRecord>,
    },
    /// The record of a run of Takeup.
    Run(Box<RunRecord>),
}

/// What a file holds.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ReportAnswer {
    Experiment(Box<ExperimentReport>),
    /// The record of a watch.
    Watch(Box<WatchReport>),
    /// The record of a run of Takeup.
    Run(Box<ReportedRun>),
    /// The record of a capture.
    Capture(Box<CapturedAnswer>),
}

impl Answer for ReportAnswer {
    const COMMAND: &'static str = "report";
}

/// An experiment.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentReport {
    /// The first line of its file.
    pub experiment: Header,
    pub runs: u64,
    /// What follows from them.
    pub judgement: JudgementAnswer,
}

/// The record of a watch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchReport {
    /// The record as a whole.
    pub record: RecordedWatch,
    pub devices: Vec<DeviceHistoryAnswer>,
}

/// The record of a run of Takeup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedRun {
    /// When it began, in seconds since 1970.
    pub began_unix_seconds: f64,
    pub seconds: f64,
    /// What the run printed at its end with `--json`; another version may have written it.
    pub run: Value,
    pub stages: Vec<StageOverTime>,
}

/// A stage of a run over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageOverTime {
    /// Its job.
    pub name: StageKind,
    /// Its times; null if they were not sampled.
    pub over_time: Option<StageSeries>,
}

/// Reads a file, whatever it holds, and judges an experiment.
///
/// # Errors
/// When the file cannot be read, an output cannot be written, or is not for what the file holds.
pub fn reported(request: &ReportRequest) -> Result<Reported, Failure> {
    check_outputs(request)?;
    if capture::record::is_record(&request.runs) {
        return capture_of(request);
    }
    if let Some(beside) = request.beside.first() {
        return Err(not_beside(&request.runs, beside));
    }
    if recorded::is_record(&request.runs) {
        let hint = "print each interval with `takeup watch --from FILE --json`";
        let page = page(request, "takeup watch", hint)?;
        let what = ReportedFile::Watch(Box::new(recorded::history(&request.runs)?));
        return Ok(Reported { what, page });
    }
    if run_record::is_record(&request.runs) {
        let page = page(request, "a run", "print all of it with `takeup report FILE --json`")?;
        let what = ReportedFile::Run(Box::new(run_of(&request.runs)?));
        return Ok(Reported { what, page });
    }
    experiment_of(request)
}

fn experiment_of(request: &ReportRequest) -> Result<Reported, Failure> {
    let experiment = load(&request.runs).map_err(|error| {
        let is_empty = request.runs.metadata().is_ok_and(|it| it.is_file() && it.len() == 0);
        let hint = "it is empty: the program that writes it ended before the first run, or has not \
                    begun";
        Failure::new(&error, is_empty.then(|| hint.to_owned()))
    })?;
    let judgement = Box::new(judged(&experiment, request.limits.clone()));
    let what = ReportedFile::Experiment { experiment: Box::new(experiment), judgement };
    Ok(Reported { what, page: None })
}

fn capture_of(request: &ReportRequest) -> Result<Reported, Failure> {
    let hint = "print all of it with `takeup capture --from FILE --json`";
    let page = page(request, "takeup capture", hint)?;
    let captured = captured(&request.runs)?;
    let beside = request.beside.iter().map(|path| run_of(path));
    let beside = beside.collect::<Result<Vec<RunRecord>, Failure>>()?;
    for (run, path) in beside.iter().zip(&request.beside) {
        check_time(&captured, run, path, &request.runs)?;
    }
    let what = ReportedFile::Capture { captured: Box::new(captured), beside };
    Ok(Reported { what, page })
}

/// The record of a capture.
fn captured(path: &Path) -> Result<Captured, Failure> {
    Captured::read(path).map_err(|error| {
        let hint = match &error {
            CaptureRecordError::NoRecord { .. } => {
                Some("make one with `takeup capture --record FILE`")
            }
            CaptureRecordError::Empty { .. } => {
                Some("capture again: this file has nothing to show")
            }
            _ => None,
        };
        Failure::new(&error, hint.map(str::to_owned))
    })
}

/// The record of a run.
fn run_of(path: &Path) -> Result<RunRecord, Failure> {
    RunRecord::read(path).map_err(|error| {
        let hint = matches!(error, RunRecordError::NoRecord { .. })
            .then(|| "make one with `takeup backup --record FILE`".to_owned());
        Failure::new(&error, hint)
    })
}

/// The error for a run beside anything but a capture.
fn not_beside(runs: &Path, beside: &Path) -> Failure {
    let (runs, beside) = (runs.display(), beside.display());
    let message =
        format!("{runs} is not a record of a capture, so {beside} cannot be drawn above it");
    let hint = "record both at once, and name the capture first: \
                `takeup capture --watch --record CAPTURE -- takeup backup … --record RUN`";
    Failure::of(message, Some(hint))
}

/// Checks that a run and a capture overlap in time: the page shows them on one time axis.
fn check_time(
    captured: &Captured,
    run: &RunRecord,
    path: &Path,
    of_capture: &Path,
) -> Result<(), Failure> {
    let began = captured.heading.began_unix_seconds;
    let ended = began + captured.profile.seconds;
    if run.began_unix_seconds <= ended && run.began_unix_seconds + run.seconds >= began {
        return Ok(());
    }
    let alone = |began, seconds| frames(&[(began, seconds)])[0].span(seconds);
    let of_run = alone(run.began_unix_seconds, run.seconds);
    let message = format!(
        "{} covers {}, and {} covers {}: they have no time in common",
        path.display(),
        of_run,
        of_capture.display(),
        alone(began, captured.profile.seconds)
    );
    Err(Failure::of(message, Some("show the run alone with `takeup report RUN`")))
}

/// Opens the page of a record, and refuses outputs that are for experiments only.
fn page(request: &ReportRequest, made_by: &str, hint: &str) -> Result<Option<OutputFile>, Failure> {
    let options = [
        ("--csv", request.csv.is_some()),
        ("--ndjson", request.ndjson.is_some()),
        ("--limit", !request.limits.is_empty()),
    ];
    if let Some((option, _)) = options.iter().find(|(_, is_asked)| *is_asked) {
        let shown = request.runs.display();
        let message = format!("{shown} is a record of `{made_by}`: {option} is for experiments");
        return Err(Failure::of(message, Some(hint)));
    }
    request.html.as_deref().map(OutputFile::open).transpose()
}

/// Checks that no output file is named twice, and that none is an input file.
fn check_outputs(request: &ReportRequest) -> Result<(), Failure> {
    let named = [&request.html, &request.csv, &request.ndjson, &request.svg];
    let named: Vec<&PathBuf> =
        named.into_iter().flatten().filter(|path| !is_output(path)).collect();
    for (number, path) in named.iter().enumerate() {
        let shown = path.display();
        let mut read = iter::once(&request.runs).chain(&request.beside);
        if read.any(|it| is_same(path, it)) {
            return Err(Failure::of(format!("cannot write to {shown}: it holds the runs"), None));
        }
        if named[..number].iter().any(|other| is_same(path, other)) {
            return Err(Failure::of(format!("{shown} is named twice"), None));
        }
    }
    Ok(())
}

/// Whether a path is standard output.
pub fn is_output(path: &Path) -> bool {
    path == Path::new("-")
}

impl ReportAnswer {
    /// The record of a capture, and runs of the same time.
    pub fn of_capture(together: &Together<'_>) -> ReportAnswer {
        ReportAnswer::Capture(Box::new(CapturedAnswer::of(together)))
    }

    /// Of an experiment.
    pub fn of_experiment(experiment: &Experiment, judgement: &Judgement) -> ReportAnswer {
        ReportAnswer::Experiment(Box::new(ExperimentReport {
            experiment: experiment.header.clone(),
            runs: experiment.runs.len() as u64,
            judgement: JudgementAnswer::of(judgement, experiment.header.value),
        }))
    }

    /// Of the record of a watch.
    pub fn of_watch(history: &History) -> ReportAnswer {
        ReportAnswer::Watch(Box::new(WatchReport {
            record: RecordedWatch::of(history),
            devices: DeviceHistoryAnswer::all(history),
        }))
    }

    /// Of the record of a run.
    pub fn of_run(record: &RunRecord) -> ReportAnswer {
        ReportAnswer::Run(Box::new(ReportedRun::of(record)))
    }
}

impl ReportedRun {
    /// Of its record.
    pub fn of(record: &RunRecord) -> ReportedRun {
        let stage = |stage: &RecordedStage| StageOverTime {
            name: stage.report.kind,
            over_time: stage.over_time.clone(),
        };
        ReportedRun {
            began_unix_seconds: record.began_unix_seconds,
            seconds: record.seconds,
            run: record.summary.clone(),
            stages: record.stages.iter().map(stage).collect(),
        }
    }
}
