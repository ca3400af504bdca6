//! Answers to commands that ask for data: the drive's identity, abilities and position.
//!
//! Layouts follow SPC-4 and SSC-3. Of the commands that move the tape only SPACE over blocks is
//! accepted this way, since both ways should not be mixed (st.rst).

use device::tape::raw::QuestionError;

use super::access_order;
use super::check::NOT_READY;
use super::drive::{Check, Drive, ILLEGAL_REQUEST, Space};
use super::faults::{Answers, CartridgeMemories, CompressionSwitch};

const TEST_UNIT_READY: u8 = 0x00;
const REQUEST_SENSE: u8 = 0x03;
const READ_BLOCK_LIMITS: u8 = 0x05;
const SPACE: u8 = 0x11;
const INQUIRY: u8 = 0x12;
const MODE_SENSE_6: u8 = 0x1a;
const READ_POSITION: u8 = 0x34;
const LOG_SENSE: u8 = 0x4d;
const MODE_SENSE_10: u8 = 0x5a;
const READ_ATTRIBUTE: u8 = 0x8c;

impl Drive {
    /// Executes `command` and puts the answer at the start of `data`; returns its length.
    pub(super) fn answer(
        &mut self,
        command: &[u8],
        data: &mut [u8],
    ) -> Result<usize, QuestionError> {
        match self.settings.answers {
            Answers::Proper => {}
            Answers::Refused => {
                // Invalid command operation code.
                return Err(QuestionError::Refused(Check::of(ILLEGAL_REQUEST, 0x20, 0x00).sense));
            }
            Answers::Unreachable => return Err(QuestionError::NoGenericDevice),
            Answers::Empty => return Ok(0),
            Answers::Garbage => {
                fill_with_garbage(command, data);
                return Ok(data.len());
            }
        }
        let mut padded = [0; 16];
        let length = command.len().min(padded.len());
        padded[..length].copy_from_slice(&command[..length]);
        match self.answer_to(&padded) {
            Ok((answer, allocated)) => {
                let bytes = answer.len().min(allocated).min(data.len());
                data[..bytes].copy_from_slice(&answer[..bytes]);
                Ok(bytes)
            }
            Err(check) => Err(QuestionError::Refused(check.sense)),
        }
    }

    /// The whole answer, and how much of it the command requests.
    pub(super) fn answer_to(&mut self, command: &[u8; 16]) -> Result<(Vec<u8>, usize), Check> {
        match command[0] {
            // Any other command reports pending conditions (SPC-4, 5.14).
            INQUIRY | REQUEST_SENSE | TEST_UNIT_READY | READ_POSITION | SPACE => {
                self.answer_with(command)
            }
            _ => self.command_at_any_time(|drive| {
                drive.notice()?;
                drive.answer_with(command)
            }),
        }
    }

    fn answer_with(&mut self, command: &[u8; 16]) -> Result<(Vec<u8>, usize), Check> {
        let length_16 = |at: usize| usize::from(u16::from_be_bytes([command[at], command[at + 1]]));
        match command[0] {
            TEST_UNIT_READY => self.test_unit_ready().map(|()| (Vec::new(), 0)),
            REQUEST_SENSE => Ok((self.pending_sense(), usize::from(command[4]))),
            // Bypasses the driver, which does not notice.
            SPACE if command[1] & 0x0f == 0 => {
                let count = i32::from_be_bytes([command[2], command[3], command[4], 0]) >> 8;
                self.space(Space::Blocks(count)).map(|()| (Vec::new(), 0))
            }
            READ_BLOCK_LIMITS => Ok((self.block_limits(), 6)),
            INQUIRY => Ok((self.inquiry(command[1] & 1 != 0, command[2])?, length_16(3))),
            MODE_SENSE_6 => {
                let descriptor = command[1] & 0x08 == 0;
                Ok((self.mode_sense(command[2] & 0x3f, descriptor)?, usize::from(command[4])))
            }
            MODE_SENSE_10 => {
                let descriptor = command[1] & 0x08 == 0;
                let short = self.mode_sense(command[2] & 0x3f, descriptor)?;
                Ok((with_long_header(&short), length_16(7)))
            }
            READ_POSITION => Ok((self.position_data(command[1] & 0x1f)?, usize::MAX)),
            LOG_SENSE => Ok((self.log_page(command[2] & 0x3f)?, length_16(7))),
            // Allocation length in 32 bits; only values are told.
            READ_ATTRIBUTE if command[1] & 0x1f == 0 => {
                let first = u16::from_be_bytes([command[8], command[9]]);
                let length = [command[10], command[11], command[12], command[13]];
                Ok((self.attributes(first)?, u32::from_be_bytes(length) as usize))
            }
            _ if access_order::is_receive(command) => self.recommended(command),
            _ => Err(Check::of(ILLEGAL_REQUEST, 0x20, 0x00)),
        }
    }

