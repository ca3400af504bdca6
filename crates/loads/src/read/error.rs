//! Errors of experiments of reading.

use std::io;
use std::path::PathBuf;

use storage::layers::StorageError;
use storage::settings::GuardError;

use super::engine::StreamError;
use experiment::record::CellError;

/// Why an experiment of reading cannot begin, or a run not be done.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A path cannot be opened.
    #[error("open {}", path.display())]
    Open {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A path is neither a file nor a block device, or empty.
    #[error("{} is {what}", path.display())]
    NotReadable {
        /// The path.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// The storage below a path is not known.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The read-ahead cannot be kept safe.
    #[error(transparent)]
    Settings(#[from] GuardError),
    /// There is no read-ahead that could be set.
    #[error("{} is on a file system without a read-ahead setting", path.display())]
    NoReadAhead {
        /// The path.
        path: PathBuf,
    },
    /// The plan asks for something that cannot be.
    #[error(transparent)]
    Cell(#[from] CellError),
    /// The kernel does not let this process have small pages.
    #[error("small pages")]
    Pages(#[source] io::Error),
    /// Blocks past the page cache that the storage does not take.
    #[error(
        "direct reads of {} need blocks in multiples of {needed_bytes} bytes, not {block_bytes}",
        path.display()
    )]
    Alignment {
        /// The path.
        path: PathBuf,
        /// Bytes of a block.
        block_bytes: usize,
        /// What they have to be a multiple of.
        needed_bytes: u64,
    },
    /// The stream was not read to its end.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// A page at a random place cannot be read.
    #[error("random reads of {}", path.display())]
    RandomRead {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}
