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
    /// What a list of changes did, if there was one.
    pub list: Option<ListReport>,
}

/// How a run with a list went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListReport {
    /// Folders whose names were read.
    pub folders_read: u64,
    /// Of an audit: changed objects that a run with the list would not have seen,
    pub missed: u64,
    /// and the paths of the first of them, as the archive has them.
    pub missed_first: Vec<Vec<u8>>,
}

/// Most missed objects whose paths are kept.
pub const MISSED_NAMED_MAX: usize = 100;
