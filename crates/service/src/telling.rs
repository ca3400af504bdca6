//! What is told to a monitoring system of a run: its numbers in a file that Prometheus reads, and a
//! ping.
//!
//! Neither is ever the reason why a run fails: what could not be told is a line on standard error.

mod metrics;
mod ping;

use std::path::{Path, PathBuf};

use runs::streaming::TapeSummary;
use runs::summary::RunSummary;
use serde::{Deserialize, Serialize};

use self::metrics::Metrics;
pub use self::metrics::NUMBERS;
use self::ping::{Ping, State};
use crate::failure::Failure;
use crate::jobs::{JobAnswer, StatusAnswer};
use crate::output_file::OutputFile;

/// What is to be told, and to whom.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TellingRequest {
    /// A file for numbers, in the text format of Prometheus.
    pub metrics: Option<PathBuf>,
    /// Where the start, success and failure of a run are told.
    pub ping: Option<String>,
}

/// An address for `ping`, as a job's file has it.
///
/// # Errors
/// Why the text is none.
pub fn address(text: &str) -> Result<String, String> {
    jobs::Address::try_from(text.to_owned()).map(|it| it.as_str().to_owned())
}

/// A run that has begun.
pub struct Telling {
    metrics: Option<PathBuf>,
    ping: Option<Ping>,
    labels: Vec<(&'static str, String)>,
}

/// How a run has ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ended<'a> {
    /// The exit code of the command.
    pub exit_code: u8,
    pub run: Option<&'a RunSummary>,
    pub tape: Option<&'a TapeSummary>,
    /// What a job did; of its backup `run` and `tape` are.
    pub job: Option<&'a JobAnswer>,
    /// Whether what it wrote or looked at was read back whole and is sound.
    pub is_verified: bool,
    /// How long it took; zero where it did not begin.
    pub seconds: f64,
}

impl Ended<'_> {
    /// Whether all was done.
    pub fn is_success(&self) -> bool {
        self.exit_code == 0
    }
}

impl Telling {
    /// Tells that a run begins. `name` is what the user calls it: a job, a target, an archive.
    pub fn begin(request: &TellingRequest, command: &'static str, name: &str) -> Telling {
        let what = if command == "run" { metrics::JOB } else { "endpoint" };
        let ping = request.ping.as_deref().map(|url| Ping::to(url.to_owned()));
        let mut telling = Telling {
            metrics: request.metrics.clone(),
            ping,
            labels: vec![("command", command.to_owned()), (what, name.to_owned())],
        };
        if let Some(ping) = &mut telling.ping {
            ping.begin();
        }
        telling
    }

    /// Tells how it ended. What could not be told is returned, a line each.
    pub fn end(self, ended: &Ended<'_>) -> Vec<String> {
        let mut untold = Vec::new();
        if let Some(path) = &self.metrics {
            let labels: Vec<(&str, &str)> =
                self.labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let now = experiment::run::unix_seconds();
            let mut metrics = Metrics::default();
            metrics::run(&mut metrics, &labels, ended, now);
            // A run that failed does not take away when the last one succeeded.
            metrics.keep(&std::fs::read_to_string(path).unwrap_or_default(), &labels);
            let failure = written(path, &metrics).err();
            untold.extend(failure.map(|it| format!("--metrics: {}", it.message())));
        }
        if let Some(ping) = self.ping {
            let state = if ended.is_success() { State::Success } else { State::Failure };
            untold.extend(ping.end(state, ended.exit_code).err());
        }
        untold
    }
}

/// Tapes that hold sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Media {
    /// A run of a job may write over them.
    pub free: u64,
    /// It may not.
    pub kept: u64,
}

/// Writes the state of all jobs, and of the media where it is known.
///
/// # Errors
/// When the file cannot be written.
pub fn write_status(
    path: &Path,
    status: &StatusAnswer,
    media: Option<Media>,
) -> Result<(), Failure> {
    let mut metrics = Metrics::default();
    metrics::status(&mut metrics, status, experiment::run::unix_seconds());
    metrics::media(&mut metrics, media.unwrap_or_default());
    written(path, &metrics)
}

/// Writes the whole file under another name first: who reads it never sees a part.
fn written(path: &Path, metrics: &Metrics) -> Result<(), Failure> {
    let mut file = OutputFile::open_for_all(path)?;
    file.write(&metrics.text())?;
    file.complete()
}

#[cfg(test)]
mod tests;
