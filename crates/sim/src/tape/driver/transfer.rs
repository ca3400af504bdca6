//! read(2) and write(2): the drive's report on a transfer, and what the program sees of it.

use rustix::io::Errno;

use super::super::drive::{BLANK_CHECK, Check, MEDIUM_ERROR, Suppress};
use super::super::operation as op;
use super::{Activity, Driver, Position, READ_AHEAD_BYTES, Stop, UnitState};

impl Driver {
    /// The common part of read and write.
    fn check_transfer(&self, bytes: usize) -> Result<(), Errno> {
        match self.ready {
            UnitState::Ready => {}
            UnitState::NoMedium => return Err(Errno::NOMEDIUM),
            UnitState::NotReady => return Err(Errno::IO),
        }
        if self.position_unknown {
            return Err(Errno::IO);
        }
        let limits = &self.drive.settings;
        let known = limits.block_bytes_min as usize..=limits.block_bytes_max as usize;
        if bytes != 0 && self.block_bytes == 0 && !known.contains(&bytes) {
            return Err(Errno::INVAL);
        }
        Ok(())
    }

    pub(super) fn read_checked(&mut self, buffer: &mut [u8]) -> Result<usize, Errno> {
        self.check_transfer(buffer.len())?;
        if buffer.is_empty() {
            return Ok(0);
        }
        if self.block_bytes != 0 && !buffer.len().is_multiple_of(self.block_bytes as usize) {
            if !self.options.read_ahead {
                return Err(Errno::INVAL);
            }
            self.in_pieces = true;
        }
        if self.activity == Activity::Writing {
            self.flush(Position::Restored)?;
        }
        if self.ahead.is_empty() && self.stop >= Stop::FirstPastEnd {
            self.stop = match self.stop {
                Stop::FirstPastEnd => Stop::SecondPastEnd,
                Stop::SecondPastEnd => Stop::EndOfData,
                _ => return Err(Errno::IO),
            };
            return Ok(0);
        }
        self.activity = Activity::Reading;
        let bytes = match self.block_bytes {
            0 => self.read_variable(buffer)?,
            _ => self.read_fixed(buffer)?,
        };
        match (bytes, self.stop) {
            (0, Stop::FilemarkMet) => {
                self.stop = Stop::BehindFilemark;
                self.block_number = 0;
                self.file_number += i32::from(self.file_number >= 0);
            }
            (0, Stop::FirstPastEnd) => {
                self.stop = Stop::SecondPastEnd;
                self.block_number = 0;
                self.file_number += i32::from(self.file_number >= 0);
            }
            (0, Stop::SecondPastEnd) => self.stop = Stop::EndOfData,
            (1.., Stop::BehindFilemark) => self.stop = Stop::None,
            _ => {}
        }
        Ok(bytes)
    }

    fn read_variable(&mut self, buffer: &mut [u8]) -> Result<usize, Errno> {
        if self.stop == Stop::FilemarkMet {
            return Ok(0);
        }
        let suppress = if self.options.suppress_incorrect_length {
            Suppress::IncorrectLength
        } else {
            Suppress::Nothing
        };
        let asked = buffer.len() as i64;
        match self.drive.read_block(buffer, suppress) {
            Ok(bytes) => {
                self.count_blocks(1);
                Ok(bytes)
            }
            Err(check) if check.incorrect_length => {
                self.last_sense = Some(check.sense);
                self.count_blocks(1);
                if check.residual < 0 {
                    Err(Errno::NOMEM)
                } else {
                    Ok((asked - check.residual) as usize)
                }
            }
            Err(check) if check.filemark => {
                self.stop = Stop::FilemarkMet;
                Ok(0)
            }
            Err(check) if check.end_of_medium => {
                let bytes = self.end_of_medium_read(buffer.len(), 1, check);
                self.count_blocks(1);
                Ok(bytes)
            }
            Err(check) => self.end_of_data_or_error(check),
        }
    }

    fn read_fixed(&mut self, buffer: &mut [u8]) -> Result<usize, Errno> {
        let mut total = 0;
        while total < buffer.len() {
            let mut last = false;
            if self.in_pieces || !self.ahead.is_empty() {
                if self.ahead.is_empty() {
                    let block_bytes = self.block_bytes as usize;
                    let blocks = (READ_AHEAD_BYTES / block_bytes).max(1);
                    let mut ahead = vec![0; blocks * block_bytes];
                    let (bytes, special) = self.read_blocks(&mut ahead)?;
                    ahead.truncate(bytes);
                    self.ahead = ahead;
                    self.ahead_taken = 0;
                    last = special;
                }
                total += self.take_ahead(&mut buffer[total..]);
            } else {
                let (bytes, special) = self.read_blocks(&mut buffer[total..])?;
                total += bytes;
                last = special;
            }
            if last {
                break;
            }
        }
        Ok(total)
    }

