//! Sections of the index: round trips and refused data.

use archive::index::{
    BlockChecksum, BlockHasher, ChunkRecord, ContentHasher, ExtentRecord, FileLayout, FileRecord,
    IndexError, IndexReader, IndexWriter, Record, RecordKind, SectionSummary, WarningRecord,
    block_checksum,
};
use archive::member::{Extent, Timestamp};
use archive::stream::{ArchiveOffset, StoredOffset};
use proptest::prelude::*;

pub fn write<T: Record>(records: &[T]) -> (Vec<u8>, SectionSummary) {
    let mut writer = IndexWriter::new();
    let mut out = Vec::new();
    for record in records {
        writer.push(record, &mut out).expect("writable");
    }
    let summary = writer.finish(&mut out);
    assert_eq!(summary.length_bytes, out.len() as u64);
    assert_eq!(summary.records, records.len() as u64);
    (out, summary)
}

/// All records up to an error.
pub fn read<T: Record>(bytes: &[u8]) -> (Vec<T>, Option<IndexError>) {
    let mut reader = IndexReader::<T, _>::new(bytes);
    let mut records = Vec::new();
    let error = loop {
        match reader.next_record() {
            Ok(Some(record)) => records.push(record),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    assert!(matches!(reader.next_record(), Ok(None)), "nothing comes behind the end");
    (records, error)
}

fn timestamp() -> impl Strategy<Value = Timestamp> {
    (any::<i64>(), 0u32..1_000_000_000)
        .prop_map(|(seconds, nanoseconds)| Timestamp { seconds, nanoseconds })
}

fn path() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "(usr|srv|home)/[a-c]{1,3}/[a-c]{1,30}".prop_map(String::into_bytes),
        prop::collection::vec(1u8.., 1..40),
        (1usize..6000).prop_map(|length| vec![b'x'; length]),
    ]
}

fn kind() -> impl Strategy<Value = RecordKind> {
    let hash = || prop::option::of(any::<[u8; 32]>());
    prop_oneof![
        (any::<u64>(), hash()).prop_map(|(size_bytes, content_hash)| RecordKind::File {
            size_bytes,
            stored_bytes: size_bytes,
            layout: FileLayout::Whole,
            content_hash,
        }),
        (any::<u64>(), any::<u64>(), hash()).prop_map(|(a, b, content_hash)| RecordKind::File {
            size_bytes: a.max(b),
            stored_bytes: a.min(b),
            layout: FileLayout::Sparse,
            content_hash,
        }),
        Just(RecordKind::Directory),
        Just(RecordKind::SymbolicLink),
        path().prop_map(|target| RecordKind::HardLink { target }),
        Just(RecordKind::Fifo),
        Just(RecordKind::CharacterDevice),
        Just(RecordKind::BlockDevice),
    ]
}

/// Records whose offsets all count from 0: `in_order` puts them in archive order.
fn record() -> impl Strategy<Value = FileRecord> {
    let numbers = (0u64..1 << 40, 0u64..1 << 40, 0u32..0o10000, any::<u64>(), any::<u64>());
    (path(), kind(), numbers, timestamp(), timestamp()).prop_map(
        |(path, kind, (header, content, mode, uid, gid), modified, changed)| FileRecord {
            path,
            kind,
            header_offset_bytes: ArchiveOffset::new(header),
            content_offset_bytes: ArchiveOffset::new(content),
            mode,
            uid,
            gid,
            modified,
            changed,
        },
    )
}

