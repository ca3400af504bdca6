//! A volume that is being written: the open drive, and the position of its head.
//!
//! The position is counted here, since a drive is not asked for it while it streams.

use archive::label::MediumName;
use device::tape::raw::Statistics;
use device::tape::{Filemark, Tape, TapeError, TapeWrite};
use rustix::io::Errno;

use super::left::SetsOfMedium;
use super::unfit::Numbers;
use crate::directory::Directory;
use crate::known::Memory;
use crate::media::{MediaLog, NamedMedium};

/// An open volume.
pub(super) struct Volume {
    pub(super) tape: Tape,
    /// Id of the medium.
    pub(super) medium: [u8; 16],
    /// What it is called.
    pub(super) name: Option<MediumName>,
    /// Number of the volume in the set, from 1.
    pub(super) number: u32,
    /// File with the last label of the previous set.
    pub(super) previous: Option<u32>,
    /// What is on it.
    pub(super) sets: SetsOfMedium,
    /// Whether the set began at the beginning of the medium.
    pub(super) from_beginning: bool,
    /// The medium that it was before, if its data are written over.
    pub(super) replaced: Option<[u8; 16]>,
    /// Whether it was told what becomes of the medium.
    is_told: bool,
    /// Whether it holds a part of the set with its whole label.
    pub(super) holds_part: bool,
    /// Whether it holds something of the set that no earlier volume does.
    pub(super) took_new: bool,
    /// Filemarks before the head.
    pub(super) file_number: u32,
    /// Blocks since the last filemark.
    pub(super) block_in_file: u32,
    /// Number of the next object, if the drive knows it.
    pub(super) object_number: Option<u64>,
    /// Blocks written.
    pub(super) blocks: u64,
    /// Filemarks written.
    pub(super) filemarks: u64,
    /// How long reading the beginning of the medium took.
    pub(super) label_seconds: f64,
    before: Option<Statistics>,
}

impl Volume {
    /// A medium that is written from its beginning, at the tape's position.
    pub(super) fn at_beginning(
        tape: Tape,
        medium: [u8; 16],
        number: u32,
        numbers: Numbers,
    ) -> Volume {
        let object_number = (numbers == Numbers::Told).then_some(0);
        let mut volume = Volume::new(tape, medium, number, object_number);
        volume.from_beginning = true;
        volume.sets = SetsOfMedium::behind(Directory { sets: Vec::new(), is_whole: true });
        volume
    }

    /// A medium that is written behind its data, at the tape's position.
    ///
    /// # Errors
    /// When the drive does not report its position, though it can.
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
            name: None,
            number,
            previous: None,
            sets: SetsOfMedium::default(),
            from_beginning: false,
            replaced: None,
            is_told: false,
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

    /// The medium, and what it is called.
    pub(super) fn named(&self) -> NamedMedium {
        NamedMedium { medium: self.medium, name: self.name }
    }

    /// Tells what becomes of the medium, before its first label is written.
    pub(super) fn tell_once(&mut self, set: [u8; 16], log: &dyn MediaLog) {
        if !std::mem::replace(&mut self.is_told, true) {
            if let Some(medium) = self.replaced {
                log.overwrites(medium);
            }
            log.takes(self.named(), set, self.number);
        }
    }

    /// It is known already what becomes of the medium.
    pub(super) fn told(&mut self) {
        self.is_told = true;
    }

    /// Notes how the medium is left, once everything is on it.
    pub(super) fn note_left(&mut self, memory: &Memory) {
        if memory.0.is_none() {
            return;
        }
        // No chip, or no answer: then the medium is looked at when it is next read.
        if let Ok(chip) = self.tape.cartridge_memory() {
            memory.note(|| self.sets.left(self.medium, chip));
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

    /// Keeps the driver from writing a filemark when it closes the tape. The driver does so behind
    /// a write, even one that failed because the drive was reset (seen with Linux 6.1). The tape is
    /// at its beginning then, and that filemark would cut off everything on the medium. Behind a
    /// synchronisation, even a failed one, it writes none (`drivers/scsi/st.c`, `st_ioctl`).
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
