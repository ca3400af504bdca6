//! Compares an index with its archive without reading the archive: what a few reads can show.
//!
//! The checksums of an index show that it is intact, not that it belongs to the archive before it,
//! which may be lost or from another run. So the set id is computed again, the lengths are
//! compared, and some headers are read where the index has them. The members between these are not
//! checked; `list --check` and `verify` check them all.

use std::io::Read;

use archive::chunk::ChunkDecompressor;
use archive::decode::Event;
use archive::header::UNIT_BYTES;
use archive::index::{ChunkRecord, FileRecord, IndexSection, RecordKind, SetIdHasher};
use archive::member::{Member, MemberKind};
use archive::stream::{ArchiveOffset, StoredOffset};

use super::plain_decoder;
use catalogue::{IndexFile, read_at};

/// Headers that are read in a plain archive: a few milliseconds each on a disk with heads.
const SAMPLE_MAX: u64 = 32;
/// The same in a compressed archive, where each header needs a whole chunk.
const SAMPLE_COMPRESSED_MAX: u64 = 3;
/// Longest header that is read.
const HEADER_BYTES_MAX: u64 = 1 << 20;

/// The result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CrossCheck {
    /// Headers that were read.
    pub headers: u64,
    /// Differences between index and archive: lowercase fragments.
    pub disagreements: Vec<String>,
}

/// Compares an index with its archive. `None` if the index itself is damaged.
pub(crate) fn cross_check(index: &IndexFile) -> Option<CrossCheck> {
    let mut check = CrossCheck::default();
    let sample = read_sample(index, &mut check)?;
    if !set_id_holds(index)? {
        check.disagree("the set id does not match the index: parts of it belong to another set");
    }
    let chunks = chunks_of(index, &sample)?;
    if index.is_compressed() && index.holds_archive() {
        let (stored, archive) = chunks.end;
        if stored != index.trailer.index_compressed_offset_bytes
            || archive != index.trailer.archive_end_bytes()
        {
            check.disagree("the chunks of the index do not add up to the length of its archive");
        }
    }
    if !index.holds_archive() {
        // On tape the index is the only source.
        return Some(check);
    }
    for record in &sample {
        check.look_at(index, record, &chunks.records);
    }
    Some(check)
}

/// Where a member of the archive differs from its index record; `None` if it does not.
pub(crate) fn disagreement(
    record: &FileRecord,
    member: &Member,
    content_offset_bytes: ArchiveOffset,
) -> Option<String> {
    let size = match &record.kind {
        RecordKind::File { size_bytes, .. } => *size_bytes,
        _ => 0,
    };
    let what = if member.path != record.path {
        let path = String::from_utf8_lossy(&member.path);
        return Some(format!("the archive has {path} in its place"));
    } else if !is_kind(&record.kind, &member.kind) {
        "kind"
    } else if member.size_bytes != size {
        "size"
    } else if content_offset_bytes != record.content_offset_bytes {
        "place"
    } else if member.modified != record.modified {
        "time of modification"
    } else if (member.mode, member.uid, member.gid) != (record.mode, record.uid, record.gid) {
        "owner or mode"
    } else {
        return None;
    };
    Some(format!("the {what} in the archive differs from the index"))
}

fn is_kind(record: &RecordKind, kind: &MemberKind) -> bool {
    match (record, kind) {
        (RecordKind::HardLink { target }, MemberKind::HardLink { target: found }) => {
            target == found
        }
        (RecordKind::File { .. }, MemberKind::File)
        | (RecordKind::Directory, MemberKind::Directory)
        | (RecordKind::SymbolicLink, MemberKind::SymbolicLink { .. })
        | (RecordKind::Fifo, MemberKind::Fifo)
        | (RecordKind::CharacterDevice, MemberKind::CharacterDevice { .. })
        | (RecordKind::BlockDevice, MemberKind::BlockDevice { .. }) => true,
        _ => false,
    }
}

/// Reads all records; returns some, including the first and the last.
fn read_sample(index: &IndexFile, check: &mut CrossCheck) -> Option<Vec<FileRecord>> {
    let count = index.trailer.section(IndexSection::Files).summary.records;
    let wanted = if index.is_compressed() { SAMPLE_COMPRESSED_MAX } else { SAMPLE_MAX };
    let (mut sample, mut number, mut last_end) = (Vec::new(), 0, ArchiveOffset::START);
    for record in index.files().ok()? {
        let record = record.ok()?;
        last_end = record.content_offset_bytes.max(last_end);
        let taken = sample.len() as u64;
        if number >= taken * count.saturating_sub(1) / (wanted - 1) {
            sample.push(record);
        }
        number += 1;
    }
    if number != count {
        check.disagree(&format!("the index has {number} members, but its trailer states {count}"));
    }
    let end_mark_bytes = 2 * UNIT_BYTES as u64;
    if last_end + end_mark_bytes > index.trailer.archive_end_bytes() {
        check.disagree("the index has members behind the end of its archive");
    }
    Some(sample)
}