    /// Gives the program data that were read ahead.
    fn take_ahead(&mut self, buffer: &mut [u8]) -> usize {
        let rest = &self.ahead[self.ahead_taken..];
        let bytes = rest.len().min(buffer.len());
        buffer[..bytes].copy_from_slice(&rest[..bytes]);
        self.ahead_taken += bytes;
        if self.ahead_taken == self.ahead.len() {
            self.ahead.clear();
            self.ahead_taken = 0;
        }
        bytes
    }

    /// One command for fixed blocks: bytes read, and whether something ended it.
    fn read_blocks(&mut self, buffer: &mut [u8]) -> Result<(usize, bool), Errno> {
        if self.stop == Stop::FilemarkMet {
            return Ok((0, true));
        }
        let block_bytes = self.block_bytes as usize;
        let blocks = (buffer.len() / block_bytes) as i64;
        let (bytes, special) = match self.drive.read_blocks(buffer) {
            Ok(bytes) => (bytes, false),
            Err(check) if check.incorrect_length => {
                self.last_sense = Some(check.sense);
                // The tape is behind the block of another size; the driver steps back.
                self.count_blocks(1);
                let back = self.internal(op::MTBSR, 1);
                if check.residual == blocks || back.is_err() {
                    self.last_sense = Some(check.sense);
                    return Err(Errno::IO);
                }
                ((blocks - check.residual) as usize * block_bytes, true)
            }
            Err(check) if check.filemark => {
                self.stop = Stop::FilemarkMet;
                ((blocks - check.residual) as usize * block_bytes, true)
            }
            Err(check) if check.end_of_medium => {
                (self.end_of_medium_read(buffer.len(), block_bytes, check), true)
            }
            Err(check) => (self.end_of_data_or_error(check)?, true),
        };
        self.count_blocks((bytes / block_bytes) as i32);
        Ok((bytes, special))
    }

    /// The EOM bit counts before the sense key, even with BLANK CHECK, and bytes outside the
    /// residual count as read (`read_tape`).
    fn end_of_medium_read(&mut self, asked: usize, unit_bytes: usize, check: Check) -> usize {
        self.stop = match self.stop {
            Stop::BehindFilemark => Stop::FirstPastEnd,
            _ => Stop::Warned,
        };
        let undone = match check.sense.key {
            MEDIUM_ERROR if unit_bytes == 1 => asked,
            _ => check.residual.max(0) as usize * unit_bytes,
        };
        self.last_sense = Some(check.sense);
        asked.saturating_sub(undone)
    }

    /// Behind a filemark the end of data reads as zero bytes, once; then it is an error.
    fn end_of_data_or_error(&mut self, check: Check) -> Result<usize, Errno> {
        self.block_number = -1;
        if self.stop == Stop::BehindFilemark && check.sense.key == BLANK_CHECK {
            self.stop = Stop::SecondPastEnd;
            return Ok(0);
        }
        Err(self.failed(check))
    }

    pub(super) fn write_checked(&mut self, data: &[u8]) -> Result<usize, Errno> {
        self.check_transfer(data.len())?;
        if data.is_empty() {
            return Ok(0);
        }
        if self.block_bytes != 0 && !data.len().is_multiple_of(self.block_bytes as usize) {
            return Err(Errno::INVAL);
        }
        if !self.may_write {
            return Err(Errno::ACCESS);
        }
        if self.activity == Activity::Reading {
            self.flush(Position::Restored)?;
        }
        if self.stop == Stop::Warned {
            self.stop = Stop::FirstPastEnd;
            return Err(Errno::NOSPC);
        }
        self.activity = Activity::Writing;
        let (result, unit_bytes, block_bytes) = match self.block_bytes {
            0 => (self.drive.write_block(data), 1, data.len()),
            bytes => (self.drive.write_blocks(data), bytes as usize, bytes as usize),
        };
        let written = match result {
            Ok(()) => {
                self.stop = match self.stop {
                    Stop::FirstPastEnd => Stop::Warned,
                    _ => Stop::None,
                };
                data.len()
            }
            Err(check) if check.end_of_medium => {
                self.last_sense = Some(check.sense);
                self.stop = Stop::Warned;
                data.len() - check.residual as usize * unit_bytes
            }
            Err(check) => {
                self.block_number = -1;
                return Err(self.failed(check));
            }
        };
        self.count_blocks((written / block_bytes) as i32);
        match written {
            0 => Err(Errno::NOSPC),
            _ => Ok(written),
        }
    }
}
