//! The writing stage: the blocks of a ring, in order, to a target.
//!
//! One thread writes, one block per call. Files and block devices take writes at an offset, a few
//! of them in flight. Pipes and character devices take one blocking write(2) after the other, which
//! suits a tape, too. If the ring runs empty, the writer waits for the start fill.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::account::{Account, ThreadState};
use crate::backend::{Memory, TransferRequest};
use crate::cancel::{Cancel, Stopped};
use crate::in_flight::{Failure, InFlight};
use crate::rate::RateLimit;
use crate::restart::{Restart, Restarts};
use crate::ring::{Block, Consumer};

/// Why writing ended early.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The run is being stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The target did not accept the data.
    #[error("write at byte {offset_bytes}")]
    Write {
        /// Offset in the target.
        offset_bytes: u64,
        source: io::Error,
    },
}

impl From<Failure> for WriteError {
    fn from(Failure { offset_bytes, source }: Failure) -> WriteError {
        WriteError::Write { offset_bytes, source }
    }
}

/// Where blocks go.
pub trait Sink: Send {
    /// Why it accepts no more data.
    type Error: From<Stopped>;

    /// Takes the next block. The block may still be in flight when this returns. The account is the
    /// writing thread's, for waits that are not for the target.
    fn write(&mut self, block: Block, account: &mut Account) -> Result<(), Self::Error>;
    /// Returns all blocks that were taken, before the writer waits for the next one: in a small
    /// ring the next one may need their room.
    fn settle(&mut self) -> Result<(), Self::Error>;
    /// Waits until the kernel has taken everything.
    fn finish(&mut self, account: &mut Account) -> Result<(), Self::Error>;
}

/// How the writer drains its ring.
#[derive(Debug)]
pub struct WriteOptions {
    /// Blocks that must be ready before the writer starts; with [`Restart::Paced`] only if the
    /// source is slower than the target.
    pub start_fill_blocks: usize,
    /// When it starts again after the ring ran empty.
    pub restart: Restart,
    pub rate_limit: Option<RateLimit>,
}

/// Writes all blocks of `consumer` to `sink`. Calls `seen` with each block before it is written.
/// Returns the bytes written.
pub fn write_all<S: Sink + ?Sized>(
    consumer: &Consumer,
    sink: &mut S,
    mut options: WriteOptions,
    account: &mut Account,
    cancel: &Cancel,
    mut seen: impl FnMut(&Block),
) -> Result<u64, S::Error> {
    let mut bytes = 0;
    let mut restarts = Restarts::new(options.restart, Instant::now());
    wait_for_start(consumer, options.start_fill_blocks, &restarts, account)?;
    loop {
        let ready_blocks = consumer.fill_blocks();
        if ready_blocks == 0 {
            sink.settle()?;
        }
        let fill_blocks = match bytes {
            0 => 1,
            _ => {
                let ready_bytes = (ready_blocks * consumer.block_bytes()) as u64;
                restarts.observe(bytes + ready_bytes, Instant::now());
                restarts.fill_blocks()
            }
        };
        let Some(block) = consumer.next_filled(fill_blocks, account)? else { break };
        let limits = options.rate_limit.iter_mut().chain(restarts.limit());
        let wait = limits.map(|limit| limit.book(block.len())).max().unwrap_or_default();
        hold_back(wait, account, cancel)?;
        seen(&block);
        let length = block.len() as u64;
        sink.write(block, account)?;
        bytes += length;
        account.stage().add_bytes(length);
    }
    sink.finish(account)?;
    Ok(bytes)
}

