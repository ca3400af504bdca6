//! A tape whose calls are observed: a callback runs before every call reaches the drive, and may
//! change the drive.

use std::io;

use device::tape::raw::{MtOperation, QuestionError, RawStatus, RawTape, Statistics};
use device::tape::sense::Sense;

use super::VirtualTape;

/// The kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// read(2).
    Read,
    /// write(2).
    Write,
    /// `MTIOCTOP`.
    Operate(MtOperation),
    /// `MTIOCPOS`, or a command that bypasses the driver. `MTIOCGET` is not reported, since the
    /// driver answers it without the drive.
    Question,
}

/// An open tape with a callback for its calls.
pub struct WatchedTape<F> {
    tape: VirtualTape,
    before: F,
}

impl<F: FnMut(Call) + Send> WatchedTape<F> {
    /// Calls `before` ahead of each call.
    pub fn new(tape: VirtualTape, before: F) -> WatchedTape<F> {
        WatchedTape { tape, before }
    }

    fn tape(&mut self, call: Call) -> &mut VirtualTape {
        (self.before)(call);
        &mut self.tape
    }
}

impl<F: FnMut(Call) + Send> RawTape for WatchedTape<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.tape(Call::Read).read(buffer)
    }

    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        self.tape(Call::Write).write(block)
    }

    fn operate(&mut self, operation: MtOperation, count: i32) -> io::Result<()> {
        self.tape(Call::Operate(operation)).operate(operation, count)
    }

    fn status(&mut self) -> io::Result<RawStatus> {
        self.tape.status()
    }

    fn position(&mut self) -> io::Result<u64> {
        self.tape(Call::Question).position()
    }

    fn command(&mut self, command: &[u8], data: &mut [u8]) -> Result<usize, QuestionError> {
        self.tape(Call::Question).command(command, data)
    }

    fn command_with(&mut self, command: &[u8], data: &[u8]) -> Result<(), QuestionError> {
        self.tape(Call::Question).command_with(command, data)
    }

    fn statistics(&mut self) -> Option<Statistics> {
        self.tape.statistics()
    }

    fn last_sense(&mut self) -> Option<Sense> {
        self.tape.last_sense()
    }

    fn transfer_bytes_max(&mut self) -> Option<u64> {
        self.tape.transfer_bytes_max()
    }
}
