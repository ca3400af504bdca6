//! The index of an archive against everything that can be computed from the archive without it.

use std::path::Path;

use archive::chunk::Compression;
use archive::index::{
    BlockChecksum, ChunkRecord, ContentHasher, FileLayout, FileRecord, FoundTrailer, IndexReader,
    IndexSection, Record, RecordKind, SetIdHasher, Trailer, WarningRecord, find_trailer,
    is_index_header,
};
use archive::member::Extent;
use archive::stream::{ArchiveOffset, StoredOffset};
use twox_hash::XxHash3_64;

use crate::harness::Finished;
use crate::tools::{PythonMember, decompressed, filter, gnu_names, python_members};

/// An archive taken apart.
pub struct Parts {
    pub trailer: Trailer,
    pub archive: Vec<u8>,
    pub index: Vec<u8>,
    pub files: Vec<FileRecord>,
    pub warnings: Vec<WarningRecord>,
}

/// Checks that the archive ends properly before its index, that no other program sees the index,
/// and that every number in the index is right.
pub fn check_archive(finished: &Finished, compression: Compression) -> Parts {
    let stored = finished.bytes();
    let parts = take_apart(&decompressed(&stored, compression));
    assert_eq!(parts.trailer.compression, compression);
    assert_eq!(finished.report.target_bytes, stored.len() as u64);
    let whole_bytes = (parts.archive.len() + parts.index.len()) as u64;
    assert_eq!(finished.report.archive_bytes, whole_bytes);
    let plain = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        plain.path(),
        parts.archive.iter().chain(&parts.index).copied().collect::<Vec<u8>>(),
    )
    .unwrap();
    check_members(&parts, plain.path(), finished);
    check_blocks(&parts);
    check_chunks(&parts, &stored);
    check_warnings(&parts, finished);
    let mut set_id = SetIdHasher::new();
    for section in [IndexSection::Files, IndexSection::Blocks] {
        set_id.update(section_bytes(&parts.trailer, &parts.index, section));
    }
    assert_eq!(set_id.finish(), parts.trailer.set_id);
    parts
}

/// Splits a stream into archive and index.
pub fn take_apart(stream: &[u8]) -> Parts {
    let found = find_trailer(stream).unwrap().expect("an archive of ours ends in a trailer");
    let FoundTrailer { trailer, .. } = found;
    let (archive, index) = stream.split_at(trailer.archive_bytes as usize);
    assert!(is_index_header(index), "the index starts where the trailer says");
    // POSIX: two zero units end an archive.
    assert!(archive[archive.len() - 1024..].iter().all(|&byte| byte == 0));
    let files = records(&trailer, index, IndexSection::Files);
    let warnings = records(&trailer, index, IndexSection::Warnings);
    Parts { trailer, archive: archive.to_vec(), index: index.to_vec(), files, warnings }
}

fn section_bytes<'a>(trailer: &Trailer, index: &'a [u8], section: IndexSection) -> &'a [u8] {
    let place = trailer.section(section);
    &index[place.offset_bytes as usize..][..place.summary.length_bytes as usize]
}

fn records<T: Record>(trailer: &Trailer, index: &[u8], section: IndexSection) -> Vec<T> {
    let mut bytes = section_bytes(trailer, index, section);
    let records: Vec<T> = IndexReader::new(&mut bytes).map(Result::unwrap).collect();
    assert!(bytes.is_empty(), "{section:?} is as long as the trailer says");
    assert_eq!(records.len() as u64, trailer.section(section).summary.records);
    records
}

fn check_members(parts: &Parts, plain: &Path, finished: &Finished) {
    let members = python_members(plain);
    assert_eq!(gnu_names(plain).len(), members.len(), "GNU tar sees what Python sees");
    assert_eq!(parts.files.len(), members.len(), "one record for every member");
    assert_eq!(finished.report.members, members.len() as u64);
    let (mut files, mut content_bytes) = (0, 0);
    for (record, member) in parts.files.iter().zip(&members) {
        content_bytes += check_member(record, member, &parts.archive);
        files += u64::from(matches!(record.kind, RecordKind::File { .. }));
    }
    assert_eq!((finished.report.files, finished.report.source_bytes), (files, content_bytes));
}

