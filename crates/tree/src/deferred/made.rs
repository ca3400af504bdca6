//! Identifies a directory that was made or found.

use crate::folder::Inheritance;
use crate::identity::Identity;
use rustix::fs::{AtFlags, StatxFlags, fstat, statx};
use rustix::io::Errno;
use std::os::fd::BorrowedFd;

/// Identifies a directory that was made or found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(super) device: u64,
    pub(super) inode: u64,
    /// Birth time in nanoseconds since 1970; 0 if the file system has none. It is needed because
    /// inode numbers are reused.
    pub(super) born: u64,
    pub(super) inheritance: Inheritance,
}

impl Made {
    pub(crate) fn of(directory: BorrowedFd<'_>, inheritance: Inheritance) -> Result<Made, Errno> {
        let stat = fstat(directory)?;
        let born = statx(directory, c"", AtFlags::EMPTY_PATH, StatxFlags::BTIME);
        let born = match born {
            Ok(status) if status.stx_mask & StatxFlags::BTIME.bits() != 0 => {
                let seconds = status.stx_btime.tv_sec.cast_unsigned();
                let nanoseconds = u64::from(status.stx_btime.tv_nsec);
                seconds.wrapping_mul(1_000_000_000).wrapping_add(nanoseconds)
            }
            _ => 0,
        };
        Ok(Made { device: stat.st_dev, inode: stat.st_ino, born, inheritance })
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity { device: self.device, inode: self.inode }
    }

    pub(super) fn is_same(&self, other: &Made) -> bool {
        let one = |made: &Made| (made.device, made.inode, made.born);
        one(self) == one(other)
    }
}
