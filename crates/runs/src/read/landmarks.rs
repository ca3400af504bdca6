//! The headers of an archive by its index: how damage is skipped.
//!
//! Without an index the next header is searched by its appearance, and an archive inside a lost
//! member is taken for the outer archive. With an index, the place of the next header is known to
//! the byte, unless data of unknown length are missing; so a seam ends this. Not for tapes, where
//! the end of a segment looks like the end of the archive.

use archive::index::FileRecord;
use archive::stream::ArchiveOffset;

use catalogue::IndexFile;

/// Two units of zeros end an archive.
const END_MARK_BYTES: u64 = 1024;
/// Wrong landmarks in a row after which the index is not trusted.
const MISSES_MAX: u32 = 256;

/// Offsets of headers, read once, in ascending order.
pub(crate) struct Landmarks<'a> {
    records: Box<dyn Iterator<Item = FileRecord> + 'a>,
    next_bytes: Option<ArchiveOffset>,
    /// Where the end-of-archive mark is.
    end_bytes: ArchiveOffset,
    last_target_bytes: ArchiveOffset,
    misses: u32,
}

impl<'a> Landmarks<'a> {
    /// The headers that an index knows.
    pub fn of(index: &'a IndexFile) -> Option<Landmarks<'a>> {
        let end_bytes = index.trailer.archive_bytes.checked_sub(END_MARK_BYTES)?;
        let end_bytes = ArchiveOffset::new(end_bytes);
        let records = Box::new(index.files().ok()?.map_while(Result::ok));
        let (next_bytes, last_target_bytes) = (None, ArchiveOffset::START);
        Some(Landmarks { records, next_bytes, end_bytes, last_target_bytes, misses: 0 })
    }

    fn header_from(&mut self, offset_bytes: ArchiveOffset) -> Option<ArchiveOffset> {
        if self.next_bytes.is_none_or(|next| next < offset_bytes) {
            let next = self.records.find(|record| record.header_offset_bytes >= offset_bytes);
            // After the last record there is none to look for.
            self.next_bytes =
                Some(next.map_or(ArchiveOffset::MAX, |record| record.header_offset_bytes));
        }
        self.next_bytes.filter(|next| *next < self.end_bytes)
    }

    /// Whether there is a header at or after an offset.
    pub fn has_header_from(&mut self, offset_bytes: ArchiveOffset) -> bool {
        self.header_from(offset_bytes).is_some()
    }

    /// Where to continue after damage that ends before `offset_bytes`: the next header, or the end
    /// mark. `None` after that, and if too many landmarks were wrong.
    pub fn next_from(&mut self, offset_bytes: ArchiveOffset) -> Option<ArchiveOffset> {
        let target_bytes = match self.header_from(offset_bytes) {
            Some(target) => target,
            None if offset_bytes <= self.end_bytes => self.end_bytes,
            None => return None,
        };
        if target_bytes != self.last_target_bytes {
            // Damage right behind the last landmark means that it was wrong.
            let missed = offset_bytes <= self.last_target_bytes + END_MARK_BYTES;
            self.misses = if missed { self.misses + 1 } else { 0 };
            self.last_target_bytes = target_bytes;
        }
        (self.misses <= MISSES_MAX).then_some(target_bytes)
    }
}
