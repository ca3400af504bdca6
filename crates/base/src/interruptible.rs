//! System calls that a signal may interrupt before they have done anything. Each is repeated until
//! it succeeds or fails.
//!
//! SA_RESTART does not cover all of them: a network file system, a FUSE file system and a lock
//! return EINTR of their own accord, and so does a process that was stopped and continued
//! (`signal(7)`, *Interruption of system calls and library functions by signal handlers*). Without
//! the repetition a file would be missing in a backup.
//!
//! Code that wants to be interrupted, to check whether a run was cancelled, calls `rustix` and
//! gives the reason; `clippy.toml` finds all other calls. Reads of a stream and writes are not
//! here: they continue where they stopped, and only their callers know that place.
#![expect(clippy::disallowed_methods, reason = "here they are made again")]

mod shortage;

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FallocateFlags, FlockOperation, Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::path::Arg;

pub use shortage::{Shortage, check_shortage, remember_shortage};

/// `open(2)`.
///
/// # Errors
///
/// Errors of the kernel, except `EINTR`.
pub fn open(path: impl Arg, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    openat(rustix::fs::CWD, path, flags, mode)
}

/// `openat(2)`.
///
/// # Errors
///
/// Errors of the kernel, except `EINTR`.
pub fn openat(
    directory: impl AsFd,
    path: impl Arg,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    path.into_with_c_str(|path| {
        shortage::opened(|| rustix::fs::openat(&directory, path, flags, mode))
    })
}

/// `openat(2)` of a file that is not needed yet: if no descriptor is left for it, that does not
/// count as a shortage ([`check_shortage`]).
///
/// # Errors
///
/// Errors of the kernel, except `EINTR`.
pub fn openat_ahead(
    directory: impl AsFd,
    path: impl Arg,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    path.into_with_c_str(|path| retry_on_intr(|| rustix::fs::openat(&directory, path, flags, mode)))
}

/// `openat2(2)`.
///
/// # Errors
///
/// Errors of the kernel, except `EINTR`.
pub fn openat2(
    directory: impl AsFd,
    path: impl Arg,
    flags: OFlags,
    mode: Mode,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    path.into_with_c_str(|path| {
        shortage::opened(|| rustix::fs::openat2(&directory, path, flags, mode, resolve))
    })
}

/// `ftruncate(2)`: sets the length to `length_bytes`.
///
/// # Errors
///
/// Errors of the kernel, except `EINTR`.
pub fn ftruncate(file: impl AsFd, length_bytes: u64) -> Result<(), Errno> {
    retry_on_intr(|| rustix::fs::ftruncate(&file, length_bytes))
}

/// `fallocate(2)` of `length_bytes` from `offset_bytes`.
///
/// # Errors
///
/// Errors of the kernel, except `EINTR`.
pub fn fallocate(
    file: impl AsFd,
    flags: FallocateFlags,
    offset_bytes: u64,
    length_bytes: u64,
) -> Result<(), Errno> {
    retry_on_intr(|| rustix::fs::fallocate(&file, flags, offset_bytes, length_bytes))
}

/// `pread(2)` until `bytes` are full, since one call may return less than there is. Returns how
/// many bytes were read: fewer only at the end of the file, or before a place that cannot be read.
/// The next call returns the error of that place.
///
/// # Errors
///
/// Errors of the kernel at the first byte, except `EINTR`.
pub fn read_at(file: impl AsFd, bytes: &mut [u8], offset_bytes: u64) -> Result<usize, Errno> {
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::pread(&file, &mut bytes[done..], offset_bytes + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(Errno::INTR) => {}
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done)
}

/// `pread(2)` of exactly as many bytes.
///
/// # Errors
///
/// What the kernel says of the first place that cannot be read, but for `EINTR`; `UnexpectedEof`
/// when the file ends early.
pub fn read_exact_at(
    file: impl AsFd,
    mut bytes: &mut [u8],
    mut offset_bytes: u64,
) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match read_at(&file, bytes, offset_bytes)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            read => {
                bytes = &mut bytes[read..];
                offset_bytes += read as u64;
            }
        }
    }
    Ok(())
}

/// `fsync(2)`. After an interruption the kernel still reports lost writes at the next call.
///
/// # Errors
///
/// Errors of the kernel, except `EINTR`.
pub fn fsync(file: impl AsFd) -> Result<(), Errno> {
    retry_on_intr(|| rustix::fs::fsync(&file))
}

/// `fdatasync(2)`.
///
/// # Errors
///
/// Errors of the kernel, except `EINTR`.
pub fn fdatasync(file: impl AsFd) -> Result<(), Errno> {
    retry_on_intr(|| rustix::fs::fdatasync(&file))
}

/// `flock(2)`.
///
/// # Errors
///
/// Errors of the kernel, except `EINTR`.
pub fn flock(file: impl AsFd, operation: FlockOperation) -> Result<(), Errno> {
    retry_on_intr(|| rustix::fs::flock(&file, operation))
}
