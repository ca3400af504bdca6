//! The result of a backup: the record of its run, and what a tape adds to it.

use archive::index::About;
use flow::run::RunReport;
use tapeset::TapeReport;

/// The result of a backup.
#[derive(Clone, Debug, Default)]
pub struct BackupReport {
    /// The numbers of every run.
    pub run: RunReport,
    /// The globs of `--exclude` that matched something.
    pub excluded: Vec<String>,
    /// What only a tape adds.
    pub tape: Option<TapeReport>,
    /// The set of a chain, if it is one.
    pub set: Option<About>,
}
