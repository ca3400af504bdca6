//! Why a tape cannot be read, as typed errors.

use std::io;

use archive::label::LabelError;
use device::tape::TapeError;
use device::tape::drive::OpenError;
use flow::cancel::Stopped;

use crate::change::ChangeError;

/// Why nothing, or nothing more, can be read from a tape.
#[derive(Debug, thiserror::Error)]
pub enum TapeReadFailure {
    /// The drive cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The drive failed where it cannot be gone around.
    #[error(transparent)]
    Drive(#[from] TapeError),
    /// Nothing was ever written to the medium.
    #[error("the tape in {device} is blank")]
    Blank {
        /// The drive.
        device: String,
    },
    /// The tape stands behind all that was written.
    #[error("the tape in {device} stands at the end of its data")]
    AtEndOfData {
        /// The drive.
        device: String,
    },
    /// A label that this version cannot read.
    #[error("cannot read {place} of the tape in {device}")]
    Label {
        /// The drive.
        device: String,
        /// Where the label is.
        place: String,
        /// Why.
        source: LabelError,
    },
    /// There are fewer files on the tape.
    #[error("the tape in {device} has no file {number}")]
    NoSuchFile {
        /// The drive.
        device: String,
        /// Number that was asked for, from 0.
        number: u32,
    },
    /// A set was asked for, and the tape holds none.
    #[error("the tape in {device} holds no set of this program")]
    NoSets {
        /// The drive.
        device: String,
    },
    /// The set that was asked for is not there.
    #[error("the tape in {device} has no set {wanted}: it has {sets}")]
    NoSuchSet {
        /// The drive.
        device: String,
        /// What was asked for.
        wanted: String,
        /// Number of sets in words.
        sets: String,
    },
    /// The run that wrote the set died before anything of it could be of use.
    #[error("the set on the tape in {device} holds nothing: the run that wrote it died early")]
    NoData {
        /// The drive.
        device: String,
    },
    /// A beginning of an id that several sets have.
    #[error("{wanted} is the beginning of more than one set on the tape in {device}")]
    AmbiguousSet {
        /// The drive.
        device: String,
        /// What was asked for.
        wanted: String,
    },
    /// The tape is not where it was, nor can it be brought there.
    #[error("{device} lost its place on the tape ({place})")]
    PlaceLost {
        /// The drive.
        device: String,
        /// Where it had to be.
        place: String,
        /// What it said last.
        source: TapeError,
    },
    /// So many blocks cannot be read that the medium or the drive is broken.
    #[error("{device} cannot read {blocks} blocks in a row")]
    Broken {
        /// The drive.
        device: String,
        /// How many.
        blocks: u32,
        /// What it said last.
        source: TapeError,
    },
    /// Blocks that are larger than any drive writes.
    #[error("a block of the tape in {device} is larger than {limit_bytes} bytes")]
    BlockTooLarge {
        /// The drive.
        device: String,
        /// The most that is tried.
        limit_bytes: usize,
    },
    /// What is in the drive is not what was there before.
    #[error("the tape in {device} is not the one that was there before: {found}")]
    Exchanged {
        /// The drive.
        device: String,
        /// What is there.
        found: String,
    },
    /// A label claims that more of the set precedes it than can be.
    #[error(
        "the label on the tape in {device} ({place}) claims that {missing_bytes} bytes are missing \
         before it, more than there is room for"
    )]
    TooMuchMissing {
        /// The drive.
        device: String,
        /// Where the label is.
        place: String,
        /// What should have been there.
        missing_bytes: u64,
    },
    /// Another volume is needed, and nobody brought it.
    #[error("volume {volume} of set {set} is needed")]
    VolumeMissing {
        /// Number of the volume.
        volume: u32,
        /// Id of the set.
        set: String,
        /// Why it did not come.
        source: ChangeError,
    },
    /// Another volume is needed, and only others came.
    #[error("volume {volume} of set {set} is needed: {refused}")]
    WrongVolumes {
        /// Number of the volume.
        volume: u32,
        /// Id of the set.
        set: String,
        /// Why the last one was refused.
        refused: String,
    },
    /// The index could not be kept.
    #[error("cannot keep the index in a temporary file")]
    Keep(#[source] io::Error),
    /// The run was stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}
