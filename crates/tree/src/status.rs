//! The state of an object by which a later run sees whether it changed.

use archive::member::Timestamp;
use rustix::fs::{FileType, Stat};

use crate::entry_kind::EntryKind;
use crate::identity::{Identity, Version};

/// The state of an object at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    pub kind: EntryKind,
    /// Device and inode number.
    pub identity: Identity,
    /// The low 12 bits of the mode.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// Number of its names.
    pub links: u64,
    /// Size and times.
    pub version: Version,
    /// What it takes on its disk; less than its size, if it has holes.
    pub allocated_bytes: u64,
}

impl Status {
    pub(crate) fn of(stat: &Stat) -> Status {
        Status {
            kind: EntryKind::from_file_type(FileType::from_raw_mode(stat.st_mode)),
            identity: Identity::of(stat),
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            links: stat.st_nlink as _,
            version: Version::of(stat),
            allocated_bytes: u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512),
        }
    }
}

/// The time of day.
pub(crate) fn now() -> Timestamp {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    Timestamp { seconds: now.tv_sec as _, nanoseconds: now.tv_nsec as _ }
}
