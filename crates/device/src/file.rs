//! Facts about an open file, from the kernel.
//!
//! Two system calls here, `cachestat` and `sync_file_range`, have no safe wrapper in any library.
//! Hence the `unsafe` code.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::fs::{AtFlags, OFlags, StatxFlags};

/// How direct I/O on a file must be aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectAlignment {
    /// Alignment of the address in memory, bytes.
    pub memory_bytes: u32,
    /// Alignment of offset and length in the file, bytes.
    pub offset_bytes: u32,
}

/// The alignment that direct I/O on `file` needs. `None` if the kernel (before 6.1) or the file
/// system does not report it, or does not support direct I/O.
pub fn direct_alignment(file: impl AsFd) -> Option<DirectAlignment> {
    let mask = StatxFlags::from_bits_retain(libc::STATX_DIOALIGN);
    let status = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, mask).ok()?;
    let told = status.stx_mask & libc::STATX_DIOALIGN != 0;
    let alignment = DirectAlignment {
        memory_bytes: status.stx_dio_mem_align,
        offset_bytes: status.stx_dio_offset_align,
    };
    (told && alignment.offset_bytes > 0 && alignment.memory_bytes > 0).then_some(alignment)
}

/// Whether the file is on a file system in user space (FUSE).
pub fn is_in_user_space(file: impl AsFd) -> bool {
    /// `FUSE_SUPER_MAGIC` of <linux/magic.h>.
    const FUSE: u64 = 0x6573_5546;
    rustix::fs::fstatfs(file).is_ok_and(|status| status.f_type as u64 == FUSE)
}

/// Whether the file is on a file system that lives in memory (tmpfs, ramfs).
pub fn is_in_memory(file: impl AsFd) -> bool {
    /// `TMPFS_MAGIC` and `RAMFS_MAGIC` of <linux/magic.h>.
    const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
    rustix::fs::fstatfs(file)
        .is_ok_and(|status| IN_MEMORY.contains(&(status.f_type as u64 & 0xffff_ffff)))
}

/// Switches direct I/O on or off for an open file description.
pub fn set_direct(file: impl AsFd, direct: Direct) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(&file)?;
    let flags = match direct {
        Direct::On => flags | OFlags::DIRECT,
        Direct::Off => flags - OFlags::DIRECT,
    };
    Ok(rustix::fs::fcntl_setfl(&file, flags)?)
}

/// Past the page cache or through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direct {
    /// Past the page cache.
    On,
    /// Through the page cache.
    Off,
}

/// Bytes of a range of `file` that the page cache holds, in whole pages, by `cachestat(2)` (Linux
/// 6.5); `None` on older kernels. An empty range means the file to its end.
pub fn cached_bytes(file: BorrowedFd<'_>, range: std::ops::Range<u64>) -> Option<u64> {
    #[repr(C)]
    struct Range {
        offset: u64,
        length: u64,
    }
    /// `struct cachestat` of `include/uapi/linux/mman.h`: pages cached, dirty, under write-back,
    /// evicted and recently evicted.
    #[repr(C)]
    #[derive(Default)]
    struct Pages {
        cached: u64,
        dirty: u64,
        writeback: u64,
        evicted: u64,
        recently_evicted: u64,
    }
    const CACHESTAT: libc::c_long = 451;
    let range = Range { offset: range.start, length: range.end - range.start };
    let mut pages = Pages::default();
    // SAFETY: both structures live across the call and have the layout that the kernel expects.
    let result = unsafe {
        libc::syscall(CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut pages, 0u32)
    };
    (result == 0).then(|| pages.cached.saturating_mul(rustix::param::page_size() as u64))
}

/// Starts writing dirty pages of a range to the disk, without waiting. This is advice: errors do
/// not matter, since fsync reports those that do.
pub fn start_write_back(file: impl AsFd, offset_bytes: u64, length_bytes: u64) {
    // SAFETY: no memory is passed.
    unsafe {
        libc::sync_file_range(
            file.as_fd().as_raw_fd(),
            offset_bytes as i64,
            length_bytes as i64,
            libc::SYNC_FILE_RANGE_WRITE,
        )
    };
}