    fn pending_sense(&mut self) -> Vec<u8> {
        let sense = self.test_unit_ready().err().unwrap_or_default().sense;
        let mut data = vec![0; 18];
        data[0] = 0x70;
        data[2] = sense.key;
        data[7] = 10;
        data[12] = sense.code;
        data[13] = sense.qualifier;
        data
    }

    fn block_limits(&self) -> Vec<u8> {
        let most = self.settings.block_bytes_max.to_be_bytes();
        let least = self.settings.block_bytes_min.to_be_bytes();
        vec![0, most[1], most[2], most[3], least[0], least[1]]
    }

    fn inquiry(&self, vital: bool, page: u8) -> Result<Vec<u8>, Check> {
        let settings = &self.settings;
        match (vital, page) {
            (false, 0) => {
                // Sequential access, removable, SPC-4, 31 more bytes.
                let mut data = vec![0x01, 0x80, 0x06, 0x02, 31, 0, 0, 0];
                push_text(&mut data, &settings.vendor, 8);
                push_text(&mut data, &settings.product, 16);
                push_text(&mut data, &settings.revision, 4);
                Ok(data)
            }
            (true, 0x00) => Ok(vec![0x01, 0x00, 0, 2, 0x00, 0x80]),
            (true, 0x80) => {
                let mut data = vec![0x01, 0x80, 0, settings.serial.len() as u8];
                data.extend(settings.serial.bytes());
                Ok(data)
            }
            _ => Err(invalid_field()),
        }
    }

    fn mode_sense(&mut self, page: u8, descriptor: bool) -> Result<Vec<u8>, Check> {
        let protected = if self.is_protected() { 0x80 } else { 0 };
        // Buffered mode 1: writes succeed when they are in the drive's buffer.
        let mut data = vec![0, 0, protected | 0x10, 0];
        if descriptor {
            data[3] = 8;
            let block = self.block_bytes.to_be_bytes();
            data.extend([self.density(), 0, 0, 0, 0, block[1], block[2], block[3]]);
        }
        match page {
            0x00 => {}
            0x0f => data.extend(self.compression_page()?),
            0x10 => data.extend(configuration_page()),
            0x3f => {
                data.extend(self.compression_page().unwrap_or_default());
                data.extend(configuration_page());
            }
            _ => return Err(invalid_field()),
        }
        data[0] = (data.len() - 1) as u8;
        Ok(data)
    }

    /// Data compression page: capable, on, decompression on, algorithm IBM LTO (SLDC).
    fn compression_page(&self) -> Result<[u8; 16], Check> {
        if self.settings.compression_switch == CompressionSwitch::Absent {
            return Err(invalid_field());
        }
        let on = if self.compression { 0x80 } else { 0 };
        let algorithm = if self.compression { 0x05 } else { 0 };
        Ok([0x0f, 14, on | 0x40, 0x80, 0, 0, 0, algorithm, 0, 0, 0, 0x05, 0, 0, 0, 0])
    }

    fn position_data(&mut self, form: u8) -> Result<Vec<u8>, Check> {
        let position = self.read_position()?;
        let mut flags = 0;
        if position == 0 {
            flags |= 0x80; // BOP
        }
        if self.is_near_end() {
            // EOP in the short form is the early warning; the long form has BPEW for it.
            flags |= if form == 0x06 { 0x01 } else { 0x40 };
        }
        match form {
            0x00 | 0x01 => {
                let number = u32::try_from(position).unwrap_or(u32::MAX).to_be_bytes();
                let mut data = vec![0; 20];
                data[0] = flags;
                data[4..8].copy_from_slice(&number);
                data[8..12].copy_from_slice(&number);
                Ok(data)
            }
            0x06 => {
                let filemarks = self.filemarks_before(position);
                let mut data = vec![0; 32];
                data[0] = flags;
                data[8..16].copy_from_slice(&position.to_be_bytes());
                data[16..24].copy_from_slice(&filemarks.to_be_bytes());
                Ok(data)
            }
            _ => Err(invalid_field()),
        }
    }

    fn filemarks_before(&self, position: u64) -> u64 {
        let Some(cartridge) = self.cartridge() else { return 0 };
        let medium = cartridge.lock();
        let is_filemark =
            |number: &u64| medium.entry(*number).is_some_and(|entry| entry.block_bytes.is_none());
        (0..position).filter(is_filemark).count() as u64
    }

    /// Native capacity in megabytes, as the page has it (SSC-4, 8.3.7). `None` without a medium.
    fn volume_statistics(&self) -> Vec<u8> {
        let Some(cartridge) = self.cartridge().filter(|_| self.is_loaded()) else {
            return parameter(0x0000, &[0]);
        };
        let megabytes = |bytes: u64| u32::try_from(bytes / 1_000_000).unwrap_or(u32::MAX);
        let capacity = megabytes(cartridge.capacity_bytes()).to_be_bytes();
        let used = megabytes(cartridge.used_bytes()).to_be_bytes();
        [parameter(0x0000, &[1]), parameter(0x0016, &capacity), parameter(0x0017, &used)].concat()
    }

