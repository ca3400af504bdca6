//! Why a set on tape does not come to its end, and what of it is safe then.

use std::fmt;

use archive::label::LabelError;
use device::tape::limits::BlockSizeError;
use device::tape::{CompressionError, OpenError, TapeError};
use flow::cancel::Stopped;

use crate::change::{ChangeError, Refused};

/// Why a set cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum TapeSetError {
    /// The drive cannot be had.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The drive failed.
    #[error(transparent)]
    Tape(#[from] TapeError),
    /// What is in the drive is not what was looked at.
    #[error("the medium in {device} is not what it was when it was looked at a moment before")]
    Exchanged {
        /// The drive.
        device: String,
    },
    /// The first medium is not one to write to.
    #[error("cannot write to {device}: {refused}")]
    Refused {
        /// The drive.
        device: String,
        /// Why.
        #[source]
        refused: Refused,
    },
    /// A stream without a byte, in front of data that its filemark would cost.
    #[error("nothing came, and data follow in {device}: they are as they were")]
    Nothing {
        /// The drive.
        device: String,
    },
    /// Blocks of this size do not go through.
    #[error("cannot write to {device}")]
    BlockSize {
        /// The drive.
        device: String,
        /// Why.
        source: BlockSizeError,
    },
    /// The drive does not compress, or does not stop to, as asked.
    #[error(transparent)]
    Compression(#[from] CompressionError),
    /// There is no other volume.
    #[error("volume {volume} of the set is wanted in {device}")]
    Change {
        /// The drive.
        device: String,
        /// Number of the volume.
        volume: u32,
        /// Why there is none.
        source: ChangeError,
    },
    /// No suitable volume came, however often it was asked for.
    #[error(
        "volume {volume} of the set is wanted in {device}, and after {attempts} attempts {last}"
    )]
    NoVolume {
        /// The drive.
        device: String,
        /// Number of the volume.
        volume: u32,
        /// How often it was asked for.
        attempts: u32,
        /// Why the last one was not taken.
        last: Refused,
    },
    /// A volume that was written from its beginning took nothing of the set.
    #[error("volume {volume} in {device} is too small for a label and {needed}")]
    VolumeTooSmall {
        /// The drive.
        device: String,
        /// Number of the volume.
        volume: u32,
        /// What it should have held.
        needed: &'static str,
    },
    /// A stream that is no set does not fit its medium.
    #[error("the medium in {device} is full after {bytes} bytes")]
    EndOfMedium {
        /// The drive.
        device: String,
        /// Bytes of the stream that are on it.
        bytes: u64,
    },
    /// A label cannot be made.
    #[error(transparent)]
    Label(#[from] LabelError),
    /// The system gives no random bytes for an id.
    #[error("cannot make up an id for the set")]
    Random(#[source] std::io::Error),
    /// The run was stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// What is on the media when a run ends early.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Safe {
    /// Id of the set.
    pub set: [u8; 16],
    /// Segments that are complete and known to be on the medium, from the first on.
    pub segments: u32,
    /// Volumes that were written to.
    pub volumes: u32,
    /// The index is on the medium too.
    pub index: bool,
}

impl fmt::Display for Safe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = archive::label::hex(&self.set);
        let set = &set[..8];
        let volumes = match self.volumes {
            0 | 1 => "volume 1".to_owned(),
            last => format!("volumes 1 to {last}"),
        };
        match self.segments {
            0 => write!(formatter, "no segment of set {set} is known to be complete on {volumes}"),
            1 => write!(formatter, "segment 1 of set {set} is complete on {volumes}"),
            last => {
                write!(formatter, "segments 1 to {last} of set {set} are complete on {volumes}")
            }
        }
    }
}
