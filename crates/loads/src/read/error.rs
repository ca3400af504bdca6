//! Errors of experiments of reading.

use std::io;
use std::path::PathBuf;

use flow::cancel::Stopped;
use storage::StorageError;

use experiment::record::CellError;
use experiment::run::gate::GateError;

/// Why an experiment of reading cannot begin, or a run not be done.
#[derive(Debug, thiserror::Error)]
pub enum ReadBenchError {
    /// A path cannot be opened.
    #[error("open {}", path.display())]
    Open { path: PathBuf, source: io::Error },
    /// A path is neither a file nor a block device, or empty.
    #[error("{} is {what}", path.display())]
    NotReadable { path: PathBuf, what: &'static str },
    /// The storage below a path is not known.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// There is no read-ahead that could be set.
    #[error("{} is on a file system without a read-ahead setting", path.display())]
    NoReadAhead { path: PathBuf },
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
        path: PathBuf,
        block_bytes: usize,
        /// What they have to be a multiple of.
        needed_bytes: u64,
    },
    /// A page at a random place cannot be read.
    #[error("random reads of {}", path.display())]
    RandomRead { path: PathBuf, source: io::Error },
    /// Not one whole block.
    #[error("{length_bytes} bytes are less than one block of {block_bytes}")]
    LessThanABlock {
        /// What was to be read.
        length_bytes: u64,
        block_bytes: u64,
    },
    /// No further descriptor of the file.
    #[error("a descriptor")]
    Descriptor(#[source] io::Error),
    /// The calls of a cell are not to be had.
    #[error("{engine}")]
    Engine {
        /// Which calls: `io_uring`, `mmap`, `threads`.
        engine: &'static str,
        source: io::Error,
    },
    /// No memory for the blocks.
    #[error("the ring")]
    Memory(#[source] io::Error),
    /// A read failed.
    #[error("read at byte {offset_bytes}")]
    Read {
        /// Offset in the file.
        offset_bytes: u64,
        source: io::Error,
    },
    /// The file is shorter than it was.
    #[error("read at byte {offset_bytes}: the file has ended")]
    Ended {
        /// Where it ends.
        offset_bytes: u64,
    },
    /// It was to begin together with other hosts, and did not.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// The run is being stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}
