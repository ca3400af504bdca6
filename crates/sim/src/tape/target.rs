//! The drive as a SCSI target: commands, data and sense data as bytes.
//!
//! For a transport that connects the drive to a real tape driver, which then uses the same drive as
//! [`super::VirtualDrive`]. Layouts follow SPC-4 and SSC-3; opcodes that neither a tape driver nor
//! `sg3-utils` needs are refused.
//!
//! Not here: the transport.

use std::sync::{Mutex, MutexGuard};

use base::failures::lock;

use super::access_order;
use super::drive::{
    BLANK_CHECK, Check, Drive, DriveSettings, HARDWARE_ERROR, ILLEGAL_REQUEST, MEDIUM_ERROR,
    NO_SENSE, Space, Suppress, VOLUME_OVERFLOW, Wait,
};
use super::faults::CompressionSwitch;
use super::medium::Cartridge;

const REWIND: u8 = 0x01;
const READ_6: u8 = 0x08;
const WRITE_6: u8 = 0x0a;
const WRITE_FILEMARKS_6: u8 = 0x10;
const SPACE_6: u8 = 0x11;
const MODE_SELECT_6: u8 = 0x15;
const ERASE_6: u8 = 0x19;
const LOAD_UNLOAD: u8 = 0x1b;
const PREVENT_ALLOW: u8 = 0x1e;
const LOCATE_10: u8 = 0x2b;
const MODE_SELECT_10: u8 = 0x55;
const REPORT_LUNS: u8 = 0xa0;

/// Bytes of fixed format sense data.
pub const SENSE_BYTES: usize = 18;

/// A drive that executes commands as bytes, one at a time.
pub struct ScsiTarget {
    drive: Mutex<Drive>,
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Bytes for the initiator.
    pub data: Vec<u8>,
    /// Fixed format sense data with status CHECK CONDITION; empty with status GOOD.
    pub sense: Option<[u8; SENSE_BYTES]>,
}

impl ScsiTarget {
    /// An empty drive.
    pub fn new(settings: DriveSettings) -> ScsiTarget {
        ScsiTarget { drive: Mutex::new(Drive::new(settings)) }
    }

    /// Inserts a cartridge and returns the previous one; the next command meets a unit attention.
    pub fn insert(&self, cartridge: Cartridge) -> Option<Cartridge> {
        let mut drive = self.lock();
        let before = drive.remove();
        drive.insert(cartridge);
        before
    }

    /// Removes the cartridge.
    pub fn eject(&self) -> Option<Cartridge> {
        self.lock().remove()
    }

    /// Changes the drive's properties and defects.
    pub fn change_settings(&self, change: impl FnOnce(&mut DriveSettings)) {
        change(&mut self.lock().settings);
    }

    /// Executes one command; `data` came from the initiator.
    pub fn execute(&self, command: &[u8; 16], data: &[u8]) -> Completion {
        match self.lock().execute(command, data) {
            Ok(data) => Completion { data, sense: None },
            Err((data, check)) => Completion { data, sense: Some(sense_data(&check)) },
        }
    }

    fn lock(&self) -> MutexGuard<'_, Drive> {
        lock(&self.drive)
    }
}

/// A command that ended with CHECK CONDITION may still have read data.
type Answer = Result<Vec<u8>, (Vec<u8>, Check)>;