/// Waits for the start fill, or until enough data show that the source is fast enough.
fn wait_for_start(
    consumer: &Consumer,
    start_fill_blocks: usize,
    restarts: &Restarts,
    account: &mut Account,
) -> Result<(), Stopped> {
    if let Some(bytes) = restarts.probe_bytes() {
        let blocks = usize::try_from(bytes).unwrap_or(usize::MAX).div_ceil(consumer.block_bytes());
        consumer.wait_filled(blocks.clamp(1, start_fill_blocks.max(1)), account)?;
        let ready_bytes = (consumer.fill_blocks() * consumer.block_bytes()) as u64;
        if restarts.keeps_up(ready_bytes, Instant::now()) {
            return Ok(());
        }
    }
    consumer.wait_filled(start_fill_blocks, account)
}

/// Waits for a rate limit. The limit is on the target's side, so the stage is blocked.
fn hold_back(mut wait: Duration, account: &mut Account, cancel: &Cancel) -> Result<(), Stopped> {
    if wait.is_zero() {
        return Ok(());
    }
    account.switch(ThreadState::Blocked);
    while !wait.is_zero() {
        let step = wait.min(crate::cancel::POLL);
        std::thread::sleep(step);
        wait -= step;
        cancel.check().inspect_err(|_| account.switch(ThreadState::Working))?;
    }
    account.switch(ThreadState::Working);
    Ok(())
}

/// A target that is written sequentially.
#[derive(Debug)]
pub struct StreamSink {
    file: Arc<OwnedFd>,
    offset_bytes: u64,
    cancel: Cancel,
    waiting: Waiting,
}

/// How a write waits for a slow reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// In write(2) itself: a block in one piece, as a tape needs.
    InWrite,
    /// In poll(2), so that a cancel is noticed while the reader of a pipe sleeps. `RWF_NOWAIT`
    /// changes nothing for other programs with the same pipe, as O_NONBLOCK would.
    InPoll,
}

const SOON: rustix::event::Timespec = rustix::event::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

impl StreamSink {
    /// Writes to `file` at its own position.
    pub fn new(file: Arc<OwnedFd>, cancel: Cancel) -> StreamSink {
        let is_pipe = rustix::fs::fstat(&file)
            .is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::Fifo);
        let waiting = if is_pipe { Waiting::InPoll } else { Waiting::InWrite };
        StreamSink { file, offset_bytes: 0, cancel, waiting }
    }

    fn wait_writable(&self) -> Result<(), WriteError> {
        loop {
            let mut poll = [PollFd::from_borrowed_fd(self.file.as_fd(), PollFlags::OUT)];
            if !matches!(rustix::event::poll(&mut poll, Some(&SOON)), Ok(0) | Err(Errno::INTR)) {
                return Ok(());
            }
            self.cancel.check()?;
        }
    }

    /// One write. With [`Waiting::InPoll`] it may end with `AGAIN`.
    fn write_some(&mut self, bytes: &[u8]) -> rustix::io::Result<usize> {
        if self.waiting == Waiting::InWrite {
            return rustix::io::write(&self.file, bytes);
        }
        // The offset -1 stands for the position of the file itself, see pwritev2(2).
        let slices = [io::IoSlice::new(bytes)];
        let flags = rustix::io::ReadWriteFlags::NOWAIT;
        match rustix::io::pwritev2(&self.file, &slices, u64::MAX, flags) {
            // Pipes know the flag since Linux 6.4.
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::SPIPE) => {
                self.waiting = Waiting::InWrite;
                Err(Errno::AGAIN)
            }
            result => result,
        }
    }

    fn failed(&self, source: io::Error) -> WriteError {
        WriteError::Write { offset_bytes: self.offset_bytes, source }
    }
}

impl Sink for StreamSink {
    type Error = WriteError;

