//! Transfers in flight on a back end, each until it is complete or cannot continue.
//!
//! An interrupted transfer is repeated, and a short one continues where it stopped: the caller sees
//! neither. A returned transfer is complete, or has the reason why not. A caller that needs every
//! byte uses [`InFlight::wait_whole`]: it ends at a failure, after all other transfers have ended,
//! and returns the failure that is first in the file, since transfers end in any order.
//!
//! How many may be in flight adapts to the result, if the back end takes more than a stream begins
//! with ([`Depth`]). Capacity: the depth of the back end. Nothing is allocated for a transfer. Not
//! here: the order of a stream's requests, and the handling of unreadable places.

use std::io;
use std::time::{Duration, Instant};

use crate::account::Account;
use crate::backend::{Backend, Completion, TransferRequest};
use crate::cancel::Stopped;
use crate::depth::Depth;
use crate::ring::{Piece, Producer, Reservation};

/// How often in a row all transfers may return EAGAIN before one of them fails.
const REFUSALS_MAX: u32 = 100;
/// Delay of the next attempt then; a second in all.
const REFUSED_WAIT: Duration = Duration::from_millis(10);

/// Why a transfer failed, and where.
#[derive(Debug, thiserror::Error)]
#[error("transfer at byte {offset_bytes}")]
pub struct Failure {
    /// Offset in the file. If the back end itself is broken, the offset of the last transfer begun.
    pub offset_bytes: u64,
    pub source: io::Error,
}

/// A transfer that has ended.
#[derive(Debug)]
pub struct Transfer {
    /// The memory, how much of it was moved, and where in the file it would continue.
    pub operation: TransferRequest,
    /// Whether everything needed was moved. A read at the end of the file fails with
    /// [`io::ErrorKind::UnexpectedEof`], a write that moved nothing with
    /// [`io::ErrorKind::WriteZero`]; the kernel has no errors of these kinds.
    pub result: io::Result<()>,
}

impl Transfer {
    /// Where in the file it began.
    pub fn start_bytes(&self) -> u64 {
        self.operation.offset_bytes - self.operation.done_bytes as u64
    }

    /// Bytes that were moved, at least those needed if it is complete.
    pub fn done_bytes(&self) -> usize {
        self.operation.done_bytes
    }

    /// What a read has filled.
    pub fn into_piece(self) -> Piece {
        self.operation.memory.into_piece()
    }
}

/// Keeps transfers in flight. When dropped, it waits for all of them, like its back end.
pub struct InFlight {
    backend: Box<dyn Backend>,
    /// Where the last transfer began.
    begun_bytes: u64,
    /// EAGAIN in a row.
    refusals: u32,
    depth: Depth,
}

impl InFlight {
    /// With nothing in flight; the limit is the back end's.
    pub fn new(backend: Box<dyn Backend>) -> InFlight {
        let depth = backend.depth();
        InFlight::from(backend, depth)
    }

    /// Begins with this many in flight, and increases up to the back end's limit if that is faster.
    pub fn from(backend: Box<dyn Backend>, least: usize) -> InFlight {
        let depth = Depth::new(least, backend.depth());
        InFlight { backend, begun_bytes: 0, refusals: 0, depth }
    }

    /// Name of the back end.
    pub fn backend_name(&self) -> &'static str {
        self.backend.name()
    }

    /// Most transfers in flight at any time.
    pub fn depth(&self) -> usize {
        self.backend.depth()
    }

    /// Whether nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.backend.in_flight() == 0
    }

    /// Whether no more may begin before one has ended.
    pub fn is_full(&self) -> bool {
        self.backend.in_flight() >= self.depth.now()
    }

    /// Room for the next read. Waits for it only if nothing is in flight. Otherwise a transfer must
    /// end first, or it would never leave the ring, and the result is `None`.
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

    /// Begins a transfer, or continues a failed one. [`InFlight::is_full`] must not hold.
    ///
    /// # Errors
    /// When the back end does not accept it.
    pub fn begin(&mut self, operation: TransferRequest) -> Result<(), Failure> {
        self.begun_bytes = operation.offset_bytes;
        self.backend.submit(operation).map_err(|source| self.broken(source))
    }

    /// Waits for a transfer to end; `None` if nothing is in flight.
    ///
    /// # Errors
    /// When the back end is broken. The outcome of the transfer itself is in its result.
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

    /// Waits for a transfer to complete; `None` if nothing is in flight.
    ///
    /// # Errors
    /// When a transfer failed. Then nothing is in flight, and of all failures it is the first in
    /// the file.
    pub fn wait_whole(&mut self) -> Result<Option<Transfer>, Failure> {
        let Some(Transfer { operation, result }) = self.wait()? else { return Ok(None) };
        let Err(source) = result else { return Ok(Some(Transfer { operation, result })) };
        let mut first = Failure { offset_bytes: operation.offset_bytes, source };
        drop(operation);
        // A back end that breaks now is less important than an earlier failure.
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

    /// Whether zero bytes are no error so far.
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