impl Drive {
    fn execute(&mut self, command: &[u8; 16], data: &[u8]) -> Answer {
        let count_24 = u32::from_be_bytes([0, command[2], command[3], command[4]]);
        let nothing = |done: Result<(), Check>| done.map(|()| Vec::new()).map_err(without_data);
        match command[0] {
            READ_6 => self.execute_read(command[1], count_24 as usize),
            WRITE_6 => nothing(self.execute_write(command[1], count_24 as usize, data)),
            WRITE_FILEMARKS_6 => {
                let wait = if command[1] & 1 != 0 { Wait::Not } else { Wait::ForMedium };
                nothing(self.write_filemarks(count_24, wait))
            }
            SPACE_6 => {
                // 24 bits, two's complement.
                let count = (count_24 << 8).cast_signed() >> 8;
                let space = match command[1] & 0x0f {
                    0 => Space::Blocks(count),
                    1 => Space::Filemarks(count),
                    3 => Space::ToEndOfData,
                    _ => return Err(without_data(invalid_field())),
                };
                nothing(self.space(space))
            }
            REWIND => nothing(self.rewind()),
            ERASE_6 => nothing(self.erase()),
            LOCATE_10 => {
                let number = [command[3], command[4], command[5], command[6]];
                nothing(self.locate(u64::from(u32::from_be_bytes(number))))
            }
            LOAD_UNLOAD if command[4] & 1 != 0 => nothing(self.load()),
            LOAD_UNLOAD => nothing(self.unload()),
            MODE_SELECT_6 => nothing(self.mode_select(data, 4)),
            MODE_SELECT_10 => nothing(self.mode_select(data, 8)),
            // PREVENT ALLOW MEDIUM REMOVAL has no effect: tests remove the medium directly.
            PREVENT_ALLOW => Ok(Vec::new()),
            // One unit, number 0.
            REPORT_LUNS => Ok(vec![0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            _ if access_order::is_generate(command) => nothing(self.command_at_any_time(|drive| {
                drive.notice()?;
                drive.sort(command, data)
            })),
            _ => {
                let (mut answer, allocated) = self.answer_to(command).map_err(without_data)?;
                answer.truncate(allocated);
                Ok(answer)
            }
        }
    }

    /// READ(6): bit 0 of `flags` is FIXED, bit 1 SILI.
    fn execute_read(&mut self, flags: u8, count: usize) -> Answer {
        let suppress = if flags & 2 != 0 { Suppress::IncorrectLength } else { Suppress::Nothing };
        let (fixed, grain) = self.grain(flags).map_err(without_data)?;
        if count == 0 {
            return Ok(Vec::new());
        }
        if fixed && suppress == Suppress::IncorrectLength {
            return Err(without_data(invalid_field()));
        }
        let asked = self.within_limit(count, grain).map_err(without_data)?;
        let mut buffer = vec![0; asked];
        let read = if fixed {
            self.read_blocks(&mut buffer)
        } else {
            self.read_block(&mut buffer, suppress)
        };
        match read {
            Ok(bytes) => {
                buffer.truncate(bytes);
                Ok(buffer)
            }
            Err(check) => {
                let missing = usize::try_from(check.residual).unwrap_or(0) * grain;
                let complete =
                    if is_position_or_length(&check) { asked.saturating_sub(missing) } else { 0 };
                buffer.truncate(complete);
                Err((buffer, check))
            }
        }
    }

    fn execute_write(&mut self, flags: u8, count: usize, data: &[u8]) -> Result<(), Check> {
        let (fixed, grain) = self.grain(flags)?;
        if count == 0 {
            return Ok(());
        }
        let bytes = self.within_limit(count, grain)?;
        let data = data.get(..bytes).ok_or_else(invalid_field)?;
        if fixed { self.write_blocks(data) } else { self.write_block(data) }
    }

    /// Whether a transfer counts blocks, and the bytes of each unit.
    fn grain(&self, flags: u8) -> Result<(bool, usize), Check> {
        match (flags & 1 != 0, self.block_bytes) {
            (true, 0) => Err(invalid_field()),
            (true, block_bytes) => Ok((true, block_bytes as usize)),
            (false, _) => Ok((false, 1)),
        }
    }

    /// Bytes of a transfer, limited by the longest block and by memory.
    fn within_limit(&self, count: usize, grain: usize) -> Result<usize, Check> {
        let bytes = count.checked_mul(grain).ok_or_else(invalid_field)?;
        let limit = match grain {
            1 => self.settings.block_bytes_max as usize,
            _ => TRANSFER_BYTES_MAX,
        };
        if bytes > limit { Err(invalid_field()) } else { Ok(bytes) }
    }

    /// MODE SELECT: the block descriptor and the changeable pages.
    fn mode_select(&mut self, data: &[u8], header_bytes: usize) -> Result<(), Check> {
        if data.is_empty() {
            return Ok(());
        }
        let invalid = || Check::of(ILLEGAL_REQUEST, 0x26, 0x00);
        let header = data.get(..header_bytes).ok_or_else(invalid)?;
        let descriptor_bytes = usize::from(header[header_bytes - 1]);
        let mut rest = &data[header_bytes..];
        let descriptor = rest.get(..descriptor_bytes).ok_or_else(invalid)?;
        if let [_, _, _, _, _, high, middle, low] = *descriptor {
            self.select_block_bytes(u32::from_be_bytes([0, high, middle, low]))?;
        } else if descriptor_bytes != 0 {
            return Err(invalid());
        }
        rest = &rest[descriptor_bytes..];
        while let [code, length, ..] = *rest {
            let page_bytes = 2 + usize::from(length);
            let page = rest.get(..page_bytes).ok_or_else(invalid)?;
            match code & 0x3f {
                0x0f => self.select_compression(page)?,
                0x10 => {}
                _ => return Err(invalid()),
            }
            rest = &rest[page_bytes..];
        }
        Ok(())
    }

    fn select_compression(&mut self, page: &[u8]) -> Result<(), Check> {
        let flags = page.get(2).ok_or_else(invalid_field)?;
        match self.settings.compression_switch {
            CompressionSwitch::Obeyed => self.compression = flags & 0x80 != 0,
            CompressionSwitch::Ignored => {}
            CompressionSwitch::Absent => return Err(Check::of(ILLEGAL_REQUEST, 0x26, 0x00)),
        }
        Ok(())
    }
}

/// Most bytes of a transfer of fixed blocks: more than a tape driver requests at once.
const TRANSFER_BYTES_MAX: usize = 64 << 20;

fn without_data(check: Check) -> (Vec<u8>, Check) {
    (Vec::new(), check)
}

/// Invalid field in CDB.
fn invalid_field() -> Check {
    Check::of(ILLEGAL_REQUEST, 0x24, 0x00)
}

/// Whether the residual says how much was transferred.
fn is_position_or_length(check: &Check) -> bool {
    matches!(check.sense.key, NO_SENSE | MEDIUM_ERROR | HARDWARE_ERROR | BLANK_CHECK)
}

/// Fixed format (SPC-4, 4.5.3): the information field is valid if the command has a count.
fn sense_data(check: &Check) -> [u8; SENSE_BYTES] {
    let sense = &check.sense;
    let counted = is_position_or_length(check) || sense.key == VOLUME_OVERFLOW;
    let mut data = [0; SENSE_BYTES];
    data[0] = if sense.deferred { 0x71 } else { 0x70 };
    if counted && !sense.deferred {
        data[0] |= 0x80;
        // Two's complement: a block longer than requested has a negative residual.
        let information = i32::try_from(check.residual).unwrap_or(i32::MAX);
        data[3..7].copy_from_slice(&information.to_be_bytes());
    }
    data[2] = sense.key
        | if check.filemark { 0x80 } else { 0 }
        | if check.end_of_medium { 0x40 } else { 0 }
        | if check.incorrect_length { 0x20 } else { 0 };
    data[7] = (SENSE_BYTES - 8) as u8;
    data[12] = sense.code;
    data[13] = sense.qualifier;
    data
}

#[cfg(test)]
mod tests {
    use super::super::medium::Object;
    use super::*;

    fn command(bytes: &[u8]) -> [u8; 16] {
        let mut command = [0; 16];
        command[..bytes.len()].copy_from_slice(bytes);
        command
    }

    fn loaded() -> (ScsiTarget, Cartridge) {
        let cartridge = Cartridge::of_capacity(1 << 20);
        let target = ScsiTarget::new(DriveSettings::default());
        target.insert(cartridge.clone());
        // Medium may have changed.
        let first = target.execute(&command(&[0; 6]), &[]);
        assert_eq!(&first.sense.unwrap()[12..14], [0x28, 0]);
        (target, cartridge)
    }

    #[test]
    fn blocks_and_filemarks_reach_the_cartridge() {
        let (target, cartridge) = loaded();
        assert_eq!(target.execute(&command(&[0x0a, 0, 0, 0, 3, 0]), b"abc").sense, None);
        assert_eq!(target.execute(&command(&[0x10, 0, 0, 0, 1, 0]), &[]).sense, None);
        let objects = cartridge.objects().unwrap();
        assert_eq!(objects, [Object::Block(b"abc".to_vec()), Object::Filemark]);
    }

    #[test]
    fn sense_data_have_bits_and_residuals() {
        let (target, _) = loaded();
        target.execute(&command(&[0x0a, 0, 0, 0, 3, 0]), b"abc");
        target.execute(&command(&[0x10, 0, 0, 0, 1, 0]), &[]);
        target.execute(&command(&[0x01]), &[]);
        // Five bytes requested, three returned.
        let short = target.execute(&command(&[0x08, 0, 0, 0, 5, 0]), &[]);
        assert_eq!(short.data, b"abc");
        assert_eq!(short.sense.unwrap()[..8], [0xf0, 0, 0x20, 0, 0, 0, 2, 10]);
        let filemark = target.execute(&command(&[0x08, 0, 0, 0, 5, 0]), &[]);
        assert_eq!((filemark.data.len(), filemark.sense.unwrap()[2]), (0, 0x80));
        let end = target.execute(&command(&[0x08, 0, 0, 0, 5, 0]), &[]);
        assert_eq!(end.sense.unwrap()[..7], [0xf0, 0, 0x08, 0, 0, 0, 5]);
        // One filemark back, then one block back and one more than there is.
        assert_eq!(target.execute(&command(&[0x11, 1, 0xff, 0xff, 0xff, 0]), &[]).sense, None);
        let back = target.execute(&command(&[0x11, 0, 0xff, 0xff, 0xfe, 0]), &[]);
        assert_eq!(back.sense.unwrap()[..7], [0xf0, 0, 0x40, 0, 0, 0, 1]);
        // Two bytes requested, three present: a negative residual.
        let long = target.execute(&command(&[0x08, 0, 0, 0, 2, 0]), &[]);
        assert_eq!(long.data, b"ab");
        assert_eq!(long.sense.unwrap()[2..7], [0x20, 0xff, 0xff, 0xff, 0xff]);
    }

    #[test]
    fn mode_parameters_are_set_and_read() {
        let (target, _) = loaded();
        let mut parameters = vec![0, 0, 0x10, 8, 0, 0, 0, 0, 0, 0, 2, 0];
        parameters.extend([0x0f, 14, 0x40, 0x80, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 0]);
        assert_eq!(target.execute(&command(&[0x15, 0x10, 0, 0, 28, 0]), &parameters).sense, None);
        let sensed = target.execute(&command(&[0x1a, 0, 0x0f, 0, 28, 0]), &[]);
        assert_eq!(sensed.data[9..12], [0, 2, 0]);
        assert_eq!(sensed.data[14] & 0xc0, 0x40, "capable, but off now");
        let wrong = target.execute(&command(&[0x15, 0x10, 0, 0, 4, 0]), &[0, 0, 0x10, 8]);
        assert_eq!(wrong.sense.unwrap()[12], 0x26);
    }
}