    fn write(&mut self, block: Block, _: &mut Account) -> Result<(), WriteError> {
        let mut rest = &block[..];
        if self.waiting == Waiting::InWrite {
            self.wait_writable()?;
        }
        while !rest.is_empty() {
            match self.write_some(rest) {
                Ok(0) => return Err(self.failed(io::ErrorKind::WriteZero.into())),
                Ok(bytes) => {
                    rest = &rest[bytes..];
                    self.offset_bytes += bytes as u64;
                }
                Err(Errno::INTR) => self.cancel.check()?,
                Err(Errno::AGAIN) => self.wait_writable()?,
                Err(error) => return Err(self.failed(error.into())),
            }
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), WriteError> {
        Ok(())
    }

    fn finish(&mut self, _: &mut Account) -> Result<(), WriteError> {
        Ok(())
    }
}

/// A target that can be written at any offset: a file or a block device.
///
/// Dirty pages are sent to the disk as they come, and dropped from the page cache once they are
/// written, a window behind the writer. So the final fsync is short, and the backup does not evict
/// the working set of the machine.
pub struct FileSink {
    file: Arc<OwnedFd>,
    in_flight: InFlight,
    offset_bytes: u64,
    flushed_bytes: u64,
    dropped_bytes: u64,
}

/// Bytes after which write-back is started, and the window behind the writer.
const WINDOW_BYTES: u64 = 16 << 20;

impl FileSink {
    /// Writes to `file` from its start.
    pub fn new(file: Arc<OwnedFd>, in_flight: InFlight) -> FileSink {
        FileSink { file, in_flight, offset_bytes: 0, flushed_bytes: 0, dropped_bytes: 0 }
    }

    /// Starts write-back of new data, waits for the window before them, and drops that from the
    /// cache. A file system without these calls only loses speed.
    fn push_out(&mut self) -> Result<(), WriteError> {
        self.settle()?;
        let new = self.offset_bytes - self.flushed_bytes;
        device::file::start_write_back(&self.file, self.flushed_bytes, new);
        let old = self.flushed_bytes - self.dropped_bytes;
        if old > 0 {
            device::file::drop_written(&self.file, self.dropped_bytes, old)
                .map_err(|source| WriteError::Write { offset_bytes: self.dropped_bytes, source })?;
        }
        self.dropped_bytes = self.flushed_bytes;
        self.flushed_bytes = self.offset_bytes;
        Ok(())
    }
}

impl Sink for FileSink {
    type Error = WriteError;

    fn write(&mut self, block: Block, _: &mut Account) -> Result<(), WriteError> {
        while self.in_flight.is_full() {
            self.in_flight.wait_whole()?;
        }
        let offset_bytes = self.offset_bytes;
        self.offset_bytes += block.len() as u64;
        self.in_flight.begin(TransferRequest::new(
            &self.file,
            offset_bytes,
            Memory::Drain(block),
        ))?;
        if self.offset_bytes - self.flushed_bytes >= WINDOW_BYTES {
            self.push_out()?;
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), WriteError> {
        while self.in_flight.wait_whole()?.is_some() {}
        Ok(())
    }

    fn finish(&mut self, _: &mut Account) -> Result<(), WriteError> {
        self.settle()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Choice, Engine};
    use crate::ring::{RingOptions, ring};

    /// Each write-back waits for the writes in flight.
    #[test]
    fn a_file_is_pushed_out_by_the_window_and_not_by_the_block() {
        const BLOCK: usize = 1 << 20;
        let options = RingOptions { block_bytes: BLOCK, blocks: 4, consumers: 1 };
        let (producer, consumers) = ring(options, Cancel::new()).unwrap();
        let file = Arc::new(OwnedFd::from(tempfile::tempfile().unwrap()));
        let in_flight = Choice::new(Engine::Threads).unwrap().open_for(4, &file).unwrap();
        let mut sink = FileSink::new(file, in_flight);
        let mut account = crate::account::Stage::new(crate::run::StageKind::Write).open();
        for number in 1..=20 {
            producer.try_reserve(BLOCK).unwrap().commit();
            let block = consumers[0].next(&mut account).unwrap().unwrap();
            sink.write(block, &mut account).unwrap();
            sink.settle().unwrap();
            let pushed = if number < 16 { 0 } else { 16 };
            assert_eq!(sink.flushed_bytes, pushed << 20, "block {number}");
        }
    }
}
