//! `MTIOCTOP`: operations, and their effect on the driver's file and block number.

use rustix::io::Errno;

use super::super::drive::{BLANK_CHECK, Check, ILLEGAL_REQUEST, Space, Wait};
use super::super::faults::CompressionSwitch;
use super::super::operation as op;
use super::{Activity, Driver, Position, Stop, UnitState, is_early_warning};

impl Driver {
    pub(super) fn operate_checked(&mut self, operation: i16, count: i32) -> Result<(), Errno> {
        let count = if !self.position_unknown {
            self.before_operation(operation, count)?
        } else {
            self.only_known_places(operation)?;
            count
        };
        if !op::KEEP_ACTIVITY.contains(&operation) {
            self.activity = Activity::Idle;
        }
        match operation {
            op::MTSETDRVBUFFER => self.options.set(count),
            op::MTSEEK => self.seek(count),
            op::MTUNLOAD | op::MTOFFL => self.unload(),
            op::MTLOAD => self.load(),
            op::MTLOCK | op::MTUNLOCK => Ok(()),
            op::MTCOMPRESSION => self.switch_compression(count & 1 != 0),
            _ => self.internal(operation, count),
        }
    }

    /// Finishes pending work before an operation, and closes data that were just written. Returns
    /// the remaining count.
    fn before_operation(&mut self, operation: i16, mut count: i32) -> Result<i32, Errno> {
        let back = matches!(operation, op::MTBSF | op::MTBSFM);
        if self.stop == Stop::FilemarkMet {
            // The drive is behind a filemark that was not reported to the program.
            let forward = matches!(operation, op::MTFSF | op::MTFSFM | op::MTEOM);
            if forward || back {
                count += if forward { -1 } else { 1 };
                self.file_number += i32::from(self.file_number >= 0);
            }
        }
        self.flush(if op::MOVE_AWAY.contains(&operation) {
            Position::DoesNotMatter
        } else {
            Position::Restored
        })?;
        if self.activity == Activity::Writing && op::END_THE_FILE.contains(&operation) {
            self.internal(op::MTWEOF, 1)?;
            count += i32::from(back);
            self.activity = Activity::Idle;
        }
        Ok(count)
    }

    /// After a reset only operations that go to a known position are allowed; they make the
    /// position known again.
    fn only_known_places(&mut self, operation: i16) -> Result<(), Errno> {
        if !op::AFTER_RESET.contains(&operation) {
            return Err(Errno::IO);
        }
        self.position_unknown = false;
        self.activity = Activity::Idle;
        self.stop = Stop::None;
        self.set_place(-1, -1);
        Ok(())
    }

    fn seek(&mut self, position: i32) -> Result<(), Errno> {
        if self.ready != UnitState::Ready {
            return Err(Errno::IO);
        }
        let result = self.drive.locate(u64::from(position as u32));
        self.stop = Stop::None;
        match (result, position) {
            (Err(check), _) => {
                self.set_place(-1, -1);
                Err(self.failed(check))
            }
            (Ok(()), 0) => {
                self.set_place(0, 0);
                Ok(())
            }
            (Ok(()), _) => {
                self.set_place(-1, -1);
                Ok(())
            }
        }
    }

    fn unload(&mut self) -> Result<(), Errno> {
        self.must_be_ready()?;
        match self.drive.unload() {
            Ok(()) => {
                self.rewind_on_close = false;
                self.ready = UnitState::NoMedium;
                Ok(())
            }
            Err(check) => {
                self.set_place(-1, -1);
                Err(self.failed(check))
            }
        }
    }

    fn load(&mut self) -> Result<(), Errno> {
        match self.drive.load() {
            Ok(()) => self.look_at_medium(),
            Err(check) => {
                self.set_place(-1, -1);
                Err(self.failed(check))
            }
        }
    }

    fn switch_compression(&mut self, on: bool) -> Result<(), Errno> {
        if self.ready != UnitState::Ready {
            return Err(Errno::IO);
        }
        let switched = self.drive.command_at_any_time(|drive| {
            drive.notice()?;
            match drive.settings.compression_switch {
                CompressionSwitch::Obeyed => drive.compression = on,
                CompressionSwitch::Ignored => {}
                CompressionSwitch::Absent => return Err(Check::of(ILLEGAL_REQUEST, 0x24, 0x00)),
            }
            Ok(())
        });
        switched.map_err(|check| self.failed(check))
    }

    fn must_be_ready(&self) -> Result<(), Errno> {
        match self.ready {
            UnitState::Ready => Ok(()),
            UnitState::NoMedium => Err(Errno::NOMEDIUM),
            UnitState::NotReady => Err(Errno::IO),
        }
    }

    /// An operation that is one command, or none.
    pub(super) fn internal(&mut self, operation: i16, count: i32) -> Result<(), Errno> {
        self.must_be_ready()?;
        let writes = [op::MTWEOF, op::MTWEOFI, op::MTERASE].contains(&operation);
        if writes && !self.may_write {
            return Err(Errno::ACCESS);
        }
        let result = match operation {
            op::MTNOP => return Ok(()),
            op::MTEOM => return self.space_to_end_of_data(),
            op::MTSETBLK => return self.set_block_bytes(count as u32 & 0xff_ffff),
            op::MTFSF | op::MTFSFM => self.drive.space(Space::Filemarks(count)),
            op::MTBSF | op::MTBSFM => self.drive.space(Space::Filemarks(-count)),
            op::MTFSR => self.drive.space(Space::Blocks(count)),
            op::MTBSR => self.drive.space(Space::Blocks(-count)),
            op::MTREW | op::MTRETEN => self.drive.rewind(),
            op::MTERASE => self.drive.erase(),
            op::MTWEOF | op::MTWEOFI => {
                let immediate = operation == op::MTWEOFI || self.options.immediate_filemarks;
                let wait = if immediate { Wait::Not } else { Wait::ForMedium };
                self.drive.write_filemarks(count as u32 & 0xff_ffff, wait)
            }
            _ => return Err(Errno::NOSYS),
        };
        match result {
            Ok(()) => self.operation_done(operation, count),
            Err(check) => self.operation_failed(operation, count, check),
        }
    }

