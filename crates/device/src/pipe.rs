//! The size of a pipe.

use std::os::fd::AsFd;

/// Default limit for unprivileged users (`/proc/sys/fs/pipe-max-size`).
const WANTED_BYTES: usize = 1 << 20;

/// Enlarges a pipe to 1 MiB, or as far as the kernel allows, and returns its size in bytes; `None`
/// if it is not a pipe. A default pipe holds 64 KiB, so both sides are woken sixteen times for each
/// MiB.
pub fn enlarge(pipe: impl AsFd) -> Option<usize> {
    let before = rustix::pipe::fcntl_getpipe_size(&pipe).ok()?;
    let mut wanted = WANTED_BYTES;
    while wanted > before {
        // EPERM: the user's pipes hold too much memory already. EBUSY cannot occur when growing.
        if let Ok(size) = rustix::pipe::fcntl_setpipe_size(&pipe, wanted) {
            return Some(size);
        }
        wanted /= 2;
    }
    Some(before)
}
