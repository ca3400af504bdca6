//! Why an archive cannot be read at all; damage of readable archives is in `damage`.

use std::io;

use archive::chunk::{ChunkError, OtherFormat};
use device::source::SourceError;
use flow::source::ReadError;

use tapeset::TapeReadFailure;

/// Why an archive cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadFailure {
    /// The source cannot be opened.
    #[error(transparent)]
    Open(#[from] SourceError),
    /// Reading failed, and the failure cannot be skipped.
    #[error("{name}")]
    Read {
        /// The source.
        name: String,
        /// Offset and cause.
        source: ReadError,
    },
    /// The source is empty.
    #[error("{name} is empty")]
    Empty {
        /// The source.
        name: String,
    },
    /// The source has no member and no index that explains it.
    #[error("{name} is not an archive: {zeros_bytes} bytes of zeros")]
    OnlyZeros {
        /// The source.
        name: String,
        zeros_bytes: u64,
    },
    /// The source has headers, but no member.
    #[error("{name} holds no member")]
    NoMembers {
        /// The source.
        name: String,
    },
    /// There is no index, but the user requires one.
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
    /// The source ends before the first member is complete.
    #[error("{name} ends early, at byte {end_bytes}: nothing of it can be read")]
    CutOff {
        /// The source.
        name: String,
        /// Where it ends, in the source.
        end_bytes: u64,
    },
    /// The start of the source is damaged, and no member was found behind it.
    #[error("nothing of {name} can be read")]
    Unreadable {
        /// The source.
        name: String,
        /// The first damage.
        source: ChunkError,
    },
    /// The source has an unsupported compression.
    #[error("{name} is compressed with {format}, which takeup cannot read")]
    OtherCompression {
        /// The source.
        name: String,
        /// The compression, with the command that opens it.
        format: OtherFormat,
    },
    /// A zstd frame needs more memory than allowed.
    #[error(
        "{name} needs a zstd window of {window_bytes} bytes; takeup allows at most {limit_bytes}"
    )]
    Window {
        /// The source.
        name: String,
        /// Window of the frame.
        window_bytes: u64,
        /// Most bytes allowed.
        limit_bytes: u64,
    },
    /// A tape cannot be read, or not to its end.
    #[error(transparent)]
    Tape(#[from] TapeReadFailure),
    /// Memory, threads or io_uring are not available.
    #[error("cannot set up the {what}")]
    SetUp { what: &'static str, source: io::Error },
}

impl ReadFailure {
    /// Whether it says that the archive is not as it was written. Where a medium is not there, or
    /// memory is missing, nothing is known of the archive.
    pub(crate) fn is_of_the_archive(&self) -> bool {
        match self {
            ReadFailure::Read { source, .. } => !matches!(source, ReadError::Stopped(_)),
            ReadFailure::Empty { .. }
            | ReadFailure::OnlyZeros { .. }
            | ReadFailure::NoMembers { .. }
            | ReadFailure::NoIndex { .. }
            | ReadFailure::NotAnArchive { .. }
            | ReadFailure::CutOff { .. }
            | ReadFailure::Unreadable { .. } => true,
            ReadFailure::Tape(failure) => matches!(
                failure,
                TapeReadFailure::Label { .. }
                    | TapeReadFailure::Broken { .. }
                    | TapeReadFailure::TooMuchMissing { .. }
            ),
            ReadFailure::Open(_)
            | ReadFailure::OtherCompression { .. }
            | ReadFailure::Window { .. }
            | ReadFailure::SetUp { .. } => false,
        }
    }

    /// Whether this only reports that the run was being stopped.
    pub(crate) fn is_echo(&self) -> bool {
        matches!(
            self,
            ReadFailure::Read { source: ReadError::Stopped(_), .. }
                | ReadFailure::Tape(TapeReadFailure::Stopped(_))
        )
    }
}
