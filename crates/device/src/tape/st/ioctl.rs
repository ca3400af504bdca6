//! The system calls of the tape driver that no library wraps: three ioctls of `linux/mtio.h`, and
//! `SG_IO` of `scsi/sg.h`.
//!
//! Structures have the layout of the kernel's headers. Everything beyond the call itself is in the
//! parent module.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use rustix::ioctl::opcode;

use crate::tape::played::{PLAYED_BYTES, PLAYED_REQUEST};
use crate::tape::raw::{MtOperation, RawStatus};

/// `struct mtop`.
#[repr(C)]
struct TapeOperation {
    operation: libc::c_short,
    count: libc::c_int,
}

/// `struct mtget`.
#[repr(C)]
#[derive(Default)]
struct TapeGet {
    drive_type: libc::c_long,
    residual: libc::c_long,
    density_and_block_size: libc::c_long,
    general_status: libc::c_long,
    recovered_errors: libc::c_long,
    file_number: libc::c_int,
    block_number: libc::c_int,
}

/// `struct mtpos`.
#[repr(C)]
#[derive(Default)]
struct TapePosition {
    block_number: libc::c_long,
}

/// `struct sg_io_hdr`.
#[repr(C)]
struct CommandHeader {
    interface: libc::c_int,
    direction: libc::c_int,
    command_bytes: libc::c_uchar,
    sense_bytes_max: libc::c_uchar,
    scatter_count: libc::c_ushort,
    data_bytes: libc::c_uint,
    data: *mut libc::c_void,
    command: *const libc::c_uchar,
    sense: *mut libc::c_uchar,
    timeout_ms: libc::c_uint,
    flags: libc::c_uint,
    pack_id: libc::c_int,
    user: *mut libc::c_void,
    status: libc::c_uchar,
    masked_status: libc::c_uchar,
    message_status: libc::c_uchar,
    sense_bytes: libc::c_uchar,
    host_status: libc::c_ushort,
    driver_status: libc::c_ushort,
    residual: libc::c_int,
    duration_ms: libc::c_uint,
    info: libc::c_uint,
}

const MTIOCTOP: u64 = opcode::write::<TapeOperation>(b'm', 1) as u64;
const MTIOCGET: u64 = opcode::read::<TapeGet>(b'm', 2) as u64;
const MTIOCPOS: u64 = opcode::read::<TapePosition>(b'm', 3) as u64;
const SG_IO: u64 = 0x2285;
/// `SG_GET_SG_TABLESIZE`: most scattered pieces of one transfer.
const SG_GET_SG_TABLESIZE: u64 = 0x227f;
/// `BLKSECTGET`; on a generic device it answers bytes (`drivers/scsi/sg.c`).
const BLKSECTGET: u64 = opcode::none(0x12, 103) as u64;

/// The result of `SG_IO`.
#[derive(Clone, Copy, Debug)]
pub struct CommandResult {
    /// SCSI status; 2 is CHECK CONDITION.
    pub status: u8,
    /// Status of the host adapter.
    pub host_status: u16,
    /// Status of the adapter's driver.
    pub driver_status: u16,
    /// Bytes of sense data.
    pub sense_bytes: usize,
    /// Bytes of data that were moved.
    pub moved_bytes: usize,
}

/// `MTIOCTOP`.
pub fn operate(file: BorrowedFd<'_>, operation: MtOperation, count: i32) -> io::Result<()> {
    let argument = TapeOperation { operation: operation as libc::c_short, count };
    // SAFETY: the kernel reads a `struct mtop`, which lives across the call.
    check(unsafe { libc::ioctl(file.as_raw_fd(), MTIOCTOP as _, &raw const argument) })
}

/// `MTIOCGET`.
// `long` has 32 bits on some machines.
#[allow(clippy::unnecessary_cast)]
/// Position and state of the drive (`MTIOCGET`).
pub fn status(file: BorrowedFd<'_>) -> io::Result<RawStatus> {
    let mut answer = TapeGet::default();
    // SAFETY: the kernel writes a `struct mtget`, which lives across the call.
    check(unsafe { libc::ioctl(file.as_raw_fd(), MTIOCGET as _, &raw mut answer) })?;
    Ok(RawStatus {
        drive_type: answer.drive_type as i64,
        residual: answer.residual as i64,
        density_and_block_size: answer.density_and_block_size as i64,
        general_status: answer.general_status as i64,
        recovered_errors: answer.recovered_errors as i64,
        file_number: answer.file_number,
        block_number: answer.block_number,
    })
}

