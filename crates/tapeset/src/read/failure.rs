//! Why a tape cannot be read.

use std::io;

use archive::label::{LabelError, MediumName};
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
    /// The drive failed, and the failure cannot be skipped.
    #[error(transparent)]
    Drive(#[from] TapeError),
    /// Nothing was ever written to the medium.
    #[error("the tape in {device} is blank")]
    Blank { device: String },
    /// The tape is at the end of its data.
    #[error("the tape in {device} is at the end of its data")]
    AtEndOfData { device: String },
    /// A label that this version cannot read.
    #[error("cannot read {place} of the tape in {device}")]
    Label {
        device: String,
        /// Where the label is.
        place: String,
        source: LabelError,
    },
    /// The tape has fewer files.
    #[error("the tape in {device} has no file {number}")]
    NoSuchFile {
        device: String,
        /// Requested number, from 0.
        number: u32,
    },
    /// The tape holds no set, but a set was requested.
    #[error("the tape in {device} holds no Takeup set")]
    NoSets { device: String },
    /// The requested set is not there.
    #[error("the tape in {device} has no set {wanted}: it has {sets}")]
    NoSuchSet {
        device: String,
        /// The request.
        wanted: String,
        /// Number of sets, in words.
        sets: String,
    },
    /// The backup that wrote the set ended before it wrote any data.
    #[error("the set on the tape in {device} is empty: the backup that wrote it ended early")]
    NoData { device: String },
    /// Several sets have ids that begin like this.
    #[error("set {wanted} is ambiguous on the tape in {device}: several ids begin with it")]
    AmbiguousSet {
        device: String,
        /// The request.
        wanted: String,
    },
    /// The tape is not where it should be, and cannot be moved there.
    #[error("{device} lost its place on the tape ({place})")]
    PlaceLost {
        device: String,
        /// Where it should be.
        place: String,
        /// The last error of the drive.
        source: TapeError,
    },
    /// Too many unreadable blocks in a row: the medium or the drive is broken.
    #[error("{device} cannot read {blocks} blocks in a row")]
    Broken {
        device: String,
        blocks: u32,
        /// The last error of the drive.
        source: TapeError,
    },
    /// Blocks that are larger than any drive writes.
    #[error("a block of the tape in {device} is larger than {limit_bytes} bytes")]
    BlockTooLarge {
        device: String,
        /// Largest size that is tried.
        limit_bytes: usize,
    },
    /// The medium in the drive was exchanged.
    #[error("the medium in {device} was exchanged during the run: {found}")]
    Exchanged {
        device: String,
        /// What was found instead.
        found: String,
    },
    /// A label claims more missing data before it than is plausible.
    #[error(
        "the label on the tape in {device} ({place}) claims that {missing_bytes} bytes are missing \
         before it, an implausible number"
    )]
    TooMuchMissing {
        device: String,
        /// Where the label is.
        place: String,
        /// Bytes that should come before it.
        missing_bytes: u64,
    },
    /// Another volume is needed, and was not provided.
    #[error("volume {volume} of set {set} is needed{}", on_medium(*name))]
    VolumeMissing {
        volume: u32,
        /// Id of the set.
        set: String,
        /// What its medium is called.
        name: Option<MediumName>,
        /// Why it was not provided.
        source: ChangeError,
    },
    /// Another volume is needed, and only wrong ones were provided.
    #[error("volume {volume} of set {set} is needed{}: {refused}", on_medium(*name))]
    WrongVolumes {
        volume: u32,
        /// Id of the set.
        set: String,
        /// What its medium is called.
        name: Option<MediumName>,
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

/// The name of the medium that has it, behind what is needed.
fn on_medium(name: Option<MediumName>) -> String {
    name.map(|name| format!(", on the medium {name}")).unwrap_or_default()
}
