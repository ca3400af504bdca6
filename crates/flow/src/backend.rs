//! Bulk input and output behind one trait: io_uring where the kernel allows it, threads that call
//! pread and pwrite where it does not.
//!
//! A back end belongs to one thread of a stage. It receives operations that own their memory (a
//! [`Piece`] to fill or a [`Block`] to drain), keeps up to `depth` of them in flight, and returns
//! them as they complete, in any order. So memory that the kernel may still write to is never used
//! elsewhere, even when a run is torn down.
//!
//! Not here: the handling of short, interrupted or failed transfers ([`InFlight`], through which
//! all stages use a back end).

mod threads;
mod uring;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::in_flight::InFlight;
use crate::ring::{Block, Piece};

pub use threads::ThreadBackend;
pub use uring::UringBackend;

/// Memory of an operation.
#[derive(Debug)]
pub enum Memory {
    /// To be filled by a read.
    Fill(Piece),
    /// To be written out.
    Drain(Block),
}

impl Memory {
    fn len(&self) -> usize {
        match self {
            Memory::Fill(piece) => piece.len(),
            Memory::Drain(block) => block.len(),
        }
    }

    /// The memory that a read has filled.
    pub fn into_piece(self) -> Piece {
        match self {
            Memory::Fill(piece) => piece,
            Memory::Drain(_) => unreachable!("a block is written and not read"),
        }
    }

    /// What a transfer without an error and without a byte means.
    pub(crate) fn nothing_moved(&self) -> io::ErrorKind {
        match self {
            Memory::Fill(_) => io::ErrorKind::UnexpectedEof,
            Memory::Drain(_) => io::ErrorKind::WriteZero,
        }
    }
}

/// One transfer between memory and a place in a file.
#[derive(Debug)]
pub struct TransferRequest {
    pub file: Arc<OwnedFd>,
    /// Where in the file, in bytes.
    pub offset_bytes: u64,
    /// The part of the memory to transfer: all but the first `done_bytes`, which an earlier, short
    /// transfer has moved.
    pub done_bytes: usize,
    /// Bytes that make the transfer complete. All of the memory is requested, since direct I/O
    /// takes whole sectors only; bytes beyond the end of a file are not missed.
    pub wanted_bytes: usize,
    /// What is filled or written.
    pub memory: Memory,
}

impl TransferRequest {
    /// A transfer of all the memory, from a place of the file on.
    pub fn new(file: &Arc<OwnedFd>, offset_bytes: u64, memory: Memory) -> TransferRequest {
        let wanted_bytes = memory.len();
        TransferRequest {
            file: Arc::clone(file),
            offset_bytes,
            done_bytes: 0,
            wanted_bytes,
            memory,
        }
    }
}

/// An operation that has ended.
#[derive(Debug)]
pub struct Completion {
    /// The operation, with its memory.
    pub operation: TransferRequest,
    /// Bytes transferred, possibly fewer than asked for, or the error.
    pub result: io::Result<usize>,
}

/// Keeps transfers in flight.
pub trait Backend: Send {
    /// Name, as `-v` shows it.
    fn name(&self) -> &'static str;
    /// Most operations that may be in flight.
    fn depth(&self) -> usize;
    /// Operations in flight.
    fn in_flight(&self) -> usize;
    /// Starts an operation. `in_flight() < depth()` must hold.
    fn submit(&mut self, operation: TransferRequest) -> io::Result<()>;
    /// Waits for one operation to end. `in_flight() > 0` must hold.
    fn wait(&mut self) -> io::Result<Completion>;
}

/// Most reads of one stream in flight.
pub const READS_MAX: usize = 32;

/// Which back end to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// io_uring if the kernel allows it, else threads.
    #[default]
    Auto,
    /// io_uring or an error.
    IoUring,
    /// Threads with pread and pwrite.
    #[serde(rename = "pread")]
    Threads,
}

/// A back end that was chosen at the start of a run, with the reason.
#[derive(Clone, Debug)]
pub struct Choice {
    io_uring: bool,
    /// The reason: a fragment for `-v`.
    pub reason: String,
}

impl Choice {
    /// Checks what the kernel allows. Fails only if io_uring was requested and is not available.
    pub fn new(engine: Engine) -> io::Result<Choice> {
        match engine {
            Engine::Threads => {
                Ok(Choice { io_uring: false, reason: "pread and pwrite, as requested".into() })
            }
            Engine::IoUring => {
                UringBackend::new(1)?;
                Ok(Choice { io_uring: true, reason: "io_uring, as requested".into() })
            }
            Engine::Auto => Ok(match UringBackend::new(1) {
                Ok(_) => Choice { io_uring: true, reason: "io_uring, the kernel allows it".into() },
                Err(error) => Choice {
                    io_uring: false,
                    reason: format!("pread and pwrite, since io_uring cannot be set up: {error}"),
                },
            }),
        }
    }

    /// Name of the chosen back end.
    pub fn name(&self) -> &'static str {
        if self.io_uring { "io_uring" } else { "pread" }
    }

    /// Makes a back end for one thread that will use `file`: threads if io_uring was chosen but
    /// cannot be trusted with the file. Nothing is in flight on it.
    ///
    /// After a short transfer io_uring continues by itself, from the position that the file system
    /// reports. FUSE with direct I/O (`FOPEN_DIRECT_IO`, mount option `direct_io`) does not report
    /// it: `fuse_direct_read_iter` leaves `ki_pos` unchanged, and the rest is read from the start
    /// of the request again. Seen with Linux 6.18; a short write would go to the wrong place, too.
    pub fn open_for(&self, depth: usize, file: impl AsFd) -> io::Result<InFlight> {
        Ok(InFlight::new(self.backend_for(depth, file)?))
    }

    fn backend_for(&self, depth: usize, file: impl AsFd) -> io::Result<Box<dyn Backend>> {
        Ok(if self.io_uring && self.name_for(file) == self.name() {
            Box::new(UringBackend::new(depth)?)
        } else {
            Box::new(ThreadBackend::new(depth)?)
        })
    }

    /// Makes a back end for one thread that will read `file` as a stream, with this many reads in
    /// flight at first, and more if that is faster.
    ///
    /// # Errors
    /// As [`Choice::open_for`].
    pub fn open_reads(&self, least: usize, file: impl AsFd) -> io::Result<InFlight> {
        let most = READS_MAX.max(least);
        Ok(InFlight::from(self.backend_for(most, file)?, least))
    }

    /// Name of the back end that [`Choice::open_for`] makes for this file.
    pub fn name_for(&self, file: impl AsFd) -> &'static str {
        if self.io_uring && !device::file::is_in_user_space(file) { "io_uring" } else { "pread" }
    }

    /// Makes a back end for one thread, for files that are known not to be on FUSE.
    pub fn open(&self, depth: usize) -> io::Result<InFlight> {
        Ok(InFlight::new(if self.io_uring {
            Box::new(UringBackend::new(depth)?)
        } else {
            Box::new(ThreadBackend::new(depth)?)
        }))
    }
}
