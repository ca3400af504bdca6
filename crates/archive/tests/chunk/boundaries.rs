//! Compares the boundary finder with the library's own answer, and tests false claims of frames.

use archive::chunk::{Boundary, BoundaryFinder, ChunkError, Coding, Compression, Input};
use archive::stream::StoredOffset;
use proptest::prelude::*;
use zstd::zstd_safe::find_frame_compressed_size;

use crate::samples::{compress, mixed};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_walk_agrees_with_the_library(
        length in 0usize..400_000,
        seed in any::<u64>(),
        level in -3i32..4,
        garbage in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let frame = compress(Compression::Zstd { level }, &mixed(length, seed), 1 << 20).concat();
        prop_assume!(!frame.is_empty());
        let stream = [&frame[..], &garbage].concat();
        let size = find_frame_compressed_size(&stream).expect("the library knows its frames");
        let mut finder = BoundaryFinder::new(Coding::Zstd, 1 << 20);
        let found = finder.examine(&stream, Input::MoreMayFollow).expect("a frame");
        prop_assert_eq!(
            found,
            Boundary::Chunk { compressed_bytes: size, content_bytes_max: length }
        );
    }

    #[test]
    fn any_bytes_give_an_answer(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        any_before in any::<bool>(),
    ) {
        let starts: [&[u8]; 4] =
            [b"", b"\x28\xb5\x2f\xfd", b"\x1f\x8b\x08", b"\x50\x2a\x4d\x18"];
        for coding in [Coding::Gzip, Coding::Zstd] {
            for start in starts {
                let bytes = [start, &bytes[..]].concat();
                let mut finder = BoundaryFinder::new(coding, 200);
                if any_before {
                    finder.advance(9);
                }
                match finder.examine(&bytes, Input::Ended) {
                    Ok(Boundary::Chunk { compressed_bytes, content_bytes_max }) => {
                        prop_assert!(compressed_bytes <= bytes.len() && content_bytes_max <= 200);
                    }
                    Ok(Boundary::NeedMore { .. }) => prop_assert!(false, "the input has ended"),
                    Ok(Boundary::End) => prop_assert!(bytes.is_empty() && any_before),
                    Ok(_) | Err(_) => {}
                }
            }
        }
    }
}

#[test]
fn a_frame_beyond_the_limit_is_streamed() {
    let data = mixed(300_000, 20);
    for text in ["zstd:1", "gzip:1"] {
        let compression: Compression = text.parse().expect("a level");
        let coding = crate::samples::coding_of(compression);
        let frame = compress(compression, &data, data.len()).concat();
        let mut finder = BoundaryFinder::new(coding, data.len());
        let found = finder.examine(&frame, Input::Ended);
        assert!(matches!(found, Ok(Boundary::Chunk { .. })), "{found:?}");
        let mut finder = BoundaryFinder::new(coding, data.len() - 1);
        assert_eq!(finder.examine(&frame, Input::Ended), Ok(Boundary::Stream));
    }
}

#[test]
fn the_end_the_start_and_the_rest_are_told_apart() {
    for (coding, magic) in [(Coding::Gzip, &b"\x1f\x8b"[..]), (Coding::Zstd, b"\x28\xb5\x2f\xfd")] {
        let mut finder = BoundaryFinder::new(coding, 1000);
        let nothing = finder.examine(b"", Input::Ended);
        assert!(matches!(nothing, Err(ChunkError::Truncated { .. })), "{nothing:?}");
        let start = finder.examine(b"something else", Input::MoreMayFollow);
        let offset_bytes = StoredOffset::START;
        assert_eq!(start, Err(ChunkError::NotAFrame { coding, offset_bytes }));
        finder.advance(100);
        assert_eq!(finder.examine(b"", Input::Ended), Ok(Boundary::End));
        assert_eq!(finder.examine(b"something else", Input::Ended), Ok(Boundary::Trailing));
        assert_eq!(finder.examine(&magic[..1], Input::Ended), Ok(Boundary::Trailing));
        let expected = ChunkError::Truncated {
            coding,
            offset_bytes: StoredOffset::new(100),
            end_bytes: StoredOffset::new(100 + magic.len() as u64),
        };
        assert_eq!(finder.examine(magic, Input::Ended), Err(expected));
    }
}

/// A frame claims more content than its blocks could hold. A reader must not allocate that.
#[test]
fn a_claim_beyond_the_blocks_is_damage() {
    // Single segment, content size in eight bytes, one raw block of one byte.
    let mut frame = b"\x28\xb5\x2f\xfd\xe0".to_vec();
    frame.extend_from_slice(&(1u64 << 20).to_le_bytes());
    frame.extend_from_slice(&[9, 0, 0, 5]);
    let mut finder = BoundaryFinder::new(Coding::Zstd, 8 << 20);
    let found = finder.examine(&frame, Input::Ended);
    assert!(matches!(found, Err(ChunkError::Damaged { .. })), "{found:?}");
}
