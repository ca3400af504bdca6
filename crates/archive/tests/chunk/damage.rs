//! Damage to compressed streams: every byte flipped, every length cut.

use archive::chunk::{ChunkDecompressor, ChunkError, Coding, Compression};
use archive::stream::StoredOffset;

use crate::samples::{coding_of, compress, decode, mixed, pipe_through, stream_one};

/// The difference allowed between an undamaged and an accepted damaged stream: only bytes that no
/// reader checks.
#[track_caller]
fn check_flips(coding: Coding, stream: &[u8], expected: &[u8]) {
    for at in 0..stream.len() {
        for bit in 0..8 {
            let mut damaged = stream.to_vec();
            damaged[at] ^= 1 << bit;
            match decode(coding, &damaged, 1 << 16) {
                Err(_) => {}
                // A damaged start of a frame is reported as data behind the last one.
                Ok(decoded) if decoded.trailing_offset_bytes.is_some() => {
                    assert!(expected.starts_with(&decoded.content), "byte {at} bit {bit}");
                }
                Ok(decoded) => {
                    assert!(decoded.content == expected, "byte {at} bit {bit}");
                }
            }
        }
    }
}

fn check_cuts(coding: Coding, chunks: &[Vec<u8>], expected: &[u8]) {
    let stream = chunks.concat();
    let mut ends = vec![];
    for chunk in chunks {
        ends.push(ends.last().unwrap_or(&0) + chunk.len());
    }
    for length in 0..stream.len() {
        match decode(coding, &stream[..length], 1 << 16) {
            Err(ChunkError::Truncated { end_bytes, .. }) => {
                assert_eq!(end_bytes, StoredOffset::new(length as u64))
            }
            Err(error) => panic!("cut at {length}: {error}"),
            Ok(decoded) => {
                // Only between two chunks, or with less than a magic number behind one.
                let between = ends.contains(&length) || decoded.trailing_offset_bytes.is_some();
                assert!(between && expected.starts_with(&decoded.content), "cut at {length}");
            }
        }
    }
}

#[test]
fn flipped_bits_never_change_the_content_unseen() {
    let data = mixed(900, 30);
    for text in ["zstd:3", "gzip:6"] {
        let compression: Compression = text.parse().expect("a level");
        let stream = compress(compression, &data, 400).concat();
        check_flips(coding_of(compression), &stream, &data);
    }
    let gzip = pipe_through("gzip", &["-nc"], &data);
    check_flips(Coding::Gzip, &gzip, &data);
    let zstd = pipe_through("zstd", &["-qc"], &data);
    check_flips(Coding::Zstd, &zstd, &data);
}

#[test]
fn every_cut_is_noticed() {
    let data = mixed(900, 31);
    for text in ["zstd:3", "gzip:6"] {
        let compression: Compression = text.parse().expect("a level");
        check_cuts(coding_of(compression), &compress(compression, &data, 400), &data);
    }
    check_cuts(Coding::Gzip, &[pipe_through("gzip", &["-nc"], &data)], &data);
}

#[test]
fn every_cut_of_a_streamed_frame_is_noticed() {
    let data = mixed(3000, 32);
    for text in ["zstd:3", "gzip:6"] {
        let compression: Compression = text.parse().expect("a level");
        let coding = coding_of(compression);
        let frame = compress(compression, &data, data.len()).concat();
        for length in 1..frame.len() {
            let result = stream_one(coding, &frame[..length], 50, 100, &mut Vec::new());
            let end_bytes = 50 + length as u64;
            let expected = ChunkError::Truncated {
                coding,
                offset_bytes: StoredOffset::new(50),
                end_bytes: StoredOffset::new(end_bytes),
            };
            assert_eq!(result, Err(expected));
        }
    }
}

