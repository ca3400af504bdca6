//! Finding places on a medium, with whatever the drive at hand can do.
//!
//! A place is known by the number of its file and of the block in the file, and perhaps by the
//! number that counts blocks and filemarks alike. Drives find the latter by themselves (`MTSEEK`),
//! but not every drive can, and the driver forgets in which file it is when it does. Spacing over
//! filemarks and blocks always works.

use rustix::io::Errno;

use super::raw::{CommandError, MtOperation};
use super::sense::Sense;
use super::{BlockMode, Tape, TapeError, TapePlace, TapeStatus};

/// More filemarks than a medium has; the driver spaces with 24 bits (`drivers/scsi/st.c`).
const ALL_FILEMARKS: i32 = 0x7f_ffff;
/// Files that are counted one by one.
const FILES_MAX: u32 = 1 << 20;
/// SPACE(6), one block forward (SSC-3, 6.10).
const SPACE_OVER_A_BLOCK: [u8; 6] = [0x11, 0, 0, 0, 1, 0];
/// Most blocks of one command, for the same reason.
const BLOCKS_AT_ONCE: u32 = 0x7f_ffff;

impl Tape {
    /// To a place: by its absolute number (see [`Tape::position`]) where that is known and the
    /// drive can, or else over filemarks and blocks from where the tape stands. Parts of the place
    /// that are `None` count as 0.
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
            // A drive that tells where it is counts filemarks right on its way back, too; of those
            // that do not, tgt's goes too far.
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

