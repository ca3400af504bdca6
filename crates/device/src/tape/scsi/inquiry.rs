//! INQUIRY: name and serial number of the drive. Drives answer it whatever they are doing.

use super::super::raw::QuestionError;
use super::{prefix, text};

const COMMAND: &str = "INQUIRY";

/// INQUIRY for the standard data, 96 bytes of them at most.
pub const STANDARD: [u8; 6] = [0x12, 0, 0, 0, 96, 0];
/// INQUIRY for the unit serial number page.
pub const SERIAL_NUMBER: [u8; 6] = [0x12, 1, SERIAL_NUMBER_PAGE, 0, 255, 0];

const SERIAL_NUMBER_PAGE: u8 = 0x80;

/// Names of a drive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inquiry {
    /// Peripheral device type; 1 is a sequential-access device.
    pub device_type: u8,
    /// The maker.
    pub vendor: String,
    /// The model.
    pub product: String,
    /// The firmware.
    pub revision: String,
}

impl Inquiry {
    /// From the standard data.
    ///
    /// # Errors
    /// When they are too short.
    pub fn parse(bytes: &[u8]) -> Result<Inquiry, QuestionError> {
        let answer = prefix::<36>(COMMAND, bytes)?;
        Ok(Inquiry {
            device_type: answer[0] & 0x1f,
            vendor: text(&answer[8..16]),
            product: text(&answer[16..32]),
            revision: text(&answer[32..36]),
        })
    }
}

/// The serial number, from the page of that name.
///
/// # Errors
/// When the answer is too short or another page.
pub fn parse_serial_number(bytes: &[u8]) -> Result<String, QuestionError> {
    let [_, page, high, low] = *prefix::<4>(COMMAND, bytes)?;
    if page != SERIAL_NUMBER_PAGE {
        let expected = SERIAL_NUMBER_PAGE;
        return Err(QuestionError::OtherPage { command: COMMAND, expected, found: page });
    }
    let length = usize::from(u16::from_be_bytes([high, low]));
    let number = &bytes[4..];
    Ok(text(&number[..length.min(number.len())]))
}
