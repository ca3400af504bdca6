//! Compressed data can be decompressed by every program, and are the same however they were made.

use archive::chunk::{
    CHUNK_BYTES_MAX, ChunkCompressor, ChunkDecompressor, ChunkError, Coding, Compression,
    GZIP_LEVELS, StreamFormat, ZSTD_LEVELS, gzip_member, seek_table::SeekTableBuilder,
};
use archive::stream::StoredOffset;
use proptest::prelude::*;

use crate::samples::{coding_of, compress, decode, mixed, pipe_through, stream_one};

fn every_level() -> impl Iterator<Item = Compression> {
    let zstd = ZSTD_LEVELS.map(|level| Compression::Zstd { level });
    zstd.chain(GZIP_LEVELS.map(|level| Compression::Gzip { level }))
}

#[test]
fn every_level_round_trips() {
    let data = mixed(300_000, 1);
    for compression in every_level() {
        let coding = coding_of(compression);
        let stream = compress(compression, &data, 70_000).concat();
        assert_eq!(StreamFormat::detect(&stream), StreamFormat::Compressed(coding));
        let decoded = decode(coding, &stream, 1 << 20).expect("decodes");
        assert!(decoded.content == data, "{compression}");
        assert_eq!((decoded.chunks, decoded.streamed), (5, 0), "{compression}");
    }
}

#[test]
fn a_chunk_has_the_size_of_its_level_and_fits_the_limit() {
    for compression in every_level() {
        assert!(compression.chunk_bytes() <= CHUNK_BYTES_MAX);
        assert!(compression.chunk_bytes() >= 1 << 20);
    }
    let mut compressor = ChunkCompressor::new(Compression::Zstd { level: 1 }).expect("level 1");
    let result = compressor.compress(&vec![0; CHUNK_BYTES_MAX + 1], &mut Vec::new());
    assert!(matches!(result, Err(ChunkError::ChunkTooLarge { .. })));
}

/// The library's contexts keep tables from one chunk to the next; the output must not depend on
/// them.
#[test]
fn output_depends_on_the_input_only() {
    for text in ["zstd:-7", "zstd:1", "zstd:3", "zstd:5", "zstd:9", "zstd:16", "gzip:1", "gzip:6"] {
        let compression: Compression = text.parse().expect("a level");
        let mut reused = ChunkCompressor::new(compression).expect("a valid level");
        for seed in 0..12 {
            let data = mixed(1000 + 97_000 * (seed as usize % 5), seed);
            let mut fresh = ChunkCompressor::new(compression).expect("a valid level");
            let (mut first, mut second) = (Vec::new(), b"left over".to_vec());
            fresh.compress(&data, &mut first).expect("compresses");
            reused.compress(&data, &mut second).expect("compresses");
            assert!(first == second, "{text}, chunk {seed}");
        }
    }
}

#[test]
fn zstd_and_bsdtar_read_our_frames() {
    let data = mixed(500_000, 2);
    let chunks = compress(Compression::Zstd { level: 3 }, &data, 100_000);
    let mut table = SeekTableBuilder::new();
    for chunk in &chunks {
        table.push(chunk.len() as u64, 100_000, None).expect("fits");
    }
    let mut stream = chunks.concat();
    stream.extend_from_slice(&table.encode());
    assert!(pipe_through("zstd", &["-dc"], &stream) == data);
    assert!(pipe_through("bsdcat", &[], &stream) == data);
    assert!(pipe_through("zstd", &["-tq"], &stream).is_empty());
    let decoded = decode(Coding::Zstd, &stream, 1 << 20).expect("decodes");
    assert!(decoded.content == data && decoded.trailing_offset_bytes.is_none());
}

#[test]
fn gzip_pigz_and_bsdtar_read_our_members() {
    let data = mixed(500_000, 3);
    let mut stream = compress(Compression::Gzip { level: 6 }, &data, 100_000).concat();
    gzip_member::encode_stored_member(&data[..2048], &mut stream).expect("small");
    let expected = [&data[..], &data[..2048]].concat();
    assert!(pipe_through("gzip", &["-dc"], &stream) == expected);
    assert!(pipe_through("zcat", &[], &stream) == expected);
    assert!(pipe_through("pigz", &["-dc"], &stream) == expected);
    assert!(pipe_through("bsdcat", &[], &stream) == expected);
    // A block device or a tape may add zeros, which gzip skips.
    stream.resize(stream.len() + 4096, 0);
    assert!(pipe_through("gzip", &["-dcq"], &stream) == expected);
    let decoded = decode(Coding::Gzip, &stream, 1 << 20).expect("decodes");
    assert!(decoded.content == expected);
    assert_eq!(decoded.trailing_offset_bytes, Some(stream.len() as u64 - 4096));
}

