//! Writes a stream to a tape as it is: blocks from the tape's position, and one filemark.
//!
//! This does what `dd of=/dev/nst0` does. In addition it sets the block mode, checks the block size
//! before it writes, and waits at the end until everything is on the medium. Data behind the
//! position are overwritten only on request: a tape that was reset or exchanged is at its
//! beginning, not where the user put it. The content of the stream is unknown, so it cannot
//! continue on another medium.

use std::time::Instant;

use device::tape::{
    Access, BlockMode, Filemark, Tape, TapeDrive, TapeError, TapePlace, TapeRead, TapeWrite,
};
use device::target::Existing;
use flow::account::{Account, ThreadState};
use flow::monitor::{Monitor, Pause};
use flow::ring::Block;
use flow::sink::Sink;

use super::error::TapeSetError;
use crate::block::FIRST_BUFFER_BYTES;
use crate::change::Refused;

/// A sink for one stream.
pub struct TapeStream<'a> {
    tape: Tape,
    monitor: &'a dyn Monitor,
    bytes: u64,
    synchronise_seconds: f64,
    /// Whether following data may be overwritten; then they are not looked for.
    existing: Existing,
    block_bytes_max: u64,
    is_closed: bool,
}

impl<'a> TapeStream<'a> {
    /// Opens the drive, for blocks of up to `block_bytes` from the tape's position.
    ///
    /// # Errors
    /// When the drive cannot be opened, does not accept such blocks, or data follow that must be
    /// kept.
    pub fn open(
        drive: &dyn TapeDrive,
        block_bytes: usize,
        existing: Existing,
        monitor: &'a dyn Monitor,
    ) -> Result<TapeStream<'a>, TapeSetError> {
        let mut tape = drive.open(Access::Write)?;
        let device = || drive.name().to_owned();
        let limits = tape.limits();
        limits
            .check(block_bytes as u64)
            .map_err(|source| TapeSetError::BlockSize { device: device(), source })?;
        tape.set_block_mode(BlockMode::Variable)?;
        if existing == Existing::Keep && data_follow(&mut tape, limits.block_bytes_max)? {
            let refused = Refused::DataFollow;
            return Err(TapeSetError::Refused { device: device(), refused });
        }
        let block_bytes_max = limits.block_bytes_max;
        Ok(TapeStream {
            tape,
            monitor,
            bytes: 0,
            synchronise_seconds: 0.0,
            existing,
            block_bytes_max,
            is_closed: false,
        })
    }

    /// How long the filemark waited until everything was on the medium; 0 before the end.
    pub fn synchronise_seconds(&self) -> f64 {
        self.synchronise_seconds
    }

    fn take(&mut self, block: &[u8]) -> Result<(), TapeSetError> {
        let written = self.tape.write(block).inspect_err(|_| {
            // As in `Volume::let_be`: no filemark, since the drive's position is unknown now.
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
            self.check_not_for_nothing()?;
            self.tape.write_filemark(Filemark::Synchronising)?;
        }
        Ok(())
    }

    /// A mistyped command in front of a pipe gives an empty stream; its filemark would destroy the
    /// data that follow.
    fn check_not_for_nothing(&mut self) -> Result<(), TapeSetError> {
        let for_nothing = self.bytes == 0
            && self.existing == Existing::Replace
            && data_follow(&mut self.tape, self.block_bytes_max)?;
        if for_nothing {
            Err(TapeSetError::Nothing { device: self.tape.name().to_owned() })
        } else {
            Ok(())
        }
    }
}

/// Whether data follow the tape's position. The tape stays there: a user who then allows
/// overwriting means the same position.
fn data_follow(tape: &mut Tape, block_bytes_max: u64) -> Result<bool, TapeError> {
    let here = tape.status()?;
    let absolute = tape.position().ok();
    let follow = look(tape, block_bytes_max, here.at_beginning)?;
    if follow {
        let (file_number, block_in_file) = (here.file_number, here.block_in_file);
        tape.go_to(TapePlace { file_number, block_in_file }, absolute)?;
    }
    Ok(follow)
}

fn look(tape: &mut Tape, block_bytes_max: u64, at_beginning: bool) -> Result<bool, TapeError> {
    let bytes = usize::try_from(block_bytes_max)
        .map_or(FIRST_BUFFER_BYTES, |most| most.min(FIRST_BUFFER_BYTES));
    let numbered = tape.position().is_ok();
    let mut buffer = vec![0; bytes];
    let met = match tape.read(&mut buffer)? {
        TapeRead::Block(_) if tape.was_past_the_end(&mut buffer)? => TapeRead::EndOfData,
        met => met,
    };
    // Behind a filemark the driver reports every blank check of a read as the end.
    if met == TapeRead::EndOfData && numbered && !tape.nothing_follows()? {
        return Ok(true);
    }
    if met == TapeRead::EndOfData && at_beginning {
        // After a failed read the driver knows no position.
        tape.rewind()?;
    }
    match met {
        TapeRead::EndOfData => Ok(false),
        TapeRead::Block(_) | TapeRead::Filemark | TapeRead::LargerBlock => Ok(true),
    }
}

impl Sink for TapeStream<'_> {
    type Error = TapeSetError;

    fn write(&mut self, block: Block, _: &mut Account) -> Result<(), TapeSetError> {
        self.take(&block)
    }

    fn settle(&mut self) -> Result<(), TapeSetError> {
        Ok(())
    }

    /// The wait for the medium is no stage's work.
    fn finish(&mut self, account: &mut Account) -> Result<(), TapeSetError> {
        let started = Instant::now();
        self.monitor.pause(Some(Pause::Flushing));
        account.during(ThreadState::Apart, || self.close())?;
        self.monitor.pause(None);
        self.synchronise_seconds = started.elapsed().as_secs_f64();
        Ok(())
    }
}
