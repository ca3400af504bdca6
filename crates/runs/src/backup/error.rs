//! Why a backup fails.

use crate::backup::ArchiveSize;
use archive::chunk::ChunkError;
use archive::index::IndexError;
use device::target::TargetError;
use flow::cancel::Stopped;
use flow::crew::StageFailure;
use flow::sink::WriteError;
use std::fmt;
use std::io;
use tapeset::{Safe, TapeSetError};
use tree::ScanError;

/// Why a backup was not completed. No file has the target's name then.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A source is missing, or a glob is invalid.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// The target cannot be opened or completed.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The target is one of the sources.
    #[error("{target} is also the source")]
    TargetIsSource { target: String },
    /// The new archive has far less than the one it would replace.
    #[error(
        "the new archive is far smaller than {target}: {} instead of {} members, {} instead of {} \
         bytes",
        now.members, before.members, now.bytes, before.bytes
    )]
    FarLess {
        target: String,
        /// The existing archive.
        before: ArchiveSize,
        /// The new archive.
        now: ArchiveSize,
    },
    /// The target does not accept more data.
    #[error("cannot write to {target}")]
    Write { target: String, source: WriteError },
    /// Block and ring sizes do not fit each other.
    #[error("a ring of {ring_bytes} bytes is too small for blocks of {block_bytes} bytes")]
    RingTooSmall {
        /// Asked for.
        ring_bytes: usize,
        /// Bytes of one block, or of one chunk of compression.
        block_bytes: usize,
    },
    /// The block size is not a multiple of 512.
    #[error("a block size of {block_bytes} bytes is not a multiple of 512")]
    BlockSize {
        /// Asked for.
        block_bytes: usize,
    },
    /// The memory of a ring cannot be allocated.
    #[error("cannot allocate the ring")]
    Ring(#[source] io::Error),
    /// A stage cannot be started, or broke down.
    #[error(transparent)]
    Stage(#[from] StageFailure),
    /// The back end for bulk input and output fails.
    #[error("bulk input and output failed")]
    Engine(#[source] io::Error),
    /// The temporary file of the index fails.
    #[error("cannot keep the index in a temporary file")]
    Spool(#[source] io::Error),
    /// The index cannot be written.
    #[error("cannot write the index")]
    Index(#[source] IndexError),
    /// The seek table cannot be written.
    #[error("cannot write the seek table")]
    SeekTable(#[source] ChunkError),
    /// The compression is not available.
    #[error(transparent)]
    Compression(ChunkError),
    /// A chunk cannot be compressed.
    #[error("cannot compress")]
    Compress(#[source] ChunkError),
    /// The set cannot be written to tape.
    #[error(transparent)]
    Tape(#[from] TapeSetError),
    /// A set on tape is incomplete. Part of it is on the medium.
    #[error(transparent)]
    Unfinished(Box<Unfinished>),
    /// Files were left out because the process could not open more files.
    #[error(transparent)]
    Shortage(#[from] base::interruptible::Shortage),
    /// The run was stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl flow::crew::Failure for BackupError {
    fn is_echo(&self) -> bool {
        matches!(self, BackupError::Stopped(_))
    }
}

/// An incomplete set on tape.
#[derive(Debug)]
pub struct Unfinished {
    pub error: BackupError,
    /// What is on the media.
    pub safe: Safe,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(formatter)
    }
}

impl std::error::Error for Unfinished {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}