/// `MTIOCPOS`.
pub fn position(file: BorrowedFd<'_>) -> io::Result<u64> {
    let mut answer = TapePosition::default();
    // SAFETY: the kernel writes a `struct mtpos`, which lives across the call.
    check(unsafe { libc::ioctl(file.as_raw_fd(), MTIOCPOS as _, &raw mut answer) })?;
    // A drive may know more than 2^31 blocks; the driver gives the low 32 bits.
    Ok(u64::from(answer.block_number as u32))
}

/// Data that go with a command.
#[derive(Debug)]
pub enum Data<'a> {
    /// Room for the drive's answer; none where it is empty.
    FromDrive(&'a mut [u8]),
    ToDrive(&'a [u8]),
}

impl Data<'_> {
    /// Direction, address and length, as `struct sg_io_hdr` has them.
    fn parts(&mut self) -> (libc::c_int, *mut libc::c_void, usize) {
        const TO_DRIVE: libc::c_int = -2;
        const FROM_DRIVE: libc::c_int = -3;
        const NO_DATA: libc::c_int = -1;
        match self {
            Data::FromDrive([]) => (NO_DATA, std::ptr::null_mut(), 0),
            Data::FromDrive(data) => (FROM_DRIVE, data.as_mut_ptr().cast(), data.len()),
            // The kernel only reads them.
            Data::ToDrive(data) => (TO_DRIVE, data.as_ptr().cast_mut().cast(), data.len()),
        }
    }
}

/// `SG_IO`: sends a command and waits for its end, at most `limit`.
pub fn command(
    file: BorrowedFd<'_>,
    command: &[u8],
    mut data: Data<'_>,
    sense: &mut [u8],
    limit: Duration,
) -> io::Result<CommandResult> {
    let (direction, address, data_bytes) = data.parts();
    let too_long = |_| io::Error::from_raw_os_error(libc::EINVAL);
    let mut header = CommandHeader {
        interface: libc::c_int::from(b'S'),
        direction,
        command_bytes: command.len().try_into().map_err(too_long)?,
        sense_bytes_max: sense.len().min(255) as u8,
        scatter_count: 0,
        data_bytes: data_bytes.try_into().map_err(too_long)?,
        data: address,
        command: command.as_ptr(),
        sense: sense.as_mut_ptr(),
        timeout_ms: limit.as_millis().try_into().unwrap_or(libc::c_uint::MAX),
        flags: 0,
        pack_id: 0,
        user: std::ptr::null_mut(),
        status: 0,
        masked_status: 0,
        message_status: 0,
        sense_bytes: 0,
        host_status: 0,
        driver_status: 0,
        residual: 0,
        duration_ms: 0,
        info: 0,
    };
    // SAFETY: the header has the kernel's layout; its pointers lead to slices that outlive the call
    // and have the lengths given beside them.
    check(unsafe { libc::ioctl(file.as_raw_fd(), SG_IO as _, &raw mut header) })?;
    let residual = usize::try_from(header.residual).unwrap_or(0);
    Ok(CommandResult {
        status: header.status,
        host_status: header.host_status,
        driver_status: header.driver_status,
        sense_bytes: usize::from(header.sense_bytes).min(sense.len()),
        moved_bytes: data_bytes.saturating_sub(residual),
    })
}

/// A command to a drive that is played in user space: the answer replaces the request.
pub fn ask_played(file: BorrowedFd<'_>, bytes: &mut [u8; PLAYED_BYTES]) -> io::Result<()> {
    // SAFETY: the request's number gives the number of bytes read and written, and they live across
    // the call.
    check(unsafe { libc::ioctl(file.as_raw_fd(), PLAYED_REQUEST as _, bytes.as_mut_ptr()) })
}

/// Most bytes of one transfer through a generic device.
pub fn transfer_bytes_max(generic: BorrowedFd<'_>) -> io::Result<u64> {
    number(generic, BLKSECTGET)
}

/// Most scattered pieces of one transfer through a generic device.
pub fn pieces_max(generic: BorrowedFd<'_>) -> io::Result<u64> {
    number(generic, SG_GET_SG_TABLESIZE)
}

/// An ioctl that answers one int.
fn number(file: BorrowedFd<'_>, request: u64) -> io::Result<u64> {
    let mut answer: libc::c_int = 0;
    // SAFETY: both callers' requests write one int, which lives across the call.
    check(unsafe { libc::ioctl(file.as_fd().as_raw_fd(), request as _, &raw mut answer) })?;
    Ok(u64::from(answer as u32))
}

fn check(result: libc::c_int) -> io::Result<()> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