/// Waits until a range is on the disk and drops its pages from the cache.
///
/// This must not lose an error of the write-back: the kernel reports it once for each open file,
/// here (`file_check_and_advance_wb_err`), and a later fsync would not report it. A file system
/// without `sync_file_range` is not an error.
pub fn drop_written(file: impl AsFd, offset_bytes: u64, length_bytes: u64) -> io::Result<()> {
    let all = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    let fd = file.as_fd().as_raw_fd();
    // SAFETY: no memory is passed.
    let result =
        unsafe { libc::sync_file_range(fd, offset_bytes as i64, length_bytes as i64, all) };
    if result != 0 {
        let error = io::Error::last_os_error();
        let unknown = [libc::EINVAL, libc::ENOSYS, libc::ESPIPE, libc::EOPNOTSUPP];
        if !error.raw_os_error().is_some_and(|code| unknown.contains(&code)) {
            return Err(error);
        }
    }
    drop_cached(file, offset_bytes, length_bytes);
    Ok(())
}

/// One advice to read ahead. The kernel cuts it at the largest request of the disk
/// (`max_sectors_kb`, mostly 1280), and does not say so (`force_page_cache_ra`).
const ADVICE_BYTES: u64 = 512 << 10;

/// Starts reading a range into the page cache, without waiting. Advice, like
/// [`start_write_back`].
pub fn read_ahead(file: impl AsFd, offset_bytes: u64, length_bytes: u64) {
    let mut done_bytes = 0;
    while done_bytes < length_bytes {
        let step_bytes = (length_bytes - done_bytes).min(ADVICE_BYTES);
        let (offset, length) =
            (offset_bytes.saturating_add(done_bytes), std::num::NonZeroU64::new(step_bytes));
        let _ = rustix::fs::fadvise(&file, offset, length, rustix::fs::Advice::WillNeed);
        done_bytes += step_bytes;
    }
}

/// Drops clean pages of a range from the page cache. Advice, like [`start_write_back`].
pub fn drop_cached(file: impl AsFd, offset_bytes: u64, length_bytes: u64) {
    let length = std::num::NonZeroU64::new(length_bytes);
    let _ = rustix::fs::fadvise(file, offset_bytes, length, rustix::fs::Advice::DontNeed);
}

/// What the page cache still holds of a file after everything possible was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StillCached {
    /// Nothing: the next read comes from the disk.
    Nothing,
    /// This many bytes: the file lives in memory, or another program pins the pages.
    Bytes(u64),
    /// The kernel cannot report it (before 6.5).
    Unknown,
}

/// Drops what the page cache holds of a file of `length_bytes`. Dirty pages are written to the disk
/// first, since the kernel cannot drop them before; a write error shows at the next read.
pub fn drop_all_cached(file: impl AsFd, length_bytes: u64) -> StillCached {
    let _ = base::interruptible::fdatasync(&file);
    drop_cached(&file, 0, length_bytes);
    match cached_bytes(file.as_fd(), 0..length_bytes) {
        None => StillCached::Unknown,
        Some(0) => StillCached::Nothing,
        Some(bytes) => StillCached::Bytes(bytes.min(length_bytes)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::time::{Duration, Instant};

    use super::*;

    /// The kernel cuts each advice at the largest request of the disk.
    #[test]
    fn all_of_a_long_range_is_read_ahead() {
        const BYTES: u64 = 6 << 20;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; BYTES as usize]).unwrap();
        file.sync_all().unwrap();
        drop_cached(&file, 0, 0);
        read_ahead(&file, 0, BYTES);
        let begun = Instant::now();
        let cached = || cached_bytes(file.as_fd(), 0..BYTES).is_none_or(|bytes| bytes == BYTES);
        while !cached() && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(cached());
    }
}
