//! A volume while it is written to: the open drive, and where its head is.
//!
//! While a drive streams nobody asks it for its position: it is counted here.

use device::tape::raw::Statistics;
use device::tape::{Filemark, Tape, TapeError, TapeWrite};
use rustix::io::Errno;

use super::unfit::Numbers;

/// An open volume.
pub(super) struct Volume {
    pub(super) tape: Tape,
    /// Id of the medium.
    pub(super) medium: [u8; 16],
    /// Number of the volume in the set, from 1.
    pub(super) number: u32,
    /// File with the last label of the set before.
    pub(super) previous: Option<u32>,
    /// The set was begun at the beginning of the medium.
    pub(super) from_beginning: bool,
    /// It holds a part of the set, with its whole label.
    pub(super) holds_part: bool,
    /// It holds something of the set that no volume before it does.
    pub(super) took_new: bool,
    /// Filemarks before the head.
    pub(super) file_number: u32,
    /// Blocks since the last filemark.
    pub(super) block_in_file: u32,
    /// Number of the next object, where the drive knows it.
    pub(super) object_number: Option<u64>,
    /// Blocks written.
    pub(super) blocks: u64,
    /// Filemarks written.
    pub(super) filemarks: u64,
    /// How long it took to read what stands at its beginning.
    pub(super) label_seconds: f64,
    before: Option<Statistics>,
}

impl Volume {
    /// A medium that is written from its beginning, where the tape stands.
    pub(super) fn at_beginning(
        tape: Tape,
        medium: [u8; 16],
        number: u32,
        numbers: Numbers,
    ) -> Volume {
        let object_number = (numbers == Numbers::Told).then_some(0);
        let mut volume = Volume::new(tape, medium, number, object_number);
        volume.from_beginning = true;
        volume
    }

    /// A medium that is written behind what it holds, where the tape stands.
    ///
    /// # Errors
    /// When the drive does not say where that is, though it can.
    pub(super) fn behind(
        mut tape: Tape,
        medium: [u8; 16],
        number: u32,
        file_number: u32,
        previous: Option<u32>,
        numbers: Numbers,
    ) -> Result<Volume, TapeError> {
        let object_number = numbers.ask(&mut tape)?;
        let volume = Volume::new(tape, medium, number, object_number);
        Ok(Volume { file_number, previous, ..volume })
    }

    fn new(mut tape: Tape, medium: [u8; 16], number: u32, object_number: Option<u64>) -> Volume {
        let before = tape.statistics();
        Volume {
            tape,
            medium,
            number,
            previous: None,
            from_beginning: false,
            holds_part: false,
            took_new: false,
            file_number: 0,
            block_in_file: 0,
            object_number,
            blocks: 0,
            filemarks: 0,
            label_seconds: 0.0,
            before,
        }
    }

    /// Writes one block.
    pub(super) fn write(&mut self, block: &[u8]) -> Result<TapeWrite, TapeError> {
        let written = self.tape.write(block)?;
        if written == TapeWrite::Whole {
            self.blocks += 1;
            self.block_in_file += 1;
            self.object_number = self.object_number.map(|number| number + 1);
        }
        Ok(written)
    }

    /// Writes a filemark. Near the end of a medium the driver refuses every other write (st.rst,
    /// "EOM Behaviour When Writing"), so one refusal is not the end.
    pub(super) fn write_filemark(&mut self, filemark: Filemark) -> Result<(), TapeError> {
        match self.tape.write_filemark(filemark) {
            Err(error) if is_end_of_medium(&error) => self.tape.write_filemark(filemark)?,
            written => written?,
        }
        self.filemarks += 1;
        self.file_number += 1;
        self.block_in_file = 0;
        self.object_number = self.object_number.map(|number| number + 1);
        Ok(())
    }

    /// Keeps the driver from writing a filemark when it closes the tape. It does so behind a write,
    /// also one that failed since the drive was reset (seen with Linux 6.1): the tape stands at the
    /// beginning then, and that filemark would be the end of all that the medium holds. Behind a
    /// synchronisation, even one that fails, it writes none (`drivers/scsi/st.c`, `st_ioctl`).
    pub(super) fn let_be(&mut self) {
        let _ = self.tape.synchronise();
    }

    /// What the kernel counted since the volume was opened.
    pub(super) fn write_ns(&mut self) -> Option<u64> {
        let now = self.tape.statistics()?;
        Some(now.since(self.before?).write_ns)
    }
}

fn is_end_of_medium(error: &TapeError) -> bool {
    Errno::from_io_error(&error.source) == Some(Errno::NOSPC)
}
