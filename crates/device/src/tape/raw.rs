//! What the kernel's tape driver does for a program: read, write, and three ioctls.
//!
//! All access to a tape goes through [`RawTape`]. Its implementations are the real `st` driver
//! ([`super::st::StTape`]) and a simulated tape in this process (crate `sim`), so that one table of
//! scenarios tests both. Results are those of the system calls, including error numbers;
//! [`super::Tape`] interprets them.

use std::io;

pub use machine::counters::tape::Statistics;

use super::limits::Way;
use super::sense::Sense;

/// MtOperation of `MTIOCTOP`, `linux/mtio.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i16)]
pub enum MtOperation {
    /// Forward over `count` filemarks; stops behind the last.
    ForwardFilemarks = 1,
    /// Backward over `count` filemarks; stops before the last.
    BackwardFilemarks = 2,
    /// Forward over `count` blocks.
    ForwardBlocks = 3,
    /// Backward over `count` blocks.
    BackwardBlocks = 4,
    /// Write `count` filemarks and wait until they, and everything before them, are on the medium.
    /// With count 0 only wait.
    WriteFilemarks = 5,
    /// To the beginning.
    Rewind = 6,
    /// Rewind and eject.
    Offline = 7,
    /// Flush the driver's buffer, nothing else.
    Nothing = 8,
    /// To the end of the recorded data.
    EndOfData = 12,
    /// Set the block size; 0 is variable.
    SetBlockSize = 20,
    /// To a block number as [`RawTape::position`] returns it.
    Seek = 22,
    /// Set driver options (`MT_ST_BOOLEANS` and the like).
    SetDriverOptions = 24,
    /// Load the medium.
    Load = 30,
    /// Unload the medium.
    Unload = 31,
    /// Compression by the drive: 1 on, 0 off.
    Compression = 32,
    /// Write `count` filemarks without waiting.
    WriteFilemarksImmediate = 35,
}

/// What `MTIOCGET` answers, without a command to the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawStatus {
    /// `mt_type`.
    pub drive_type: i64,
    /// `mt_resid`.
    pub residual: i64,
    /// `mt_dsreg`: block size in the low 24 bits, density code in the high 8.
    pub density_and_block_size: i64,
    /// `mt_gstat`: the `GMT_*` bits.
    pub general_status: i64,
    /// `mt_erreg`.
    pub recovered_errors: i64,
    /// `mt_fileno`; -1 when unknown.
    pub file_number: i32,
    /// `mt_blkno` within the file; -1 when unknown.
    pub block_number: i32,
}

/// `GMT_EOF`: behind a filemark.
pub const GMT_EOF: i64 = 0x8000_0000;
/// `GMT_BOT`: at the beginning.
pub const GMT_BOT: i64 = 0x4000_0000;
/// `GMT_EOT`: at the end of the medium.
pub const GMT_EOT: i64 = 0x2000_0000;
/// `GMT_EOD`: at the end of the recorded data.
pub const GMT_EOD: i64 = 0x0800_0000;
/// `GMT_WR_PROT`: the medium is write-protected.
pub const GMT_WR_PROT: i64 = 0x0400_0000;
/// `GMT_ONLINE`: a medium is there and ready.
pub const GMT_ONLINE: i64 = 0x0100_0000;
/// `GMT_DR_OPEN`: no medium.
pub const GMT_DR_OPEN: i64 = 0x0004_0000;
/// `GMT_IM_REP_EN`: writes are reported before they are on the medium.
pub const GMT_IM_REP_EN: i64 = 0x0001_0000;
/// `GMT_CLN`: the drive asks to be cleaned.
pub const GMT_CLN: i64 = 0x0000_8000;

/// Why a command that reads data from the drive (`SG_IO`) failed, or its answer cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum QuestionError {
    /// Commands cannot be sent to this drive.
    #[error("the drive has no generic device")]
    NoGenericDevice,
    /// The system call failed.
    #[error("cannot send a command")]
    System(#[source] io::Error),
    #[error("the drive reports: {0}")]
    Refused(Sense),
    /// The host adapter or transport failed.
    #[error("the host adapter reports status {host:#x}, driver {driver:#x}")]
    Transport {
        /// `host_status` of `sg_io_hdr`.
        host: u16,
        /// `driver_status`.
        driver: u16,
    },
    /// The answer ends too early.
    #[error("the answer to {command} is too short: {bytes} bytes, {needed} needed")]
    Short {
        /// Name of the command.
        command: &'static str,
        /// Bytes that came.
        bytes: usize,
        /// Bytes that are needed.
        needed: usize,
    },
    /// The answer holds a different page.
    #[error("the answer to {command} holds page {found:#04x} instead of {expected:#04x}")]
    OtherPage {
        /// Name of the command.
        command: &'static str,
        /// The page that was requested.
        expected: u8,
        /// Page that came.
        found: u8,
    },
    /// The answer contradicts itself or the standard.
    #[error("the answer to {command} is inconsistent at byte {offset}")]
    Inconsistent {
        /// Name of the command.
        command: &'static str,
        /// Offset in the answer.
        offset: usize,
    },
}

/// A tape as the driver presents it. Every call may block for as long as the drive likes, and
/// cannot be interrupted: use it in a thread of its own.
pub trait RawTape: Send {
    /// read(2): one block at most in variable mode; 0 is a filemark or the end of the data.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;
    /// write(2): one block in variable mode.
    fn write(&mut self, block: &[u8]) -> io::Result<usize>;
    /// `MTIOCTOP`.
    fn operate(&mut self, operation: MtOperation, count: i32) -> io::Result<()>;
    /// `MTIOCGET`.
    fn status(&mut self) -> io::Result<RawStatus>;
    /// `MTIOCPOS`: the number of the next object; blocks and filemarks count alike. Sends a
    /// command: not while the drive streams.
    fn position(&mut self) -> io::Result<u64>;
    /// Sends a command that moves no tape and reads data into `data`, or none; returns the bytes
    /// read. Not while the drive streams.
    fn command(&mut self, command: &[u8], data: &mut [u8]) -> Result<usize, QuestionError>;
    /// Sends a command that moves no tape, with data for the drive. Not while the drive streams.
    fn command_with(&mut self, command: &[u8], data: &[u8]) -> Result<(), QuestionError>;
    /// The kernel's counters, if it has any.
    fn statistics(&mut self) -> Option<Statistics>;
    /// The drive's sense data of the error that the last call returned, if known.
    fn last_sense(&mut self) -> Option<Sense>;
    /// Most bytes that one transfer may have on its way to the drive (host adapter, kernel), if
    /// known.
    fn transfer_bytes_max(&mut self) -> Option<u64>;
    /// What is on the way to the drive.
    fn way(&mut self) -> Way {
        Way::HostAdapter
    }
    /// A transfer of this size gets through, if the limit itself is unknown.
    fn transfer_bytes_sure(&mut self) -> Option<u64> {
        None
    }
    /// Most scattered pieces of memory in one transfer, if known. The driver itself allows 256
    /// (`ST_MAX_SG`).
    fn pieces_max(&mut self) -> Option<u64> {
        None
    }
}
