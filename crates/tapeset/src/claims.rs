//! Upper bounds on what labels and indexes may claim of a set: no more than tapes can hold.
//!
//! A checksum shows that a label is intact, not who wrote it. Missing parts of a set become zeros
//! in the stream, and numbers become positions. So a label is checked against the stream before it,
//! and an index against its own length.

use archive::index::{ExtentRecord, IndexSection, Trailer};
use archive::label::{LABEL_BYTES_MAX, Label};
use archive::stream::StoredOffset;

use crate::block::BLOCK_BYTES_MAX;

/// More of a stored stream than a volume can hold: the roadmap of LTO ends with 576 TB (LTO-14),
/// and its makers state a compression of at most 2.5:1.
pub(crate) const VOLUME_BYTES_MAX: u64 = 1 << 51;
/// More than all volumes of any set hold; with what is added to it, it fits 64 bits.
const MISSING_BYTES_MAX: u64 = 1 << 62;
/// Zeros that may stand in a stream for each byte that was read, plus a fixed number. A volume of
/// 100 TB may be missing behind a few gigabytes, but a label alone must not make a day of zeros.
const ZEROS_PER_BYTE_MAX: u64 = 1 << 14;
const ZEROS_MAX: u64 = 1 << 36;
/// More volumes, segments and files than any set has.
const VOLUMES_MAX: u32 = 1 << 16;
const FILES_MAX: u32 = 1 << 28;
/// More bytes and objects than all volumes of a set hold.
const STREAM_END_MAX: StoredOffset = StoredOffset::new(1 << 62);
const OBJECTS_MAX: u64 = 1 << 48;
/// More than a chunk with its padding takes on tape.
const CHUNK_STORED_BYTES_MAX: u64 = 80 << 20;

/// Whether the numbers of a label are possible on a tape.
pub(crate) fn label_can_be(label: &Label) -> bool {
    label.volume <= VOLUMES_MAX
        && label.segment <= FILES_MAX
        && label.stream_bytes <= STREAM_END_MAX
        && label.block_bytes as usize <= BLOCK_BYTES_MAX
}

/// Most bytes of the stored stream that may be missing before a part: volumes that were not read,
/// or the rest of a volume that ended early, in proportion to the bytes read. On the same volume no
/// more than a label of unknown length. `zeros_bytes` is the number of zeros in the stream so far.
pub(crate) fn missing_bytes_max(
    volume_before: u32,
    volume: u32,
    read_bytes: u64,
    zeros_bytes: u64,
) -> u64 {
    let volumes = u64::from(volume.min(VOLUMES_MAX).saturating_sub(volume_before));
    let paid_for = read_bytes.saturating_mul(ZEROS_PER_BYTE_MAX).saturating_add(ZEROS_MAX);
    let held = volumes.saturating_mul(VOLUME_BYTES_MAX).min(MISSING_BYTES_MAX);
    let between = held.min(paid_for.saturating_sub(zeros_bytes));
    LABEL_BYTES_MAX as u64 + between
}

/// Whether extents describe a set: one after the other without gaps, from the start of the stored
/// stream to its end, as the trailer of an index of `index_bytes` has it.
pub(crate) fn extents_can_be(
    extents: &[ExtentRecord],
    set: [u8; 16],
    trailer: &Trailer,
    index_bytes: u64,
) -> bool {
    let can_be = |extent: &ExtentRecord| {
        extent.set == set
            && extent.volume <= VOLUMES_MAX
            && extent.segment <= FILES_MAX
            && extent.file_number <= FILES_MAX
            && extent.label_bytes as usize <= LABEL_BYTES_MAX
            && extent.label_block.is_none_or(|block| block <= OBJECTS_MAX)
    };
    let follow = |pair: &[ExtentRecord]| {
        let (before, next) = (&pair[0], &pair[1]);
        before.volume <= next.volume
            && before.stream_offset_bytes <= next.stream_offset_bytes
            && next.stream_offset_bytes <= before.stream_end_bytes()
    };
    let begins =
        extents.first().is_none_or(|first| first.stream_offset_bytes == StoredOffset::START);
    let end = extents.iter().map(ExtentRecord::stream_end_bytes).max().unwrap_or_default();
    begins
        && extents.iter().all(can_be)
        && extents.windows(2).all(follow)
        && end == trailer.index_compressed_offset_bytes
        && stored_end_max(trailer, index_bytes).is_some_and(|most| end <= most)
}

