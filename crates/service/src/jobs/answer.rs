//! What a run of a job and the state of the jobs are as answers.

use jobs::RunResult;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::CheckedConfig;
use super::read_back::VerifiedArchive;
use super::run::JobDone;
use super::status::{JobStatus, StatusDone};
use super::units::UnitsDone;
use crate::Answer;
use crate::backup::BackupAnswer;

/// An archive that was removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForgottenArchive {
    /// The identity of its set.
    pub set: String,
    pub archive: String,
    pub bytes: u64,
}

/// The end of a run of a job. Its commands get the same on standard input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobAnswer {
    pub job: String,
    /// The folder of sets.
    pub to: String,
    /// `done`, `warned` or `failed`.
    pub result: String,
    /// What was written; null where there is no backup.
    pub backup: Option<BackupAnswer>,
    /// Why there is none.
    pub error: Option<String>,
    pub verified: Vec<VerifiedArchive>,
    pub forgotten: Vec<ForgottenArchive>,
    pub warnings: Vec<String>,
    pub seconds: f64,
}

impl Answer for JobAnswer {
    const COMMAND: &'static str = "run";
}

/// A result in one word.
pub fn result_name(result: RunResult) -> &'static str {
    match result {
        RunResult::Done => "done",
        RunResult::Warned => "warned",
        RunResult::Failed => "failed",
    }
}

impl JobDone {
    /// As an answer.
    pub fn answer(&self) -> JobAnswer {
        JobAnswer {
            job: self.job.clone(),
            to: base::escape::escape_path(&self.to),
            result: result_name(self.result()).to_owned(),
            backup: self.backup.as_ref().map(|done| done.answer()),
            error: self.error.clone(),
            verified: self.verified.clone(),
            forgotten: self.forgotten.clone(),
            warnings: self.warnings.clone(),
            seconds: self.seconds,
        }
    }
}

/// The state of the jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusAnswer {
    pub jobs: Vec<JobStatusAnswer>,
    /// What is to be known besides.
    pub warnings: Vec<String>,
}

/// The state of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobStatusAnswer {
    pub job: String,
    /// The folder of sets.
    pub to: String,
    /// When the last set that can be restored was begun, in seconds since 1970.
    pub last_success_seconds: Option<u64>,
    /// The same of the last set all of whose archives were read back and are sound.
    pub last_verified_success_seconds: Option<u64>,
    /// `done`, `warned` or `failed`: how the last run ended.
    pub last_result: Option<String>,
    /// Why the last run failed.
    pub last_error: Option<String>,
    pub overdue: bool,
    /// Sets that can be restored.
    pub sets: u64,
    /// Bytes of all archives.
    pub bytes: u64,
    /// Archives that were not read within the time that the job promises.
    pub unread: u64,
    /// What is wrong, a sentence each.
    pub problems: Vec<String>,
}

impl Answer for StatusAnswer {
    const COMMAND: &'static str = "status";
}

impl StatusDone {
    /// As an answer.
    pub fn answer(&self) -> StatusAnswer {
        let jobs = self.jobs.iter().map(JobStatus::answer).collect();
        StatusAnswer { jobs, warnings: self.warnings.clone() }
    }
}

impl JobStatus {
    fn answer(&self) -> JobStatusAnswer {
        JobStatusAnswer {
            job: self.job.clone(),
            to: base::escape::escape_path(&self.to),
            last_success_seconds: self.last_success_seconds,
            last_verified_success_seconds: self.last_verified_success_seconds,
            last_result: self.last_result.map(|result| result_name(result).to_owned()),
            last_error: self.last_error.clone(),
            overdue: self.is_overdue,
            sets: self.sets,
            bytes: self.bytes,
            unread: self.unread,
            problems: self.problems.clone(),
        }
    }
}

/// The jobs of a file, and what is to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckConfigAnswer {
    pub config: String,
    pub jobs: Vec<CheckedJobAnswer>,
}

/// A job of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedJobAnswer {
    pub job: String,
    pub sources: Vec<String>,
    pub to: String,
    pub schedule: String,
    /// What would go wrong today.
    pub problems: Vec<String>,
}

impl Answer for CheckConfigAnswer {
    const COMMAND: &'static str = "check-config";
}

impl CheckedConfig {
    /// As an answer.
    pub fn answer(&self) -> CheckConfigAnswer {
        let jobs = self
            .jobs
            .iter()
            .map(|job| CheckedJobAnswer {
                job: job.job.clone(),
                sources: job.sources.iter().map(|it| base::escape::escape_path(it)).collect(),
                to: base::escape::escape_path(&job.to),
                schedule: job.schedule.clone(),
                problems: job.problems.clone(),
            })
            .collect();
        CheckConfigAnswer { config: base::escape::escape_path(&self.path), jobs }
    }
}

/// The units of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnitsAnswer {
    pub job: String,
    pub service_name: String,
    pub service: String,
    pub timer_name: String,
    pub timer: String,
    /// The folder that they were written into; null: they were not written.
    pub written_to: Option<String>,
}

impl Answer for UnitsAnswer {
    const COMMAND: &'static str = "units";
}

impl UnitsDone {
    /// As an answer.
    pub fn answer(&self) -> UnitsAnswer {
        UnitsAnswer {
            job: self.job.clone(),
            service_name: self.service_name(),
            service: self.service.clone(),
            timer_name: self.timer_name(),
            timer: self.timer.clone(),
            written_to: self.written_to.as_ref().map(|it| base::escape::escape_path(it)),
        }
    }
}
