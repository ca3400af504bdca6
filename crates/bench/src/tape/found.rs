//! What is on a medium already, and where it ends.

use device::tape::{BlockMode, Filemark, Place, Tape, TapeError, TapeRead};

use super::TapeBenchError;
use super::label::{LABEL_BYTES, Label};

/// What a file begins with.
pub(super) enum First {
    /// Nothing was ever recorded there.
    Blank,
    /// The label of an experiment.
    Ours(Label),
    /// Anything else.
    Foreign,
}

/// Looks at the block at the position of the tape. By reading: tgt's drive does not tell a blank
/// medium from an error when it is spaced over.
pub(super) fn read_first(tape: &mut Tape) -> Result<First, TapeError> {
    let mut block = vec![0; 2 * LABEL_BYTES];
    match tape.read(&mut block) {
        Ok(TapeRead::Block(bytes)) => {
            Ok(Label::parse(&block[..bytes]).map_or(First::Foreign, First::Ours))
        }
        Ok(TapeRead::LargerBlock | TapeRead::Filemark) => Ok(First::Foreign),
        Ok(TapeRead::EndOfData) => Ok(First::Blank),
        Err(error) => Err(error),
    }
}

/// Behind all that is recorded, and behind a filemark. Returns the number of the file there.
///
/// The files are counted first. Then the tape goes over so many filemarks from the beginning, on a
/// way on which no command may fail: a failure may be the notice of another medium.
pub(super) fn behind_data(tape: &mut Tape, numbers: Numbers) -> Result<u32, TapeBenchError> {
    tape.set_block_mode(BlockMode::Variable)?;
    tape.rewind()?;
    if let First::Blank = read_first(tape)? {
        tape.rewind()?;
        return Ok(0);
    }
    let files = tape.to_end_of_data()?;
    tape.rewind()?;
    tape.go_to(Place { file_number: Some(files), block_in_file: None }, None)?;
    let is_blank = matches!(read_first(tape)?, First::Blank);
    if is_blank && (numbers == Numbers::Unknown || tape.nothing_follows()?) {
        return Ok(files);
    }
    // Somebody's last file has no end.
    match numbers {
        Numbers::Told => tape.over_open_file()?,
        // Drives that tell less do not tell this end from any error while they space (tgt's).
        Numbers::Unknown => drop(tape.to_end_of_data()?),
    }
    tape.write_filemark(Filemark::Synchronising)?;
    Ok(files + 1)
}

/// Whether the drive tells where it is. Asked before the medium is looked at: later on a question
/// without an answer is a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    Told,
    Unknown,
}

impl Numbers {
    /// Asks once whether there are numbers.
    pub(super) fn of(tape: &mut Tape) -> Numbers {
        if tape.position().is_ok() { Numbers::Told } else { Numbers::Unknown }
    }

    /// Number of the next object.
    pub(super) fn ask(self, tape: &mut Tape) -> Result<Option<u64>, TapeError> {
        match self {
            Numbers::Told => tape.position().map(Some),
            Numbers::Unknown => Ok(None),
        }
    }
}