#[test]
fn the_last_member_is_found_from_the_end() {
    for content_bytes in [0, 1, 2048, 65_535, 65_536, 200_000] {
        let content = mixed(content_bytes, 4);
        let mut compressor = ChunkCompressor::new(Compression::Gzip { level: 6 }).expect("level 6");
        let mut member = Vec::new();
        compressor.compress_last(&content, &mut member).expect("compresses");
        assert_eq!(member.len(), gzip_member::stored_member_bytes(content_bytes));
        assert!(pipe_through("gzip", &["-dc"], &member) == content);
        let tail = [&mixed(777, 5)[..], &member].concat();
        let found = gzip_member::find_stored_member(&tail, content_bytes);
        assert!(found.as_deref() == Some(&content[..]));
        assert_eq!(gzip_member::find_stored_member(&tail, content_bytes + 1), None);
        assert_eq!(gzip_member::find_stored_member(&tail[..tail.len() - 1], content_bytes), None);
        for at in 0..member.len().min(3000) {
            let mut damaged = member.clone();
            damaged[at] ^= 1;
            let found = gzip_member::find_stored_member(&damaged, content_bytes);
            assert!(found.is_none(), "byte {at}");
        }
    }
}

#[test]
fn a_slice_takes_the_content_too() {
    let data = mixed(50_000, 6);
    let mut decompressor = ChunkDecompressor::new();
    for text in ["zstd:3", "gzip:6"] {
        let compression: Compression = text.parse().expect("a level");
        let coding = coding_of(compression);
        let chunk = compress(compression, &data, data.len()).concat();
        let mut out = vec![1; data.len() + 10];
        let length = decompressor
            .decompress_into(coding, &chunk, StoredOffset::START, &mut out)
            .expect("room");
        assert!(out[..length] == data);
        let exact = &mut out[..data.len()];
        assert_eq!(
            decompressor.decompress_into(coding, &chunk, StoredOffset::START, exact),
            Ok(data.len())
        );
        let short = &mut out[..data.len() - 1];
        let result = decompressor.decompress_into(coding, &chunk, StoredOffset::START, short);
        assert!(matches!(result, Err(ChunkError::ContentTooLarge { .. })), "{result:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_pieces_come_back(
        pieces in prop::collection::vec((0usize..60_000, any::<u64>()), 0..6),
        gzip in any::<bool>(),
        level in 1i32..7,
        slice_bytes in 1usize..5000,
    ) {
        let compression =
            if gzip { Compression::Gzip { level } } else { Compression::Zstd { level } };
        let coding = coding_of(compression);
        let pieces: Vec<Vec<u8>> =
            pieces.into_iter().map(|(length, seed)| mixed(length, seed)).collect();
        let mut compressor = ChunkCompressor::new(compression).expect("a valid level");
        let mut stream = Vec::new();
        for piece in &pieces {
            let mut chunk = Vec::new();
            compressor.compress(piece, &mut chunk).expect("compresses");
            stream.extend_from_slice(&chunk);
        }
        if !pieces.is_empty() {
            let decoded = decode(coding, &stream, 1 << 20).expect("decodes");
            prop_assert!(decoded.content == pieces.concat());
            prop_assert_eq!(decoded.chunks, pieces.len());
            // With a limit that is too small for any chunk, everything is streamed.
            let decoded = decode(coding, &stream, 30).expect("decodes");
            prop_assert!(decoded.content == pieces.concat());
        }
        let mut at = 0;
        for piece in &pieces {
            let mut content = Vec::new();
            at += stream_one(coding, &stream[at..], at as u64, slice_bytes, &mut content)
                .expect("decodes");
            prop_assert!(content == *piece);
        }
        prop_assert_eq!(at, stream.len());
    }
}
