//! The record of a run with `--record`: opened before the run, written after it.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use base::failures::lock;
use clap::Args;
use flow::account::Stage;
use report::table::Colour;
use runs::run_record::{RunRecord, RunWords};
use runs::summary::RunSummary;

use service::failure::Failure;
use service::output_file::OutputFile;

/// Where a run is recorded.
#[derive(Args, Clone, Debug, Default)]
pub struct RecordArgs {
    /// Record what each stage does over time in a new file, for `takeup report`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub record: Option<PathBuf>,
}

impl RecordArgs {
    /// Checks that the record and the data have different names.
    ///
    /// # Errors
    /// When they have the same name.
    pub fn apart_from(&self, to: &OsStr) -> Result<&RecordArgs, Failure> {
        match &self.record {
            Some(path) if std::path::absolute(path).ok() == std::path::absolute(to).ok() => {
                let text = "--record and the target have the same name";
                Err(Failure::of(format!("{text}: {}", path.display()), None))
            }
            _ => Ok(self),
        }
    }
}

/// A record whose run has not ended yet.
pub struct Recording {
    file: OutputFile,
    began: Instant,
    began_at: SystemTime,
    stages: Mutex<Vec<Arc<Stage>>>,
}

impl Recording {
    /// Opens the record of a run that starts now.
    ///
    /// # Errors
    /// When the file exists, or cannot be created.
    pub fn begin(arguments: &RecordArgs) -> Result<Option<Recording>, Failure> {
        let Some(path) = &arguments.record else { return Ok(None) };
        Ok(Some(Recording {
            file: OutputFile::open_new(path)?,
            began: Instant::now(),
            began_at: SystemTime::now(),
            stages: Mutex::default(),
        }))
    }

    /// Asks stages to keep what they do over time.
    pub fn follow(&self, stages: &[&Arc<Stage>]) {
        for stage in stages {
            stage.keep_series(self.began);
        }
        lock(&self.stages).extend(stages.iter().map(|stage| Arc::clone(stage)));
    }

    /// Writes the record of a run that is over.
    ///
    /// # Errors
    /// When the write fails, or another program has taken the name meanwhile.
    pub fn keep(mut self, summary: &RunSummary) -> Result<(), Failure> {
        let seconds = self.began.elapsed().as_secs_f64();
        let began_unix_seconds =
            self.began_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let stages = lock(&self.stages);
        let series: Vec<_> =
            stages.iter().filter_map(|it| Some((it.kind(), it.series()?))).collect();
        drop(stages);
        let words = RunWords {
            text: report::run::text(summary, Colour::Plain),
            headline: report::run::headline(summary),
        };
        let record = RunRecord::new(summary, words, began_unix_seconds, seconds, &series);
        self.file.write(&record.to_line())?;
        self.file.complete()
    }
}
