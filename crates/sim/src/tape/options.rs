//! The driver's options, as `MTSETDRVBUFFER` sets them (`MT_ST_OPTIONS` in `linux/mtio.h`).

use rustix::io::Errno;

const OPTIONS: u32 = 0xf000_0000;
const BOOLEANS: u32 = 0x1000_0000;
const SET_BOOLEANS: u32 = 0x3000_0000;
const CLEAR_BOOLEANS: u32 = 0x4000_0000;
const READ_AHEAD: u32 = 0x4;
const TWO_FILEMARKS: u32 = 0x10;
const FAST_END_OF_DATA: u32 = 0x20;
const SUPPRESS_INCORRECT_LENGTH: u32 = 0x4000;
const IMMEDIATE_FILEMARKS: u32 = 0x8000;

/// Options that change what a program sees here. Others are accepted without effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Options {
    /// `MT_ST_READ_AHEAD`: fixed blocks can be read in pieces.
    pub(super) read_ahead: bool,
    /// `MT_ST_TWO_FM`.
    pub(super) two_filemarks: bool,
    /// `MT_ST_FAST_MTEOM`.
    pub(super) fast_end_of_data: bool,
    /// `MT_ST_SILI`.
    pub(super) suppress_incorrect_length: bool,
    /// `MT_ST_NOWAIT_EOF`.
    pub(super) immediate_filemarks: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            read_ahead: true,
            two_filemarks: false,
            fast_end_of_data: false,
            suppress_incorrect_length: false,
            immediate_filemarks: false,
        }
    }
}

impl Options {
    /// Applies the argument of `MTSETDRVBUFFER`.
    pub(super) fn set(&mut self, argument: i32) -> Result<(), Errno> {
        let argument = argument as u32;
        let each = [
            (READ_AHEAD, &mut self.read_ahead),
            (TWO_FILEMARKS, &mut self.two_filemarks),
            (FAST_END_OF_DATA, &mut self.fast_end_of_data),
            (SUPPRESS_INCORRECT_LENGTH, &mut self.suppress_incorrect_length),
            (IMMEDIATE_FILEMARKS, &mut self.immediate_filemarks),
        ];
        for (bit, option) in each {
            let named = argument & bit != 0;
            match argument & OPTIONS {
                BOOLEANS => *option = named,
                SET_BOOLEANS => *option |= named,
                CLEAR_BOOLEANS => *option &= !named,
                // Buffering modes, thresholds, time limits, defaults.
                _ => {}
            }
        }
        Ok(())
    }
}
