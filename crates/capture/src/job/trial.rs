//! A job with a folder of its own, ready to be run under the recording that made its profile.
//!
//! fio lays out files by writing them, which would be recorded as well; so it makes them first, in
//! a run of its own (`create_only`).

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use flow::cancel::Cancel;
use loads::disk::process;
use loads::disk::{DiskError, OwnFolder, Room, check_room};
use loads::read::Pages;

use super::super::profile::Profile;
use super::limits::JobLimits;
use super::{CaptureJobError, FioJob, JobTarget, Validation, check_folder, compare};

/// A job whose files are made; they go with it.
#[derive(Debug)]
pub struct Trial {
    folder: OwnFolder,
    job: FioJob,
    /// Where fio is. By its name a shell would look it up in the user's PATH, which may lead to the
    /// working directory.
    fio: PathBuf,
}

impl Trial {
    /// Makes a folder below one that is given, and in it the files of a job for a profile; `made`
    /// is called with the folder while there is nothing in it.
    ///
    /// # Errors
    /// When there is no job, no room or no fio, or fio refuses.
    pub fn prepare(
        captured: &Profile,
        below: &Path,
        limits: JobLimits,
        cancel: &Cancel,
        made: &mut dyn FnMut(&Path),
    ) -> Result<Trial, CaptureJobError> {
        process::version()?;
        let folder = OwnFolder::new(below)?;
        made(folder.path());
        let target = JobTarget { folder: Some(folder.path()), limits: Some(limits) };
        let job = FioJob::of(captured, &target)?;
        check_folder(&job, folder.path(), captured)?;
        let room = Room { bytes: job.file_bytes(), files: job.files().len() as u64 };
        check_room(folder.path(), room)?;
        let fio = machine::programs::path("fio").map_err(DiskError::Start)?;
        let trial = Trial { folder, job, fio };
        let (path, text) = (trial.job_file(), trial.job.text());
        fs::write(&path, &text).map_err(|source| CaptureJobError::Write { path, source })?;
        let arguments = ["--create_only=1", "-"].map(OsString::from);
        process::run(&arguments, Some(&text), Pages::Small, &mut || {}, cancel)?;
        // What is to be written to the disk for that is not the job's.
        trial.folder.sync();
        Ok(trial)
    }

    /// The program and its arguments, to be run once and recorded from its start.
    #[must_use]
    pub fn command(&self) -> Vec<OsString> {
        let mut output = OsString::from("--output=");
        output.push(self.output());
        vec![
            self.fio.clone().into(),
            "--output-format=json+".into(),
            output,
            self.job_file().into(),
        ]
    }

    /// Where fio writes what it did.
    #[must_use]
    pub fn output(&self) -> PathBuf {
        self.folder.path().join("fio.json")
    }

    /// The job.
    #[must_use]
    pub fn job(&self) -> &FioJob {
        &self.job
    }

    /// How near a recording of the command comes to what was captured.
    #[must_use]
    pub fn judge(&self, captured: &Profile, run: &Profile) -> Validation {
        compare(captured, &self.job, run)
    }

    /// Removes the folder with all that is in it, and says whether that was possible.
    ///
    /// # Errors
    /// When something is still there.
    pub fn remove(mut self) -> Result<(), CaptureJobError> {
        Ok(self.folder.remove()?)
    }

    fn job_file(&self) -> PathBuf {
        self.folder.path().join("job.fio")
    }
}
