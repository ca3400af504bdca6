//! Errors of experiments with fio.

use std::io;
use std::path::PathBuf;

use flow::cancel::Stopped;
use storage::layers::StorageError;

use super::fio::FioError;
use super::job::JobError;
use super::queue::QueueError;
use super::safety::SafetyError;
use experiment::record::CellError;

/// Why an experiment with fio cannot begin, or a run not be done.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The path is left alone.
    #[error(transparent)]
    Safety(#[from] SafetyError),
    /// The device behind the path is not known.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The length of the path is not known.
    #[error("length of {}", path.display())]
    Length {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is no fio.
    #[error("fio is not installed")]
    NoFio,
    /// fio cannot be started.
    #[error("start fio")]
    Start(#[source] io::Error),
    /// Nothing is known of a fio that was started.
    #[error("wait for fio")]
    Wait(#[source] io::Error),
    /// fio failed.
    #[error("fio: {said}")]
    Failed {
        /// Its own words.
        said: String,
    },
    /// What fio printed cannot be used.
    #[error(transparent)]
    Printed(#[from] FioError),
    /// The run is being stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The user's job cannot be run safely.
    #[error("job {}", path.display())]
    Job {
        /// The job file.
        path: PathBuf,
        /// Why.
        source: JobError,
    },
    /// The plan names no path, or several.
    #[error("takeup runs fio on one path at a time")]
    OnePath,
    /// Loads that make files of their own, and others.
    #[error("loads of many files work below a folder, and others on a file or a device: not both")]
    TwoKinds,
    /// What the runs need cannot be made.
    #[error("make {}", path.display())]
    Make {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A cell of it asks for something that cannot be.
    #[error(transparent)]
    Cell(#[from] CellError),
    /// Settings of the queue cannot be what they are to be.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// What was made for the runs is still there.
    #[error("remove {}", path.display())]
    Remove {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}
