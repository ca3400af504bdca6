//! The record of a run in a file: its summary, and the times of its stages.
//!
//! One JSON object in one line. It holds the document that `--json` prints, the text for people,
//! and for each stage a series of bounded length ([`flow::series`]). Its start is a time of day
//! with a fraction, so that a run can be compared with records that other programs made of the same
//! time.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flow::run::{StageKind, StageReport};
use flow::series::{INTERVALS_MAX, StageSeries};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::summary::{RunSummary, StageSummary};

/// Version of the object. New fields do not change it.
pub const FORMAT: u32 = 1;
/// Most bytes that are read. Takeup writes a tenth of that at most.
const BYTES_MAX: u64 = 8 << 20;
/// Most stages.
const STAGES_MAX: usize = 16;
/// Longest run that is read, in s: about three hundred years.
const SECONDS_MAX: f64 = 1e10;
/// Most bytes of a stage that are read; no sum of them overflows 64 bits.
const STAGE_BYTES_MAX: u64 = 1 << 55;

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RunRecordError {
    /// The file cannot be opened or read.
    #[error("cannot {what} {}", path.display())]
    File {
        /// `open` or `read`.
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The file is not a run record.
    #[error("{} is not the record of a run", path.display())]
    NoRecord { path: PathBuf },
    /// Another version wrote the record.
    #[error("{} has format {format}, and only {FORMAT} is known", path.display())]
    Format { path: PathBuf, format: u32 },
    /// The record is cut off, or lacks a field.
    #[error("{} is damaged", path.display())]
    Damaged { path: PathBuf, source: serde_json::Error },
    /// The record has values that no run has.
    #[error("{} is damaged: {why}", path.display())]
    Implausible {
        path: PathBuf,
        /// Which values.
        why: &'static str,
    },
}

/// The record of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    takeup_run: u32,
    /// Start of the run, in seconds since 1970.
    pub began_unix_seconds: f64,
    /// Length of the run in seconds.
    pub seconds: f64,
    /// The summary for people.
    pub text: String,
    /// The summary in one line.
    pub headline: String,
    /// What `--json` prints.
    pub summary: Value,
    /// The stages in the order in which data pass through them.
    pub stages: Vec<RecordedStage>,
}

/// A stage of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedStage {
    /// What it did over the whole run.
    #[serde(flatten)]
    pub report: StageReport,
    /// Its times over the run; `None` if they were not sampled.
    pub over_time: Option<StageSeries>,
}

/// The end of a run in words, as `report` has them.
#[derive(Clone, Debug, Default)]
pub struct RunWords {
    pub text: String,
    /// One line.
    pub headline: String,
}

impl RunRecord {
    /// Makes the record of a run that is over; `series` has the times of its stages.
    pub fn new(
        summary: &RunSummary,
        words: RunWords,
        began_unix_seconds: f64,
        seconds: f64,
        series: &[(StageKind, StageSeries)],
    ) -> RunRecord {
        let over_time = |kind: StageKind| {
            series.iter().find(|(of, _)| *of == kind).map(|(_, series)| series.clone())
        };
        let stage = |stage: &StageSummary| RecordedStage {
            report: stage.report.clone(),
            over_time: over_time(stage.report.kind),
        };
        RunRecord {
            takeup_run: FORMAT,
            began_unix_seconds,
            seconds,
            text: words.text,
            headline: words.headline,
            summary: summary.to_document(),
            stages: summary.stages.iter().take(STAGES_MAX).map(stage).collect(),
        }
    }

    /// The record as one line of the file.
    ///
    /// # Panics
    /// Never: it is made of numbers and texts.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("numbers and texts can be written as JSON") + "\n"
    }

    /// Reads a record from a file.
    ///
    /// # Errors
    /// When the file cannot be read, is no run record, has another version, or has values that no
    /// run has.
    pub fn read(path: &Path) -> Result<RunRecord, RunRecordError> {
        let bytes = bytes_of(path)?;
        let format =
            format_of(&bytes).ok_or_else(|| RunRecordError::NoRecord { path: path.to_owned() })?;
        if format != FORMAT {
            return Err(RunRecordError::Format { path: path.to_owned(), format });
        }
        let record: RunRecord = serde_json::from_slice(&bytes)
            .map_err(|source| RunRecordError::Damaged { path: path.to_owned(), source })?;
        record.check().map_err(|why| RunRecordError::Implausible { path: path.to_owned(), why })?;
        Ok(record)
    }

    /// The command as typed: `backup`, `restore` and so on.
    pub fn command(&self) -> &str {
        self.summary["command"].as_str().unwrap_or("run")
    }

    /// What the summary says of the limit.
    pub fn explanation(&self) -> Option<&str> {
        self.summary["explanation"].as_str().filter(|text| !text.is_empty())
    }

    fn check(&self) -> Result<(), &'static str> {
        let is_time = |seconds: f64| (0.0..SECONDS_MAX).contains(&seconds);
        if !is_time(self.began_unix_seconds / 10.0) {
            return Err("the start time is out of range");
        }
        if !is_time(self.seconds) {
            return Err("the length of the run is out of range");
        }
        if self.stages.len() > STAGES_MAX {
            return Err("too many stages");
        }
        for stage in &self.stages {
            let report = &stage.report;
            let times = [report.working_seconds, report.starved_seconds, report.blocked_seconds];
            if !times.into_iter().all(is_time) || report.bytes > STAGE_BYTES_MAX {
                return Err("a number of a stage is out of range");
            }
            if let Some(series) = &stage.over_time {
                check_series(series)?;
            }
        }
        Ok(())
    }
}

