//! The record of a run: opened before the run, written after it.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use base::failures::lock;
use flow::account::Stage;
use runs::run_record::{RunRecord, RunWords};
use runs::summary::RunSummary;

use crate::failure::Failure;
use crate::output_file::OutputFile;

/// A record whose run has not ended yet.
pub(crate) struct Recording {
    file: OutputFile,
    began: Instant,
    began_at: SystemTime,
    stages: Mutex<Vec<Arc<Stage>>>,
}

impl Recording {
    /// Opens the record of a run that starts now and writes its data to `to`.
    ///
    /// # Errors
    /// When record and data have the same name, the file exists, or it cannot be created.
    pub(crate) fn begin(path: &Path, to: Option<&Path>) -> Result<Recording, Failure> {
        if to.is_some_and(|to| std::path::absolute(path).ok() == std::path::absolute(to).ok()) {
            let text = "--record and the target have the same name";
            return Err(Failure::of(format!("{text}: {}", path.display()), None));
        }
        Ok(Recording {
            file: OutputFile::open_new(path)?,
            began: Instant::now(),
            began_at: SystemTime::now(),
            stages: Mutex::default(),
        })
    }

    /// Asks stages to keep what they do over time.
    pub(crate) fn follow(&self, stages: &[&Arc<Stage>]) {
        for stage in stages {
            stage.keep_series(self.began);
        }
        lock(&self.stages).extend(stages.iter().map(|stage| Arc::clone(stage)));
    }

    /// Writes the record of a run that is over.
    ///
    /// # Errors
    /// When the write fails, or another program has taken the name meanwhile.
    pub(crate) fn keep(mut self, summary: &RunSummary, words: RunWords) -> Result<(), Failure> {
        let seconds = self.began.elapsed().as_secs_f64();
        let began_unix_seconds =
            self.began_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let stages = lock(&self.stages);
        let series: Vec<_> =
            stages.iter().filter_map(|it| Some((it.kind(), it.series()?))).collect();
        drop(stages);
        let record = RunRecord::new(summary, words, began_unix_seconds, seconds, &series);
        self.file.write(&record.to_line())?;
        self.file.complete()
    }
}
