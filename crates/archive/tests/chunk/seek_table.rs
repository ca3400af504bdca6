//! The seek table: round trip, lookups, and damage.

use archive::chunk::ChunkError;
use archive::chunk::seek_table::{
    FOOTER_BYTES, SeekTableBuilder, SeekTableLookup, parse_seek_table,
};
use archive::stream::{ArchiveOffset, StoredOffset};
use proptest::prelude::*;

fn build(frames: &[(u32, u32)], checksums: bool) -> Vec<u8> {
    let mut builder = SeekTableBuilder::new();
    for (compressed_bytes, content_bytes) in frames {
        let checksum = checksums.then_some(compressed_bytes ^ content_bytes);
        builder
            .push((*compressed_bytes).into(), (*content_bytes).into(), checksum)
            .expect("within the limits");
    }
    assert_eq!(builder.frames(), frames.len());
    builder.encode()
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        frames in prop::collection::vec((any::<u32>(), any::<u32>()), 0..40),
        checksums in any::<bool>(),
        before in prop::collection::vec(any::<u8>(), 0..30),
        probe in any::<u64>(),
    ) {
        let encoded = build(&frames, checksums);
        let tail = [&before[..], &encoded].concat();
        let found = parse_seek_table(&tail).expect("a table");
        let SeekTableLookup::Found(table) = found else { panic!("{found:?}") };
        prop_assert_eq!(table.table_bytes, encoded.len());
        let (mut compressed, mut content) = (StoredOffset::START, ArchiveOffset::START);
        for (frame, (compressed_bytes, content_bytes)) in table.frames.iter().zip(&frames) {
            prop_assert_eq!(frame.compressed_offset_bytes, compressed);
            prop_assert_eq!(frame.content_offset_bytes, content);
            prop_assert_eq!(frame.compressed_bytes, *compressed_bytes);
            prop_assert_eq!(frame.content_bytes, *content_bytes);
            let checksum = checksums.then_some(compressed_bytes ^ content_bytes);
            prop_assert_eq!(frame.checksum, checksum);
            compressed += u64::from(*compressed_bytes);
            content += u64::from(*content_bytes);
        }
        prop_assert_eq!(table.frames.len(), frames.len());
        prop_assert_eq!(table.compressed_end_bytes(), compressed);
        prop_assert_eq!(table.content_end_bytes(), content);
        // Compares the lookup with a search through all frames.
        let length = content.bytes();
        let somewhere = probe.checked_rem(length).unwrap_or(0);
        for place in [0, somewhere, length.saturating_sub(1), length] {
            let place = ArchiveOffset::new(place);
            let naive = table.frames.iter().find(|frame| {
                let start = frame.content_offset_bytes;
                (start..start + u64::from(frame.content_bytes)).contains(&place)
            });
            prop_assert_eq!(table.frame_at(place), naive);
        }
        // A tail that is too short gives the required length.
        for cut in [1, encoded.len() / 2, encoded.len() - FOOTER_BYTES] {
            let short = &encoded[cut..];
            let expected = SeekTableLookup::NeedTail { tail_bytes: encoded.len() };
            prop_assert_eq!(parse_seek_table(short), Ok(expected));
        }
    }

    #[test]
    fn any_tail_gives_an_answer(mut tail in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_seek_table(&tail);
        let length = tail.len();
        if length >= FOOTER_BYTES {
            tail[length - 4..].copy_from_slice(&0x8f92_eab1u32.to_le_bytes());
            tail[length - 9..length - 5].copy_from_slice(&(length as u32 / 20).to_le_bytes());
            let _ = parse_seek_table(&tail);
        }
    }
}

#[test]
fn limits_are_errors() {
    let mut builder = SeekTableBuilder::new();
    let too_large = ChunkError::FrameTooLarge { length_bytes: 1 << 32 };
    assert_eq!(builder.push(1 << 32, 1, None), Err(too_large));
    builder.push(1, 1, None).expect("fits");
    assert_eq!(builder.push(1, 1, Some(1)), Err(ChunkError::MixedChecksums));
    let mut builder = SeekTableBuilder::new();
    builder.push(1, 1, Some(1)).expect("fits");
    assert_eq!(builder.push(1, 1, None), Err(ChunkError::MixedChecksums));
    let mut footer = u32::MAX.to_le_bytes().to_vec();
    footer.extend_from_slice(b"\0\xb1\xea\x92\x8f");
    assert_eq!(parse_seek_table(&footer), Err(ChunkError::TooManyFrames));
}

#[test]
fn damage_to_the_outside_is_noticed() {
    let encoded = build(&[(10, 20), (30, 40)], false);
    for at in (0..8).chain(encoded.len() - FOOTER_BYTES..encoded.len()) {
        for bit in 0..8 {
            let mut damaged = encoded.clone();
            damaged[at] ^= 1 << bit;
            let unused_bit = at == encoded.len() - 5 && bit < 2;
            let found = parse_seek_table(&damaged);
            let noticed = !matches!(found, Ok(SeekTableLookup::Found(_)));
            assert!(noticed || unused_bit, "byte {at} bit {bit}: {found:?}");
        }
    }
}
