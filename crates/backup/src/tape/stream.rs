//! A tape that takes a stream as it is: blocks from where it stands, one filemark behind them.
//!
//! What `dd of=/dev/nst0` does, with the block mode set, the size of a block checked before
//! anything is written, and an end that waits until all is on the medium. Nothing is known of what
//! the stream holds, so it cannot go on on another medium.

use device::tape::{Access, BlockMode, Filemark, Tape, TapeDrive, TapeWrite};
use flow::ring::Block;
use flow::sink::{Sink, WriteError};

use super::error::TapeSetError;

/// A sink for one stream.
pub(crate) struct TapeStream {
    tape: Tape,
    bytes: u64,
    is_closed: bool,
}

impl TapeStream {
    /// Opens the drive, for blocks of up to `block_bytes` from where the tape stands.
    ///
    /// # Errors
    /// When the drive cannot be had, or does not take such blocks.
    pub(crate) fn open(
        drive: &dyn TapeDrive,
        block_bytes: usize,
    ) -> Result<TapeStream, TapeSetError> {
        let mut tape = drive.open(Access::Write)?;
        tape.limits().check(block_bytes as u64).map_err(|source| {
            let device = drive.name().to_owned();
            TapeSetError::BlockSize { device, source }
        })?;
        tape.set_block_mode(BlockMode::Variable)?;
        Ok(TapeStream { tape, bytes: 0, is_closed: false })
    }

    fn take(&mut self, block: &[u8]) -> Result<(), TapeSetError> {
        let written = self.tape.write(block).inspect_err(|_| {
            // As `Volume::let_be`: no filemark where the drive may stand now.
            let _ = self.tape.synchronise();
        });
        if written? == TapeWrite::Whole {
            self.bytes += block.len() as u64;
            return Ok(());
        }
        self.tape.write_filemark(Filemark::Synchronising)?;
        let (device, bytes) = (self.tape.name().to_owned(), self.bytes);
        Err(TapeSetError::EndOfMedium { device, bytes })
    }

    fn close(&mut self) -> Result<(), TapeSetError> {
        if !std::mem::replace(&mut self.is_closed, true) {
            self.tape.write_filemark(Filemark::Synchronising)?;
        }
        Ok(())
    }
}

impl Sink for TapeStream {
    fn write(&mut self, block: Block) -> Result<(), WriteError> {
        self.take(&block).map_err(|error| WriteError::Target(Box::new(error)))
    }

    fn settle(&mut self) -> Result<(), WriteError> {
        Ok(())
    }

    fn finish(&mut self) -> Result<(), WriteError> {
        self.close().map_err(|error| WriteError::Target(Box::new(error)))
    }
}
