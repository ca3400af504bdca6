//! Errors that prevent a scan from starting.

use std::io;
use std::path::PathBuf;

/// A scan could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The list of sources is empty.
    #[error("no source given")]
    NoSource,
    /// A source does not exist or cannot be reached.
    #[error("cannot find source: {}", path.display())]
    Source {
        /// As given.
        path: PathBuf,
        source: io::Error,
    },
    /// A source exists but cannot be read.
    #[error("cannot open source: {}", path.display())]
    OpenSource {
        /// As given.
        path: PathBuf,
        source: io::Error,
    },
    /// An exclude glob is malformed.
    #[error("bad exclude glob: {glob}: {reason}")]
    Exclude {
        /// As given.
        glob: String,
        reason: String,
    },
    /// A thread could not be started.
    #[error("cannot start a scan thread")]
    Thread { source: io::Error },
}
