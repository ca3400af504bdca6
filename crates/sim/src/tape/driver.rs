//! The driver: what a program sees of the drive through read(2), write(2) and `MTIOCTOP`.
//!
//! It follows the kernel's `st` (Documentation/scsi/st.rst, and its observed behaviour: the
//! scenario table runs against both) with its default options and direct I/O: a write is a command
//! at once, and the driver buffers nothing. File and block number, the state after a filemark and
//! the block size survive a close, as they do in `st`.
//!
//! Not included: partitions, setmarks, densities other than the medium's, and the wait of up to two
//! minutes for a medium in open(2), which fails at once here.

mod operate;
mod transfer;

use std::time::Instant;

use device::tape::raw::{
    GMT_BOT, GMT_DR_OPEN, GMT_EOD, GMT_EOF, GMT_EOT, GMT_IM_REP_EN, GMT_ONLINE, GMT_WR_PROT,
    QuestionError, RawStatus, Statistics,
};
use device::tape::sense::Sense;
use rustix::io::Errno;

use super::drive::{
    BLANK_CHECK, Check, Drive, DriveSettings, NO_SENSE, RECOVERED_ERROR, Space, UNIT_ATTENTION,
    VOLUME_OVERFLOW, Wait,
};
use super::operation as op;
use super::options::Options;

/// The arguments of open(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenMode {
    /// `O_RDONLY` or `O_RDWR`.
    pub direction: OpenDirection,
    /// Without `O_NONBLOCK` a medium must be present, writable for writing.
    pub readiness: Readiness,
    /// `nst` or `st`.
    pub on_close: OnClose,
}

/// Whether writing is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenDirection {
    /// `O_RDONLY`.
    Read,
    /// `O_RDWR`.
    ReadWrite,
}

/// Whether an open needs a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It needs one.
    Needed,
    /// It needs none: `O_NONBLOCK`.
    NotNeeded,
}

/// What happens to the position at close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnClose {
    /// It stays: the device is `nst`.
    Stay,
    /// The tape is rewound: the device is `st`.
    Rewind,
}

/// Whether the driver believes that a medium is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnitState {
    Ready,
    NotReady,
    NoMedium,
}

/// The last kind of action, as far as a close or a change of direction cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    Idle,
    Reading,
    Writing,
}

/// The end at which the tape is, as the driver sees it. Order matters: from `FirstPastEnd` on a
/// read is answered without the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stop {
    None,
    /// The drive met a filemark that was not reported yet.
    FilemarkMet,
    BehindFilemark,
    /// The end of the medium is near; the next write is refused.
    Warned,
    /// Like `Warned`, but the next write is allowed.
    FirstPastEnd,
    SecondPastEnd,
    EndOfData,
}

/// Whether a flush keeps the position that the program expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Restored,
    /// The tape is moved anyway.
    DoesNotMatter,
}

/// Sense keys that the driver does not log.
const NOT_LOGGED: [u8; 4] = [NO_SENSE, RECOVERED_ERROR, BLANK_CHECK, VOLUME_OVERFLOW];

/// Bytes that the driver reads ahead if a program reads fixed blocks in pieces (st.rst: default
/// buffer of 32 KiB).
const READ_AHEAD_BYTES: usize = 32 * 1024;

/// A drive with its driver.
pub(super) struct Driver {
    pub(super) drive: Drive,
    in_use: bool,
    ready: UnitState,
    activity: Activity,
    stop: Stop,
    /// -1 if unknown, as in `MTIOCGET`.
    file_number: i32,
    block_number: i32,
    block_bytes: u32,
    density: u8,
    medium_protected: bool,
    may_write: bool,
    position_unknown: bool,
    rewind_on_close: bool,
    options: Options,
    /// Fixed blocks are read in pieces since the open.
    in_pieces: bool,
    /// Data read ahead then, and how much of them the program has.
    ahead: Vec<u8>,
    ahead_taken: usize,
    last_sense: Option<Sense>,
    statistics: Statistics,
}

impl Driver {
    pub(super) fn new(settings: DriveSettings) -> Driver {
        Driver {
            drive: Drive::new(settings),
            in_use: false,
            ready: UnitState::NoMedium,
            activity: Activity::Idle,
            stop: Stop::None,
            file_number: -1,
            block_number: -1,
            block_bytes: 0,
            density: 0,
            medium_protected: false,
            may_write: false,
            position_unknown: false,
            rewind_on_close: false,
            options: Options::default(),
            in_pieces: false,
            ahead: Vec::new(),
            ahead_taken: 0,
            last_sense: None,
            statistics: Statistics::default(),
        }
    }