    /// Behind all that was recorded, and tells the number of the file that would begin there.
    ///
    /// A driver that was told to go there fast (`MT_ST_FAST_EOM`) loses count, and one that did not
    /// know where it was counts nonsense, so both are led there over filemarks from the beginning.
    /// The number is what counts then: the driver's own may still be unknown.
    ///
    /// # Errors
    /// When the drive cannot.
    pub fn to_end_of_data(&mut self) -> Result<u32, TapeError> {
        if self.status()?.file_number.is_none() {
            self.rewind()?;
        }
        let found = self.operate(MtOperation::EndOfData, 1, "find the end of the data on");
        // The driver goes on when its way over filemarks fails, whatever the drive said of it.
        let is_failure = |said: Sense| !said.is_harmless() && !said.is_end_of_data();
        if found.is_ok() && self.raw.last_sense().is_some_and(is_failure) {
            return Err(self.failed("find the end of the data on", Errno::IO.into()));
        }
        let there = self.status()?;
        match (found, there.file_number) {
            // On a blank medium there is nothing that the drive could space over.
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

    /// To the end of the data one filemark after the other: the last resort, since tgt's drive does
    /// not tell how many it passed.
    fn count_files(&mut self) -> Result<u32, TapeError> {
        self.rewind()?;
        let mut files = 0;
        while files < FILES_MAX && self.space_filemarks(1).is_ok() {
            files += 1;
        }
        self.operate(MtOperation::EndOfData, 1, "find the end of the data on")?;
        Ok(files)
    }

    /// Whether nothing is recorded on the medium. Leaves the tape at the beginning.
    ///
    /// A read of a blank medium and one of a bad first block give the same error number, so the
    /// drive is asked whether it can space over anything.
    ///
    /// # Errors
    /// When the drive cannot say.
    pub fn is_blank(&mut self) -> Result<bool, TapeError> {
        self.rewind()?;
        let first = self.first_object();
        // A driver whose drive was reset forgets the position at the first thing that the drive has
        // to report, even after a rewind; the next rewind mends it (seen with Linux 6.1).
        let lost = first.is_err() && self.status().is_err();
        if lost {
            self.rewind()?;
        }
        let blank = match if lost { self.first_object() } else { first } {
            Ok(first) => first.is_none(),
            Err(error) => {
                // By number then: the end of the data is the beginning.
                self.rewind()?;
                let _ = self.operate(MtOperation::EndOfData, 1, "find the end of the data on");
                self.position().map_err(|_| error)? == 0
            }
        };
        self.rewind()?;
        Ok(blank)
    }

    /// Over the first block or filemark, if there is one.
    fn first_object(&mut self) -> Result<Option<()>, TapeError> {
        let error = match self.operate(MtOperation::ForwardBlocks, 1, "space forward on") {
            Ok(()) => return Ok(Some(())),
            Err(error) => error,
        };
        if self.met_end_of_data(&error) {
            return Ok(None);
        }
        match self.status() {
            // A filemark stops the spacing, with the tape behind it.
            Ok(TapeStatus { file_number: Some(1), .. }) => Ok(Some(())),
            _ => Err(error),
        }
    }

    /// Whether a read has failed since there is nothing more to read. The driver says so in its
    /// status where the last thing before was a filemark, and not otherwise; then spacing over
    /// a block tells. The tape moves if there is a block after all: the position after a read
    /// that failed is not known anyway. (In fixed mode it is: a block of another size is such an
    /// error, and the driver has gone back before it.)
    ///
    /// `said` is what the drive said of the read, if that is known.
    ///
    /// # Errors
    /// When the drive says something else of that block.
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

    /// Whether there is no block before the head, by spacing over it. If there is one, or a
    /// filemark, it is behind the head then.
    ///
    /// # Errors
    /// When the drive fails for another reason, and says so.
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

    /// Whether what stopped the tape is the end of the data by the codes of the blank check, which
    /// the driver logs for nobody (`st_chk_result`). So the drive is asked past it, to space over
    /// a block once more, which moves no tape at the end. Who may not ask has to believe the key.
    fn is_end_in_words(&mut self, error: TapeError) -> Result<bool, TapeError> {
        match self.raw.command(&SPACE_OVER_A_BLOCK, &mut []) {
            Err(CommandError::Refused(said)) if said.is_end_of_data() => Ok(true),
            Err(CommandError::Refused(said)) if said.is_illegal_request() => Ok(true),
            // A filemark, or a block: the tape is behind it.
            Err(CommandError::Refused(said)) if said.is_harmless() => Ok(false),
            Ok(_) => Ok(false),
            Err(CommandError::Refused(said)) => Err(TapeError { said: Some(said), ..error }),
            Err(_) => Ok(true),
        }
    }

    /// Whether the block that was read last stands on no medium: a drive that tells the end of the
    /// data by the EOM bit (tgt 1.0.85) makes the driver hand out old bytes, in the middle of a
    /// file without any other sign. If there is a block, the tape may be behind it.
    ///
    /// # Errors
    /// When the drive fails for another reason, or contradicts itself.
    pub fn was_past_the_end(&mut self, buffer: &mut [u8]) -> Result<bool, TapeError> {
        let past = self.status()?.met_end_of_medium && self.is_past_the_end(buffer)?;
        self.met_end |= past;
        Ok(past)
    }

    /// The same of a read that met the end of the medium: there is no block to space over, and the
    /// next read is another one of that kind.
    pub(super) fn is_past_the_end(&mut self, buffer: &mut [u8]) -> Result<bool, TapeError> {
        let error = match self.operate(MtOperation::ForwardBlocks, 1, "space forward on") {
            Ok(()) => return Ok(false),
            Err(error) if error.said.is_none_or(|said| said.key == 0) => error,
            Err(error) => return Err(error),
        };
        // What that was may not be known. So the last word is that of a read.
        match self.raw.read(buffer) {
            Ok(_) => {}
            Err(error) => return Err(self.failed("read", error)),
        }
        let there = self.status()?;
        if there.met_end_of_medium || there.at_end_of_data { Ok(true) } else { Err(error) }
    }

    /// Over the blocks of a file that no filemark closes, to the end of the data. Whatever else
    /// stops the tape is an error.
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

    /// Whether the end of the data is what stopped the tape.
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

/// A count of filemarks as the driver takes it.
fn to_count(files: u32) -> i32 {
    i32::try_from(files).unwrap_or(ALL_FILEMARKS)
}
