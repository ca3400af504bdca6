//! The archive that a new one is to take the place of.
//!
//! A disk that is not mounted is an empty folder, and one that dies lists half of what it had: both
//! make an archive that is complete as far as anybody can tell, and that must not replace the good
//! one. So the new archive is held against the old one before it gets its name. What the old one
//! has is read from the trailer of its index; without one there is nothing to compare with.

use std::ffi::OsStr;

use archive::index::IndexSection;
use device::source::Source;

use super::error::BackupError;
use catalogue::IndexFile;

/// What to do when the new archive has far less than the one that it replaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shrinking {
    /// Leave the old one and fail.
    #[default]
    Refuse,
    /// Replace it all the same.
    Allow,
}

/// How much an archive has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveSize {
    /// Members.
    pub members: u64,
    /// Bytes before compression, index not counted.
    pub bytes: u64,
}

impl ArchiveSize {
    /// That of the archive in a file, if it has an index that can be found.
    pub(super) fn of_file(path: &OsStr) -> Option<ArchiveSize> {
        let is_file = std::fs::metadata(path).is_ok_and(|status| status.is_file());
        let source = is_file.then(|| Source::open(path).ok())??;
        let trailer = IndexFile::find(&source)?.trailer;
        let members = trailer.section(IndexSection::Files).summary.records;
        Some(ArchiveSize { members, bytes: trailer.archive_bytes })
    }

    /// Whether so little cannot be what became of `before` without somebody's doing: less than half
    /// of the members, or of the bytes.
    fn is_far_less_than(self, before: ArchiveSize) -> bool {
        self.members < before.members.div_ceil(2) || self.bytes < before.bytes.div_ceil(2)
    }
}

/// Refuses to put `now` in the place of `before` when it is far less.
///
/// # Errors
/// `FarLess`.
pub(super) fn check_size(
    target: &OsStr,
    before: ArchiveSize,
    now: ArchiveSize,
) -> Result<(), BackupError> {
    if now.is_far_less_than(before) {
        let target = target.to_string_lossy().into_owned();
        Err(BackupError::FarLess { target, before, now })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_is_enough_of_members_and_of_bytes() {
        let size = |members, bytes| ArchiveSize { members, bytes };
        let check = |before, now: ArchiveSize, expected| {
            assert_eq!(now.is_far_less_than(before), expected, "{before:?} {now:?}");
        };
        check(size(100, 10_000), size(50, 5000), false);
        check(size(100, 10_000), size(49, 10_000), true);
        check(size(100, 10_000), size(100, 4999), true);
        check(size(2, 100_000), size(1, 2048), true);
        check(size(1, 2048), size(1, 2048), false);
        check(size(0, 1024), size(1, 2048), false);
    }
}
