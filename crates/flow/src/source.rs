//! The reading stage of a stream: from a file, a device or a pipe into the blocks of a ring.
//!
//! If reads at any offset are possible, several are kept in flight. A pipe is read by one thread
//! straight into the block, until the block is full: a pipe that gives 4 KiB at a time still makes
//! full blocks.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use crate::account::{Account, ThreadState};
use crate::backend::{Memory, TransferRequest};
use crate::cancel::{Cancel, Stopped};
use crate::in_flight::{Failure, InFlight};
use crate::ring::Producer;

/// Why reading ended early.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The run is being stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The source failed.
    #[error("read at byte {offset_bytes}")]
    Read {
        /// Offset in the source.
        offset_bytes: u64,
        source: io::Error,
    },
}

impl From<Failure> for ReadError {
    fn from(Failure { offset_bytes, source }: Failure) -> ReadError {
        ReadError::Read { offset_bytes, source }
    }
}

/// Reads a stream to its end. Returns the bytes read.
///
/// # Errors
/// See [`ReadError`].
pub fn read_stream(
    file: &OwnedFd,
    producer: Producer,
    account: &mut Account,
    cancel: &Cancel,
) -> Result<u64, ReadError> {
    let mut offset_bytes = 0u64;
    let mut ended = false;
    while !ended {
        let mut reservation = producer.reserve(producer.block_bytes(), account)?;
        let mut filled = 0;
        while filled < reservation.remaining_bytes() {
            wait_readable(file, account, cancel)?;
            let slice = reservation.slices_mut().next().expect("a block is one slice");
            match rustix::io::read(file, &mut slice[filled..]) {
                Ok(0) => {
                    ended = true;
                    break;
                }
                Ok(bytes) => filled += bytes,
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => {
                    let offset_bytes = offset_bytes + filled as u64;
                    return Err(ReadError::Read { offset_bytes, source: error.into() });
                }
            }
        }
        offset_bytes += filled as u64;
        account.stage().add_bytes(filled as u64);
        if ended {
            producer.finish_with(reservation, filled);
            return Ok(offset_bytes);
        }
        reservation.commit();
    }
    Ok(offset_bytes)
}

/// Waits until a read would not block, so that a cancel is noticed on a silent pipe.
fn wait_readable(file: &OwnedFd, account: &mut Account, cancel: &Cancel) -> Result<(), ReadError> {
    const NOW: rustix::event::Timespec = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    const SOON: rustix::event::Timespec =
        rustix::event::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    let ready = |timeout| {
        let mut poll = [PollFd::from_borrowed_fd(file.as_fd(), PollFlags::IN)];
        // A descriptor that cannot be polled returns an error or POLLNVAL: just read it.
        !matches!(rustix::event::poll(&mut poll, Some(timeout)), Ok(0) | Err(Errno::INTR))
    };
    if !ready(&NOW) {
        account.switch(ThreadState::Starved);
        while !ready(&SOON) {
            cancel.check().inspect_err(|_| account.switch(ThreadState::Working))?;
        }
        account.switch(ThreadState::Working);
    }
    Ok(cancel.check()?)
}

/// Reads `length_bytes` from the start of a file or block device with several reads in flight. A
/// file that is shorter is an error, since the data behind it would be in the wrong place.
///
/// # Errors
/// See [`ReadError`].
pub fn read_file(
    file: &Arc<OwnedFd>,
    start_bytes: u64,
    length_bytes: u64,
    producer: Producer,
    in_flight: &mut InFlight,
    account: &mut Account,
) -> Result<u64, ReadError> {
    let mut asked = 0u64;
    loop {
        while asked < length_bytes && !in_flight.is_full() {
            let bytes = (length_bytes - asked).min(producer.block_bytes() as u64) as usize;
            let Some(reservation) = in_flight.reserve(&producer, bytes, account)? else { break };
            for piece in reservation.into_pieces() {
                let offset_bytes = start_bytes + asked;
                asked += piece.len() as u64;
                in_flight.begin(TransferRequest::new(file, offset_bytes, Memory::Fill(piece)))?;
            }
        }
        let Some(done) = in_flight.wait_whole()? else {
            producer.finish();
            return Ok(asked);
        };
        account.stage().add_bytes(done.done_bytes() as u64);
        done.into_piece().commit();
    }
}
