//! Compares what an archive announces with the index that follows, and counts the zeros after the
//! end of an archive.
//!
//! An index must follow an archive with a mark at its front ([`archive::mark`]), and a set on tape,
//! whose labels announce it: without an index, part of the data is lost. An index is complete if
//! all its members came in order, up to the trailer.

use archive::header::{UNIT_BYTES, Unit};
use archive::index::{
    IndexHasher, IndexSection, TRAILER_NAME, index_member_bytes, index_version, is_index_member,
    is_trailer_header,
};
use archive::mark::Mark;
use archive::stream::ArchiveOffset;

use super::{AfterEnd, InMember, Item, MemberStream, Place};
use crate::read::damage::DamageKind;
use archive::index::begins_index;

/// What is known before the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// Nothing; unusually many zeros after an archive without an index are reported.
    None { zeros_bytes_max: u64 },
    /// It is a set on tape.
    OfSegments,
}

/// What was seen of the index of the current archive.
pub(super) struct IndexWatch {
    /// The current archive announced an index.
    pub marked: bool,
    /// An index must follow, and has not yet.
    pub awaited: bool,
    /// The stream is inside an index.
    pub inside: bool,
    /// A complete index passed.
    pub whole: bool,
    /// Pieces of an index without its beginning were reported.
    pub told_of_leftover: bool,
    /// Where it began.
    pub start_bytes: ArchiveOffset,
    /// Number of its members so far.
    members: usize,
    /// The last of them was the trailer.
    ended: bool,
    hasher: Option<IndexHasher>,
    hash: Option<[u8; 32]>,
    zeros_bytes_max: u64,
    /// End of the member before the zeros, and the number of zeros.
    zeros: Option<(ArchiveOffset, u64)>,
}

impl IndexWatch {
    pub fn new(promise: Promise) -> IndexWatch {
        let (awaited, zeros_bytes_max) = match promise {
            Promise::None { zeros_bytes_max } => (false, zeros_bytes_max),
            Promise::OfSegments => (true, u64::MAX),
        };
        IndexWatch {
            marked: false,
            awaited,
            inside: false,
            whole: false,
            told_of_leftover: false,
            start_bytes: ArchiveOffset::START,
            members: 0,
            ended: false,
            hasher: None,
            hash: None,
            zeros_bytes_max,
            zeros: None,
        }
    }

    /// A mark was read.
    pub fn expect(&mut self) {
        (self.marked, self.awaited) = (true, true);
    }

    /// The first unit of an index.
    pub fn begin(&mut self, start_bytes: ArchiveOffset) {
        self.start_bytes = start_bytes;
        (self.members, self.ended, self.hash, self.zeros) = (0, false, None, None);
        self.hasher = Some(IndexHasher::default());
    }

    /// Bytes of the index, with headers and padding.
    pub fn see(&mut self, bytes: &[u8]) {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
    }

    /// A unit that may be the header of the trailer, where the hash ends.
    pub fn see_unit(&mut self, unit: &Unit) {
        if self.members >= IndexSection::ALL.len() && is_trailer_header(unit) {
            self.hash = self.hasher.take().map(|hasher| hasher.finish());
        }
        self.see(unit);
    }

    /// The hash of the index up to its trailer, once that came.
    pub fn hash(&self) -> Option<[u8; 32]> {
        self.hash
    }

    /// Whether the next member of the index has the name it should have: those that every index
    /// has, others of an index, the trailer.
    pub fn take_member(&mut self, path: &[u8]) -> bool {
        let expected = IndexSection::ALL.get(self.members).map(|section| section.member_name());
        self.members += 1;
        match expected {
            Some(name) => name.as_bytes() == path,
            None if self.ended => false,
            None => {
                self.ended = path == TRAILER_NAME.as_bytes();
                is_index_member(path)
            }
        }
    }

    /// The end mark of an index; returns whether the index was complete.
    pub fn end(&mut self) -> bool {
        self.inside = false;
        self.hasher = None;
        if self.ended {
            (self.awaited, self.whole) = (false, true);
        }
        self.ended
    }

    /// The end mark of an archive, whose last member ended at that offset.
    pub fn end_of_archive(&mut self, end_bytes: ArchiveOffset) {
        self.zeros = Some((end_bytes, 2 * UNIT_BYTES as u64));
    }

    /// Another unit of zeros after it.
    pub fn zero_unit(&mut self) {
        if let Some((_, bytes)) = &mut self.zeros {
            *bytes += UNIT_BYTES as u64;
        }
    }

    /// Position and number of the zeros after the archive, if more than usual.
    pub fn take_zeros(&mut self) -> Option<(ArchiveOffset, u64)> {
        self.zeros.take().filter(|(_, bytes)| *bytes > self.zeros_bytes_max)
    }

