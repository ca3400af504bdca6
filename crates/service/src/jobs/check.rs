//! The file with the jobs, looked at before the first night.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use base::escape::escape_path;
use base::failures::with_causes;
use jobs::{Job, JobName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, without_error_numbers};
use crate::journal;
use crate::outcome::Outcome;

/// Which file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckConfigRequest {
    /// The file with the jobs; the user's own where none is named.
    #[serde(default)]
    pub config: Option<PathBuf>,
}

/// The jobs of a file.
#[derive(Clone, Debug)]
pub struct CheckedConfig {
    pub path: PathBuf,
    pub jobs: Vec<CheckedJob>,
}

/// A job, and what would go wrong today.
#[derive(Clone, Debug)]
pub struct CheckedJob {
    pub job: String,
    pub sources: Vec<PathBuf>,
    pub to: PathBuf,
    pub schedule: String,
    pub problems: Vec<String>,
}

impl CheckedConfig {
    /// How the command has ended.
    pub fn outcome(&self) -> Outcome {
        let is_fine = self.jobs.iter().all(|job| job.problems.is_empty());
        if is_fine { Outcome::Done } else { Outcome::Warned }
    }
}

/// Reads the file, and looks at what its jobs name.
///
/// # Errors
/// When the file cannot be read, or something in it is wrong: with line and column.
pub fn check_config(request: &CheckConfigRequest) -> Result<CheckedConfig, Failure> {
    let (config, path) = super::read_config(request.config.as_deref())?;
    let jobs = config.jobs.iter().map(|(name, job)| checked(name, job)).collect();
    Ok(CheckedConfig { path, jobs })
}

fn checked(name: &JobName, job: &Job) -> CheckedJob {
    let sources: Vec<PathBuf> = job.sources.iter().map(|it| it.as_path().to_owned()).collect();
    let to = job.to.as_path();
    let mut problems = Vec::new();
    for source in &sources {
        if let Err(error) = source.symlink_metadata() {
            let why = without_error_numbers(&with_causes(&error)).to_string();
            problems.push(format!("the source {}: {why}", escape_path(source)));
        }
    }
    for (at, source) in sources.iter().enumerate() {
        if to.starts_with(source) {
            let source = escape_path(source);
            problems.push(format!("the target lies in the source {source}: leave it out"));
        }
        if sources[..at].contains(source) {
            problems.push(format!("the source {} is named twice", escape_path(source)));
        }
    }
    problems.extend(target_problem(to));
    problems.extend(schedule_problem(&job.schedule));
    let (job, schedule) = (name.to_string(), job.schedule.clone());
    CheckedJob { job, sources, to: to.to_owned(), schedule, problems }
}

/// A run makes the last folder of a path, and no other.
fn target_problem(to: &Path) -> Option<String> {
    if journal::is_tape_drive(to) {
        let missing = !to.exists() || device::tape::find(to).is_none();
        return missing.then(|| format!("the target: {} is no tape drive", escape_path(to)));
    }
    let folder = if to.exists() { to } else { to.parent()? };
    if !folder.is_dir() {
        return Some(format!("the target: {} is no folder", escape_path(folder)));
    }
    let access = rustix::fs::access(folder, rustix::fs::Access::WRITE_OK);
    access.err().map(|error| {
        let why = without_error_numbers(&with_causes(&error)).to_string();
        format!("the target: cannot write into {}: {why}", escape_path(folder))
    })
}

/// What systemd says of a schedule that it does not understand; nothing where there is no systemd.
fn schedule_problem(schedule: &str) -> Option<String> {
    let said = machine::programs::command("systemd-analyze")
        .ok()?
        .args(["calendar", "--", schedule])
        .stdin(Stdio::null())
        .output()
        .ok()?;
    (!said.status.success()).then(|| {
        let text = String::from_utf8_lossy(&said.stderr);
        let why = text.lines().next().unwrap_or("it is not understood").to_owned();
        format!("the schedule {schedule:?}: {why}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that only drives have is no drive yet.
    #[test]
    fn a_drive_that_is_not_there_is_a_problem() {
        for path in ["/play/nst0", "/dev/nst31"] {
            let problem = target_problem(Path::new(path));
            assert_eq!(problem, Some(format!("the target: {path} is no tape drive")));
        }
    }
}
