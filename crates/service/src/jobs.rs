//! Jobs: backups that a file names, and that run again and again.
//!
//! What a job is, is in [`jobs`]; here it is run, looked after and handed to a timer.

mod answer;
mod check;
mod history;
mod hooks;
mod read_back;
mod run;
mod sample;
mod status;
mod trial;
mod units;

use std::path::{Path, PathBuf};

use base::failures::with_causes;
use jobs::{Config, ConfigError};

use crate::failure::{Failure, without_error_numbers};
use crate::state;
use crate::telling::TellingRequest;

pub use answer::{
    CheckConfigAnswer, ForgottenArchive, JobAnswer, JobStatusAnswer, StatusAnswer, UnitsAnswer,
};
pub use check::{CheckConfigRequest, CheckedConfig, CheckedJob, check_config};
pub(crate) use history::run_answer;
pub use history::{
    JobHistoryAnswer, JobRunAnswer, JobsHistoryAnswer, JobsHistoryRequest, MOST_RUNS, history,
};
pub use read_back::{ComparedSource, ReadPart, VerifiedArchive};
pub use run::{JobDone, JobRequest, run_job};
pub(crate) use status::Verifications;
pub use status::{JobStatus, StatusDone, StatusRequest, status};
pub use trial::{TrialDone, TrialRequest, try_job};
pub use units::{UnitsDone, UnitsRequest, units};

/// The file with the jobs: the named one, or the user's own.
pub(crate) fn read_config(named: Option<&Path>) -> Result<(Config, PathBuf), Failure> {
    let path = named.map(Path::to_owned).or_else(state::jobs).ok_or_else(|| {
        let hint = "name it with --config, or set XDG_CONFIG_HOME or HOME to a folder of yours";
        Failure::of("there is no folder for a file with jobs", Some(hint))
    })?;
    let path = std::path::absolute(&path).unwrap_or(path);
    let config = Config::read(&path).map_err(|error| failure(&error))?;
    Ok((config, path))
}

/// Who is told of a run of this job: by the command line, else by the file. A file that cannot be
/// read is the run's failure, not this one's.
pub fn telling(request: &JobRequest, asked: TellingRequest) -> TellingRequest {
    let config = read_config(request.config.as_deref()).ok();
    let tell = config
        .as_ref()
        .and_then(|(config, path)| config.job(&request.job, path).ok())
        .map(|(_, job)| &job.tell);
    let metrics = tell.and_then(|it| it.metrics.as_ref()).map(|it| it.as_path().to_owned());
    let ping = tell.and_then(|it| it.ping.as_ref()).map(|it| it.as_str().to_owned());
    TellingRequest { metrics: asked.metrics.or(metrics), ping: asked.ping.or(ping) }
}

fn failure(error: &ConfigError) -> Failure {
    let hint = match error {
        ConfigError::Read { source, .. } if source.kind() == std::io::ErrorKind::NotFound => Some(
            "`takeup check-config --help` shows one to begin with; --config names another place",
        ),
        ConfigError::Wrong { .. } => {
            Some("`takeup check-config --help` shows what may stand in it")
        }
        ConfigError::NoJob { .. } => Some("a job begins with a line [jobs.NAME]"),
        ConfigError::Read { .. } | ConfigError::TooLong { .. } | ConfigError::NoSuchJob { .. } => {
            None
        }
    };
    let text = without_error_numbers(&with_causes(error)).to_string();
    Failure::of(text, hint)
}