    /// Another archive begins.
    pub fn next_archive(&mut self) {
        self.marked = false;
        self.awaited = false;
    }
}

impl MemberStream<'_> {
    /// Whether there was a member.
    pub fn has_members(&self) -> bool {
        self.saw_member
    }

    /// Whether only zeros were seen.
    pub fn is_only_zeros(&self) -> bool {
        !self.saw_header
    }

    /// Whether a complete index passed.
    pub fn has_index(&self) -> bool {
        self.watch.whole
    }

    /// Whether the current archive announced an index.
    pub fn is_marked(&self) -> bool {
        self.watch.marked
    }

    /// Where the current index began.
    pub fn index_start_bytes(&self) -> ArchiveOffset {
        self.watch.start_bytes
    }

    /// Where the stream begins in its archive, known when its index arrives: offsets count from
    /// there.
    pub fn begins_bytes(&self) -> ArchiveOffset {
        self.cursor.begins_bytes()
    }

    /// The hash of the current index up to its trailer.
    pub fn index_hash(&self) -> Option<[u8; 32]> {
        self.watch.hash()
    }

    /// Passes a unit to the watch, which belongs to the header that starts at `start_bytes`.
    pub(super) fn watch_unit(
        &mut self,
        unit: &Unit,
        unit_start_bytes: ArchiveOffset,
        start_bytes: ArchiveOffset,
    ) {
        if self.watch.inside {
            self.watch.see_unit(unit);
            return;
        }
        if start_bytes == unit_start_bytes && begins_index(unit) {
            self.watch.begin(start_bytes);
            if let Some(kept) = &self.kept {
                kept.end_at(start_bytes);
            }
        }
        self.watch.see(unit);
    }

    /// What the comments of a global header say: that an index must follow, or that this is an
    /// index, and its version.
    pub(super) fn watch_comments(&mut self, records: &[(Vec<u8>, Vec<u8>)]) -> Option<u32> {
        let comments = records.iter().filter(|(keyword, _)| keyword == b"comment");
        let mut comments = comments.map(|(_, comment)| comment);
        if comments.clone().any(|comment| Mark::of_comment(comment).is_some()) {
            self.watch.expect();
        }
        let version = comments.find_map(|comment| index_version(comment));
        self.watch.inside |= version.is_some();
        version
    }

    /// After the end of an archive, or after zeros without one, another archive begins.
    pub(super) fn begin_next(&mut self, offset_bytes: ArchiveOffset) {
        if self.saw_header {
            self.conclude();
            self.watch.next_archive();
            self.waiting.push_back(Item::NextArchive { offset_bytes });
        } else {
            self.watch.take_zeros();
            self.report(
                ArchiveOffset::START,
                offset_bytes.bytes(),
                DamageKind::LeadingGarbage,
                InMember::No,
            );
        }
        if let Some(kept) = &self.kept {
            kept.begin_at(offset_bytes);
        }
    }

    pub(super) fn end_index(&mut self, at: ArchiveOffset) {
        if !self.watch.end() {
            let why = format!("it ends at byte {at}, before its trailer");
            self.report(at, 0, DamageKind::Index { why }, InMember::No);
        }
        if self.after_end == AfterEnd::IndexOnly {
            self.place = Place::Done;
        }
    }

    /// Reports a missing index, and unusual zeros.
    pub(super) fn conclude(&mut self) {
        if let Some((end_bytes, bytes)) = self.watch.take_zeros() {
            self.report(end_bytes, bytes, DamageKind::Zeros, InMember::No);
        }
        if std::mem::take(&mut self.watch.awaited) {
            let at = self.cursor.position_bytes();
            self.report(at, 0, DamageKind::IndexMissing, InMember::No);
        }
    }

    /// Whether a unit is the header of a piece of an index without its beginning, which was
    /// overwritten (`tar -r`) or is damaged.
    pub(super) fn is_leftover(&self, unit: &Unit) -> bool {
        !self.watch.inside && !self.in_order && index_member_bytes(unit).is_some()
    }

    pub(super) fn pass_over_leftover(&mut self, unit: &Unit, offset_bytes: ArchiveOffset) {
        self.expect_content(b"", index_member_bytes(unit).unwrap_or(0));
        (self.saw_header, self.place) = (true, Place::Inside);
        self.decoder = (self.make_decoder)();
        self.watch.awaited = false;
        if !std::mem::replace(&mut self.watch.told_of_leftover, true) {
            let why = format!(
                "only pieces of it are left, from byte {offset_bytes} on; its beginning was \
                 overwritten, as `tar -r` does, or is lost"
            );
            self.report(offset_bytes, 0, DamageKind::Index { why }, InMember::No);
        }
    }
}
