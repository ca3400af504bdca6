//! CHECK CONDITION: the report of a command that failed, or succeeded with a remark.

use device::tape::sense::Sense;

/// CHECK CONDITION with its sense data: the command failed, or has a remark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) sense: Sense,
    /// FILEMARK bit.
    pub(super) filemark: bool,
    /// EOM bit.
    pub(super) end_of_medium: bool,
    /// ILI bit.
    pub(super) incorrect_length: bool,
    /// INFORMATION field: requested minus done, in units of the command.
    pub(super) residual: i64,
}

/// Sense keys, SPC-4.
pub(super) const NO_SENSE: u8 = 0x0;
pub(super) const RECOVERED_ERROR: u8 = 0x1;
pub(super) const NOT_READY: u8 = 0x2;
pub(super) const MEDIUM_ERROR: u8 = 0x3;
pub(super) const HARDWARE_ERROR: u8 = 0x4;
pub(super) const ILLEGAL_REQUEST: u8 = 0x5;
pub(super) const UNIT_ATTENTION: u8 = 0x6;
pub(super) const DATA_PROTECT: u8 = 0x7;
pub(super) const BLANK_CHECK: u8 = 0x8;
pub(super) const VOLUME_OVERFLOW: u8 = 0xd;

impl Check {
    pub(super) fn of(key: u8, code: u8, qualifier: u8) -> Check {
        Check { sense: Sense { key, code, qualifier, deferred: false }, ..Check::default() }
    }

    /// With this residual.
    pub(super) fn left(mut self, residual: u64) -> Check {
        self.residual = residual as i64;
        self
    }

    pub(super) fn end_of_data(residual: u64) -> Check {
        Check::of(BLANK_CHECK, 0x00, 0x05).left(residual)
    }

    pub(super) fn at_filemark(residual: u64) -> Check {
        Check { filemark: true, ..Check::of(NO_SENSE, 0x00, 0x01).left(residual) }
    }

    pub(super) fn at_beginning(residual: u64) -> Check {
        Check { end_of_medium: true, ..Check::of(NO_SENSE, 0x00, 0x04).left(residual) }
    }

    pub(super) fn early_warning() -> Check {
        Check { end_of_medium: true, ..Check::of(NO_SENSE, 0x00, 0x02) }
    }

    pub(super) fn medium_full(residual: u64) -> Check {
        Check { end_of_medium: true, ..Check::of(VOLUME_OVERFLOW, 0x00, 0x02).left(residual) }
    }

    pub(super) fn wrong_length(residual: i64) -> Check {
        Check { incorrect_length: true, residual, ..Check::of(NO_SENSE, 0x00, 0x00) }
    }
}

/// Write error.
pub(super) fn write_error() -> Check {
    Check::of(MEDIUM_ERROR, 0x0c, 0x00)
}