    fn operation_done(&mut self, operation: i16, count: i32) -> Result<(), Errno> {
        let (file, block) = self.place_after(operation, count);
        self.set_place(file, block);
        match operation {
            op::MTFSF => self.stop = Stop::BehindFilemark,
            // A step back over the last filemark, or forward, follows these.
            op::MTFSFM => return self.internal(op::MTBSF, 1),
            op::MTBSFM => return self.internal(op::MTFSF, 1),
            _ => self.stop = Stop::None,
        }
        if matches!(operation, op::MTWEOF | op::MTWEOFI) {
            self.activity = Activity::Idle;
        }
        Ok(())
    }

    /// File and block number after a complete operation.
    fn place_after(&self, operation: i16, count: i32) -> (i32, i32) {
        let (file, block) = (self.file_number, self.block_number);
        let moved = |number: i32, by: i32| if number >= 0 { number.saturating_add(by) } else { -1 };
        match operation {
            op::MTFSF | op::MTFSFM => (moved(file, count), 0),
            op::MTBSF | op::MTBSFM => (moved(file, -count), -1),
            op::MTFSR => (file, moved(block, count)),
            op::MTBSR => (file, moved(block, -count)),
            // Also with count 0, which writes no filemark.
            op::MTWEOF | op::MTWEOFI => (moved(file, count), 0),
            op::MTREW | op::MTRETEN => (0, 0),
            _ => (file, block),
        }
    }

    fn operation_failed(&mut self, operation: i16, count: i32, check: Check) -> Result<(), Errno> {
        let (file, block) = self.place_after(operation, count);
        let undone = check.residual as i32;
        let backward = matches!(operation, op::MTBSF | op::MTBSFM | op::MTBSR);
        if check.end_of_medium {
            self.stop = if backward { self.stop } else { Stop::Warned };
            self.block_number = 0;
        }
        match operation {
            op::MTWEOF | op::MTWEOFI if check.end_of_medium => {
                self.stop = Stop::None;
                if is_early_warning(&check) {
                    self.file_number = file;
                    return Ok(());
                }
                self.file_number = if file >= 0 { file - undone } else { file };
            }
            op::MTFSF | op::MTFSFM => {
                self.set_place(if file >= 0 { file - undone } else { file }, -1);
                self.stop = Stop::None;
            }
            op::MTBSF | op::MTBSFM => {
                self.set_place(if file >= 0 { file + undone } else { file }, 0);
                self.stop = Stop::None;
            }
            op::MTFSR if check.filemark => {
                self.set_place(self.file_number + i32::from(self.file_number >= 0), 0);
                self.stop = Stop::BehindFilemark;
            }
            op::MTFSR => {
                self.block_number = if block >= undone { block - undone } else { -1 };
                self.stop = Stop::None;
            }
            op::MTBSR => {
                if check.filemark {
                    self.set_place((self.file_number - 1).max(-1), -1);
                } else if self.block_number >= 0 {
                    self.block_number = (block + undone).max(0);
                }
                self.stop = Stop::None;
            }
            _ => self.stop = Stop::None,
        }
        if check.sense.key == BLANK_CHECK {
            self.stop = Stop::EndOfData;
        }
        Err(self.failed(check))
    }

    /// `MTEOM`: counts filemarks on the way, or does not (`MT_ST_FAST_EOM`).
    fn space_to_end_of_data(&mut self) -> Result<(), Errno> {
        let mut file = -1;
        if !self.options.fast_end_of_data {
            const MORE_THAN_THERE_ARE: i32 = 0x7f_ffff;
            let result = self.internal(op::MTFSF, MORE_THAN_THERE_ARE);
            if self.stop >= Stop::FirstPastEnd {
                // Running into the end is no error here.
                self.last_sense = None;
                return Ok(());
            }
            // The driver ignores why it came no further (`st_int_ioctl`, MTEOM).
            let _ = result;
            file = self.file_number;
        }
        match self.drive.space(Space::ToEndOfData) {
            Ok(()) => {
                self.set_place(file, -1);
                self.stop = Stop::EndOfData;
                Ok(())
            }
            Err(check) => {
                self.set_place(-1, -1);
                self.stop = Stop::EndOfData;
                Err(self.failed(check))
            }
        }
    }

    fn set_block_bytes(&mut self, block_bytes: u32) -> Result<(), Errno> {
        if !self.ahead.is_empty() {
            return Err(Errno::IO);
        }
        let limits = &self.drive.settings;
        let known = u32::from(limits.block_bytes_min)..=limits.block_bytes_max;
        if block_bytes != 0 && !known.contains(&block_bytes) {
            return Err(Errno::INVAL);
        }
        self.drive.select_block_bytes(block_bytes).map_err(|check| self.failed(check))?;
        self.block_bytes = block_bytes;
        Ok(())
    }
}
