//! Why an archive cannot be read at all: what is damaged in one that can is `damage`.

use std::io;

use archive::chunk::OtherFormat;
use device::source::SourceError;
use flow::source::ReadError;

use tapeset::TapeReadFailure;

/// Why an archive cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadFailure {
    /// The source cannot be opened.
    #[error(transparent)]
    Open(#[from] SourceError),
    /// Reading failed where it cannot be gone around.
    #[error("{name}")]
    Read {
        /// The source.
        name: String,
        /// Where and why.
        source: ReadError,
    },
    /// The source is empty.
    #[error("{name} is empty")]
    Empty {
        /// The source.
        name: String,
    },
    /// The source is a tar archive without a single member, and without an index that says so.
    #[error("{name} holds no member: {zeros_bytes} bytes of zeros, which are no archive")]
    OnlyZeros {
        /// The source.
        name: String,
        /// Its length.
        zeros_bytes: u64,
    },
    /// The source has headers, but no member.
    #[error("{name} holds no member")]
    NoMembers {
        /// The source.
        name: String,
    },
    /// There is no index, and the user said that there must be one.
    #[error("{name} has no index")]
    NoIndex {
        /// The source.
        name: String,
    },
    /// The source holds no tar header.
    #[error("{name} is not a tar archive")]
    NotAnArchive {
        /// The source.
        name: String,
    },
    /// The source is compressed in a way that is not read here.
    #[error("{name} is compressed with {format}, which is not read here")]
    OtherCompression {
        /// The source.
        name: String,
        /// The compression, with the command that opens it.
        format: OtherFormat,
    },
    /// A zstd frame needs more memory than is given to one.
    #[error(
        "{name} is compressed with a zstd window of {window_bytes} bytes, and the largest that is \
         read here has {limit_bytes}"
    )]
    Window {
        /// The source.
        name: String,
        /// Window of the frame.
        window_bytes: u64,
        /// Most bytes of one.
        limit_bytes: u64,
    },
    /// A tape cannot be read, or not to its end.
    #[error(transparent)]
    Tape(#[from] TapeReadFailure),
    /// Memory, threads or io_uring are not to be had.
    #[error("cannot set up the {what}")]
    SetUp {
        /// What for.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl ReadFailure {
    /// Whether this but tells that the run was being stopped.
    pub(crate) fn is_echo(&self) -> bool {
        matches!(
            self,
            ReadFailure::Read { source: ReadError::Stopped(_), .. }
                | ReadFailure::Tape(TapeReadFailure::Stopped(_))
        )
    }
}