fn in_order(mut records: Vec<FileRecord>) -> Vec<FileRecord> {
    let mut end_bytes = 0;
    for record in &mut records {
        record.header_offset_bytes += end_bytes;
        record.content_offset_bytes += record.header_offset_bytes.bytes();
        end_bytes = record.header_offset_bytes.bytes();
    }
    records
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn file_records_come_back(records in prop::collection::vec(record(), 0..80)) {
        let records = in_order(records);
        let (found, error) = read::<FileRecord>(&write(&records).0);
        prop_assert!(error.is_none(), "{error:?}");
        prop_assert_eq!(found, records);
    }

    #[test]
    fn extents_come_back(
        extents in prop::collection::vec(
            (any::<[u8; 16]>(), any::<[u32; 2]>(), [1u32.., 1u32.., 1u32..], any::<u64>(),
             0..u64::MAX / 2, 0..u64::MAX / 2),
            0..20,
        ),
    ) {
        let extents: Vec<ExtentRecord> = extents
            .into_iter()
            .map(|(id, [label_bytes, file_number], [segment, part, volume], block, from, bytes)| {
                ExtentRecord {
                    set: id,
                    segment,
                    part,
                    volume,
                    medium: id.map(|byte| !byte),
                    stream_offset_bytes: StoredOffset::new(from),
                    stream_bytes: bytes,
                    label_block: block.checked_sub(1),
                    label_bytes,
                    file_number,
                }
            })
            .collect();
        let (found, error) = read::<ExtentRecord>(&write(&extents).0);
        prop_assert!(error.is_none(), "{error:?}");
        prop_assert_eq!(found, extents);
    }

    #[test]
    fn warnings_come_back(
        warnings in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..20), ".{0,30}"),
            0..20,
        ),
    ) {
        let warnings: Vec<WarningRecord> =
            warnings.into_iter().map(|(path, text)| WarningRecord { path, text }).collect();
        let (found, error) = read::<WarningRecord>(&write(&warnings).0);
        prop_assert!(error.is_none());
        prop_assert_eq!(found, warnings);
    }

    #[test]
    fn chunks_and_blocks_come_back(
        lengths in prop::collection::vec((any::<u32>(), any::<u32>()), 0..1500),
        start in (0u64..1 << 50, 0u64..1 << 50),
    ) {
        let mut end = start;
        let chunk = |(compressed_bytes, content_bytes): &(u32, u32)| {
            let record = ChunkRecord {
                compressed_offset_bytes: StoredOffset::new(end.0),
                compressed_bytes: *compressed_bytes,
                content_offset_bytes: ArchiveOffset::new(end.1),
                content_bytes: *content_bytes,
            };
            end.0 += u64::from(*compressed_bytes);
            end.1 += u64::from(*content_bytes);
            record
        };
        let chunks: Vec<ChunkRecord> = lengths.iter().map(chunk).collect();
        let (found, error) = read::<ChunkRecord>(&write(&chunks).0);
        prop_assert!(error.is_none());
        prop_assert_eq!(found, chunks);
        let checksum = |(a, b): &(_, _)| BlockChecksum(u64::from(*a) << 32 | u64::from(*b));
        let blocks: Vec<BlockChecksum> = lengths.iter().map(checksum).collect();
        let (found, error) = read::<BlockChecksum>(&write(&blocks).0);
        prop_assert!(error.is_none());
        prop_assert_eq!(found, blocks);
    }

    #[test]
    fn any_bytes_are_read_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read::<FileRecord>(&bytes);
        let opened = [b"TKUPFIL\x01", &bytes[..]].concat();
        let (records, error) = read::<FileRecord>(&opened);
        prop_assert!(records.is_empty() && error.is_some());
    }

    #[test]
    fn blocks_do_not_depend_on_the_pieces(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20),
        block_bytes in 1usize..70,
    ) {
        let mut hasher = BlockHasher::new(block_bytes);
        let mut found = Vec::new();
        for piece in &pieces {
            hasher.update(piece, |checksum| found.push(checksum));
        }
        found.extend(hasher.finish());
        let naive: Vec<u64> = pieces.concat().chunks(block_bytes).map(block_checksum).collect();
        prop_assert_eq!(found, naive);
    }
}

pub fn plain_record(number: u64) -> FileRecord {
    let time = Timestamp { seconds: 1_700_000_000 + number as i64, nanoseconds: 5 };
    FileRecord {
        path: format!("usr/share/folder {}/file {number}", number / 100).into_bytes(),
        kind: RecordKind::File {
            size_bytes: number * 7,
            stored_bytes: number * 7,
            layout: FileLayout::Whole,
            content_hash: Some([number as u8; 32]),
        },
        header_offset_bytes: ArchiveOffset::new(number * 2048),
        content_offset_bytes: ArchiveOffset::new(number * 2048 + 512),
        mode: 0o644,
        uid: 1000,
        gid: 100,
        modified: time,
        changed: time,
    }
}

/// Writer and reader hold one group, whatever the number of records.
#[test]
fn many_records_need_little() {
    let mut writer = IndexWriter::new();
    let (mut section, mut pending_max) = (Vec::new(), 0);
    for number in 0..50_000 {
        let mut out = Vec::new();
        writer.push(&plain_record(number), &mut out).expect("writable");
        pending_max = pending_max.max(out.len());
        section.extend_from_slice(&out);
    }
    writer.finish(&mut section);
    assert!(pending_max <= 70 << 10, "{pending_max}");
    assert!(section.len() < 50_000 * 75, "{} bytes", section.len());
    let mut reader = IndexReader::<FileRecord, _>::new(&section[..]);
    for number in 0..50_000 {
        let record = reader.next_record().expect("undamaged").expect("one more");
        assert_eq!(record, plain_record(number));
    }
    assert!(reader.next_record().expect("undamaged").is_none());
    let summary = reader.summary();
    assert_eq!((summary.records, summary.length_bytes), (50_000, section.len() as u64));
}

