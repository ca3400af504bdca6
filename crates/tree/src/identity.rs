//! What stays true about an object while names come and go: device and inode number, and the state
//! by which a later look tells whether the content changed.

use std::io;
use std::os::fd::AsFd;

use archive::member::Timestamp;
use rustix::fs::{AtFlags, Stat, StatxFlags, fstat, statx};

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

/// What tells a file from a later one that got its inode number.
///
/// The time of birth never changes, so where it lies before the run it is all that is needed: a
/// file that takes the number during the run is born later. Where the file system keeps none, or
/// the file is younger than the run, size and times of change have to be the same as well; a file
/// that is touched between two of its names is then taken for two, which costs space and no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation(pub(crate) u64);

/// Clocks of file systems go in ticks, and may be behind that of the processor.
const CLOCK_MARGIN_SECONDS: i64 = 2;

impl Generation {
    /// That of an open file (`O_PATH` will do) with this state, in a run that began at `begun`.
    pub(crate) fn of(descriptor: impl AsFd, version: &Version, begun: Timestamp) -> Generation {
        let born = statx(descriptor, c"", AtFlags::EMPTY_PATH, StatxFlags::BTIME).ok();
        let born = born.filter(|status| status.stx_mask & StatxFlags::BTIME.bits() != 0);
        let born = born
            .map(|status| timestamp(status.stx_btime.tv_sec, i64::from(status.stx_btime.tv_nsec)));
        match born {
            Some(born) if born.seconds + CLOCK_MARGIN_SECONDS < begun.seconds => {
                Generation(mixed([1, born.seconds as u64, born.nanoseconds.into(), 0, 0, 0]))
            }
            _ => {
                let Version { size_bytes, modified, changed } = *version;
                let born = born.unwrap_or_default();
                Generation(mixed([
                    size_bytes,
                    born.seconds as u64 ^ u64::from(born.nanoseconds) << 32,
                    modified.seconds as u64,
                    changed.seconds as u64,
                    modified.nanoseconds.into(),
                    changed.nanoseconds.into(),
                ]))
            }
        }
    }
}

/// One number out of several: the finaliser of MurmurHash3, which loses nothing of 64 bits, after
/// each of them.
fn mixed(numbers: [u64; 6]) -> u64 {
    numbers.iter().fold(0x9E37_79B9_7F4A_7C15, |mixed: u64, number| {
        let mut mixed = (mixed.rotate_left(17) ^ number).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
        mixed ^= mixed >> 33;
        mixed = mixed.wrapping_mul(0xC4CE_B9FE_1A85_EC53);
        mixed ^ (mixed >> 33)
    })
}

/// What a second look at a file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChange {
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
pub fn recheck(file: impl AsFd, before: &Version) -> io::Result<FileChange> {
    let now = Version::of(&fstat(file)?);
    Ok(if now.size_bytes != before.size_bytes {
        FileChange::Size { now_bytes: now.size_bytes }
    } else if now.modified != before.modified {
        FileChange::Content
    } else if now.changed != before.changed {
        FileChange::Metadata
    } else {
        FileChange::None
    })
}

pub(crate) fn timestamp(seconds: i64, nanoseconds: i64) -> Timestamp {
    // The kernel keeps nanoseconds below 10^9; a broken FUSE server may not.
    Timestamp { seconds, nanoseconds: nanoseconds.clamp(0, 999_999_999) as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What came back under the number of a file that is gone is another one by its generation.
    #[test]
    fn a_generation_depends_on_all_that_it_is_made_of() {
        let numbers = [4096, 0x1234_5678, 1_700_000_000, 1_700_000_000, 0, 999_999_999];
        let mut all = std::collections::BTreeSet::from([mixed(numbers)]);
        for place in 0..numbers.len() {
            for change in [1, 1 << 32, u64::MAX] {
                let mut changed = numbers;
                changed[place] ^= change;
                assert!(all.insert(mixed(changed)), "number {place} with {change:x}");
            }
        }
    }
}
