//! What a backup has done: the record of its run, and what only a tape has to tell.

use flow::run::RunReport;
use tapeset::TapeReport;

/// The end of a backup.
#[derive(Clone, Debug, Default)]
pub struct BackupReport {
    /// What every run tells.
    pub run: RunReport,
    /// The globs of `--exclude` that left something out.
    pub excluded: Vec<String>,
    /// What only a tape has to tell.
    pub tape: Option<TapeReport>,
}
