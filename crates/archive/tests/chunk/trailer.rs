//! The index archive as a whole: how other programs read it, and finding it from the end.

use archive::chunk::{
    ChunkCompressor, ChunkDecompressor, Coding, Compression, gzip_member,
    seek_table::{SeekTableBuilder, SeekTableLookup, parse_seek_table},
};
use archive::index::{
    BlockChecksum, ChunkRecord, ExtentRecord, FileRecord, INDEX_COMMENT, INDEX_HEADER_BYTES,
    IndexLayout, IndexSection, SectionPlace, SectionSummary, SetIdHasher, TRAILER_MEMBER_BYTES,
    Trailer, WarningRecord, block_checksum, encode_index_header, encode_section_header,
    encode_trailer, find_trailer, index_version, is_index_header, names_index, padding_bytes,
};
use archive::stream::StoredOffset;
use proptest::prelude::*;

use crate::index::{plain_record, read, write};
use crate::samples::pipe_through;

const BLOCK_BYTES: usize = 4096;

/// An index archive for an archive with these bytes, as a writer would make it.
fn index_archive(archive: &[u8], compression: Compression, compressed_bytes: u64) -> Vec<u8> {
    let records: Vec<FileRecord> = (0..3).map(plain_record).collect();
    let blocks: Vec<BlockChecksum> =
        archive.chunks(BLOCK_BYTES).map(|block| BlockChecksum(block_checksum(block))).collect();
    let sections: [(Vec<u8>, SectionSummary); 5] = [
        write(&records),
        write(&blocks),
        write::<ChunkRecord>(&[]),
        write(&[WarningRecord { path: b"x".to_vec(), text: "gone".to_owned() }]),
        write::<ExtentRecord>(&[]),
    ];
    let layout = IndexLayout::new([0, 1, 2, 3, 4].map(|number: usize| sections[number].1))
        .expect("small sections");
    let mut set_id = SetIdHasher::new();
    set_id.update(&sections[0].0);
    set_id.update(&sections[1].0);
    let mut out = encode_index_header().to_vec();
    for ((bytes, summary), section) in sections.iter().zip(IndexSection::ALL) {
        out.extend_from_slice(
            &encode_section_header(section, summary.length_bytes).expect("small"),
        );
        assert_eq!(layout.sections[section as usize].offset_bytes, out.len() as u64);
        out.extend_from_slice(bytes);
        out.resize(out.len() + padding_bytes(summary.length_bytes), 0);
    }
    assert_eq!(layout.trailer_offset_bytes, out.len() as u64);
    let trailer = Trailer {
        set_id: set_id.finish(),
        compression,
        chunk_bytes: if compression == Compression::None { 0 } else { 1 << 20 },
        block_bytes: BLOCK_BYTES as u32,
        archive_bytes: archive.len() as u64,
        index_compressed_offset_bytes: StoredOffset::new(compressed_bytes),
        sections: layout.sections,
        index_hash: (compression != Compression::None).then_some([9; 32]),
        named: None,
    };
    out.extend_from_slice(&encode_trailer(&trailer).expect("valid"));
    assert_eq!(layout.index_bytes, out.len() as u64);
    out
}

/// An archive with one small file, made by tar itself.
fn small_archive() -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(directory.path().join("file"), "content").expect("written");
    let path = directory.path().to_str().expect("a temporary path is text");
    pipe_through("tar", &["-cf", "-", "-C", path, "file"], b"")
}

