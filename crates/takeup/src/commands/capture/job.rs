//! Writes the fio job of a recording, and validates it by running it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use capture::job::{FioJob, JobError, JobLimits, JobTarget, Trial, Validation, check_folder};
use capture::profile::{Profile, Profiler};
use clap::Args;
use flow::cancel::Cancel;
use loads::disk::process;
use report::table::Colour;
use serde_json::{Value, json};

use super::guard::Guard;
use super::subject::Subject;
use super::{Means, Recorded, record, refusal};
use arguments::quantity::Size;
use service::failure::Failure;
use service::output_file::OutputFile;

/// The most reads and writes of a validation.
const OPERATIONS_MAX: u64 = 200_000;
/// The longest run of fio, in seconds.
const SECONDS_MAX: f64 = 60.0;

/// Options for the fio job.
#[derive(Args, Debug)]
pub struct JobArgs {
    /// Write the load as a fio job to this file; the job uses its own files, not the captured ones
    #[arg(long, value_name = "JOB")]
    fio: Option<PathBuf>,
    /// The folder for the files of the job, instead of TAKEUP_JOB_DIR when the job runs; --validate
    /// makes a folder there, or else in the working folder, and removes it
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Run the job with fio for a minute at most, record it the same way, and compare both
    #[arg(long)]
    validate: bool,
    /// The most space for the files of a validation; larger files are cut
    #[arg(long, value_name = "SIZE", default_value = "1G", requires = "validate")]
    limit: Size,
}

/// The job and its validation.
#[derive(Debug, Default)]
pub struct Made {
    job: Option<PathBuf>,
    validation: Option<Validation>,
}

/// The requested job, with its output file.
pub struct WantedJob<'a> {
    arguments: &'a JobArgs,
    file: Option<OutputFile>,
}

impl WantedJob<'_> {
    /// Checks before the recording that the job can be written and run.
    pub fn of(arguments: &JobArgs) -> Result<WantedJob<'_>, Failure> {
        if let Some(folder) = arguments.folder.as_deref().filter(|folder| !folder.is_dir()) {
            let text = format!("{} is not a folder", folder.display());
            return Err(Failure::of(text, Some("name an existing folder with --folder")));
        }
        if arguments.validate {
            process::version().map_err(|error| Failure::new(&error, None))?;
        }
        let file = arguments.fio.as_deref().map(OutputFile::open).transpose()?;
        Ok(WantedJob { arguments, file })
    }

    /// Whether a job is requested.
    pub fn is_any(&self) -> bool {
        self.file.is_some() || self.arguments.validate
    }

    /// Writes the job, and runs it.
    pub fn make(
        self,
        captured: &Profile,
        means: Means<'_>,
        cancel: &Cancel,
    ) -> Result<Made, Failure> {
        let mut made = Made::default();
        if let Some(mut file) = self.file {
            let folder = self.arguments.folder.as_deref().map(whole).transpose()?;
            let target = JobTarget { folder: folder.as_deref(), limits: None };
            let job = FioJob::of(captured, &target).map_err(|error| failure(&error))?;
            if let Some(folder) = &folder {
                check_folder(&job, folder, captured).map_err(|error| failure(&error))?;
            }
            file.write(&job.text())?;
            file.complete()?;
            made.job.clone_from(&self.arguments.fio);
        }
        if self.arguments.validate {
            let below = whole(self.arguments.folder.as_deref().unwrap_or(Path::new(".")))?;
            let limit = self.arguments.limit;
            made.validation = Some(validate(captured, &below, limit, means, cancel)?);
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
    below: &Path,
    limit: Size,
    means: Means<'_>,
    cancel: &Cancel,
) -> Result<Validation, Failure> {
    let limits =
        JobLimits { file_bytes: limit.0, operations: OPERATIONS_MAX, seconds: SECONDS_MAX };
    let mut guard = Guard::start(means.tracefs);
    let trial = Trial::prepare(captured, below, limits, cancel, &mut |made| guard.folder(made));
    let trial = trial.map_err(|error| failure(&error))?;
    let subject = Subject::start(&trial.command())?;
    guard.process(subject.pid());
    let mut profiler = Profiler::new(capture::profile::ProfileLimits::default());
    // fio ends by itself before that, unless it hangs on the disk.
    let patience = Duration::from_secs_f64(SECONDS_MAX * 2.0);
    let begun = means.begin(&subject, &mut profiler).map_err(|error| refusal(&error))?;
    let patience = Some(patience);
    let recorded: Recorded = record(begun, patience, None, subject, cancel, &mut profiler)?;
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

fn failure(error: &JobError) -> Failure {
    let hint = match error {
        JobError::Captured { .. } => Some("name another folder"),
        JobError::Nothing => Some(
            "capture a program that uses files: fio cannot repeat pipes, sockets and terminals",
        ),
        _ => None,
    };
    Failure::new(error, hint.map(str::to_owned))
}

impl Made {
    /// Adds what was made to the document of a recording.
    pub fn add_to(&self, document: &mut Value) {
        document["fio"] = json!(self.job);
        document["validation"] = json!(self.validation);
    }

    /// The text, which follows that of the recording.
    pub fn text(&self, colour: Colour) -> String {
        let mut text = String::new();
        if let Some(job) = &self.job {
            text += &format!("\nTakeup wrote the load as a fio job to {}.\n", job.display());
        }
        let Some(validation) = &self.validation else { return text };
        text += &format!("\nfio ran the job in {:.1} s:\n\n", validation.seconds);
        text += &report::captures::validation_table(validation, colour);
        text += "\n";
        for sentence in &validation.not_reproduced {
            text += &format!("{sentence}\n");
        }
        text
    }
}
