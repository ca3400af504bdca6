//! Positions on a tape, by count, and how to get there.
//!
//! Not every drive knows absolute block numbers, and using them makes the driver forget its file
//! (`MTSEEK` makes `mt_fileno` unknown, st.rst). So a position is the number of the file and the
//! block in the file, with the absolute number if there is one.

use device::tape::{Tape, TapeError, TapePlace};

/// A position on a medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spot {
    /// Filemarks before it.
    pub file: u32,
    /// Blocks since the last of them.
    pub block: u64,
    /// Blocks and filemarks since the beginning of the medium, as `MTIOCPOS` counts.
    pub absolute: Option<u64>,
}

impl Spot {
    /// The first block of a file.
    pub(crate) fn start_of(file: u32, absolute: Option<u64>) -> Spot {
        Spot { file, block: 0, absolute: if file == 0 { Some(0) } else { absolute } }
    }

    /// Whether it is the same place by count.
    pub(super) fn is_at(self, other: Spot) -> bool {
        (self.file, self.block) == (other.file, other.block)
    }

    /// This many blocks further on in the same file.
    pub(super) fn plus(self, blocks: u64) -> Spot {
        let absolute = self.absolute.map(|number| number + blocks);
        Spot { block: self.block + blocks, absolute, ..self }
    }

    /// Behind the filemark at this position.
    pub(super) fn behind_filemark(self) -> Spot {
        let absolute = self.absolute.map(|number| number + 1);
        Spot { file: self.file + 1, block: 0, absolute }
    }
}

/// Where a tape stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TapeStands {
    /// Id of the medium in the drive.
    pub medium: [u8; 16],
    /// Blocks and filemarks before the position, if known.
    pub object: Option<u64>,
}

impl std::fmt::Display for Spot {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "file {}, block {}", self.file, self.block)
    }
}

/// The position that driver and drive report. Sends a command.
pub(super) fn ask(tape: &mut Tape) -> Option<Spot> {
    let status = tape.status().ok()?;
    let absolute = tape.position().ok();
    match (status.file_number, status.block_in_file) {
        (Some(file), Some(block)) => Some(Spot { file, block: block.into(), absolute }),
        _ => None,
    }
}

/// Goes to a position.
///
/// # Errors
/// When the drive cannot, or the position does not exist.
pub(super) fn go_to(tape: &mut Tape, to: Spot) -> Result<(), TapeError> {
    if tape.status().is_err() {
        // After a reset the driver knows no position and only rewinds (st.rst).
        tape.rewind()?;
    }
    let block_in_file = Some(u32::try_from(to.block).unwrap_or(u32::MAX));
    tape.go_to(TapePlace { file_number: Some(to.file), block_in_file }, to.absolute)
}
