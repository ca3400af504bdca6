//! Errors of experiments with tape.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use base::format::size;
use device::tape::limits::BlockSizeError;
use device::tape::{CompressionError, OpenError, TapeError};
use device::target::TargetError;
use flow::cancel::Stopped;
use flow::sink::WriteError;

use crate::payload::PayloadError;
use experiment::record::CellError;

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
    BlockSize { device: String, source: BlockSizeError },
    /// The drive's compression is not as asked.
    #[error(transparent)]
    SetCompression(#[from] CompressionError),
    /// The driver cannot switch the drive's compression.
    #[error("cannot set the compression of {device}")]
    Compression { device: String, source: io::Error },
    /// It was switched, and the drive says otherwise.
    #[error("{device} did not switch its compression")]
    CompressionNotApplied { device: String },
    /// Something is there already.
    #[error("{device} holds data")]
    HoldsData {
        /// The target.
        device: String,
    },
    /// Not even a label fits.
    #[error("the medium in {device} has no room")]
    NoRoom { device: String },
    /// Another medium than wanted.
    #[error("the medium in {device} is labelled {found:?}")]
    OtherMedium { device: String, found: String },
    /// After an error, what is in the drive is not what was.
    #[error("{device} does not hold the medium of this experiment any more")]
    MediumChanged { device: String },
    /// The drive reported an event (unit attention).
    #[error("{device} was reset, or has another medium")]
    Attention { device: String },
    /// The medium was not loaded.
    #[error("no other medium")]
    NoMedium {
        /// The one that was wanted.
        medium: String,
        /// What [`MediumChanger::bring`] said, or what was wrong with the last one.
        ///
        /// [`MediumChanger::bring`]: super::MediumChanger::bring
        source: Box<dyn Error + Send + Sync>,
    },
    /// A plan with several media, and no way to change them.
    #[error("no other medium: nobody is there to change them")]
    NobodyChanges,
    /// A run is longer than what the medium takes.
    #[error(
        "a run of {} does not fit on the medium in {device}, which takes {}",
        told_apart(*run_bytes, *capacity_bytes),
        told_apart(*capacity_bytes, *run_bytes)
    )]
    LongerThanMedium {
        device: String,
        /// Bytes of the longest run that nothing makes shorter.
        run_bytes: u64,
        /// Native bytes of the medium.
        capacity_bytes: u64,
    },
    /// The medium has no room for a whole run.
    #[error(
        "the medium is full after {}: a shorter file or another medium is needed",
        size(*bytes)
    )]
    Full {
        /// What there was room for.
        bytes: u64,
    },
    /// The drive gave other bytes back.
    #[error("the data read back differ from the data written")]
    NotWhatWasWritten,
    /// A block of another size came back.
    #[error("a block of {bytes} bytes came back where {wanted_bytes} were written")]
    OtherBlock {
        bytes: usize,
        /// That of all blocks of the run.
        wanted_bytes: usize,
    },
    /// A block came back that is larger than any.
    #[error("a block larger than any that was written")]
    LargerBlock,
    /// There is no filemark behind what was written.
    #[error("the data end before the filemark")]
    NoFilemark,
    /// A target that is no tape cannot be used.
    #[error("{step} {}", path.display())]
    File {
        /// What was to be done with it.
        step: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// It did not take a block.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// There is nothing to write.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// What is to be written is what is written to.
    #[error("{} is both the data and the target", path.display())]
    DataAreTarget {
        /// The path of the data.
        path: PathBuf,
    },
    /// No memory for the blocks.
    #[error("no memory for the ring")]
    Memory(#[source] io::Error),
    /// The run is being stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The same.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The target is of another kind.
    #[error("{} is {what}", path.display())]
    NotPossible { path: PathBuf, what: &'static str },
    /// The plan names none or several.
    #[error("takeup measures one drive at a time")]
    OneTarget,
    /// Compression is a factor, and the target is no drive.
    #[error("only a tape drive has compression to switch")]
    NoCompression,
    /// Behind the data of each of several media.
    #[error("several media can only be written from their beginning")]
    SeveralMedia,
    /// A cell of the plan asks for something that cannot be.
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

/// A size, with all its digits where the other one would read the same.
fn told_apart(bytes: u64, other: u64) -> String {
    match size(bytes) {
        same if same == size(other) => format!("{} bytes", base::format::count(bytes)),
        own => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sizes_that_differ_do_not_read_the_same() {
        let told = |run_bytes, capacity_bytes| {
            let device = "nst0".to_owned();
            TapeBenchError::LongerThanMedium { device, run_bytes, capacity_bytes }.to_string()
        };
        let near = told(1 << 30, 1_073_000_000);
        assert!(near.starts_with("a run of 1 073 741 824 bytes does not"), "{near}");
        assert!(near.ends_with("takes 1 073 000 000 bytes"), "{near}");
        assert!(told(4 << 30, 1 << 30).ends_with("takes 1.07 GB"));
    }
}
