//! Queries to a drive about itself and its medium.
//!
//! These commands bypass the tape driver. None of them moves the tape, but each stops the drive
//! from streaming, so Takeup sends none between the first and the last block of a run. They may be
//! sent right after opening the tape, because the open has passed the drive's notices (a reset,
//! another medium) to the driver. If a command meets such a notice itself, the driver misses it,
//! and the tape has to be closed and opened again: [`QuestionError::is_attention`].

use super::Tape;
use super::raw::{MtOperation, QuestionError};
use super::scsi::access_order::{self, Segment};
use super::scsi::alert::{self, Alert};
use super::scsi::attribute::{ATTRIBUTE_BYTES_MAX, CartridgeMemory, READ_ATTRIBUTES};
use super::scsi::inquiry::{self, Inquiry};
use super::scsi::log::{self, SequentialAccess, VolumeStatistics};
use super::scsi::mode::{self, Compression, ModeHeader};
use super::scsi::position::{POSITION_BYTES, Position, READ_POSITION_LONG};
use super::scsi::{BLOCK_LIMITS_BYTES, BlockLimits, READ_BLOCK_LIMITS};

impl QuestionError {
    /// The drive gave a notice instead: it was reset, or has another medium. What was known of the
    /// tape is invalid, and the tape has to be opened again.
    pub fn is_attention(&self) -> bool {
        match self {
            QuestionError::Refused(sense) => sense.is_medium_change() || sense.is_reset(),
            _ => false,
        }
    }

    /// The drive, or the path to it, does not support the query.
    pub fn is_unknown(&self) -> bool {
        match self {
            QuestionError::Refused(sense) => sense.is_illegal_request(),
            QuestionError::NoGenericDevice => true,
            _ => false,
        }
    }
}

/// Whether the drive shall compress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveCompression {
    /// It shall.
    On,
    /// It shall not.
    Off,
}

/// Why the drive's compression could not be set.
#[derive(Debug, thiserror::Error)]
pub enum CompressionError {
    /// The drive cannot compress.
    #[error("{device} cannot compress")]
    Unable { device: String },
    /// It was set, and the drive still reports the old value.
    #[error("cannot switch the compression of {device} {wanted}: the drive still has it {found}")]
    NotApplied {
        device: String,
        /// What was requested: on, off.
        wanted: &'static str,
        /// The drive's own setting.
        found: &'static str,
    },
    /// The driver could not set it.
    #[error(transparent)]
    Set(#[from] super::TapeError),
    /// The new setting could not be read back.
    #[error("cannot read back the compression of {device}")]
    ReadBack { device: String, source: QuestionError },
}

impl Tape {
    /// Names of the drive.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn inquiry(&mut self) -> Result<Inquiry, QuestionError> {
        Inquiry::parse(&self.ask(&inquiry::STANDARD, 96)?)
    }

    /// Serial number of the drive.
    ///
    /// # Errors
    /// When it does not answer, or has none.
    pub fn serial_number(&mut self) -> Result<String, QuestionError> {
        inquiry::parse_serial_number(&self.ask(&inquiry::SERIAL_NUMBER, 255)?)
    }

