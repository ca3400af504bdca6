//! LOG SENSE: what a drive has counted, of itself and of the medium.
//!
//! A page is a list of parameters, each with a code and a value of any length. Drives leave out
//! what they do not count, so every value is optional.

use super::super::raw::QuestionError;
use super::{number, prefix, text};

const COMMAND: &str = "LOG SENSE";

/// Page of sequential-access devices.
pub const SEQUENTIAL_PAGE: u8 = 0x0c;
/// Page of volume statistics.
pub const VOLUME_PAGE: u8 = 0x17;
/// Page of TapeAlert flags. Reading it clears them.
pub const ALERT_PAGE: u8 = 0x2e;

/// Most bytes of an answer.
pub const LOG_BYTES_MAX: usize = 8192;

/// LOG SENSE for the cumulative values of a page.
pub fn sense(page: u8) -> [u8; 10] {
    let [high, low] = (LOG_BYTES_MAX as u16).to_be_bytes();
    [0x4d, 0, 0x40 | (page & 0x3f), 0, 0, 0, 0, high, low, 0]
}

/// One parameter of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter<'a> {
    pub code: u16,
    pub value: &'a [u8],
}

impl Parameter<'_> {
    fn number(&self) -> Option<u64> {
        number(self.value)
    }

    fn text(&self) -> Option<String> {
        let text = text(self.value);
        (!text.is_empty()).then_some(text)
    }
}

/// The parameters of a page. If the list ends inside a parameter, that parameter is dropped: the
/// answer was longer than the buffer.
///
/// # Errors
/// When the answer is too short for a page, or is another page.
pub fn parameters(
    bytes: &[u8],
    page: u8,
) -> Result<impl Iterator<Item = Parameter<'_>>, QuestionError> {
    let [code, _, high, low] = *prefix::<4>(COMMAND, bytes)?;
    if code & 0x3f != page {
        let found = code & 0x3f;
        return Err(QuestionError::OtherPage { command: COMMAND, expected: page, found });
    }
    let length = usize::from(u16::from_be_bytes([high, low]));
    let mut rest = &bytes[4..bytes.len().min(4 + length)];
    Ok(std::iter::from_fn(move || {
        let [high, low, _, length] = *rest.first_chunk::<4>()?;
        let value = rest.get(4..4 + usize::from(length))?;
        rest = &rest[4 + usize::from(length)..];
        Some(Parameter { code: u16::from_be_bytes([high, low]), value })
    }))
}

/// The page of sequential-access devices; counters since the medium was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequentialAccess {
    /// Bytes that hosts wrote.
    pub host_written_bytes: Option<u64>,
    pub medium_written_bytes: Option<u64>,
    pub medium_read_bytes: Option<u64>,
    pub host_read_bytes: Option<u64>,
    /// Capacity of the drive's buffer in bytes, as on the medium.
    pub buffer_bytes: Option<u64>,
    /// The drive requests cleaning.
    pub cleaning: Option<bool>,
}

impl SequentialAccess {
    /// From the drive's answer.
    ///
    /// # Errors
    /// See [`parameters`].
    pub fn parse(bytes: &[u8]) -> Result<SequentialAccess, QuestionError> {
        let mut page = SequentialAccess::default();
        for parameter in parameters(bytes, SEQUENTIAL_PAGE)? {
            let value = parameter.number();
            match parameter.code {
                0x0000 => page.host_written_bytes = value,
                0x0001 => page.medium_written_bytes = value,
                0x0002 => page.medium_read_bytes = value,
                0x0003 => page.host_read_bytes = value,
                0x0008 => page.buffer_bytes = value.and_then(megabytes),
                0x0100 => page.cleaning = value.map(|value| value != 0),
                _ => {}
            }
        }
        Ok(page)
    }
}

/// The page of volume statistics about the medium.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeStatistics {
    /// How often it was loaded.
    pub loads: Option<u64>,
    /// Unrecovered write errors in its life.
    pub write_errors: Option<u64>,
    /// Unrecovered read errors in its life.
    pub read_errors: Option<u64>,
    /// Bytes written in its life.
    pub written_bytes: Option<u64>,
    /// Bytes read in its life.
    pub read_bytes: Option<u64>,
    /// Host bytes per medium byte when it was last written, in percent.
    pub write_ratio_percent: Option<u64>,
    /// Capacity in bytes, uncompressed.
    pub capacity_bytes: Option<u64>,
    /// Bytes of that in use.
    pub used_bytes: Option<u64>,
    pub serial_number: Option<String>,
    /// Its bar code.
    pub barcode: Option<String>,
    /// Its maker.
    pub manufacturer: Option<String>,
    /// Its format: `Ultrium-6`.
    pub personality: Option<String>,
    /// It can be written once only.
    pub write_once: Option<bool>,
}

impl VolumeStatistics {
    /// From the drive's answer.
    ///
    /// # Errors
    /// See [`parameters`].
    pub fn parse(bytes: &[u8]) -> Result<VolumeStatistics, QuestionError> {
        let mut page = VolumeStatistics::default();
        for parameter in parameters(bytes, VOLUME_PAGE)? {
            let value = parameter.number();
            match parameter.code {
                // The drive has no statistics yet.
                0x0000 if value == Some(0) => return Ok(VolumeStatistics::default()),
                0x0001 => page.loads = value,
                0x0004 => page.write_errors = value,
                0x0009 => page.read_errors = value,
                0x0010 => page.written_bytes = value.and_then(megabytes),
                0x0011 => page.read_bytes = value.and_then(megabytes),
                0x0012 => page.write_ratio_percent = value.filter(|ratio| *ratio != 0),
                0x0016 => page.capacity_bytes = value.and_then(megabytes),
                0x0017 => page.used_bytes = value.and_then(megabytes),
                0x0040 => page.serial_number = parameter.text(),
                0x0042 => page.barcode = parameter.text(),
                0x0043 => page.manufacturer = parameter.text(),
                0x0045 => page.personality = parameter.text(),
                0x0081 => page.write_once = value.map(|value| value != 0),
                _ => {}
            }
        }
        Ok(page)
    }
}

/// Megabytes as bytes; all ones mean unknown (SSC-4).
fn megabytes(value: u64) -> Option<u64> {
    value.checked_mul(1_000_000).filter(|_| value != u64::from(u32::MAX))
}
