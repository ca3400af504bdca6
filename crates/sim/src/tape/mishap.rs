//! What can happen to a drive before any command, to order: the n-th, whatever it is.
//!
//! [`super::Faults`] sit at places of a cartridge; mishaps sit at moments. A test counts the
//! commands of a run without one, and then runs again with one before each of them.

use device::tape::sense::Sense;

use super::faults::Persistence;
use super::medium::Cartridge;

/// What happens.
#[derive(Clone)]
pub enum Mishap {
    /// The command is not done, and the drive says this.
    Refused(Sense),
    /// The command is done, and the drive says this all the same.
    DoneButRefused(Sense),
    /// The command is done, and the drive says that the end of the medium is near.
    EarlyWarning,
    /// The command is not done: there is no room.
    Full,
    /// What was not synchronised is lost, which the drive tells of now.
    BufferLost,
    /// A reset of the bus: the drive's buffer is lost, and the tape stands at the beginning.
    Reset,
    /// Somebody puts this cartridge in the place of the one in the drive.
    Exchanged(Cartridge),
    /// Somebody takes the cartridge out.
    Removed,
}

/// Mishaps to come, and how many commands there were.
#[derive(Default)]
pub(super) struct Mishaps {
    commands: u64,
    order: Option<(u64, Persistence, Mishap)>,
}

impl Mishaps {
    /// Counts from here on, and orders `mishap` for the command number `at`, from 0.
    pub(super) fn order(&mut self, order: Option<(u64, Persistence, Mishap)>) {
        *self = Mishaps { commands: 0, order };
    }

    /// Commands since the last order.
    pub(super) fn commands(&self) -> u64 {
        self.commands
    }

    /// Counts a command; what happens to it.
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
