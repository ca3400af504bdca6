//! Why a set on tape is not completed, and what of it is safe.

use std::fmt;

use archive::label::LabelError;
use device::tape::limits::BlockSizeError;
use device::tape::{CompressionError, OpenError, TapeError};
use flow::cancel::Stopped;

use crate::change::{ChangeError, Refused};

/// Why a set cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum TapeSetError {
    /// The drive cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The drive failed.
    #[error(transparent)]
    Tape(#[from] TapeError),
    /// The medium in the drive changed since it was checked.
    #[error("the medium in {device} changed since takeup checked it")]
    Exchanged { device: String },
    /// The first medium may not be written to.
    #[error("cannot write to {device}: {refused}")]
    Refused {
        device: String,
        #[source]
        refused: Refused,
    },
    /// An empty stream; its filemark would destroy the data that follow.
    #[error(
        "the input is empty: {device} is unchanged, since data follow the position of the tape"
    )]
    Nothing { device: String },
    /// The drive does not accept blocks of this size.
    #[error("cannot write to {device}")]
    BlockSize { device: String, source: BlockSizeError },
    /// The drive cannot switch its compression as requested.
    #[error(transparent)]
    Compression(#[from] CompressionError),
    /// There is no other volume.
    #[error("the set needs volume {volume} in {device}{}", and(last.as_deref()))]
    Change {
        device: String,
        volume: u32,
        /// Why the one before was refused.
        last: Option<Box<Refused>>,
        /// Why there is none.
        source: ChangeError,
    },
    /// No suitable volume was provided in several attempts.
    #[error("the set needs volume {volume} in {device}, and after {attempts} attempts {last}")]
    NoVolume {
        device: String,
        volume: u32,
        attempts: u32,
        /// Why the last one was refused.
        last: Refused,
        /// Media that the set has used.
        used: usize,
    },
    /// A volume that was written from its beginning had no room for any of the set.
    #[error("volume {volume} in {device} is too small for a label and {needed}")]
    VolumeTooSmall {
        device: String,
        volume: u32,
        /// What has to fit on it.
        needed: &'static str,
    },
    /// A stream without a set does not fit on its medium.
    #[error("the medium in {device} is full after {bytes} bytes")]
    EndOfMedium {
        device: String,
        /// Bytes of the stream that are on it.
        bytes: u64,
    },
    /// A label cannot be made.
    #[error(transparent)]
    Label(#[from] LabelError),
    /// The system has no random bytes for an id.
    #[error("cannot create an id for the set")]
    Random(#[source] std::io::Error),
    /// The run was stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// What is wrong with the last medium, behind what is needed.
fn and(last: Option<&Refused>) -> String {
    last.map(|last| format!(", and {last}")).unwrap_or_default()
}

/// What is on the media when a run ends early.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Safe {
    /// Id of the set.
    pub set: [u8; 16],
    /// Complete segments that are known to be on the medium, counted from the first.
    pub segments: u32,
    /// Volumes that were written to; 0 if not even a label was.
    pub volumes: u32,
    /// The index is on the medium, too.
    pub index: bool,
}

impl fmt::Display for Safe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = archive::label::hex(&self.set);
        let set = &set[..8];
        let volumes = match self.volumes {
            0 => return formatter.write_str("nothing was written to the tape"),
            1 => "volume 1".to_owned(),
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