    /// open(2).
    pub(super) fn open(&mut self, mode: OpenMode) -> Result<(), Errno> {
        if self.in_use {
            return Err(Errno::BUSY);
        }
        self.last_sense = None;
        self.activity = Activity::Idle;
        self.in_pieces = false;
        self.rewind_on_close = mode.on_close == OnClose::Rewind;
        self.may_write = mode.direction == OpenDirection::ReadWrite;
        self.look_at_medium()?;
        if mode.readiness == Readiness::Needed {
            match self.ready {
                UnitState::Ready => {}
                UnitState::NoMedium => return Err(Errno::NOMEDIUM),
                UnitState::NotReady => return Err(Errno::IO),
            }
            if self.medium_protected && self.may_write {
                return Err(Errno::ROFS);
            }
        }
        self.may_write &= !self.medium_protected;
        self.in_use = true;
        Ok(())
    }

    /// close(2). Returns the error of the close; the drive is free afterwards.
    pub(super) fn close(&mut self) -> Result<(), Errno> {
        self.last_sense = None;
        let mut result = Ok(());
        if self.activity == Activity::Writing && !self.position_unknown {
            result = self.close_written();
        } else if !self.rewind_on_close {
            result = self.flush(Position::Restored);
        }
        if self.rewind_on_close {
            result = result.and(self.internal(op::MTREW, 1));
        }
        self.ahead.clear();
        self.ahead_taken = 0;
        self.in_use = false;
        result
    }

    /// Writes all data to the medium; changes nothing else. For a caller that must answer a close
    /// before it knows whether it is the last one.
    pub(super) fn settle(&mut self) -> Result<(), Errno> {
        self.last_sense = None;
        if self.activity != Activity::Writing || self.position_unknown {
            return Ok(());
        }
        self.drive.synchronise().map_err(|check| self.failed(check))
    }

    /// File and block number, without resetting anything, unlike [`Driver::status`].
    pub(super) fn place(&self) -> (i32, i32) {
        (self.file_number, self.block_number)
    }

    /// read(2).
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Errno> {
        let begin = Instant::now();
        self.last_sense = None;
        let result = self.read_checked(buffer);
        let bytes = *result.as_ref().unwrap_or(&0) as u64;
        let ns = begin.elapsed().as_nanos() as u64;
        let statistics = &mut self.statistics;
        statistics.reads += 1;
        statistics.read_bytes += bytes;
        statistics.read_ns += ns;
        statistics.io_ns += ns;
        statistics.residuals += u64::from(bytes < buffer.len() as u64);
        result
    }

    /// write(2).
    pub(super) fn write(&mut self, data: &[u8]) -> Result<usize, Errno> {
        let begin = Instant::now();
        self.last_sense = None;
        let result = self.write_checked(data);
        let ns = begin.elapsed().as_nanos() as u64;
        let statistics = &mut self.statistics;
        statistics.writes += 1;
        statistics.write_bytes += *result.as_ref().unwrap_or(&0) as u64;
        statistics.write_ns += ns;
        statistics.io_ns += ns;
        result
    }

    /// `MTIOCTOP` with an operation of `linux/mtio.h`.
    pub(super) fn operate(&mut self, operation: i16, count: i32) -> Result<(), Errno> {
        let begin = Instant::now();
        self.last_sense = None;
        let result = self.operate_checked(operation, count);
        self.statistics.others += 1;
        self.statistics.io_ns += begin.elapsed().as_nanos() as u64;
        result
    }

    /// `MTIOCGET`.
    pub(super) fn status(&mut self) -> Result<RawStatus, Errno> {
        self.flush(Position::Restored)?;
        let mut bits = GMT_IM_REP_EN;
        if self.medium_protected {
            bits |= GMT_WR_PROT;
        }
        bits |= match (self.file_number, self.block_number) {
            (0, 0) => GMT_BOT,
            (_, 0) => GMT_EOF,
            _ => 0,
        };
        bits |= match self.stop {
            Stop::Warned => GMT_EOT,
            Stop::FirstPastEnd | Stop::SecondPastEnd | Stop::EndOfData => GMT_EOD,
            Stop::None | Stop::FilemarkMet | Stop::BehindFilemark => 0,
        };
        bits |= match self.ready {
            UnitState::Ready => GMT_ONLINE,
            UnitState::NoMedium => GMT_DR_OPEN,
            UnitState::NotReady => 0,
        };
        Ok(RawStatus {
            drive_type: 0x72, // MT_ISSCSI2
            residual: 0,      // the partition
            density_and_block_size: i64::from(self.density) << 24 | i64::from(self.block_bytes),
            general_status: bits,
            recovered_errors: 0,
            file_number: self.file_number,
            block_number: self.block_number,
        })
    }

    /// `MTIOCPOS`.
    pub(super) fn position(&mut self) -> Result<u64, Errno> {
        self.last_sense = None;
        self.flush(Position::Restored)?;
        if self.ready != UnitState::Ready {
            return Err(Errno::IO);
        }
        let position = self.drive.read_position().map_err(|check| self.failed(check))?;
        if position == 0 {
            self.file_number = 0;
            self.block_number = 0;
        }
        Ok(position)
    }