/// Whether the set id is that of the sections.
pub(crate) fn set_id_holds(index: &IndexFile) -> Option<bool> {
    let mut hasher = SetIdHasher::new();
    let mut buffer = vec![0; 64 << 10];
    for section in [IndexSection::Files, IndexSection::Blocks] {
        let mut reader = index.section(section).ok()?;
        loop {
            match reader.read(&mut buffer).ok()? {
                0 => break,
                bytes => hasher.update(&buffer[..bytes]),
            }
        }
    }
    Some(hasher.finish() == index.trailer.set_id)
}

struct SampleChunks {
    records: Vec<ChunkRecord>,
    /// Ends of the last chunk, compressed and not.
    end: (StoredOffset, ArchiveOffset),
}

/// The chunks that hold the sample. `None` if they are damaged.
fn chunks_of(index: &IndexFile, sample: &[FileRecord]) -> Option<SampleChunks> {
    let (mut records, mut end) = (Vec::new(), Default::default());
    for chunk in index.chunks().ok()? {
        let chunk = chunk.ok()?;
        let content = chunk.content_offset_bytes;
        let content_end = content + u64::from(chunk.content_bytes);
        end = (chunk.compressed_offset_bytes + u64::from(chunk.compressed_bytes), content_end);
        let within = content..content_end;
        if sample.iter().any(|record| within.contains(&record.header_offset_bytes)) {
            records.push(chunk);
        }
    }
    Some(SampleChunks { records, end })
}

impl CrossCheck {
    fn disagree(&mut self, what: &str) {
        self.disagreements.push(what.to_owned());
    }

    /// Reads the header of a record, and compares the two.
    fn look_at(&mut self, index: &IndexFile, record: &FileRecord, chunks: &[ChunkRecord]) {
        let (from, to) = (record.header_offset_bytes, record.content_offset_bytes);
        if to.saturating_since(from) > HEADER_BYTES_MAX {
            return;
        }
        let path = String::from_utf8_lossy(&record.path).into_owned();
        let header = match index.place_in_file(from) {
            Some(at) => read_at(index.file(), at, (to - from) as usize).map_err(|e| e.to_string()),
            None => match header_in_chunk(index, from, to, chunks) {
                // It spans two chunks.
                None => return,
                Some(header) => header,
            },
        };
        self.headers += 1;
        let what = match header {
            Err(why) => Some(format!("its header cannot be read: {why}")),
            Ok(header) => match decode(&header) {
                None => Some(format!("there is no header at byte {from}, where the index has it")),
                Some(member) => disagreement(record, &member, to),
            },
        };
        if let Some(what) = what {
            self.disagree(&format!("{path}: {what}"));
        }
    }
}

fn header_in_chunk(
    index: &IndexFile,
    from: ArchiveOffset,
    to: ArchiveOffset,
    chunks: &[ChunkRecord],
) -> Option<Result<Vec<u8>, String>> {
    let chunk = chunks.iter().find(|chunk| {
        let end = chunk.content_offset_bytes + u64::from(chunk.content_bytes);
        chunk.content_offset_bytes <= from && to <= end
    })?;
    let coding = index.archive_coding()?;
    let (at, bytes) = (chunk.compressed_offset_bytes, chunk.compressed_bytes as usize);
    let mut content = Vec::new();
    let read = read_at(index.file(), at, bytes).map_err(|error| error.to_string());
    Some(read.and_then(|frame| {
        let bytes_max = chunk.content_bytes as usize;
        ChunkDecompressor::new()
            .decompress(coding, &frame, at, bytes_max, &mut content)
            .map_err(|error| error.to_string())?;
        let from = (from - chunk.content_offset_bytes) as usize;
        let to = (to - chunk.content_offset_bytes) as usize;
        content.get(from..to).map(<[u8]>::to_vec).ok_or_else(|| "its chunk is too short".to_owned())
    }))
}

/// The member that a header describes, if the header fills these units.
fn decode(header: &[u8]) -> Option<Box<Member>> {
    let mut decoder = plain_decoder();
    let mut units = header.chunks_exact(UNIT_BYTES);
    while let Some(unit) = units.next() {
        match decoder.push(unit.first_chunk()?).ok()? {
            Event::More => {}
            Event::Member { member, .. } if units.next().is_none() => return Some(member),
            _ => return None,
        }
    }
    None
}
