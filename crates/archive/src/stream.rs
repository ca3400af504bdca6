//! The two streams that an archive is, and offsets in them.
//!
//! Without compression they are the same bytes, which is why their offsets are types of their own:
//! what is right with one and wrong with the other shows only where something is compressed.

use base::offset::Offset;

/// The archive: members, end mark, and behind that the index, before compression. Where a reader
/// meets several archives one behind the other they are one such stream, and the index of each
/// counts from where its archive begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Archive {}

/// What is stored of it: as it lies in a file, or in the parts of a set on tape without their
/// labels. The index of such a set is a stored stream of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {}

/// A place in the archive, before compression.
pub type ArchiveOffset = Offset<Archive>;
/// A place in the stored stream, behind compression.
pub type StoredOffset = Offset<Stored>;

/// Where a place of an archive that is not compressed is stored.
pub fn stored_plain(place: ArchiveOffset) -> StoredOffset {
    place.same_in()
}
