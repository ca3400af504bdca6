//! Where a tape stands, by count, and how to get it somewhere else.
//!
//! Not every drive knows absolute block numbers, and where they are used the driver forgets in which
//! file it is (`MTSEEK` makes `mt_fileno` unknown, st.rst). So places are kept as number of the
//! file and block in the file, with the absolute number beside them where there is one.

use device::tape::{Tape, TapeError};

/// A place on a medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spot {
    /// Filemarks before it.
    pub file: u32,
    /// Blocks between the last of them and it.
    pub block: u64,
    /// Blocks and filemarks from the beginning of the medium, as `MTIOCPOS` counts.
    pub absolute: Option<u64>,
}

impl Spot {
    /// For `block`: in the file, but nobody knows where.
    pub const SOMEWHERE: u64 = u64::MAX;

    /// The first block of a file.
    pub fn start_of(file: u32, absolute: Option<u64>) -> Spot {
        Spot { file, block: 0, absolute: if file == 0 { Some(0) } else { absolute } }
    }

    /// So many blocks further on in the same file.
    pub fn plus(self, blocks: u64) -> Spot {
        let absolute = self.absolute.map(|number| number + blocks);
        Spot { block: self.block.saturating_add(blocks), absolute, ..self }
    }

    /// Behind the filemark that stands here.
    pub fn behind_filemark(self) -> Spot {
        let absolute = self.absolute.map(|number| number + 1);
        Spot { file: self.file + 1, block: 0, absolute }
    }
}

impl std::fmt::Display for Spot {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "file {}, block {}", self.file, self.block)
    }
}

/// Where the driver and the drive say that the tape stands. Sends a command.
pub(super) fn ask(tape: &mut Tape) -> Option<Spot> {
    let status = tape.status().ok()?;
    let absolute = tape.position().ok();
    match (status.file_number, status.block_in_file) {
        (Some(file), Some(block)) => Some(Spot { file, block: block.into(), absolute }),
        _ => None,
    }
}

/// Goes to a place, from `from` if that is known.
///
/// # Errors
/// When the drive cannot, or there is no such place.
pub(super) fn go_to(tape: &mut Tape, from: Option<Spot>, to: Spot) -> Result<(), TapeError> {
    if from == Some(to) {
        return Ok(());
    }
    if let Some(number) = to.absolute.filter(|number| *number > 0)
        && tape.seek(number).is_ok()
    {
        return Ok(());
    }
    match from {
        Some(from) if from.file == to.file && from.block <= to.block => {
            return space_blocks(tape, to.block - from.block);
        }
        _ if to.file == 0 => tape.rewind()?,
        Some(from) if from.file < to.file => {
            tape.space_filemarks((to.file - from.file) as i32)?;
        }
        Some(from) => {
            tape.space_filemarks(-((from.file - to.file + 1) as i32))?;
            tape.space_filemarks(1)?;
        }
        None => {
            tape.rewind()?;
            tape.space_filemarks(to.file as i32)?;
        }
    }
    space_blocks(tape, to.block)
}

fn space_blocks(tape: &mut Tape, blocks: u64) -> Result<(), TapeError> {
    /// The driver takes 24 bits in one command.
    const AT_ONCE: u64 = (1 << 23) - 1;
    let mut left = blocks;
    while left > 0 {
        let now = left.min(AT_ONCE);
        tape.space_blocks(now as i32)?;
        left -= now;
    }
    Ok(())
}
