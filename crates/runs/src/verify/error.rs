//! Why a verification fails.

use crate::read::ReadFailure;
use flow::cancel::Stopped;
use flow::crew::{Failure, StageFailure};
use std::path::PathBuf;

/// Why an archive could not be verified to its end.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The archive cannot be read.
    #[error(transparent)]
    Read(#[from] ReadFailure),
    /// The directory to compare with cannot be opened.
    #[error("cannot open {}", path.display())]
    Against {
        /// The directory.
        path: PathBuf,
        source: std::io::Error,
    },
    /// The temporary file for results fails.
    #[error("cannot keep the results in a temporary file")]
    Spool(#[source] std::io::Error),
    /// A stage cannot be started, or broke down.
    #[error(transparent)]
    Stage(#[from] StageFailure),
    /// Files were left out because the process could not open more files.
    #[error(transparent)]
    Shortage(#[from] base::interruptible::Shortage),
    /// The run was stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl VerifyError {
    /// Whether it says that the archive is not as it was written. Otherwise nothing is known of it.
    pub fn is_of_the_archive(&self) -> bool {
        matches!(self, VerifyError::Read(failure) if failure.is_of_the_archive())
    }
}

impl Failure for VerifyError {
    fn is_echo(&self) -> bool {
        match self {
            VerifyError::Read(failure) => failure.is_echo(),
            error => matches!(error, VerifyError::Stopped(_)),
        }
    }
}
