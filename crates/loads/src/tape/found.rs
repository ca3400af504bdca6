//! What is on a medium already, and where it ends.

use device::tape::{BlockMode, Filemark, Tape, TapeError, TapePlace, TapeRead};

use super::error::TapeBenchError;
use super::label::{LABEL_BYTES, Label};

/// What a file begins with.
pub(super) enum First {
    /// Nothing was ever recorded there.
    Blank,
    /// The label of an experiment.
    Ours(Label),
    Foreign,
}

/// Sense key of a read where nothing was ever written, SPC-4 4.5.6.
const BLANK_CHECK: u8 = 8;

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
        Err(error) => {
            let said_so = error.said.is_some_and(|sense| sense.key == BLANK_CHECK);
            if said_so || tape.status().is_ok_and(|status| status.at_end_of_data) {
                Ok(First::Blank)
            } else {
                Err(error)
            }
        }
    }
}

/// Behind all that is recorded, and behind a filemark. Returns the number of the file there.
pub(super) fn behind_data(tape: &mut Tape) -> Result<u32, TapeBenchError> {
    tape.set_block_mode(BlockMode::Variable)?;
    tape.rewind()?;
    if let First::Blank = read_first(tape)? {
        tape.rewind()?;
        return Ok(0);
    }
    let files = tape.to_end_of_data()?;
    let last = TapePlace { file_number: Some(files), block_in_file: None };
    tape.go_to(last, None)?;
    let is_closed = matches!(read_first(tape)?, First::Blank);
    tape.to_end_of_data()?;
    if is_closed {
        return Ok(files);
    }
    // Somebody's last file has no end.
    tape.write_filemark(Filemark::Synchronising)?;
    Ok(files + 1)
}