#[test]
fn tar_stops_before_the_index_and_can_be_told_to_read_it() {
    let archive = small_archive();
    let index = index_archive(&archive, Compression::None, archive.len() as u64);
    let both = [&archive[..], &index].concat();
    assert_eq!(pipe_through("tar", &["-tf", "-"], &both), b"file\n");
    assert_eq!(pipe_through("bsdtar", &["-tf", "-"], &both), b"file\n");
    let names = b"takeup-index/files\ntakeup-index/blocks\ntakeup-index/chunks\n\
        takeup-index/warnings\ntakeup-index/extents\ntakeup-index/trailer\n";
    assert_eq!(pipe_through("tar", &["-tf", "-"], &index), names);
    assert_eq!(pipe_through("bsdtar", &["-tf", "-"], &index), names);
    let warnings = pipe_through("tar", &["-xOf", "-", "takeup-index/warnings"], &index);
    let (found, error) = read::<WarningRecord>(&warnings);
    assert!(error.is_none());
    assert_eq!(found, [WarningRecord { path: b"x".to_vec(), text: "gone".to_owned() }]);
}

#[test]
fn the_trailer_leads_to_every_section() {
    let archive = small_archive();
    let index = index_archive(&archive, Compression::None, archive.len() as u64);
    for padding_bytes in [0, 1, 511, 512, 100_000] {
        let mut both = [&archive[..], &index].concat();
        both.resize(both.len() + padding_bytes, 0);
        let found = find_trailer(&both).expect("undamaged").expect("there");
        assert_eq!(found.member_to_end_bytes, TRAILER_MEMBER_BYTES + padding_bytes);
        let trailer = found.trailer;
        let start = trailer.archive_bytes as usize;
        assert_eq!(start, archive.len());
        assert!(is_index_header(&both[start..]));
        let place = trailer.section(IndexSection::Files);
        let at = start + place.offset_bytes as usize;
        let section = &both[at..at + place.summary.length_bytes as usize];
        let (records, error) = read::<FileRecord>(section);
        assert!(error.is_none());
        assert_eq!(records, [0, 1, 2].map(plain_record));
        // A tail may start in the middle of a unit.
        let tail = &both[both.len() - padding_bytes - TRAILER_MEMBER_BYTES + 100..];
        let short = find_trailer(tail).expect("undamaged");
        assert_eq!(short, None, "its header is cut off");
        let tail = &both[both.len() - padding_bytes - TRAILER_MEMBER_BYTES - 100..];
        assert_eq!(find_trailer(tail).expect("undamaged"), Some(found));
    }
    assert!(matches!(find_trailer(&archive), Ok(None)));
    assert!(matches!(find_trailer(b""), Ok(None)));
}

#[test]
fn the_trailer_is_found_behind_compression() {
    let archive = small_archive();
    for text in ["gzip:6", "zstd:3"] {
        let compression: Compression = text.parse().expect("a level");
        let mut compressor = ChunkCompressor::new(compression).expect("a valid level");
        let mut table = SeekTableBuilder::new();
        let mut stream = Vec::new();
        let mut chunk = Vec::new();
        compressor.compress(&archive, &mut chunk).expect("compresses");
        table.push(chunk.len() as u64, archive.len() as u64, None).expect("fits");
        stream.extend_from_slice(&chunk);
        let index = index_archive(&archive, compression, stream.len() as u64);
        let (front, last) = index.split_at(index.len() - TRAILER_MEMBER_BYTES);
        compressor.compress(front, &mut chunk).expect("compresses");
        table.push(chunk.len() as u64, front.len() as u64, None).expect("fits");
        stream.extend_from_slice(&chunk);
        compressor.compress_last(last, &mut chunk).expect("compresses");
        table.push(chunk.len() as u64, last.len() as u64, None).expect("fits");
        stream.extend_from_slice(&chunk);
        let found = if text == "gzip:6" {
            gzip_member::find_stored_member(&stream, TRAILER_MEMBER_BYTES).expect("there")
        } else {
            stream.extend_from_slice(&table.encode());
            let lookup = parse_seek_table(&stream).expect("undamaged");
            let SeekTableLookup::Found(table) = lookup else { panic!("{lookup:?}") };
            assert_eq!(
                table.compressed_end_bytes().bytes() as usize + table.table_bytes,
                stream.len()
            );
            let frame = table.frames.last().expect("three frames");
            let start = frame.compressed_offset_bytes;
            let frame = &stream[start.bytes() as usize..][..frame.compressed_bytes as usize];
            let mut out = Vec::new();
            ChunkDecompressor::new()
                .decompress(Coding::Zstd, frame, start, 1 << 20, &mut out)
                .expect("undamaged");
            out
        };
        let trailer = find_trailer(&found).expect("undamaged").expect("there").trailer;
        assert_eq!(trailer.compression, compression);
        assert_eq!(trailer.archive_bytes, archive.len() as u64);
        let index_start = trailer.index_compressed_offset_bytes.bytes() as usize;
        let program = if text == "gzip:6" { "gzip" } else { "zstd" };
        let opened = pipe_through(program, &["-dc"], &stream[index_start..]);
        assert!(opened == index);
    }
}

