//! What can happen to a drive before any command, on demand: to the n-th, whatever it is.
//!
//! [`super::Faults`] belong to places of a cartridge; mishaps belong to moments. A test counts the
//! commands of a run without one, and then repeats the run with one at each of them.

use device::tape::sense::Sense;

use super::faults::Persistence;
use super::medium::Cartridge;

/// What happens.
#[derive(Clone)]
pub enum Mishap {
    /// The command is not executed, and the drive reports this.
    Refused(Sense),
    /// The command is executed, and the drive reports this anyway.
    DoneButRefused(Sense),
    /// The command is executed, and the drive reports that the end of the medium is near.
    EarlyWarning,
    /// The command is not executed: there is no room.
    Full,
    /// Data that were not synchronised are lost, which the drive reports now.
    BufferLost,
    /// A bus reset: the drive's buffer is lost, and the tape is at the beginning.
    Reset,
    /// This cartridge is exchanged for the one in the drive.
    Exchanged(Cartridge),
    /// The cartridge is removed.
    Removed,
}

/// Ordered mishaps, and the number of commands so far.
#[derive(Default)]
pub(super) struct Mishaps {
    commands: u64,
    order: Option<(u64, Persistence, Mishap)>,
}

impl Mishaps {
    /// Restarts counting, and orders `mishap` for command number `at`, from 0.
    pub(super) fn order(&mut self, order: Option<(u64, Persistence, Mishap)>) {
        *self = Mishaps { commands: 0, order };
    }

    /// Commands since the last order.
    pub(super) fn commands(&self) -> u64 {
        self.commands
    }

    /// Counts a command; returns what happens to it.
    pub(super) fn due(&mut self) -> Option<Mishap> {
        let number = self.commands;
        self.commands += 1;
        let (at, persistence, mishap) = self.order.as_mut()?;
        match persistence {
            Persistence::Always if number >= *at => Some(mishap.clone()),
            Persistence::Times(times) if number >= *at && *times > 0 => {
                *times -= 1;
                Some(mishap.clone())
            }
            _ => None,
        }
    }
}