/// Returns the bytes of content.
fn check_member(record: &FileRecord, member: &PythonMember, archive: &[u8]) -> u64 {
    let told =
        (&record.path, record.header_offset_bytes.bytes(), record.mode, record.uid, record.gid);
    let seen = (&member.path, member.header_offset, member.mode, member.uid, member.gid);
    assert_eq!(told, seen);
    let flag = match &record.kind {
        RecordKind::File { .. } => b'0',
        RecordKind::HardLink { target } => {
            assert_eq!(*target, member.link);
            b'1'
        }
        RecordKind::SymbolicLink => b'2',
        RecordKind::CharacterDevice => b'3',
        RecordKind::BlockDevice => b'4',
        RecordKind::Directory => b'5',
        RecordKind::Fifo => b'6',
    };
    assert_eq!(flag, member.type_flag, "{record:?}");
    let RecordKind::File { size_bytes, stored_bytes, layout, content_hash } = &record.kind else {
        return 0;
    };
    assert_eq!(
        (*size_bytes, record.content_offset_bytes.bytes()),
        (member.size, member.content_offset)
    );
    let content = &archive[member.content_offset as usize..][..*stored_bytes as usize];
    let runs: Option<Vec<Extent>> = member.sparse.as_ref().map(|runs| {
        let extent = |&(offset_bytes, length_bytes)| Extent { offset_bytes, length_bytes };
        runs.iter().map(extent).collect()
    });
    let mut hasher = match &runs {
        Some(runs) => ContentHasher::sparse(*size_bytes, runs),
        None => ContentHasher::whole(),
    };
    assert_eq!(*layout == FileLayout::Sparse, runs.is_some(), "{record:?}");
    hasher.update(content);
    assert_eq!(*content_hash, Some(hasher.finish()), "{record:?}");
    if runs.is_none() {
        assert_eq!(*content_hash, Some(*blake3::hash(content).as_bytes()), "what b3sum says");
    }
    *stored_bytes
}

fn check_blocks(parts: &Parts) {
    let told: Vec<BlockChecksum> = records(&parts.trailer, &parts.index, IndexSection::Blocks);
    let blocks = parts.archive.chunks(parts.trailer.block_bytes as usize);
    let expected: Vec<_> = blocks.map(|block| BlockChecksum(XxHash3_64::oneshot(block))).collect();
    assert_eq!(told, expected);
}

fn check_chunks(parts: &Parts, stored: &[u8]) {
    let chunks: Vec<ChunkRecord> = records(&parts.trailer, &parts.index, IndexSection::Chunks);
    let decoder = match parts.trailer.compression {
        Compression::None => {
            assert!(chunks.is_empty());
            return;
        }
        Compression::Zstd { .. } => "zstd",
        Compression::Gzip { .. } => "gzip",
    };
    let (mut compressed_end, mut content_end) = (StoredOffset::START, ArchiveOffset::START);
    for chunk in &chunks {
        let places = (chunk.compressed_offset_bytes, chunk.content_offset_bytes);
        assert_eq!(places, (compressed_end, content_end));
        compressed_end += u64::from(chunk.compressed_bytes);
        content_end += u64::from(chunk.content_bytes);
    }
    assert_eq!(content_end.bytes(), parts.archive.len() as u64);
    assert_eq!(compressed_end, parts.trailer.index_compressed_offset_bytes);
    // Each chunk is independent: a few are enough.
    for chunk in chunks.iter().step_by(chunks.len().div_ceil(3)) {
        let compressed = &stored[chunk.compressed_offset_bytes.bytes() as usize..]
            [..chunk.compressed_bytes as usize];
        let content = &parts.archive[chunk.content_offset_bytes.bytes() as usize..]
            [..chunk.content_bytes as usize];
        assert!(filter(decoder, &["-dqc"], compressed) == content, "{chunk:?}");
    }
}

fn check_warnings(parts: &Parts, finished: &Finished) {
    let mut told: Vec<(String, String)> = parts
        .warnings
        .iter()
        .map(|warning| (String::from_utf8_lossy(&warning.path).into_owned(), warning.text.clone()))
        .collect();
    told.sort();
    assert_eq!(told, finished.warnings(), "the index remembers what was warned about");
}
