//! READ POSITION, long form: where the tape stands, and whether its end is near.

use super::super::raw::QuestionError;
use super::prefix;

const COMMAND: &str = "READ POSITION";

/// READ POSITION, long form.
pub const READ_POSITION_LONG: [u8; 10] = [0x34, 6, 0, 0, 0, 0, 0, 0, 0, 0];
/// Bytes of its answer.
pub const POSITION_BYTES: usize = 32;

/// Position of the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// At the beginning of the partition.
    pub at_beginning: bool,
    /// Between early warning and the end of the partition.
    pub behind_early_warning: bool,
    /// Between programmable early warning and early warning.
    pub behind_programmable_warning: bool,
    pub partition: u32,
    /// Number of the next block or filemark, if known.
    pub object: Option<u64>,
    /// Filemarks before the position, if known.
    pub filemarks: Option<u64>,
}

impl Position {
    /// From the drive's answer.
    ///
    /// # Errors
    /// When the answer is too short, or the drive has answered in another form. Bits that the long
    /// form lacks belong to the short form, which some drives always return.
    pub fn parse(bytes: &[u8]) -> Result<Position, QuestionError> {
        const BEGINNING: u8 = 0x80;
        /// `EOP`: between early warning and the end.
        const EARLY_WARNING: u8 = 0x40;
        /// `MPU`: the count of filemarks is unknown.
        const MARKS_UNKNOWN: u8 = 0x08;
        /// `LONU`: the number of the object is unknown.
        const OBJECT_UNKNOWN: u8 = 0x04;
        /// `BPEW`: behind programmable early warning.
        const PROGRAMMABLE: u8 = 0x01;
        let answer = prefix::<POSITION_BYTES>(COMMAND, bytes)?;
        let flags = answer[0];
        let known = BEGINNING | EARLY_WARNING | MARKS_UNKNOWN | OBJECT_UNKNOWN | PROGRAMMABLE;
        if flags & !known != 0 {
            return Err(QuestionError::Inconsistent { command: COMMAND, offset: 0 });
        }
        let long = |at: usize| {
            let bytes: [u8; 8] = std::array::from_fn(|index| answer[at + index]);
            u64::from_be_bytes(bytes)
        };
        Ok(Position {
            at_beginning: flags & BEGINNING != 0,
            behind_early_warning: flags & EARLY_WARNING != 0,
            behind_programmable_warning: flags & PROGRAMMABLE != 0,
            partition: u32::from_be_bytes([answer[4], answer[5], answer[6], answer[7]]),
            object: (flags & OBJECT_UNKNOWN == 0).then(|| long(8)),
            filemarks: (flags & MARKS_UNKNOWN == 0).then(|| long(16)),
        })
    }
}
