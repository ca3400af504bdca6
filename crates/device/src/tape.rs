//! A tape drive and the medium in it.
//!
//! [`Tape`] interprets the calls of [`raw::RawTape`]: it separates a filemark from an empty read,
//! the end of the medium from a failure, and it steps back before a block that is too large. Facts
//! about the driver come from the kernel's `Documentation/scsi/st.rst`. All tape ioctls of the
//! project are in this module.
//!
//! Not here: sets, segments and volumes, which are `tapeset`'s; moving the bytes, which is
//! `flow`'s.

pub mod drive;
pub mod limits;
pub mod played;
mod positioning;
mod questions;
pub mod raw;
pub mod scsi;
pub mod sense;
pub mod st;
pub mod survey;
pub mod test_area;

use std::io;

use raw::{
    GMT_BOT, GMT_DR_OPEN, GMT_EOD, GMT_EOT, GMT_ONLINE, GMT_WR_PROT, MtOperation, RawStatus,
    RawTape, Statistics,
};
use rustix::io::Errno;
use sense::Sense;

pub use drive::{Access, Holder, OpenError, TapeDrive, find};
pub use questions::{CompressionError, DriveCompression};
pub use raw::QuestionError;
pub use scsi::mode::Compression;

/// How blocks are laid out on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockMode {
    /// Each write is one block.
    Variable,
    /// Each block has this many bytes; a write is a whole number of blocks.
    Fixed(u32),
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapeRead {
    /// A block (in fixed mode one or several) of this many bytes, at the start of the buffer.
    Block(usize),
    /// A filemark; the tape is now behind it.
    Filemark,
    /// No more recorded data.
    EndOfData,
    /// The block is larger than the buffer. The tape is before the block again.
    LargerBlock,
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapeWrite {
    /// Everything was written.
    Whole,
    /// The end of the medium is near. This many bytes were written (in variable mode none). The
    /// driver lets the next write through, for a trailer.
    EndOfMedium(usize),
}

/// Whether a filemark waits for the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filemark {
    /// The drive keeps streaming; errors surface later.
    Immediate,
    /// Returns when everything is on the medium; errors surface here.
    Synchronising,
}

/// State of drive and medium, from [`Tape::status`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TapeStatus {
    /// Files before the position, if known.
    pub file_number: Option<u32>,
    /// Blocks from the last filemark, if known.
    pub block_in_file: Option<u32>,
    /// How the driver cuts blocks now.
    pub block_mode: BlockMode,
    /// Density code of the medium; 0 when unknown.
    pub density: u8,
    /// At the beginning of the medium.
    pub at_beginning: bool,
    /// At the end of the recorded data.
    pub at_end_of_data: bool,
    /// The last command met the end of the medium, or the drive reported so.
    pub met_end_of_medium: bool,
    /// The medium cannot be written to.
    pub write_protected: bool,
    /// A medium is loaded and ready.
    pub online: bool,
    /// The drive is empty.
    pub no_medium: bool,
    /// The driver's answer.
    pub raw: RawStatus,
}

/// From here on, file numbers are invalid: the driver counts from -1 plus the 24 bits of a space
/// command when it moves to the end of the data from an unknown position (seen with Linux 6.1).
const NO_FILE: u32 = 0x7f_ffff;

impl From<RawStatus> for TapeStatus {
    fn from(raw: RawStatus) -> TapeStatus {
        let has = |bit| raw.general_status & bit != 0;
        let block_bytes = (raw.density_and_block_size & 0xff_ffff) as u32;
        TapeStatus {
            file_number: u32::try_from(raw.file_number).ok().filter(|file| *file < NO_FILE),
            block_in_file: u32::try_from(raw.block_number).ok(),
            block_mode: match block_bytes {
                0 => BlockMode::Variable,
                bytes => BlockMode::Fixed(bytes),
            },
            density: (raw.density_and_block_size >> 24 & 0xff) as u8,
            at_beginning: has(GMT_BOT),
            at_end_of_data: has(GMT_EOD),
            met_end_of_medium: has(GMT_EOT),
            write_protected: has(GMT_WR_PROT),
            online: has(GMT_ONLINE) && !has(GMT_DR_OPEN),
            no_medium: has(GMT_DR_OPEN),
            raw,
        }
    }
}

