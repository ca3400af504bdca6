//! The identity of an object, independent of its names: device and inode number, and the state that
//! shows later whether the content changed.

use std::io;
use std::os::fd::AsFd;

use archive::member::Timestamp;
use rustix::fs::{AtFlags, Stat, StatxFlags, fstat, statx};

/// Device and inode number: equal pairs are the same object.
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
    /// Errors of fstat(2).
    pub fn of_descriptor(descriptor: impl AsFd) -> io::Result<Identity> {
        Ok(Identity::of(&fstat(descriptor)?))
    }

    pub(crate) fn of(stat: &Stat) -> Identity {
        Identity { device: stat.st_dev as _, inode: stat.st_ino as _ }
    }
}

/// The state of a file at one moment, as far as it shows changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    pub size_bytes: u64,
    /// Last change of the content. Every user with write access to the file can set it.
    pub modified: Timestamp,
    /// Last change of content or metadata (`st_ctime`). Only the kernel sets it.
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

/// Distinguishes a file from a later one with its inode number.
///
/// The time of birth never changes. If it is before the run, it is sufficient: a file that takes
/// the number during the run is born later. If the file system keeps none, or the file is younger
/// than the run, size and times of change have to be equal as well. A file that is touched between
/// two of its names then counts as two files, which costs space but no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation(pub(crate) u64);

/// Clocks of file systems advance in ticks, and may be behind the processor's clock.
const CLOCK_MARGIN_SECONDS: i64 = 2;

impl Generation {
    /// The generation of an open file (`O_PATH` is enough) with this state, in a run that began at
    /// `begun`.
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

/// Mixes several numbers into one: after each it applies the finaliser of MurmurHash3, which keeps
/// all 64 bits.
fn mixed(numbers: [u64; 6]) -> u64 {
    numbers.iter().fold(0x9E37_79B9_7F4A_7C15, |mixed: u64, number| {
        let mut mixed = (mixed.rotate_left(17) ^ number).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
        mixed ^= mixed >> 33;
        mixed = mixed.wrapping_mul(0xC4CE_B9FE_1A85_EC53);
        mixed ^ (mixed >> 33)
    })
}

/// The result of a second look at a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// No change.
    None,
    /// Only its metadata changed (owner, mode, link count, attributes). The content did not, unless
    /// a program set the modification time back.
    Metadata,
    /// The content changed, but not the size.
    Content,
    /// The size is another one now.
    Size {
        /// The size now, in bytes.
        now_bytes: u64,
    },
}

/// Compares an open file with its earlier state, after its content has been read.
///
/// # Errors
/// Errors of fstat(2).
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

    /// A new file under the number of a removed one has another generation.
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
