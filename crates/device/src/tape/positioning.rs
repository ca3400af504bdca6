//! Finding places on a medium, with whatever the drive at hand can do.
//!
//! A place is known by the number of its file and of the block in the file, and perhaps by the number
//! that counts blocks and filemarks alike. Drives find the latter by themselves (`MTSEEK`), but not
//! every drive can, and the driver forgets in which file it is when it does. Spacing over filemarks
//! and blocks always works.

use super::raw::Operation;
use super::{Place, Tape, TapeError, TapeStatus};

/// More filemarks than a medium has; the driver spaces with 24 bits (`drivers/scsi/st.c`).
const ALL_FILEMARKS: i32 = 0x7f_ffff;
/// Most blocks of one command, for the same reason.
const BLOCKS_AT_ONCE: u32 = 0x7f_ffff;

impl Tape {
    /// To a place: by its absolute number (see [`Tape::position`]) where that is known and the drive
    /// can, or else over filemarks and blocks from where the tape stands. Parts of the place that are
    /// `None` count as 0.
    ///
    /// # Errors
    /// When the drive cannot, or there is no such place. The position is then unknown.
    pub fn go_to(&mut self, place: Place, absolute: Option<u64>) -> Result<(), TapeError> {
        if let Some(number) = absolute.filter(|number| *number > 0)
            && self.seek(number).is_ok()
        {
            return Ok(());
        }
        let file = place.file_number.unwrap_or(0);
        let block = place.block_in_file.unwrap_or(0);
        let here = self.status()?;
        match (here.file_number, here.block_in_file) {
            (Some(at), Some(before)) if at == file && before <= block => {
                return self.forward(block - before);
            }
            _ if file == 0 => self.rewind()?,
            (Some(at), _) if at < file => self.space_filemarks(to_count(file - at))?,
            (Some(at), _) => {
                self.space_filemarks(-to_count(at - file + 1))?;
                self.space_filemarks(1)?;
            }
            (None, _) => {
                self.rewind()?;
                self.space_filemarks(to_count(file))?;
            }
        }
        self.forward(block)
    }

    /// Behind all that was recorded, and tells the number of the file that would begin there; `None`
    /// when the driver cannot count.
    ///
    /// A driver that was told to go there fast (`MT_ST_FAST_EOM`) loses count, and one that did not
    /// know where it was counts nonsense, so both are led there over filemarks from the beginning.
    ///
    /// # Errors
    /// When the drive cannot.
    pub fn to_end_of_data(&mut self) -> Result<Option<u32>, TapeError> {
        if self.status()?.file_number.is_none() {
            self.rewind()?;
        }
        let found = self.operate(Operation::EndOfData, 1, "find the end of the data on");
        let there = self.status()?;
        match found {
            // On a blank medium there is nothing that the drive could space over.
            Err(error) if !there.at_end_of_data => return Err(error),
            _ if there.file_number.is_some() => return Ok(there.file_number),
            _ => {}
        }
        self.rewind()?;
        let counted = self.space_filemarks(ALL_FILEMARKS);
        let there = self.status()?;
        match counted {
            Err(error) if !there.at_end_of_data => Err(error),
            _ => Ok(there.file_number),
        }
    }

    /// Whether nothing is recorded on the medium. Leaves the tape at the beginning.
    ///
    /// A blank medium and one whose first block cannot be read give the same error number, so the
    /// drive is asked where its data end.
    ///
    /// # Errors
    /// When the drive cannot say.
    pub fn is_blank(&mut self) -> Result<bool, TapeError> {
        self.rewind()?;
        // Over one block or filemark: where there is none, the drive reports the end of the data.
        let moved = self.operate(Operation::ForwardBlocks, 1, "space forward on");
        let status = self.status();
        self.rewind()?;
        match (moved, status?) {
            (Ok(()), _) => Ok(false),
            (Err(_), TapeStatus { at_end_of_data: true, file_number: Some(0), .. }) => Ok(true),
            // A filemark at the very beginning stops the spacing as well, and is data.
            (Err(_), TapeStatus { file_number: Some(1), .. }) => Ok(false),
            (Err(error), _) => Err(error),
        }
    }

    /// Over so many blocks.
    fn forward(&mut self, blocks: u32) -> Result<(), TapeError> {
        let mut left = blocks;
        while left > 0 {
            let now = left.min(BLOCKS_AT_ONCE);
            self.space_blocks(now as i32)?;
            left -= now;
        }
        Ok(())
    }
}

/// A count of filemarks as the driver takes it.
fn to_count(files: u32) -> i32 {
    i32::try_from(files).unwrap_or(ALL_FILEMARKS)
}