/// Longest stored stream that an index of this many bytes can describe: it has a checksum for every
/// block of the archive, and a record for every chunk.
fn stored_end_max(trailer: &Trailer, index_bytes: u64) -> Option<StoredOffset> {
    let records = |section, least_bytes| {
        let place = trailer.section(section);
        let end_bytes = place.offset_bytes.checked_add(place.summary.length_bytes)?;
        let fits = end_bytes <= index_bytes
            && place.summary.records.checked_mul(least_bytes)? <= place.summary.length_bytes;
        fits.then_some(place.summary.records)
    };
    if trailer.block_bytes as usize > BLOCK_BYTES_MAX {
        return None;
    }
    let plain_bytes = records(IndexSection::Blocks, 8)?.checked_mul(trailer.block_bytes.into())?;
    let packed_bytes = records(IndexSection::Chunks, 2)?.checked_mul(CHUNK_STORED_BYTES_MAX)?;
    Some(StoredOffset::new(plain_bytes.max(packed_bytes)))
}

#[cfg(test)]
mod tests {
    use archive::chunk::Compression;
    use archive::index::{SectionPlace, SectionSummary};

    use super::*;

    fn extent(volume: u32, offset_bytes: u64, bytes: u64) -> ExtentRecord {
        ExtentRecord {
            set: [1; 16],
            segment: 1,
            part: 1,
            volume,
            medium: [2; 16],
            stream_offset_bytes: StoredOffset::new(offset_bytes),
            stream_bytes: bytes,
            label_block: Some(0),
            label_bytes: 4096,
            file_number: 0,
        }
    }

    /// An archive of this many blocks of 4 KiB whose index has room for its checksums.
    fn trailer(blocks: u64) -> Trailer {
        let mut sections = [SectionPlace::default(); 5];
        let summary = SectionSummary { length_bytes: blocks * 8 + 100, records: blocks };
        sections[IndexSection::Blocks as usize] = SectionPlace { offset_bytes: 512, summary };
        let bytes = blocks * 4096;
        Trailer {
            set_id: [0; 32],
            index_hash: None,
            named: None,
            compression: Compression::None,
            chunk_bytes: 0,
            block_bytes: 4096,
            archive_bytes: bytes,
            index_compressed_offset_bytes: StoredOffset::new(bytes),
            sections,
        }
    }

    #[track_caller]
    fn check(extents: &[ExtentRecord], blocks: u64, expected: bool) {
        let index_bytes = 512 + 8 * 100 + 100;
        let can_be = extents_can_be(extents, [1; 16], &trailer(blocks), index_bytes);
        assert_eq!(can_be, expected, "{extents:?}");
    }

    #[test]
    fn extents_are_one_behind_the_other_up_to_the_end() {
        let block = 4096;
        check(&[extent(1, 0, 10 * block)], 10, true);
        check(&[extent(1, 0, 6 * block), extent(2, 6 * block, 4 * block)], 10, true);
        // A compressed part may repeat the end of the one before.
        check(&[extent(1, 0, 6 * block), extent(2, 4 * block, 6 * block)], 10, true);
        check(&[extent(1, 0, 6 * block), extent(2, 7 * block, 3 * block)], 10, false);
        check(&[extent(1, block, 9 * block)], 10, false);
        check(&[extent(1, 0, 9 * block)], 10, false);
        check(&[extent(1, 0, u64::MAX)], 10, false);
        check(&[extent(2, 0, 6 * block), extent(1, 6 * block, 4 * block)], 10, false);
        let far = ExtentRecord { label_block: Some(u64::MAX - 1), ..extent(1, 0, 10 * block) };
        check(&[far], 10, false);
        let late = ExtentRecord { file_number: u32::MAX, ..extent(1, 0, 10 * block) };
        check(&[late], 10, false);
    }

    #[test]
    fn an_index_describes_no_more_than_it_has_checksums_for() {
        let bytes = 4096 * 1_000_000;
        check(&[extent(1, 0, bytes)], 1_000_000, false);
        check(&[extent(1, 0, 4096 * 100)], 100, true);
    }

    #[test]
    fn what_may_be_missing_is_bounded_by_the_volumes_between_and_by_what_was_read() {
        let label = LABEL_BYTES_MAX as u64;
        let (much, tape) = (1 << 40, VOLUME_BYTES_MAX);
        assert_eq!(missing_bytes_max(3, 3, much, 0), label);
        assert_eq!(missing_bytes_max(1, 3, much, 0), label + 2 * tape);
        assert!(missing_bytes_max(0, u32::MAX, u64::MAX, 0) < u64::MAX);
        assert_eq!(missing_bytes_max(1, 2, 0, 0), label + ZEROS_MAX);
        assert_eq!(missing_bytes_max(1, 2, 0, ZEROS_MAX), label);
        // After the few gigabytes left of one volume, another volume may be missing.
        assert!(missing_bytes_max(1, 3, 4 << 30, 0) > 50 << 40);
    }
}
