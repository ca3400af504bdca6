//! Where the content of a file lies on its disk, by the `FIEMAP` call of its file system
//! (`Documentation/filesystems/fiemap.rst`).
//!
//! The addresses are those of the file system's block device: on LVM or md not those of a disk, but
//! in the same order for long stretches. btrfs answers with addresses of its own, which go on
//! within a chunk of a gigabyte. The call has no safe wrapper in any library. Hence the `unsafe`
//! code.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// A stretch of a file that lies in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where it begins in the file, bytes.
    pub file_offset_bytes: u64,
    /// Where it begins on the block device, bytes.
    pub device_offset_bytes: u64,
    pub length_bytes: u64,
}

/// Most extents that are asked for: one call, 4 KiB of the stack.
pub const EXTENTS_MAX: usize = 64;

/// `struct fiemap_extent` of <linux/fiemap.h>.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_too: [u32; 3],
}

/// `struct fiemap`, with room for its extents.
#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [RawExtent; EXTENTS_MAX],
}

/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: libc::Ioctl = 0xC020_660B_u32 as libc::Ioctl;
/// Without a place, or not yet: `FIEMAP_EXTENT_UNKNOWN` and `FIEMAP_EXTENT_DELALLOC`.
const NOWHERE: u32 = 0x2 | 0x4;
/// `FIEMAP_EXTENT_DATA_INLINE`: within the metadata, which are read when the file is opened.
const INLINE: u32 = 0x200;
/// `FIEMAP_EXTENT_UNWRITTEN`: it reads as zeros, and nothing is fetched for it.
const UNWRITTEN: u32 = 0x800;

/// The first [`EXTENTS_MAX`] extents of a file that has data on a disk, in the order of the file.
/// Empty for one that has none.
///
/// # Errors
/// `EOPNOTSUPP` or `ENOTTY` of a file system that does not know, and those of reading its metadata.
pub fn extents(file: BorrowedFd<'_>) -> io::Result<Vec<Extent>> {
    let mut request = Request {
        start: 0,
        length: u64::MAX,
        flags: 0,
        mapped: 0,
        count: EXTENTS_MAX as u32,
        reserved: 0,
        extents: [RawExtent::default(); EXTENTS_MAX],
    };
    // SAFETY: the structure lives across the call, has the kernel's layout, and `count` is the room
    // behind it.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut request) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let found = &request.extents[..(request.mapped as usize).min(EXTENTS_MAX)];
    let has_place = |extent: &&RawExtent| extent.flags & (NOWHERE | INLINE | UNWRITTEN) == 0;
    let extents = found.iter().filter(has_place).map(|extent| Extent {
        file_offset_bytes: extent.logical,
        device_offset_bytes: extent.physical,
        length_bytes: extent.length,
    });
    Ok(extents.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::fd::AsFd as _;

    #[test]
    fn the_extents_of_a_file_cover_it_or_its_file_system_does_not_know() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 300_000]).unwrap();
        file.sync_all().unwrap();
        match extents(file.as_fd()) {
            Ok(extents) => {
                let covered: u64 = extents.iter().map(|extent| extent.length_bytes).sum();
                assert!(covered >= 300_000, "{extents:?}");
                assert!(extents.is_sorted_by_key(|extent| extent.file_offset_bytes));
            }
            Err(error) => {
                let unknown = [libc::EOPNOTSUPP, libc::ENOTTY];
                assert!(unknown.contains(&error.raw_os_error().unwrap()), "{error}");
            }
        }
    }

    #[test]
    fn what_cannot_lie_on_a_disk_is_an_error() {
        let (reader, _writer) = std::io::pipe().unwrap();
        assert!(extents(reader.as_fd()).is_err());
    }
}