fn check_series(series: &StageSeries) -> Result<(), &'static str> {
    let StageSeries { working_seconds, starved_seconds, blocked_seconds, .. } = series;
    let times = [working_seconds, starved_seconds, blocked_seconds, &series.apart_seconds];
    let intervals = series.bytes.len();
    if intervals > INTERVALS_MAX || times.iter().any(|it| it.len() != intervals) {
        return Err("too many intervals of a stage");
    }
    let is_time = |seconds: &f64| (0.0..SECONDS_MAX).contains(seconds);
    let all = times.into_iter().flatten();
    let is_length = series.interval_seconds > 0.0 && is_time(&series.interval_seconds);
    let is_amount = |bytes: &u64| *bytes <= STAGE_BYTES_MAX;
    if !is_length || !all.copied().all(|it| is_time(&it)) || !series.bytes.iter().all(is_amount) {
        return Err("a number in the time series of a stage is out of range");
    }
    Ok(())
}

/// Whether a file is a run record of this or another version. Pipes are not looked at: they can be
/// read only once.
pub fn is_record(path: &Path) -> bool {
    let is_file = path.metadata().is_ok_and(|it| it.is_file());
    is_file && bytes_of(path).is_ok_and(|bytes| format_of(&bytes).is_some())
}

fn bytes_of(path: &Path) -> Result<Vec<u8>, RunRecordError> {
    let failure = |what| move |source| RunRecordError::File { what, path: path.to_owned(), source };
    let file = File::open(path).map_err(failure("open"))?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes).map_err(failure("read"))?;
    Ok(bytes)
}

/// The version in the first field, even where the rest is cut off.
fn format_of(bytes: &[u8]) -> Option<u32> {
    let rest = bytes.strip_prefix(b"{\"takeup_run\":")?;
    let digits = rest.iter().take(10).take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use flow::run::RunReport;

    use super::*;

    fn record() -> RunRecord {
        let stages = [StageKind::Read, StageKind::Write];
        let run = RunReport {
            seconds: 1.0,
            source_bytes: 1000,
            stages: stages.map(|kind| StageReport::of_one_thread(kind, [0.5, 0.25, 0.25])).into(),
            ..RunReport::default()
        };
        let series = StageSeries {
            interval_seconds: 0.01,
            working_seconds: vec![0.01, 0.005],
            starved_seconds: vec![0.0, 0.005],
            blocked_seconds: vec![0.0; 2],
            apart_seconds: vec![0.0; 2],
            bytes: vec![700, 300],
        };
        let summary = RunSummary::new(run, Vec::new(), 0);
        let words = RunWords { text: "text".to_owned(), headline: "line".to_owned() };
        RunRecord::new(&summary, words, 1.78e9 + 0.25, 1.125, &[(StageKind::Write, series)])
    }

    fn read_back(text: &str) -> Result<RunRecord, RunRecordError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.json");
        std::fs::write(&path, text).unwrap();
        assert_eq!(is_record(&path), !text.is_empty() && text.starts_with("{\"takeup_run\":"));
        RunRecord::read(&path)
    }

    #[test]
    fn what_was_kept_comes_back() {
        let record = record();
        assert_eq!(read_back(&record.to_line()).unwrap(), record);
        assert_eq!(record.command(), "pipe");
        assert_eq!(record.stages[0].over_time, None);
        assert_eq!(record.stages[1].over_time.as_ref().unwrap().bytes, [700, 300]);
        assert!(!record.text.is_empty() && record.explanation().is_some());
    }

    #[test]
    fn what_is_no_record_is_told() {
        let text = |it: Result<RunRecord, RunRecordError>| {
            let error = it.unwrap_err();
            let source = std::error::Error::source(&error).map(ToString::to_string);
            format!("{error}: {}", source.unwrap_or_default())
        };
        assert!(text(read_back("")).contains("is not the record of a run"));
        assert!(text(read_back("{}\n")).contains("is not the record of a run"));
        assert!(
            text(read_back("{\"takeup_run\":7}")).contains("has format 7, and only 1 is known")
        );
        let line = record().to_line();
        assert!(text(read_back(&line[..line.len() / 2])).contains("is damaged: EOF"));
        for (from, to, said) in [
            ("\"began_unix_seconds\":1780000000.25", "\"began_unix_seconds\":-1", "start time"),
            ("\"seconds\":1.125", "\"seconds\":1e300", "the length of the run"),
            ("[700,300]", "[700,300,1]", "intervals"),
            ("[700,300]", "[700,18446744073709551615]", "time series"),
            ("[0.01,0.005]", "[0.01,-0.005]", "time series"),
            ("\"interval_seconds\":0.01", "\"interval_seconds\":0", "time series"),
        ] {
            let damaged = line.replacen(from, to, 1);
            assert_ne!(damaged, line, "{from}");
            let text = text(read_back(&damaged));
            assert!(text.contains("is damaged") && text.contains(said), "{text}");
        }
    }
}
