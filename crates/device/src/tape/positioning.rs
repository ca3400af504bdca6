//! Finds places on a medium with the commands that the drive supports.
//!
//! A place is the number of its file and of the block in the file, and perhaps an absolute number
//! that counts blocks and filemarks alike. A drive can move to an absolute number by itself
//! (`MTSEEK`), but not every drive supports that, and the driver then loses the number of the file.
//! Spacing over filemarks and blocks always works.

use rustix::io::Errno;

use super::raw::{MtOperation, QuestionError};
use super::sense::Sense;
use super::{BlockMode, Tape, TapeError, TapePlace, TapeStatus};

/// More filemarks than a medium has; the driver spaces with 24 bits (`drivers/scsi/st.c`).
const ALL_FILEMARKS: i32 = 0x7f_ffff;
/// Most files that are counted one by one.
const FILES_MAX: u32 = 1 << 20;
/// SPACE(6), one block forward (SSC-3, 6.10).
const SPACE_OVER_A_BLOCK: [u8; 6] = [0x11, 0, 0, 0, 1, 0];
/// Most blocks of one command, for the same reason.
const BLOCKS_AT_ONCE: u32 = 0x7f_ffff;

impl Tape {
    /// Moves to a place: by its absolute number (see [`Tape::position`]) if that is known and the
    /// drive supports it, otherwise over filemarks and blocks from the current position. Parts of
    /// the place that are `None` count as 0.
    ///
    /// # Errors
    /// When the drive cannot, or there is no such place. The position is then unknown.
    pub fn go_to(&mut self, place: TapePlace, absolute: Option<u64>) -> Result<(), TapeError> {
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
            (Some(at), _) if at < file => self.space_filemarks(to_count(file - at))?,
            // A drive that reports its position also counts filemarks correctly on its way back. Of
            // the other drives, tgt's goes too far.
            (Some(at), _) if file > 0 && self.position().is_ok() => {
                self.space_filemarks(-to_count(at - file + 1))?;
                self.space_filemarks(1)?;
            }
            _ => {
                self.rewind()?;
                if file > 0 {
                    self.space_filemarks(to_count(file))?;
                }
            }
        }
        self.forward(block)
    }

    /// Moves behind all recorded data, and returns the number of the file that would begin there.
    ///
    /// A driver set to `MT_ST_FAST_EOM` loses count, and one that does not know its position counts
    /// wrongly. In both cases we move over filemarks from the beginning. The returned number counts
    /// then; the driver's own may still be unknown.
    ///
    /// # Errors
    /// When the drive cannot.
    pub fn to_end_of_data(&mut self) -> Result<u32, TapeError> {
        if self.status()?.file_number.is_none() {
            self.rewind()?;
        }
        let found = self.operate(MtOperation::EndOfData, 1, "find the end of the data on");
        // The driver continues when spacing over filemarks fails, whatever the drive reported.
        let is_failure = |said: Sense| !said.is_harmless() && !said.is_end_of_data();
        if found.is_ok() && self.raw.last_sense().is_some_and(is_failure) {
            return Err(self.failed("find the end of the data on", Errno::IO.into()));
        }
        let there = self.status()?;
        match (found, there.file_number) {
            // A blank medium has nothing to space over.
            (Err(error), _) if !there.at_end_of_data => return Err(error),
            (_, Some(files)) => return Ok(files),
            _ => {}
        }
        self.rewind()?;
        let _ = self.space_filemarks(ALL_FILEMARKS);
        let there = self.status()?;
        match there.file_number {
            Some(files) if there.at_end_of_data => Ok(files),
            _ => self.count_files(),
        }
    }

    /// Moves to the end of the data one filemark after the other: the last resort, since tgt's
    /// drive does not report how many it passed.
    fn count_files(&mut self) -> Result<u32, TapeError> {
        self.rewind()?;
        let mut files = 0;
        while files < FILES_MAX && self.space_filemarks(1).is_ok() {
            files += 1;
        }
        self.operate(MtOperation::EndOfData, 1, "find the end of the data on")?;
        Ok(files)
    }

    /// Whether the medium is blank. Leaves the tape at the beginning.
    ///
    /// Reading a blank medium and reading a bad first block give the same error number. So this
    /// tries whether the drive can space over anything.
    ///
    /// # Errors
    /// When the drive gives no clear answer.
    pub fn is_blank(&mut self) -> Result<bool, TapeError> {
        self.rewind()?;
        let first = self.first_object();
        // After a reset of the drive, the driver forgets the position at the first notice of the
        // drive, even after a rewind. The next rewind repairs that (seen with Linux 6.1).
        let lost = first.is_err() && self.status().is_err();
        if lost {
            self.rewind()?;
        }
        let blank = match if lost { self.first_object() } else { first } {
            Ok(first) => first.is_none(),
            Err(error) => {
                // Then compare by number: on a blank medium the end of the data is the beginning.
                self.rewind()?;
                let _ = self.operate(MtOperation::EndOfData, 1, "find the end of the data on");
                self.position().map_err(|_| error)? == 0
            }
        };
        self.rewind()?;
        Ok(blank)
    }

    /// Moves over the first block or filemark, if there is one.
    fn first_object(&mut self) -> Result<Option<()>, TapeError> {
        let error = match self.operate(MtOperation::ForwardBlocks, 1, "space forward on") {
            Ok(()) => return Ok(Some(())),
            Err(error) => error,
        };
        if self.met_end_of_data(&error) {
            return Ok(None);
        }
        match self.status() {
            // A filemark stops the spacing; the tape is behind it.
            Ok(TapeStatus { file_number: Some(1), .. }) => Ok(Some(())),
            _ => Err(error),
        }
    }

    /// Whether a read failed because there is no more data. The driver's status shows it only if
    /// the previous object was a filemark; otherwise spacing over a block shows it. The tape moves
    /// if there is a block after all, but the position after a failed read is unknown anyway. (Not
    /// in fixed mode: there a block of another size is such an error, and the driver has already
    /// gone back before it.)
    ///
    /// `said` is the drive's sense data of the read, if known.
    ///
    /// # Errors
    /// When the drive reports something else about that block.
    pub(super) fn failed_at_end_of_data(&mut self, said: Option<Sense>) -> Result<bool, TapeError> {
        match self.status() {
            Ok(TapeStatus { at_end_of_data: true, .. }) => Ok(true),
            Ok(TapeStatus { block_mode, .. })
                if block_mode == BlockMode::Variable || said.is_some() =>
            {
                self.nothing_follows()
            }
            _ => Ok(false),
        }
    }

    /// Whether no block follows, tested by spacing over it. If a block or a filemark follows, the
    /// tape is behind it afterwards.
    ///
    /// # Errors
    /// When the drive fails for another reason.
    pub fn nothing_follows(&mut self) -> Result<bool, TapeError> {
        match self.operate(MtOperation::ForwardBlocks, 1, "space forward on") {
            Ok(()) => Ok(false),
            Err(error) if self.met_end_of_data(&error) => match error.said {
                Some(_) => Ok(true),
                None => self.is_end_in_words(error),
            },
            // A filemark has no sense key.
            Err(error) if error.said.is_none_or(|said| said.key == 0) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether the tape stopped at the end of the data, by the codes of the blank check, which the
    /// driver does not log (`st_chk_result`). So we send the drive another space command, past the
    /// driver; it moves no tape at the end of the data. Without the right to send commands we have
    /// to rely on the sense key.
    fn is_end_in_words(&mut self, error: TapeError) -> Result<bool, TapeError> {
        match self.raw.command(&SPACE_OVER_A_BLOCK, &mut []) {
            Err(QuestionError::Refused(said)) if said.is_end_of_data() => Ok(true),
            Err(QuestionError::Refused(said)) if said.is_illegal_request() => Ok(true),
            // A filemark or a block: the tape is now behind it.
            Err(QuestionError::Refused(said)) if said.is_harmless() => Ok(false),
            Ok(_) => Ok(false),
            Err(QuestionError::Refused(said)) => Err(TapeError { said: Some(said), ..error }),
            Err(_) => Ok(true),
        }
    }

    /// Whether the last block read is not on the medium. If a drive reports the end of the data by
    /// the EOM bit (tgt 1.0.85), the driver returns old bytes, in the middle of a file without any
    /// other sign. If there is a block, the tape may be behind it afterwards.
    ///
    /// # Errors
    /// When the drive fails for another reason, or contradicts itself.
    pub fn was_past_the_end(&mut self, buffer: &mut [u8]) -> Result<bool, TapeError> {
        let past = self.status()?.met_end_of_medium && self.is_past_the_end(buffer)?;
        self.met_end |= past;
        Ok(past)
    }

    /// Like `was_past_the_end`, for a read that met the end of the medium: there is no block to
    /// space over, and the next read gives the same result.
    pub(super) fn is_past_the_end(&mut self, buffer: &mut [u8]) -> Result<bool, TapeError> {
        let error = match self.operate(MtOperation::ForwardBlocks, 1, "space forward on") {
            Ok(()) => return Ok(false),
            Err(error) if error.said.is_none_or(|said| said.key == 0) => error,
            Err(error) => return Err(error),
        };
        // The position may be unknown now, so a read decides.
        match self.raw.read(buffer) {
            Ok(_) => {}
            Err(error) => return Err(self.failed("read", error)),
        }
        let there = self.status()?;
        if there.met_end_of_medium || there.at_end_of_data { Ok(true) } else { Err(error) }
    }

    /// Moves over the blocks of a file that no filemark closes, to the end of the data. Anything
    /// else that stops the tape is an error.
    ///
    /// # Errors
    /// When a filemark comes, or the drive fails.
    pub fn over_open_file(&mut self) -> Result<(), TapeError> {
        loop {
            let count = BLOCKS_AT_ONCE as i32;
            if let Err(error) = self.operate(MtOperation::ForwardBlocks, count, "space forward on")
            {
                return if self.met_end_of_data(&error) { Ok(()) } else { Err(error) };
            }
        }
    }

    /// Whether the tape stopped at the end of the data.
    fn met_end_of_data(&mut self, error: &TapeError) -> bool {
        error.said.is_none_or(|said| said.is_end_of_data())
            && self.status().is_ok_and(|status| status.at_end_of_data)
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

/// A count of filemarks in the driver's type.
fn to_count(files: u32) -> i32 {
    i32::try_from(files).unwrap_or(ALL_FILEMARKS)
}