/// An operation on the tape failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what} {device}{place}{}", in_words(said.as_ref()))]
pub struct TapeError {
    /// What was attempted, a verb: read, write, rewind.
    pub what: &'static str,
    pub device: String,
    /// The place, if known.
    pub place: TapePlace,
    /// The drive's sense data, if known.
    pub said: Option<Sense>,
    /// The driver's error.
    #[source]
    pub source: io::Error,
}

fn in_words(said: Option<&Sense>) -> String {
    said.map(|sense| format!(": {sense}")).unwrap_or_default()
}

/// A place on the medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TapePlace {
    /// Number of the file: filemarks before it.
    pub file_number: Option<u32>,
    pub block_in_file: Option<u32>,
}

impl std::fmt::Display for TapePlace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.file_number, self.block_in_file) {
            (Some(file), Some(block)) => write!(formatter, " at file {file}, block {block}"),
            (Some(file), None) => write!(formatter, " in file {file}"),
            _ => Ok(()),
        }
    }
}

/// A tape drive, open.
pub struct Tape {
    raw: Box<dyn RawTape>,
    name: String,
    /// The last read returned a filemark.
    behind_filemark: bool,
    /// No block was read since the tape was moved or met a filemark.
    first_block: bool,
    /// A read met the end of the data, and the driver remembers it.
    met_end: bool,
}

impl Tape {
    /// Wraps an open drive; `name` is for messages.
    pub fn new(raw: Box<dyn RawTape>, name: impl Into<String>) -> Tape {
        Tape { raw, name: name.into(), behind_filemark: false, first_block: true, met_end: false }
    }

    /// Name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The driver's calls themselves.
    pub fn raw(&mut self) -> &mut dyn RawTape {
        &mut *self.raw
    }

    /// State of drive and medium; sends no command to the drive.
    ///
    /// # Errors
    /// When the driver does not answer.
    pub fn status(&mut self) -> Result<TapeStatus, TapeError> {
        match self.raw.status() {
            Ok(raw) => Ok(raw.into()),
            Err(error) => Err(self.failed("query the state of", error)),
        }
    }

    /// Number of the next object on the medium: blocks and filemarks counted from the beginning.
    /// Sends a command: not while the drive streams.
    ///
    /// # Errors
    /// When the drive does not know its position.
    pub fn position(&mut self) -> Result<u64, TapeError> {
        self.raw.position().map_err(|error| self.failed("query the position of", error))
    }