    /// Attributes of the cartridge from `first` on (SPC-4, 7.4.2).
    fn attributes(&mut self, first: u16) -> Result<Vec<u8>, Check> {
        if self.settings.cartridge_memory == CartridgeMemories::Unread {
            return Err(Check::of(ILLEGAL_REQUEST, 0x20, 0x00));
        }
        let Some(cartridge) = self.cartridge().filter(|_| self.is_loaded()) else {
            return Err(Check::of(NOT_READY, 0x3a, 0x00));
        };
        let mut medium = cartridge.lock();
        let megabytes = |bytes: u64| (bytes / 1_000_000).to_be_bytes();
        let capacity = medium.settings.capacity_bytes;
        let used = medium.bytes_before(medium.len());
        let serial = device::tape::scsi::attribute::SERIAL_NUMBER;
        let reference = device::tape::scsi::attribute::CHANGE_REFERENCE;
        let mut attributes = vec![
            (0x0000, megabytes(capacity.saturating_sub(used)).to_vec()),
            (0x0001, megabytes(capacity).to_vec()),
        ];
        if first <= reference {
            attributes.push((reference, medium.read_change_reference().to_be_bytes().to_vec()));
        }
        let mut text = Vec::new();
        push_text(&mut text, &medium.chip.serial_text(), 32);
        attributes.push((serial, text));
        if let Some(barcode) = &medium.chip.barcode {
            let mut text = Vec::new();
            push_text(&mut text, barcode, 32);
            attributes.push((device::tape::scsi::attribute::BARCODE, text));
        }
        let mut data = vec![0; 4];
        for (identifier, value) in attributes.iter().filter(|(identifier, _)| *identifier >= first)
        {
            data.extend(identifier.to_be_bytes());
            data.push(0x80);
            data.extend((value.len() as u16).to_be_bytes());
            data.extend(value);
        }
        let length = (data.len() as u32 - 4).to_be_bytes();
        data[..4].copy_from_slice(&length);
        Ok(data)
    }

    fn log_page(&mut self, page: u8) -> Result<Vec<u8>, Check> {
        let parameters = match page {
            // Supported pages.
            0x00 => return Ok(vec![0x00, 0, 0, 4, 0x00, 0x0c, 0x17, 0x2e]),
            // Sequential access device: bytes read and written are not counted here; cleaning.
            0x0c => {
                let alerts = &self.settings.alerts;
                let asks = alerts.contains(&CLEAN_NOW) || alerts.contains(&CLEAN_PERIODIC);
                parameter(0x0100, &[0, 0, 0, u8::from(asks)])
            }
            // Volume statistics: valid, capacity of the medium and used capacity.
            0x17 => self.volume_statistics(),
            // TapeAlert: reading the flags clears them.
            0x2e => {
                let were_read = std::mem::replace(&mut self.were_alerts_read, true);
                let is_set = |flag: u8| !were_read && self.settings.alerts.contains(&flag);
                let flag = |flag: u8| parameter(flag.into(), &[u8::from(is_set(flag))]);
                (1..=64).flat_map(flag).collect()
            }
            _ => return Err(invalid_field()),
        };
        let length = (parameters.len() as u16).to_be_bytes();
        let mut data = vec![page, 0, length[0], length[1]];
        data.extend(parameters);
        Ok(data)
    }
}

/// TapeAlert flags with which a drive requests cleaning (SSC-4, annex A).
const CLEAN_NOW: u8 = 20;
const CLEAN_PERIODIC: u8 = 21;

/// Device configuration page; 16 bytes, block identifiers supported.
fn configuration_page() -> [u8; 16] {
    [0x10, 14, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0]
}

fn parameter(code: u16, value: &[u8]) -> Vec<u8> {
    let code = code.to_be_bytes();
    let mut data = vec![code[0], code[1], 0x03, value.len() as u8];
    data.extend(value);
    data
}

/// The header of MODE SENSE(6) is 4 bytes, that of MODE SENSE(10) 8.
fn with_long_header(short: &[u8]) -> Vec<u8> {
    let rest = &short[4..];
    let length = (rest.len() as u16 + 6).to_be_bytes();
    let mut data = vec![length[0], length[1], short[1], short[2], 0, 0, 0, short[3]];
    data.extend(rest);
    data
}

fn push_text(data: &mut Vec<u8>, text: &str, width: usize) {
    let bytes = text.bytes().chain(std::iter::repeat(b' ')).take(width);
    data.extend(bytes);
}

fn invalid_field() -> Check {
    Check::of(ILLEGAL_REQUEST, 0x24, 0x00)
}

/// Meaningless bytes, the same for the same command (Knuth's multiplicative generator).
fn fill_with_garbage(command: &[u8], data: &mut [u8]) {
    let mut state = command.iter().fold(0x9e37_79b9_7f4a_7c15_u64, |state, &byte| {
        (state ^ u64::from(byte)).wrapping_mul(6_364_136_223_846_793_005)
    });
    for byte in data {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *byte = (state >> 56) as u8;
    }
}
