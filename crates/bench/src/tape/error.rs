//! Why an experiment with tape cannot begin or go on, in types.

use std::io;
use std::path::PathBuf;

use device::tape::limits::BlockSizeError;
use device::tape::{CompressionError, OpenError, TapeError};
use device::target::TargetError;

use crate::record::CellError;

/// Why an experiment with tape cannot begin, or a run not be done.
#[derive(Debug, thiserror::Error)]
pub enum TapeBenchError {
    /// The drive cannot be had.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The drive did not do what was asked.
    #[error(transparent)]
    Tape(#[from] TapeError),
    /// A block size that does not go through.
    #[error("{device}")]
    BlockSize {
        /// The drive.
        device: String,
        /// Why.
        source: BlockSizeError,
    },
    /// The drive's compression is not as asked.
    #[error(transparent)]
    SetCompression(#[from] CompressionError),
    /// The driver cannot switch the drive's compression.
    #[error("cannot set the compression of {device}")]
    Compression {
        /// The drive.
        device: String,
        /// Why.
        source: io::Error,
    },
    /// It was switched, and the drive says otherwise.
    #[error("{device} was asked to switch its compression, and did not")]
    CompressionNotApplied {
        /// The drive.
        device: String,
    },
    /// Something is there already.
    #[error("{device} holds data")]
    HoldsData {
        /// The target.
        device: String,
    },
    /// Not even a label fits.
    #[error("the medium in {device} has no room")]
    NoRoom {
        /// The drive.
        device: String,
    },
    /// Another medium than wanted.
    #[error("the medium in {device} is labelled {found:?}")]
    OtherMedium {
        /// The drive.
        device: String,
        /// Its name.
        found: String,
    },
    /// After an error, what is in the drive is not what was.
    #[error("{device} does not hold the medium of this experiment any more")]
    MediumChanged {
        /// The drive.
        device: String,
    },
    /// The drive had something to tell.
    #[error("{device} was reset, or has another medium")]
    Attention {
        /// The drive.
        device: String,
    },
    /// Nobody brings the medium.
    #[error("no other medium: {0}")]
    NoMedium(String),
    /// A target that is no tape cannot be used.
    #[error("cannot use {}", path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The same.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The target is of another kind.
    #[error("{} is {what}", path.display())]
    NotPossible {
        /// The path.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// The plan asks for something that cannot be.
    #[error("{0}")]
    Plan(String),
    /// A cell of it does.
    #[error(transparent)]
    Cell(#[from] CellError),
}

impl TapeBenchError {
    /// Whether a person or an autoloader can help with another medium.
    pub(super) fn another_medium_may_help(&self) -> bool {
        match self {
            TapeBenchError::HoldsData { .. }
            | TapeBenchError::NoRoom { .. }
            | TapeBenchError::OtherMedium { .. } => true,
            TapeBenchError::Open(error) => matches!(
                error,
                OpenError::NoMedium { .. }
                    | OpenError::NotReady { .. }
                    | OpenError::WriteProtected { .. }
            ),
            _ => false,
        }
    }
}