    /// The block sizes that the drive takes.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn block_limits(&mut self) -> Result<BlockLimits, QuestionError> {
        BlockLimits::parse(&self.ask(&READ_BLOCK_LIMITS, BLOCK_LIMITS_BYTES)?)
    }

    /// Type of the medium, buffering, block size.
    ///
    /// # Errors
    /// When the drive does not answer.
    pub fn mode_header(&mut self) -> Result<ModeHeader, QuestionError> {
        ModeHeader::parse(&self.ask(&mode::sense(mode::CONFIGURATION_PAGE), 252)?)
    }

    /// Whether the drive compresses, by its own answer. A drive without the page cannot.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn drive_compression(&mut self) -> Result<Compression, QuestionError> {
        match self.ask(&mode::sense(mode::COMPRESSION_PAGE), 252) {
            Ok(answer) => Compression::parse(&answer),
            Err(QuestionError::Refused(sense)) if sense.is_illegal_request() => {
                Ok(Compression::Unable)
            }
            Err(error) => Err(error),
        }
    }

    /// Switches the drive's compression, then reads the setting back, since some drives accept the
    /// command and do not apply it. Call this only where writing may begin: the driver first
    /// flushes a dirty buffer.
    ///
    /// # Errors
    /// When the drive cannot compress, does not apply the setting, or cannot be queried.
    pub fn set_drive_compression(
        &mut self,
        wanted: DriveCompression,
    ) -> Result<Compression, CompressionError> {
        let device = self.name().to_owned();
        let read_back = |source| CompressionError::ReadBack { device: device.clone(), source };
        if self.drive_compression().map_err(read_back)? == Compression::Unable {
            return match wanted {
                DriveCompression::Off => Ok(Compression::Unable),
                DriveCompression::On => Err(CompressionError::Unable { device }),
            };
        }
        let (count, name, expected) = match wanted {
            DriveCompression::On => (1, "on", Compression::On),
            DriveCompression::Off => (0, "off", Compression::Off),
        };
        self.operate(MtOperation::Compression, count, "set the compression of")?;
        let found = self.drive_compression().map_err(read_back)?;
        if found == expected {
            return Ok(found);
        }
        let found = if found == Compression::On { "on" } else { "off" };
        Err(CompressionError::NotApplied { device, wanted: name, found })
    }

    /// The TapeAlert flags that are set. Reading them clears them for this host.
    ///
    /// # Errors
    /// When the drive does not answer.
    pub fn alerts(&mut self) -> Result<Vec<Alert>, QuestionError> {
        alert::parse(&self.ask(&log::sense(log::ALERT_PAGE), log::LOG_BYTES_MAX)?)
    }

    /// What the drive has counted since the medium was loaded.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn sequential_access(&mut self) -> Result<SequentialAccess, QuestionError> {
        let answer = self.ask(&log::sense(log::SEQUENTIAL_PAGE), log::LOG_BYTES_MAX)?;
        SequentialAccess::parse(&answer)
    }

    /// The life of the medium.
    ///
    /// # Errors
    /// When the drive does not answer.
    pub fn volume_statistics(&mut self) -> Result<VolumeStatistics, QuestionError> {
        let answer = self.ask(&log::sense(log::VOLUME_PAGE), log::LOG_BYTES_MAX)?;
        VolumeStatistics::parse(&answer)
    }

    /// What the memory chip of the cartridge says.
    ///
    /// # Errors
    /// When the drive does not answer, or cannot read it.
    pub fn cartridge_memory(&mut self) -> Result<CartridgeMemory, QuestionError> {
        CartridgeMemory::parse(&self.ask(&READ_ATTRIBUTES, ATTRIBUTE_BYTES_MAX)?)
    }

    /// Position of the tape, and whether its end is near, as the drive reports it.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn long_position(&mut self) -> Result<Position, QuestionError> {
        Position::parse(&self.ask(&READ_POSITION_LONG, POSITION_BYTES)?)
    }

    /// The order in which the drive recommends to read these segments from where the tape stands,
    /// as numbers in `segments`; `None` if they are more than it sorts.
    ///
    /// # Errors
    /// When the drive does not recommend any, or its answer is none.
    pub fn access_order(
        &mut self,
        segments: &[Segment],
    ) -> Result<Option<Vec<usize>>, QuestionError> {
        let limits = self.ask(&access_order::LIMITS, access_order::LIMITS_BYTES)?;
        if segments.len() > access_order::parse_limits(&limits)? {
            return Ok(None);
        }
        let list = access_order::list_of(segments);
        self.raw().command_with(&access_order::generate(list.len()), &list)?;
        let (command, bytes) = access_order::receive(segments.len());
        let answer = self.ask(&command, bytes)?;
        access_order::parse_order(&answer, segments).map(Some)
    }

    /// Sends a command and returns as much of the answer as came.
    fn ask(&mut self, command: &[u8], bytes_max: usize) -> Result<Vec<u8>, QuestionError> {
        let mut answer = vec![0; bytes_max];
        let bytes = self.raw().command(command, &mut answer)?;
        answer.truncate(bytes);
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::super::sense::Sense;
    use super::*;

    #[test]
    fn a_notice_is_no_answer() {
        let refused = |key, code| {
            let sense = Sense { key, code, ..Sense::default() };
            QuestionError::Refused(sense)
        };
        // Another medium; a reset; an unknown command; a medium error.
        assert!(refused(6, 0x28).is_attention() && refused(6, 0x29).is_attention());
        assert!(!refused(5, 0x20).is_attention() && !refused(3, 0x11).is_attention());
        assert!(refused(5, 0x20).is_unknown() && !refused(6, 0x28).is_unknown());
    }
}
