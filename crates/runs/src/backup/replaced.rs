//! The archive that a new one will replace.
//!
//! An unmounted disk is an empty folder, and a dying disk lists half of its files. Both make an
//! archive that looks complete, but must not replace the good one. So the new archive is compared
//! with the old one before it gets its name. The size of the old one is read from the trailer of
//! its index; without an index there is no comparison.

use std::ffi::OsStr;

use archive::index::IndexSection;
use device::source::Source;

use super::error::BackupError;
use catalogue::IndexFile;

/// What to do if the new archive has far less than the one it replaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shrinking {
    /// Keep the old one and fail.
    #[default]
    Refuse,
    /// Replace it anyway.
    Allow,
}

/// Size of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveSize {
    pub members: u64,
    /// Bytes before compression, without the index.
    pub bytes: u64,
}

impl ArchiveSize {
    /// Size of the archive in a file, if its index is found.
    pub(super) fn of_file(path: &OsStr) -> Option<ArchiveSize> {
        let is_file = std::fs::metadata(path).is_ok_and(|status| status.is_file());
        let source = is_file.then(|| Source::open(path).ok())??;
        let trailer = IndexFile::find(&source)?.trailer;
        let members = trailer.section(IndexSection::Files).summary.records;
        Some(ArchiveSize { members, bytes: trailer.archive_bytes })
    }

    /// Whether an archive shrank too much to be an accident of normal use: to less than half of its
    /// members, or of its bytes.
    fn is_far_less_than(self, before: ArchiveSize) -> bool {
        self.members < before.members.div_ceil(2) || self.bytes < before.bytes.div_ceil(2)
    }
}

/// Refuses to replace `before` by `now` if `now` is far less.
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
