//! What stays true about an object while names come and go: device and inode number, and the state
//! by which a later look tells whether the content changed.

use std::io;
use std::os::fd::AsFd;

use archive::member::Timestamp;
use rustix::fs::{Stat, fstat};

/// Device and inode number: the same pair is the same object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// `st_dev`.
    pub device: u64,
    /// `st_ino`.
    pub inode: u64,
}

impl Identity {
    /// Identity of an open file.
    ///
    /// # Errors
    /// What fstat(2) says.
    pub fn of_descriptor(descriptor: impl AsFd) -> io::Result<Identity> {
        Ok(Identity::of(&fstat(descriptor)?))
    }

    pub(crate) fn of(stat: &Stat) -> Identity {
        Identity { device: stat.st_dev as _, inode: stat.st_ino as _ }
    }
}

/// The state of a file at one moment, as far as it tells about changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Size in bytes.
    pub size_bytes: u64,
    /// Last change of the content. Can be set by anyone who may write the file.
    pub modified: Timestamp,
    /// Last change of content or metadata (`st_ctime`). The kernel alone sets it.
    pub changed: Timestamp,
}

impl Version {
    pub(crate) fn of(stat: &Stat) -> Version {
        Version {
            size_bytes: u64::try_from(stat.st_size).unwrap_or(0),
            modified: timestamp(stat.st_mtime, stat.st_mtime_nsec as _),
            changed: timestamp(stat.st_ctime, stat.st_ctime_nsec as _),
        }
    }
}

/// What a second look at a file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing happened to it.
    None,
    /// Only its metadata changed (owner, mode, link count, attributes); the content did not,
    /// unless somebody set the modification time back.
    Metadata,
    /// The content was written to; the size stayed.
    Content,
    /// The size is another one now.
    Size {
        /// The size now, in bytes.
        now_bytes: u64,
    },
}

/// Compares an open file with what it was before, after its content has been read.
///
/// # Errors
/// What fstat(2) says.
pub fn recheck(file: impl AsFd, before: &Version) -> io::Result<Change> {
    let now = Version::of(&fstat(file)?);
    Ok(if now.size_bytes != before.size_bytes {
        Change::Size { now_bytes: now.size_bytes }
    } else if now.modified != before.modified {
        Change::Content
    } else if now.changed != before.changed {
        Change::Metadata
    } else {
        Change::None
    })
}

pub(crate) fn timestamp(seconds: i64, nanoseconds: i64) -> Timestamp {
    // The kernel keeps nanoseconds below 10^9; a broken FUSE server may not.
    Timestamp { seconds, nanoseconds: nanoseconds.clamp(0, 999_999_999) as u32 }
}
