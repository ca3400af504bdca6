//! Writes the fio job of a recording, and validates it by running it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use capture::job::{
    CaptureJobError, FioJob, JobLimits, JobTarget, Trial, Validation, check_folder,
};
use capture::profile::{Profile, Profiler};
use flow::cancel::Cancel;
use loads::disk::process as fio;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::leftovers::LeftoverGuard;
use super::process::CapturedProcess;
use super::recording::{Means, Recorded, record, refusal};
use crate::failure::Failure;
use crate::output_file::OutputFile;

/// The most reads and writes of a validation.
const OPERATIONS_MAX: u64 = 200_000;
/// The longest run of fio, in seconds.
const SECONDS_MAX: f64 = 60.0;
/// How often the job is run, at most, where the recording was too late for the names of its files.
const RUNS_MAX: u32 = 3;

/// The job for fio that repeats the load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JobRequest {
    /// Write the job to this file.
    pub fio: Option<PathBuf>,
    /// The folder for the files of the job; a validation makes a folder there, or else in the
    /// working folder, and removes it.
    pub folder: Option<PathBuf>,
    /// Run the job with fio for a minute at most, record it the same way, and compare both.
    pub validate: bool,
    /// The most space for the files of a validation; larger files are cut.
    pub limit_bytes: u64,
}

impl Default for JobRequest {
    fn default() -> JobRequest {
        JobRequest { fio: None, folder: None, validate: false, limit_bytes: 1 << 30 }
    }
}

/// The job and its validation.
#[derive(Debug, Default)]
pub struct MadeJob {
    /// The file of the job.
    pub path: Option<PathBuf>,
    /// How near a run of it comes to the capture.
    pub validation: Option<Validation>,
}

/// The requested job, with its output file.
pub(super) struct WantedJob<'a> {
    request: &'a JobRequest,
    file: Option<OutputFile>,
}

impl WantedJob<'_> {
    /// Checks before the recording that the job can be written and run.
    pub fn of(request: &JobRequest) -> Result<WantedJob<'_>, Failure> {
        if let Some(folder) = request.folder.as_deref().filter(|folder| !folder.is_dir()) {
            let text = format!("{} is not a folder", folder.display());
            return Err(Failure::of(text, Some("name an existing folder with --folder")));
        }
        if request.validate {
            fio::version().map_err(|error| Failure::new(&error, None))?;
        }
        let file = request.fio.as_deref().map(OutputFile::open).transpose()?;
        Ok(WantedJob { request, file })
    }

    /// Whether a job is requested.
    pub fn is_any(&self) -> bool {
        self.file.is_some() || self.request.validate
    }

    /// Writes the job, and runs it.
    pub fn make(
        self,
        captured: &Profile,
        means: Means<'_>,
        cancel: &Cancel,
    ) -> Result<MadeJob, Failure> {
        let mut made = MadeJob::default();
        if let Some(mut file) = self.file {
            let folder = self.request.folder.as_deref().map(whole).transpose()?;
            let target = JobTarget { folder: folder.as_deref(), limits: None };
            let job = FioJob::of(captured, &target).map_err(|error| failure(&error))?;
            if let Some(folder) = &folder {
                check_folder(&job, folder, captured).map_err(|error| failure(&error))?;
            }
            file.write(&job.text())?;
            file.complete()?;
            made.path.clone_from(&self.request.fio);
        }
        if self.request.validate {
            let below = whole(self.request.folder.as_deref().unwrap_or(Path::new(".")))?;
            let limit_bytes = self.request.limit_bytes;
            // One guard for all runs: that of a run which has ended would take the folder of the
            // next one, of the same name and number, for one that was left.
            let mut guard = means.guard();
            let mut run = || validate(captured, (&below, limit_bytes), means, &mut guard, cancel);
            let mut best = run()?;
            for _ in 1..RUNS_MAX {
                if best.unnamed_operations == 0 {
                    break;
                }
                match run() {
                    Ok(next) if next.unnamed_operations < best.unnamed_operations => best = next,
                    Err(failure) if cancel.check().is_err() => return Err(failure),
                    // What there is says as much.
                    Ok(_) | Err(_) => {}
                }
            }
            made.validation = Some(best);
        }
        Ok(made)
    }
}

/// The absolute path: a job must mean the same in any working folder.
fn whole(folder: &Path) -> Result<PathBuf, Failure> {
    let found = std::fs::canonicalize(folder);
    found.map_err(|error| Failure::of(format!("{}: {error}", folder.display()), None))
}

fn validate(
    captured: &Profile,
    (below, limit_bytes): (&Path, u64),
    means: Means<'_>,
    guard: &mut LeftoverGuard,
    cancel: &Cancel,
) -> Result<Validation, Failure> {
    let limits =
        JobLimits { file_bytes: limit_bytes, operations: OPERATIONS_MAX, seconds: SECONDS_MAX };
    let trial = Trial::prepare(captured, below, limits, cancel, &mut |made| guard.folder(made));
    let trial = trial.map_err(|error| failure(&error))?;
    let process = CapturedProcess::start(&trial.command(), guard)?;
    guard.process(process.pid());
    let mut profiler = Profiler::new(capture::profile::ProfileLimits::default());
    // fio ends by itself before that, unless it hangs on the disk.
    let patience = Duration::from_secs_f64(SECONDS_MAX * 2.0);
    let begun = means.begin(&process, &mut profiler).map_err(|error| refusal(&error))?;
    let patience = Some(patience);
    let recorded: Recorded = record(begun, patience, None, process, cancel, &mut profiler)?;
    if recorded.is_stopped {
        return Err(Failure::of("stopped while the job ran", None));
    }
    if let Some(how) = recorded.failed {
        let hint = "read its messages above, or use --fio to write the job without running it";
        return Err(Failure::of(format!("fio ended with {how}"), Some(hint)));
    }
    let validation = trial.judge(captured, &profiler.profile());
    trial.remove().map_err(|error| failure(&error))?;
    Ok(validation)
}

fn failure(error: &CaptureJobError) -> Failure {
    let hint = match error {
        CaptureJobError::Captured { .. } => Some("name another folder"),
        CaptureJobError::Nothing => Some(
            "capture a program that uses files: fio cannot repeat pipes, sockets and terminals",
        ),
        _ => None,
    };
    Failure::new(error, hint.map(str::to_owned))
}