#[test]
fn impossible_records_are_not_written() {
    let whole = |size_bytes, stored_bytes, layout| RecordKind::File {
        size_bytes,
        stored_bytes,
        layout,
        content_hash: None,
    };
    type Change = (&'static str, fn(&mut FileRecord));
    let changes: [Change; 8] = [
        ("path", |record| record.path.clear()),
        ("path", |record| record.path = vec![b'x'; (1 << 20) + 1]),
        ("path", |record| record.path = b"a\0b".to_vec()),
        ("nanoseconds", |record| record.changed.nanoseconds = 1_000_000_000),
        ("mode", |record| record.mode = 0o10000),
        ("content starts", |record| record.content_offset_bytes = ArchiveOffset::START),
        ("archive order", |record| record.header_offset_bytes = ArchiveOffset::new(1)),
        ("hard link", |record| record.kind = RecordKind::HardLink { target: Vec::new() }),
    ];
    let mut writer = IndexWriter::new();
    let mut out = Vec::new();
    writer.push(&plain_record(1), &mut out).expect("writable");
    let mut refuse = |record: &FileRecord, expected: &str| {
        let error = writer.push(record, &mut out).expect_err(expected);
        let IndexError::Unwritable { reason, .. } = error else { panic!("{error:?}") };
        assert!(reason.contains(expected), "{reason}");
    };
    for (expected, change) in changes {
        let mut record = plain_record(2);
        change(&mut record);
        refuse(&record, expected);
    }
    let mut record = plain_record(2);
    record.kind = whole(5, 4, FileLayout::Whole);
    refuse(&record, "is not its size");
    record.kind = whole(5, 6, FileLayout::Sparse);
    refuse(&record, "larger than the file");
    // The refused record left no trace.
    writer.push(&plain_record(2), &mut out).expect("writable");
    writer.finish(&mut out);
    assert_eq!(read::<FileRecord>(&out).0, [plain_record(1), plain_record(2)]);
}

#[test]
fn the_hash_of_content_is_defined() {
    let mut whole = ContentHasher::whole();
    whole.update(b"con");
    whole.update(b"tent");
    assert_eq!(whole.finish(), *blake3::hash(b"content").as_bytes());
    assert_eq!(ContentHasher::hash_whole(b"content"), whole.finish());
    let runs = [Extent { offset_bytes: 4096, length_bytes: 7 }];
    let sparse = |size_bytes, runs: &[Extent]| {
        let mut hasher = ContentHasher::sparse(size_bytes, runs);
        hasher.update(b"content");
        hasher.finish()
    };
    let mut preimage = Vec::new();
    for number in [8192u64, 1, 4096, 7] {
        preimage.extend_from_slice(&number.to_le_bytes());
    }
    preimage.extend_from_slice(b"content");
    let context = "takeup 2026-11-20 content of a sparse file";
    assert_eq!(sparse(8192, &runs), blake3::derive_key(context, &preimage));
    let moved = [Extent { offset_bytes: 4097, length_bytes: 7 }];
    assert_ne!(sparse(8192, &runs), sparse(8192, &moved));
    assert_ne!(sparse(8192, &runs), sparse(8193, &runs));
}

/// All numbers of the parts of a set count from 1, and each part begins where the previous one
/// ends.
#[test]
fn an_extent_counts_from_one() {
    let good = ExtentRecord {
        set: [1; 16],
        segment: 1,
        part: 1,
        volume: 1,
        medium: [2; 16],
        stream_offset_bytes: StoredOffset::new(1000),
        stream_bytes: 24,
        label_block: None,
        label_bytes: 512,
        file_number: 0,
    };
    assert_eq!(good.stream_end_bytes(), StoredOffset::new(1024));
    let is_written = |extent| IndexWriter::new().push(&extent, &mut Vec::new()).is_ok();
    assert!(is_written(good));
    assert!(!is_written(ExtentRecord { segment: 0, ..good }));
    assert!(!is_written(ExtentRecord { part: 0, ..good }));
    assert!(!is_written(ExtentRecord { volume: 0, ..good }));
}

#[test]
fn a_warning_may_have_the_longest_path_that_there_is() {
    let of = |path_bytes| WarningRecord { path: vec![b'p'; path_bytes], text: "gone".to_owned() };
    let is_written = |bytes| IndexWriter::new().push(&of(bytes), &mut Vec::new()).is_ok();
    assert!(is_written(1 << 20) && !is_written((1 << 20) + 1));
}
