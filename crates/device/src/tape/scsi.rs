//! SCSI commands that a drive answers without moving its tape, and the parsers of the answers.
//!
//! The tape driver has no ioctl for most of a drive's own data, so some commands bypass it. This
//! module builds commands and parses answers; both are bytes, and nothing here sends them
//! ([`super::Tape`] does). Every answer is treated as hostile: its lengths are only claims.
//!
//! Sources: SPC-4 (INQUIRY, MODE SENSE, LOG SENSE) and SSC-4 (READ BLOCK LIMITS, READ POSITION, the
//! log pages of sequential-access devices), T10.

pub mod access_order;
pub mod alert;
pub mod attribute;
pub mod inquiry;
pub mod log;
pub mod mode;
pub mod position;

use super::raw::QuestionError;

/// READ BLOCK LIMITS.
pub const READ_BLOCK_LIMITS: [u8; 6] = [0x05, 0, 0, 0, 0, 0];
/// Bytes of the answer to [`READ_BLOCK_LIMITS`].
pub const BLOCK_LIMITS_BYTES: usize = 6;

/// What READ BLOCK LIMITS answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockLimits {
    /// Block sizes are multiples of two to this power.
    pub granularity: u8,
    /// Largest block, bytes; 0 when the drive states no limit.
    pub bytes_max: u32,
    /// Smallest block, bytes.
    pub bytes_min: u32,
}

impl BlockLimits {
    /// From the drive's answer.
    ///
    /// # Errors
    /// When it is too short, or its minimum is above its maximum.
    pub fn parse(bytes: &[u8]) -> Result<BlockLimits, QuestionError> {
        const COMMAND: &str = "READ BLOCK LIMITS";
        let answer = prefix::<BLOCK_LIMITS_BYTES>(COMMAND, bytes)?;
        let limits = BlockLimits {
            granularity: answer[0] & 0x1f,
            bytes_max: u32::from_be_bytes([0, answer[1], answer[2], answer[3]]),
            bytes_min: u32::from(u16::from_be_bytes([answer[4], answer[5]])),
        };
        if limits.bytes_max != 0 && limits.bytes_max < limits.bytes_min {
            return Err(QuestionError::Inconsistent { command: COMMAND, offset: 1 });
        }
        Ok(limits)
    }
}

/// The first bytes of an answer, or an error if they are missing.
fn prefix<'a, const BYTES: usize>(
    command: &'static str,
    bytes: &'a [u8],
) -> Result<&'a [u8; BYTES], QuestionError> {
    let short = QuestionError::Short { command, bytes: bytes.len(), needed: BYTES };
    bytes.first_chunk::<BYTES>().ok_or(short)
}

/// The text of a field padded with spaces or zeros; bytes that are not ASCII are dropped.
fn text(bytes: &[u8]) -> String {
    let letters = bytes.iter().filter(|byte| (0x20..0x7f).contains(*byte));
    let text: String = letters.map(|byte| char::from(*byte)).collect();
    text.trim().to_owned()
}

/// A big-endian number of up to eight bytes; `None` when it is longer.
fn number(bytes: &[u8]) -> Option<u64> {
    (bytes.len() <= 8).then(|| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_limits() {
        let limits = |bytes| BlockLimits::parse(bytes);
        let expected = BlockLimits { granularity: 0, bytes_max: 8 << 20, bytes_min: 1 };
        assert_eq!(limits(&[0, 0x80, 0, 0, 0, 1]).unwrap(), expected);
        // More bytes than the standard has do no harm.
        assert_eq!(limits(&[0, 0x80, 0, 0, 0, 1, 9, 9]).unwrap(), expected);
        assert!(matches!(limits(&[0, 1]), Err(QuestionError::Short { bytes: 2, needed: 6, .. })));
        assert!(matches!(limits(&[0, 0, 0, 1, 0, 4]), Err(QuestionError::Inconsistent { .. })));
    }
}
