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
use std::time::{Duration, Instant};

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

/// How long a lock that is in use is tried again, and how often.
const LOCK_MAX: Duration = Duration::from_millis(500);
const LOCK_POLL: Duration = Duration::from_millis(5);

/// `flock(2)` that does not wait for another process to end: `WOULDBLOCK` if the lock is in use.
///
/// A child of any thread of the holder holds the lock, too, from its fork until it starts its
/// program. So what somebody has just given up can be in use for a moment more, and is tried again
/// for half a second.
///
/// # Errors
///
/// Errors of the kernel, except `EINTR`.
pub fn lock_unless_in_use(file: impl AsFd, operation: FlockOperation) -> Result<(), Errno> {
    let begun = Instant::now();
    loop {
        let locked = flock(&file, operation);
        if locked != Err(Errno::WOULDBLOCK) || begun.elapsed() > LOCK_MAX {
            return locked;
        }
        std::thread::sleep(LOCK_POLL);
    }
}

/// `flock(2)`.
///
/// # Errors
///
/// Errors of the kernel, except `EINTR`.
pub fn flock(file: impl AsFd, operation: FlockOperation) -> Result<(), Errno> {
    retry_on_intr(|| rustix::fs::flock(&file, operation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::MemfdFlags;
    use std::os::fd::AsRawFd as _;

    /// As a child between its fork and its program has it, which a thread of this process started.
    #[test]
    fn a_lock_that_is_let_go_of_in_a_moment_is_not_in_use() {
        let now = FlockOperation::NonBlockingLockExclusive;
        let file = rustix::fs::memfd_create("lock", MemfdFlags::CLOEXEC).unwrap();
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let other = open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).unwrap();
        flock(&file, now).unwrap();
        assert_eq!(lock_unless_in_use(&other, now), Err(Errno::WOULDBLOCK));
        let child = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(file);
        });
        assert_eq!(lock_unless_in_use(&other, now), Ok(()));
        child.join().unwrap();
    }
}