#[test]
fn every_flipped_bit_of_the_trailer_is_noticed() {
    let archive = small_archive();
    let index = index_archive(&archive, Compression::None, archive.len() as u64);
    let start = index.len() - TRAILER_MEMBER_BYTES;
    for at in 512..1024 {
        for bit in 0..8 {
            let mut damaged = index.clone();
            damaged[start + at] ^= 1 << bit;
            let found = find_trailer(&damaged);
            assert!(!matches!(found, Ok(Some(_))), "byte {at} bit {bit}: {found:?}");
        }
    }
    for length in start..index.len() - 1024 {
        assert!(matches!(find_trailer(&index[..length]), Ok(None)), "cut at {length}");
    }
}

#[test]
fn a_trailer_that_makes_no_sense_is_refused() {
    let sections = [SectionPlace::default(); 5];
    let good = Trailer {
        set_id: [7; 32],
        compression: Compression::None,
        chunk_bytes: 0,
        block_bytes: 512,
        archive_bytes: 0,
        index_compressed_offset_bytes: StoredOffset::START,
        sections,
        index_hash: None,
        named: None,
    };
    encode_trailer(&good).expect("the least there can be");
    let changes: [fn(&mut Trailer); 6] = [
        |trailer| trailer.block_bytes = 0,
        |trailer| trailer.archive_bytes = 513,
        |trailer| trailer.archive_bytes = 512,
        |trailer| trailer.chunk_bytes = 5,
        |trailer| trailer.compression = Compression::Gzip { level: 99 },
        |trailer| trailer.sections[2].offset_bytes = 7,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut trailer = good;
        change(&mut trailer);
        assert!(encode_trailer(&trailer).is_err(), "change {number}");
    }
}

#[test]
fn the_header_marks_an_index() {
    let header = encode_index_header();
    assert_eq!(header.len(), INDEX_HEADER_BYTES);
    assert!(is_index_header(&header) && !is_index_header(&header[1..]));
    assert!(header[512..].starts_with(b"26 comment=takeup index 1\n"));
    assert_eq!(index_version(INDEX_COMMENT.as_bytes()), Some(1));
    assert_eq!(index_version(b"takeup index 23"), Some(23));
    for other in [&b"takeup index "[..], b"takeup index x", b"takeup", b""] {
        assert_eq!(index_version(other), None);
    }
    assert!(encode_section_header(IndexSection::Files, 1 << 33).is_err());
    assert!(names_index(b"x takeup-index/files"));
    assert!(!names_index(b"x takeup-index") && !names_index(b""));
}

proptest! {
    #[test]
    fn any_tail_gives_an_answer(
        front in prop::collection::vec(any::<u8>(), 0..1200),
        zeros in 0usize..600,
    ) {
        let mut tail = [&front[..], b"takeup.\n"].concat();
        if tail.len() >= 512 {
            let at = tail.len() - 512;
            tail[at..at + 16].copy_from_slice(b"takeup trailer\0\0");
        }
        tail.resize(tail.len() + zeros, 0);
        prop_assert!(!matches!(find_trailer(&tail), Ok(Some(_))));
    }
}