#[test]
fn a_length_that_swallows_the_next_member_is_noticed() {
    let data = mixed(2000, 33);
    let chunks = compress(Compression::Gzip { level: 6 }, &data, 1000);
    let mut decompressor = ChunkDecompressor::new();
    let mut out = Vec::new();
    for coding in [Coding::Gzip, Coding::Zstd] {
        let chunks = match coding {
            Coding::Gzip => chunks.clone(),
            Coding::Zstd => compress(Compression::Zstd { level: 3 }, &data, 1000),
        };
        let both = chunks.concat();
        let result = decompressor.decompress(coding, &both, StoredOffset::START, 1 << 20, &mut out);
        assert!(matches!(result, Err(ChunkError::Damaged { .. })), "{result:?}");
        let longer = [&chunks[0][..], b"x"].concat();
        let result =
            decompressor.decompress(coding, &longer, StoredOffset::START, 1 << 20, &mut out);
        assert!(result.is_err(), "{result:?}");
    }
}

#[test]
fn a_reserved_symbol_is_refused_by_streams_alone() {
    // One block of fixed codes: `a`, length symbol 286, distance 1, end.
    let deflate = [0x4b, 0x1c, 0x03, 0x00];
    let crc: u32 = 0x34c2fa56;
    let header = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    let member = [&header[..], &deflate, &crc.to_le_bytes(), &259u32.to_le_bytes()].concat();
    // gzip, pigz and zlib do so too.
    let result = stream_one(Coding::Gzip, &member, 0, 100, &mut Vec::new());
    assert!(matches!(result, Err(ChunkError::Damaged { .. })), "{result:?}");
    // Without a matching checksum, neither accepts it.
    let mut content = Vec::new();
    let mut decompressor = ChunkDecompressor::new();
    decompressor
        .decompress(Coding::Gzip, &member, StoredOffset::START, 1 << 10, &mut content)
        .expect("it holds");
    assert_eq!(content, [b'a'; 259]);
    let mut other = member;
    other[14] ^= 1;
    let result =
        decompressor.decompress(Coding::Gzip, &other, StoredOffset::START, 1 << 10, &mut content);
    assert!(matches!(result, Err(ChunkError::Damaged { .. })), "{result:?}");
}

#[test]
fn an_empty_run_without_a_window_is_refused_by_both() {
    // Single segment, no content; a run of no bytes, an empty last block.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 2, 0, 0, 0, 1, 0, 0];
    let streamed = stream_one(Coding::Zstd, &frame, 0, 100, &mut Vec::new());
    assert!(matches!(streamed, Err(ChunkError::Damaged { .. })), "{streamed:?}");
    let mut decompressor = ChunkDecompressor::new();
    let whole =
        decompressor.decompress(Coding::Zstd, &frame, StoredOffset::START, 100, &mut Vec::new());
    assert!(matches!(whole, Err(ChunkError::Damaged { .. })), "{whole:?}");
}

#[test]
fn bombs_are_refused_before_they_go_off() {
    let data = vec![0; 32 << 20];
    let mut decompressor = ChunkDecompressor::new();
    for text in ["zstd:3", "gzip:6"] {
        let compression: Compression = text.parse().expect("a level");
        let coding = coding_of(compression);
        let chunk = compress(compression, &data, data.len()).concat();
        let mut out = Vec::new();
        let result =
            decompressor.decompress(coding, &chunk, StoredOffset::new(7), 1 << 20, &mut out);
        let limit_bytes = 1 << 20;
        let expected =
            ChunkError::ContentTooLarge { coding, offset_bytes: StoredOffset::new(7), limit_bytes };
        assert_eq!(result, Err(expected));
        assert!(out.capacity() <= 2 << 20);
    }
    // Without a content size in the header, the blocks give the bound.
    let chunk = pipe_through("zstd", &["-qc"], &data);
    let mut out = Vec::new();
    let result =
        decompressor.decompress(Coding::Zstd, &chunk, StoredOffset::new(7), 1 << 20, &mut out);
    assert!(matches!(result, Err(ChunkError::Damaged { .. } | ChunkError::ContentTooLarge { .. })));
    assert!(out.capacity() <= 2 << 20);
}
