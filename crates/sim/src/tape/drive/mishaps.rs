//! The start and end of a command, with a [`Mishap`] between them if one was ordered.

use super::super::check::{Check, UNIT_ATTENTION, write_error};
use super::super::mishap::Mishap;
use super::Drive;

impl Drive {
    /// A command that needs a medium.
    pub(super) fn command<T>(
        &mut self,
        execute: impl FnOnce(&mut Drive) -> Result<T, Check>,
    ) -> Result<T, Check> {
        self.command_at_any_time(|drive| {
            drive.ready()?;
            execute(drive)
        })
    }

    /// A command that works without a medium too.
    pub(in super::super) fn command_at_any_time<T>(
        &mut self,
        execute: impl FnOnce(&mut Drive) -> Result<T, Check>,
    ) -> Result<T, Check> {
        let Some(mishap) = self.mishaps.due() else { return execute(self) };
        match mishap {
            Mishap::Refused(sense) => return Err(Check { sense, ..Check::default() }),
            Mishap::Full => return Err(Check::medium_full(1)),
            Mishap::BufferLost => {
                self.lose_buffer();
                let mut check = write_error();
                check.sense.deferred = true;
                return Err(check);
            }
            Mishap::Reset => {
                self.lose_buffer();
                self.position = 0;
                // Power on, reset, or bus device reset occurred.
                self.attention = Some(Check::of(UNIT_ATTENTION, 0x29, 0x00).sense);
            }
            Mishap::Exchanged(ref cartridge) => {
                self.remove();
                self.insert(cartridge.clone());
            }
            Mishap::Removed => drop(self.remove()),
            Mishap::DoneButRefused(_) | Mishap::EarlyWarning => {}
        }
        let done = execute(self)?;
        match mishap {
            Mishap::DoneButRefused(sense) => Err(Check { sense, ..Check::default() }),
            Mishap::EarlyWarning => Err(Check::early_warning()),
            _ => Ok(done),
        }
    }

    /// Reports pending conditions before the command is executed.
    pub(in super::super) fn notice(&mut self) -> Result<(), Check> {
        match self.attention.take() {
            Some(sense) => Err(Check { sense, ..Check::default() }),
            None => Ok(()),
        }
    }

    fn lose_buffer(&mut self) {
        self.buffering = false;
        // A storage that cannot truncate reports that at the next command.
        let _ = self.medium(|medium| medium.lose_buffer());
        self.position = self.position.min(self.length());
    }
}