    /// `SG_IO` of a command that reads data.
    pub(super) fn command(
        &mut self,
        command: &[u8],
        data: &mut [u8],
    ) -> Result<usize, QuestionError> {
        self.drive.answer(command, data)
    }

    pub(super) fn command_with(
        &mut self,
        command: &[u8],
        data: &[u8],
    ) -> Result<(), QuestionError> {
        self.drive.obey(command, data)
    }

    pub(super) fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// What the kernel's log would have of it. The driver does not log conditions that it does not
    /// see as failures, such as the codes of a blank check (`st_chk_result`).
    pub(super) fn last_sense(&self) -> Option<Sense> {
        self.last_sense.filter(|sense| !NOT_LOGGED.contains(&sense.key))
    }

    // Open and close.

    /// Asks the drive until it reports its state, and adopts the medium's properties.
    fn look_at_medium(&mut self) -> Result<(), Errno> {
        const ATTENTIONS_MAX: usize = 10;
        let mut new_medium = false;
        let mut answer = self.drive.test_unit_ready();
        for _ in 0..ATTENTIONS_MAX {
            match answer {
                Err(check) if check.sense.key == UNIT_ATTENTION => {
                    new_medium = true;
                    answer = self.drive.test_unit_ready();
                }
                _ => break,
            }
        }
        self.ready = match answer {
            Ok(()) => UnitState::Ready,
            Err(check) if check.sense.code == 0x3a => UnitState::NoMedium,
            Err(check) if check.sense.key == UNIT_ATTENTION => return Err(self.failed(check)),
            Err(_) => UnitState::NotReady,
        };
        if self.ready != UnitState::Ready {
            self.density = 0;
            self.block_bytes = 0;
            self.medium_protected = false;
            self.set_place(-1, -1);
            return Ok(());
        }
        if new_medium {
            self.position_unknown = false;
            self.activity = Activity::Idle;
            self.stop = Stop::None;
            self.set_place(0, 0);
        }
        self.density = self.drive.density();
        self.block_bytes = self.drive.block_bytes;
        self.medium_protected = self.drive.is_protected();
        Ok(())
    }

    /// The filemark, or two, that a close writes behind data.
    fn close_written(&mut self) -> Result<(), Errno> {
        let count = 1 + u32::from(self.options.two_filemarks);
        let wait = if self.options.immediate_filemarks { Wait::Not } else { Wait::ForMedium };
        match self.drive.write_filemarks(count, wait) {
            Err(check) if !is_early_warning(&check) => return Err(self.failed(check)),
            _ => {}
        }
        if self.file_number >= 0 {
            self.file_number += 1;
        }
        self.block_number = 0;
        if self.options.two_filemarks {
            // The next file overwrites the second one.
            self.drive.space(Space::Filemarks(-1)).map_err(|check| self.failed(check))?;
        }
        self.stop = Stop::BehindFilemark;
        Ok(())
    }

    // Common steps.

    /// Returns data that were read ahead, so that the tape is where the program expects it.
    fn flush(&mut self, position: Position) -> Result<(), Errno> {
        if self.ready != UnitState::Ready {
            return Ok(());
        }
        if self.position_unknown {
            return Err(Errno::IO);
        }
        if self.activity == Activity::Writing || self.block_bytes == 0 {
            return Ok(());
        }
        let block_bytes = self.block_bytes as usize;
        let unread = self.ahead.len() / block_bytes - self.ahead_taken.div_ceil(block_bytes);
        self.ahead.clear();
        self.ahead_taken = 0;
        if self.stop == Stop::FilemarkMet {
            let crossed = match position {
                Position::DoesNotMatter => Ok(false),
                Position::Restored => self.drive.space(Space::Filemarks(-1)).map(|()| true),
            };
            match crossed {
                Ok(true) => {}
                Ok(false) | Err(_) => {
                    self.file_number += i32::from(self.file_number >= 0);
                    self.block_number = 0;
                }
            }
            self.stop = Stop::None;
            crossed.map_err(|check| self.failed(check))?;
        }
        if position == Position::Restored && unread > 0 {
            self.internal(op::MTBSR, unread as i32)
        } else {
            Ok(())
        }
    }

    fn set_place(&mut self, file_number: i32, block_number: i32) {
        self.file_number = file_number;
        self.block_number = block_number;
    }

    fn count_blocks(&mut self, blocks: i32) {
        if self.block_number >= 0 {
            self.block_number = self.block_number.saturating_add(blocks);
        }
    }

    /// Records what the drive reported; the program only sees an input/output error.
    fn failed(&mut self, check: Check) -> Errno {
        self.last_sense = Some(check.sense);
        // Power on, reset, or bus device reset occurred.
        self.position_unknown |= check.sense.key == UNIT_ATTENTION && check.sense.code == 0x29;
        Errno::IO
    }
}

/// Whether everything was written, and the drive only warns.
fn is_early_warning(check: &Check) -> bool {
    check.end_of_medium && check.sense.key == NO_SENSE && check.residual == 0
}
