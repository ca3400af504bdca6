//! The two streams of an archive, before and after compression, and offsets in them.
//!
//! Without compression they are the same bytes. So their offsets are types of their own: a mix-up
//! would show only with compression.

use base::offset::Offset;

/// The archive: members, end mark, and behind that the index, before compression. If a reader finds
/// several archives one behind the other, they are one such stream, and the index of each counts
/// from the start of its archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Archive {}

/// The stored form: the bytes of a file, or of the parts of a set on tape without their labels. The
/// index of such a set is a stored stream of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {}

/// A place in the archive, before compression.
pub type ArchiveOffset = Offset<Archive>;
/// A place in the stored stream, after compression.
pub type StoredOffset = Offset<Stored>;

/// The stored place of a place in an uncompressed archive.
pub fn stored_plain(place: ArchiveOffset) -> StoredOffset {
    place.same_in()
}