    /// Reads the next block.
    ///
    /// # Errors
    /// When the drive cannot read it. The position is then unknown, or behind the block.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<TapeRead, TapeError> {
        let read = self.read_next(buffer)?;
        self.met_end |= read == TapeRead::EndOfData;
        Ok(read)
    }

    fn read_next(&mut self, buffer: &mut [u8]) -> Result<TapeRead, TapeError> {
        match self.raw.read(buffer) {
            Ok(0) => {
                let at_end = match self.raw.status() {
                    Ok(status) => status.general_status & GMT_EOD != 0,
                    // A second empty read in a row is the end of the data (st.rst).
                    Err(_) => self.behind_filemark,
                };
                self.behind_filemark = !at_end;
                self.first_block = true;
                Ok(if at_end { TapeRead::EndOfData } else { TapeRead::Filemark })
            }
            Ok(bytes) => {
                self.behind_filemark = false;
                let first = std::mem::replace(&mut self.first_block, false);
                if !first || !self.was_no_block() {
                    return Ok(TapeRead::Block(bytes));
                }
                if self.is_past_the_end(buffer)? {
                    Ok(TapeRead::EndOfData)
                } else {
                    Err(self.failed("read", Errno::IO.into()))
                }
            }
            // The driver has already read past the block (st.rst).
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NOMEM) => {
                self.operate(MtOperation::BackwardBlocks, 1, "step back on")?;
                Ok(TapeRead::LargerBlock)
            }
            Err(error) => {
                // A blank check is not logged, and has the same error number as any failure.
                let failed = self.failed("read", error);
                let unclear = failed.said.is_none_or(|said| said.is_end_of_data())
                    && failed.source.raw_os_error() == Some(Errno::IO.raw_os_error());
                if unclear && self.failed_at_end_of_data(failed.said)? {
                    Ok(TapeRead::EndOfData)
                } else {
                    Err(failed)
                }
            }
        }
    }

    /// Writes a block.
    ///
    /// # Errors
    /// When the drive refuses the block, or reports that an earlier one did not reach the medium.
    pub fn write(&mut self, block: &[u8]) -> Result<TapeWrite, TapeError> {
        // After a read that met the end of the data by the EOM bit, the driver lets the next write
        // through as a trailer and refuses the one behind it (`st_write`, `ST_EOD_1`).
        if self.met_end {
            self.synchronise()?;
        }
        match self.raw.write(block) {
            Ok(bytes) if bytes == block.len() => Ok(TapeWrite::Whole),
            Ok(bytes) => Ok(TapeWrite::EndOfMedium(bytes)),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NOSPC) => {
                Ok(TapeWrite::EndOfMedium(0))
            }
            Err(error) => {
                let failed = self.failed("write", error);
                self.forget_writing();
                Err(failed)
            }
        }
    }

    /// Keeps the driver from writing a filemark when it closes a device whose last write failed.
    /// After a change of medium or a reset of the drive, the tape is at the beginning, and that
    /// filemark would overwrite the medium there (seen with Linux 6.1). Any operation that moves
    /// the tape makes the driver forget that it was writing, even a move by no blocks.
    fn forget_writing(&mut self) {
        // If the drive refuses even this, nothing helps; the original error is the one to report.
        let _ = self.raw.operate(MtOperation::ForwardBlocks, 0);
    }

    /// Writes a filemark.
    ///
    /// # Errors
    /// When it, or a block before it, did not reach the medium.
    pub fn write_filemark(&mut self, filemark: Filemark) -> Result<(), TapeError> {
        let operation = match filemark {
            Filemark::Immediate => MtOperation::WriteFilemarksImmediate,
            Filemark::Synchronising => MtOperation::WriteFilemarks,
        };
        self.operate(operation, 1, "write a filemark to")
    }

    /// Waits until everything written is on the medium. Writes nothing.
    ///
    /// # Errors
    /// When something did not reach the medium.
    pub fn synchronise(&mut self) -> Result<(), TapeError> {
        self.operate(MtOperation::WriteFilemarks, 0, "synchronise")
    }

    /// Winds to the beginning of the medium.
    ///
    /// # Errors
    /// When the drive cannot.
    pub fn rewind(&mut self) -> Result<(), TapeError> {
        self.operate(MtOperation::Rewind, 1, "rewind")
    }

    /// Winds to the object with this number, see [`Tape::position`].
    ///
    /// # Errors
    /// When the drive cannot, or there is no such object.
    pub fn seek(&mut self, position: u64) -> Result<(), TapeError> {
        match i32::try_from(position) {
            Ok(count) => self.operate(MtOperation::Seek, count, "position"),
            Err(_) => Err(self.failed("position", Errno::OVERFLOW.into())),
        }
    }

    /// Moves over `count` filemarks. A negative count goes back and stops before the last one.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn space_filemarks(&mut self, count: i32) -> Result<(), TapeError> {
        if count < 0 {
            self.operate(MtOperation::BackwardFilemarks, -count, "space back on")
        } else {
            self.operate(MtOperation::ForwardFilemarks, count, "space forward on")
        }
    }

    /// Moves over `count` blocks. A negative count goes back.
    ///
    /// # Errors
    /// When a filemark or an end comes first.
    pub fn space_blocks(&mut self, count: i32) -> Result<(), TapeError> {
        if count < 0 {
            self.operate(MtOperation::BackwardBlocks, -count, "space back on")
        } else {
            self.operate(MtOperation::ForwardBlocks, count, "space forward on")
        }
    }

    /// Sets how blocks are cut. The setting outlives this program, so every program sets it.
    ///
    /// # Errors
    /// When the drive does not support the block size.
    pub fn set_block_mode(&mut self, mode: BlockMode) -> Result<(), TapeError> {
        let bytes = match mode {
            BlockMode::Variable => 0,
            BlockMode::Fixed(bytes) => bytes as i32,
        };
        self.operate(MtOperation::SetBlockSize, bytes, "set the block size of")
    }

    /// Rewinds and ejects the medium.
    ///
    /// # Errors
    /// When the drive cannot.
    pub fn eject(&mut self) -> Result<(), TapeError> {
        self.operate(MtOperation::Offline, 1, "eject the medium of")
    }

    /// The kernel's counters of this drive.
    pub fn statistics(&mut self) -> Option<Statistics> {
        self.raw.statistics()
    }

    fn operate(
        &mut self,
        operation: MtOperation,
        count: i32,
        what: &'static str,
    ) -> Result<(), TapeError> {
        self.behind_filemark = false;
        self.first_block = true;
        self.raw.operate(operation, count).map_err(|error| self.failed(what, error))?;
        // A call that only changes a setting keeps what the driver has met (`st_int_ioctl`,
        // `chg_eof`).
        self.met_end &= operation == MtOperation::SetBlockSize;
        Ok(())
    }

    /// Whether the bytes of the last read may not be from the medium. If a drive reports the end of
    /// the data with the EOM bit and without a residual (tgt 1.0.85), the driver returns its whole
    /// buffer with old bytes. The driver's state shows it: end of data behind a filemark, end of
    /// the medium at the very first block. Sends no command.
    fn was_no_block(&mut self) -> bool {
        self.raw.status().is_ok_and(|status| {
            let has = |bit| status.general_status & bit != 0;
            let first = status.file_number == 0 && status.block_number == 1;
            has(GMT_EOD) || (has(GMT_EOT) && first)
        })
    }

    fn failed(&mut self, what: &'static str, source: io::Error) -> TapeError {
        let said = self.raw.last_sense();
        let place = match self.raw.status().map(TapeStatus::from) {
            Ok(TapeStatus { file_number, block_in_file, .. }) => {
                TapePlace { file_number, block_in_file }
            }
            Err(_) => TapePlace::default(),
        };
        TapeError { what, device: self.name.clone(), place, said, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_bits_have_meanings() {
        let raw = RawStatus {
            density_and_block_size: 0x5e << 24 | 65_536,
            general_status: GMT_ONLINE | GMT_WR_PROT | GMT_BOT,
            ..RawStatus::default()
        };
        let status = TapeStatus::from(raw);
        assert_eq!((status.density, status.block_mode), (0x5e, BlockMode::Fixed(65_536)));
        assert!(status.online && status.write_protected && status.at_beginning);
        assert!(!status.at_end_of_data && !status.no_medium);
        // Bits of the previous medium may remain beside that of an empty drive.
        let status = TapeStatus::from(RawStatus { general_status: GMT_DR_OPEN | GMT_EOD, ..raw });
        assert!(status.no_medium && !status.online);
        // `mt_dsreg` is a signed number.
        let raw = RawStatus { density_and_block_size: i64::from(0xd8_00_02_00_u32 as i32), ..raw };
        let status = TapeStatus::from(raw);
        assert_eq!((status.density, status.block_mode), (0xd8, BlockMode::Fixed(512)));
    }

    #[test]
    fn numbers_that_nobody_knows() {
        let place = |file_number, block_number| {
            let status =
                TapeStatus::from(RawStatus { file_number, block_number, ..RawStatus::default() });
            (status.file_number, status.block_in_file)
        };
        assert_eq!(place(3, 17), (Some(3), Some(17)));
        assert_eq!(place(-1, -1), (None, None));
        assert_eq!(place(8_388_607, -1), (None, None));
        assert_eq!(place(8_388_608, 4), (None, Some(4)));
    }

    #[test]
    fn an_error_says_where_and_what() {
        let error = TapeError {
            what: "write",
            device: "/dev/nst0".to_owned(),
            place: TapePlace { file_number: Some(3), block_in_file: Some(12) },
            said: Some(Sense { key: 3, code: 0x0c, qualifier: 0, deferred: true }),
            source: io::Error::from_raw_os_error(5),
        };
        let expected = "cannot write /dev/nst0 at file 3, block 12: \
                        deferred medium error, write error (sense 3/0c/00)";
        assert_eq!(error.to_string(), expected);
    }
}
