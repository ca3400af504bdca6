//! The runs of jobs, from the journal, and whether the last was slower than those before it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use base::format::{duration, rate};
use jobs::{Entry, Event, Journaled, RunResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::result_name;
use crate::Answer;
use crate::failure::Failure;
use crate::journal::journal;

/// Runs that the last one is compared with.
const BEFORE: usize = 10;
/// With fewer of them nothing is said.
const BEFORE_MIN: usize = 5;
/// A smaller difference from the median of them is not told.
const SLOWER_MIN: f64 = 0.25;
/// Runs are alike if one has at most so many times as much as the other.
const ALIKE_MAX: f64 = 1.5;

/// Which runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobsHistoryRequest {
    /// `None`: of all jobs.
    #[serde(default)]
    pub job: Option<String>,
    /// Most runs of a job, the newest.
    #[serde(default = "most_runs")]
    pub most: usize,
}

/// Runs of a job that are shown where nothing else is said.
pub const MOST_RUNS: usize = 30;

fn most_runs() -> usize {
    MOST_RUNS
}

/// The runs of the jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobsHistoryAnswer {
    pub jobs: Vec<JobHistoryAnswer>,
}

/// The runs of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobHistoryAnswer {
    pub job: String,
    /// The folder of sets, escaped.
    pub to: String,
    /// The oldest first.
    pub runs: Vec<JobRunAnswer>,
    /// That the last run was slower than those before it; null where it was not, or they are not
    /// alike.
    pub trend: Option<String>,
}

/// A run of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobRunAnswer {
    /// When it ended, in seconds since 1970.
    pub ended_seconds: i64,
    /// `done`, `warned` or `failed`.
    pub result: String,
    pub level: Option<u8>,
    pub archive: Option<String>,
    pub files: u64,
    /// Of the archive.
    pub bytes: u64,
    pub seconds: f64,
    pub warnings: u64,
    /// What held the backup back, in words.
    pub limit: Option<String>,
    pub error: Option<String>,
}

impl Answer for JobsHistoryAnswer {
    const COMMAND: &'static str = "catalog jobs";
}

/// The runs that the journal knows.
///
/// # Errors
/// When the journal cannot be read, or knows no such job.
pub fn history(request: &JobsHistoryRequest) -> Result<JobsHistoryAnswer, Failure> {
    let journal = journal()?;
    let (entries, _) = journal.read().map_err(|error| Failure::new(&error, None))?;
    let mut jobs: BTreeMap<(String, PathBuf), Vec<(&Entry, &Journaled)>> = BTreeMap::new();
    for entry in &entries {
        let is_wanted = request.job.as_ref().is_none_or(|job| *job == entry.job);
        if let Event::Run(run) = &entry.event
            && is_wanted
        {
            let of = (entry.job.clone(), PathBuf::from(&entry.to));
            jobs.entry(of).or_default().push((entry, run));
        }
    }
    if jobs.is_empty() {
        let of = request.job.as_ref().map(|job| format!(" of {job}")).unwrap_or_default();
        let message = format!("the journal {} has no run{of}", journal.path().display());
        return Err(Failure::of(message, Some("`takeup run JOB` makes one")));
    }
    let job = |((job, to), runs): ((String, PathBuf), Vec<(&Entry, &Journaled)>)| {
        let trend = trend(&runs.iter().map(|(_, run)| *run).collect::<Vec<_>>());
        let shown = &runs[runs.len().saturating_sub(request.most)..];
        let (to, runs) = (
            to.display().to_string(),
            shown.iter().map(|(entry, run)| run_answer(entry, run)).collect(),
        );
        JobHistoryAnswer { job, to, runs, trend }
    };
    Ok(JobsHistoryAnswer { jobs: jobs.into_iter().map(job).collect() })
}

/// A run as answers have it.
pub(crate) fn run_answer(entry: &Entry, run: &Journaled) -> JobRunAnswer {
    JobRunAnswer {
        ended_seconds: entry.at.as_second(),
        result: result_name(run.result).to_owned(),
        level: run.level,
        archive: run.archive.clone(),
        files: run.files,
        bytes: run.bytes,
        seconds: run.seconds,
        warnings: run.warnings,
        limit: run.limit.clone(),
        error: run.error.clone(),
    }
}

/// Whether the last run took longer than runs before it that moved as much.
fn trend(runs: &[&Journaled]) -> Option<String> {
    let (last, before) = runs.split_last()?;
    let alike = |run: &&&Journaled| {
        let near = |a: u64, b: u64| {
            let (a, b) = (a.max(1) as f64, b.max(1) as f64);
            a / b <= ALIKE_MAX && b / a <= ALIKE_MAX
        };
        run.result != RunResult::Failed
            && run.level.map(|level| level == 0) == last.level.map(|level| level == 0)
            && near(run.bytes, last.bytes)
            && near(run.files, last.files)
    };
    if last.result == RunResult::Failed {
        return None;
    }
    let mut seconds: Vec<f64> =
        before.iter().rev().filter(alike).take(BEFORE).map(|run| run.seconds).collect();
    if seconds.len() < BEFORE_MIN {
        return None;
    }
    seconds.sort_by(f64::total_cmp);
    let median = seconds[seconds.len() / 2];
    let (longest, share) = (seconds[seconds.len() - 1], last.seconds / median - 1.0);
    // Longer than each of them, too: their own spread is no trend.
    if share < SLOWER_MIN || last.seconds <= longest {
        return None;
    }
    let speed = rate(last.bytes as f64 / last.seconds.max(1e-9));
    Some(format!(
        "the last run took {}, {speed}: {:.0} % longer than the middle one of {} like it before, \
         and longer than each",
        duration(last.seconds),
        share * 100.0,
        seconds.len(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(level: u8, bytes: u64, seconds: f64) -> Journaled {
        Journaled {
            result: RunResult::Done,
            set: None,
            archive: None,
            level: Some(level),
            files: bytes / 1000,
            bytes,
            seconds,
            warnings: 0,
            limit: None,
            error: None,
            notes: Vec::new(),
        }
    }

    fn said(runs: &[Journaled]) -> Option<String> {
        trend(&runs.iter().collect::<Vec<_>>())
    }

    #[test]
    fn only_what_is_alike_and_slower_than_all_is_told() {
        let mut runs: Vec<Journaled> =
            (0..8).map(|day| run(1, 1_000_000, 10.0 + f64::from(day % 3))).collect();
        runs.push(run(1, 1_000_000, 14.5));
        let text = said(&runs).unwrap();
        assert!(text.starts_with("the last run took 14.5 s, 0.069 MB/s: 32 % longer"), "{text}");
        // As slow as one of them was, twice the data, the first full set, too few before it.
        runs[8].seconds = 12.0;
        assert_eq!(said(&runs), None);
        runs[8] = run(1, 2_000_000, 20.0);
        assert_eq!(said(&runs), None);
        runs[8] = run(0, 1_000_000, 20.0);
        assert_eq!(said(&runs), None);
        runs[8] = run(1, 1_000_000, 20.0);
        assert!(said(&runs).is_some() && said(&runs[4..]).is_none());
        // A longest run among them that was slower still says that this is nothing new.
        runs[2].seconds = 30.0;
        assert_eq!(said(&runs), None);
    }
}
