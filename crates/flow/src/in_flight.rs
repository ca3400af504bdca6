//! Transfers that are under way on a back end, each until it is whole or can get no further.
//!
//! A transfer that was interrupted is made again, one that was short goes on where it stopped: who
//! reads or writes sees neither. What comes back is whole, or says why it is not. Who cannot do
//! without a single byte takes [`InFlight::wait_whole`]: it ends at a failure, after all others
//! have ended too, and tells the failure that stands first in the file, since transfers end in any
//! order.
//!
//! How many may be under way follows what comes of it, where the back end takes more than a stream
//! begins with ([`Depth`]). Capacity: the depth of the back end. Nothing is allocated for a
//! transfer. Not here: in which order a stream is asked for, and what becomes of a place that
//! cannot be read.

use std::io;
use std::time::{Duration, Instant};

use crate::account::Account;
use crate::backend::{Backend, Completion, TransferRequest};
use crate::cancel::Stopped;
use crate::depth::Depth;
use crate::ring::{Piece, Producer, Reservation};

/// How often in a row all that comes back may be EAGAIN before one of them is a failure.
const REFUSALS_MAX: u32 = 100;
/// How long the next attempt waits then; a second in all.
const REFUSED_WAIT: Duration = Duration::from_millis(10);

/// Why a transfer failed, and where.
#[derive(Debug, thiserror::Error)]
#[error("transfer at byte {offset_bytes}")]
pub struct Failure {
    /// Offset in the file. Of a back end that is itself broken, that of the last transfer begun.
    pub offset_bytes: u64,
    /// Why.
    pub source: io::Error,
}

/// A transfer that has come to its end.
#[derive(Debug)]
pub struct Transfer {
    /// The memory, how much of it was moved, and where in the file it goes on.
    pub operation: TransferRequest,
    /// Whether all that was wanted has been moved. A read that met the end of the file has failed
    /// with [`io::ErrorKind::UnexpectedEof`], a write that moved nothing with
    /// [`io::ErrorKind::WriteZero`]; the kernel has no error of these kinds.
    pub result: io::Result<()>,
}

impl Transfer {
    /// Where in the file it began.
    pub fn start_bytes(&self) -> u64 {
        self.operation.offset_bytes - self.operation.done_bytes as u64
    }

    /// Bytes that were moved, at least those that were wanted if it is whole.
    pub fn done_bytes(&self) -> usize {
        self.operation.done_bytes
    }

    /// What a read has filled.
    pub fn into_piece(self) -> Piece {
        self.operation.memory.into_piece()
    }
}

/// Keeps transfers under way. One that is dropped waits for all that are left, as its back end
/// does.
pub struct InFlight {
    backend: Box<dyn Backend>,
    /// Where the last transfer was begun.
    begun_bytes: u64,
    /// EAGAIN in a row.
    refusals: u32,
    depth: Depth,
}

impl InFlight {
    /// Nothing is under way at first; as many may be as the back end takes.
    pub fn new(backend: Box<dyn Backend>) -> InFlight {
        let depth = backend.depth();
        InFlight::from(backend, depth)
    }

    /// Begins with so many under way, and goes up to what the back end takes where that is faster.
    pub fn from(backend: Box<dyn Backend>, least: usize) -> InFlight {
        let depth = Depth::new(least, backend.depth());
        InFlight { backend, begun_bytes: 0, refusals: 0, depth }
    }

    /// Name of the back end.
    pub fn backend_name(&self) -> &'static str {
        self.backend.name()
    }

    /// Most transfers that may be under way, at any time.
    pub fn depth(&self) -> usize {
        self.backend.depth()
    }

    /// Whether nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.backend.in_flight() == 0
    }

    /// Whether no more may be begun before one has ended.
    pub fn is_full(&self) -> bool {
        self.backend.in_flight() >= self.depth.now()
    }

    /// Room for the next read. Waits for it only when nothing is under way: else what is has to end
    /// first, or it would never be taken out of the ring, and the answer is `None`.
    ///
    /// # Errors
    /// When the run is being stopped.
    pub fn reserve(
        &mut self,
        producer: &Producer,
        bytes: usize,
        account: &mut Account,
    ) -> Result<Option<Reservation>, Stopped> {
        if self.is_empty() {
            self.depth.restart();
            return producer.reserve(bytes, account).map(Some);
        }
        let reservation = producer.try_reserve(bytes);
        if reservation.is_none() {
            self.depth.held_up();
        }
        Ok(reservation)
    }

    /// Begins a transfer, or goes on with one that has failed. [`InFlight::is_full`] must not hold.
    ///
    /// # Errors
    /// When the back end does not take it.
    pub fn begin(&mut self, operation: TransferRequest) -> Result<(), Failure> {
        self.begun_bytes = operation.offset_bytes;
        self.backend.submit(operation).map_err(|source| self.broken(source))
    }

    /// Waits for a transfer to end; `None` when nothing is under way.
    ///
    /// # Errors
    /// When the back end is broken. What became of the transfer itself is in its result.
    pub fn wait(&mut self) -> Result<Option<Transfer>, Failure> {
        while !self.is_empty() {
            let done = self.backend.wait().map_err(|source| self.broken(source))?;
            let Completion { mut operation, result } = done;
            if let Ok(bytes) = result {
                self.refusals = 0;
                operation.done_bytes += bytes;
                operation.offset_bytes += bytes as u64;
            }
            let result = match result {
                Ok(_) if operation.done_bytes >= operation.wanted_bytes => {
                    self.depth.ended(operation.done_bytes as u64, Instant::now());
                    Ok(())
                }
                Ok(0) => Err(operation.memory.nothing_moved().into()),
                Ok(_) => {
                    self.begin(operation)?;
                    continue;
                }
                Err(error) if self.is_worth_another_try(&error) => {
                    self.begin(operation)?;
                    continue;
                }
                Err(error) => Err(error),
            };
            return Ok(Some(Transfer { operation, result }));
        }
        Ok(None)
    }

    /// Waits for a transfer to end whole; `None` when nothing is under way.
    ///
    /// # Errors
    /// When a transfer failed. Nothing is under way then, and of all that failed it is the one
    /// that stands first in the file.
    pub fn wait_whole(&mut self) -> Result<Option<Transfer>, Failure> {
        let Some(Transfer { operation, result }) = self.wait()? else { return Ok(None) };
        let Err(source) = result else { return Ok(Some(Transfer { operation, result })) };
        let mut first = Failure { offset_bytes: operation.offset_bytes, source };
        drop(operation);
        // A back end that breaks now tells less than what failed before.
        while let Ok(Some(Transfer { operation, result })) = self.wait() {
            let offset_bytes = operation.offset_bytes;
            if let Err(source) = result
                && offset_bytes < first.offset_bytes
            {
                first = Failure { offset_bytes, source };
            }
        }
        Err(first)
    }

    /// Whether nothing has happened yet that makes an error of it.
    fn is_worth_another_try(&mut self, error: &io::Error) -> bool {
        match error.kind() {
            io::ErrorKind::Interrupted => true,
            io::ErrorKind::WouldBlock if self.refusals < REFUSALS_MAX => {
                self.refusals += 1;
                std::thread::sleep(REFUSED_WAIT);
                true
            }
            _ => false,
        }
    }

    fn broken(&self, source: io::Error) -> Failure {
        Failure { offset_bytes: self.begun_bytes, source }
    }
}
