//! The content of cartridges, read as `docs/format.md` describes, without the reading side.

use std::path::Path;
use std::process::Command;

use archive::chunk::{ChunkDecompressor, Coding, Compression};
use archive::index::{
    ChunkRecord, ExtentRecord, IndexReader, IndexSection, Record, Trailer, find_trailer,
};
use archive::label::{Found, Label, LabelKind};
use archive::stream::StoredOffset;
use sim::tape::{Cartridge, Object};

/// The blocks between two filemarks.
pub type TapeFile = Vec<Vec<u8>>;

/// The files of a cartridge; data after the last filemark are one, too.
pub fn files(cartridge: &Cartridge) -> Vec<TapeFile> {
    let mut files = vec![Vec::new()];
    for object in cartridge.objects().unwrap() {
        match object {
            Object::Block(bytes) => files.last_mut().unwrap().push(bytes),
            Object::Filemark => files.push(Vec::new()),
        }
    }
    if files.last().is_some_and(Vec::is_empty) {
        files.pop();
    }
    files
}

/// A part as it was found.
#[derive(Clone, Debug)]
pub struct FoundPart {
    pub label: Label,
    pub cartridge: usize,
    pub file: u32,
    /// Number of the label's first block, filemarks counted.
    pub object: u64,
    /// Everything from the label on.
    pub bytes: Vec<u8>,
}

impl FoundPart {
    /// The bytes after the label.
    pub fn stream(&self) -> &[u8] {
        &self.bytes[self.label.length_bytes as usize..]
    }
}

/// All parts on a row of cartridges. Files that begin with no whole label are left out.
pub fn parts(cartridges: &[Cartridge]) -> Vec<FoundPart> {
    let mut found = Vec::new();
    for (number, cartridge) in cartridges.iter().enumerate() {
        let mut object = 0;
        for (file, blocks) in files(cartridge).iter().enumerate() {
            let bytes = blocks.concat();
            if let Ok(Found::Label(label)) = Label::find(&bytes)
                && bytes.len() >= label.length_bytes as usize
            {
                let wrong = blocks.iter().find(|block| block.len() != label.block_bytes as usize);
                assert!(wrong.is_none(), "a block of another length: {label:?}");
                let file = file as u32;
                found.push(FoundPart { label, cartridge: number, file, object, bytes });
            }
            object += blocks.len() as u64 + 1;
        }
    }
    found
}

/// A stream rejoined from its parts; repeated bytes are compared.
pub fn stitch<'a>(parts: impl Iterator<Item = &'a FoundPart>) -> Vec<u8> {
    let mut stream: Vec<u8> = Vec::new();
    for part in parts {
        let from = part.label.stream_bytes.bytes() as usize;
        assert!(from <= stream.len(), "a gap before {:?}", part.label);
        let again = (stream.len() - from).min(part.stream().len());
        assert!(
            stream[from..from + again] == part.stream()[..again],
            "what is repeated differs: {:?}",
            part.label
        );
        stream.extend_from_slice(&part.stream()[again..]);
    }
    stream
}

/// A set that came to its end.
pub struct Set {
    pub parts: Vec<FoundPart>,
    pub stored: Vec<u8>,
    pub archive: Vec<u8>,
    pub trailer: Trailer,
    pub index: Vec<u8>,
}

/// The set with this id, checked in every way that does not need the tree.
pub fn check_set(cartridges: &[Cartridge], set: [u8; 16], compression: Compression) -> Set {
    let mut parts = parts(cartridges);
    parts.retain(|part| part.label.set == set);
    check_labels(&parts, compression);
    let of_kind = |kind| parts.iter().filter(move |part| part.label.kind == kind);
    let stored = stitch(of_kind(LabelKind::Data));
    let index = stitch(of_kind(LabelKind::Index));
    let trailer = find_trailer(&index).unwrap().expect("the index ends in its trailer").trailer;
    assert_eq!(trailer.compression, compression);
    assert_eq!(trailer.index_compressed_offset_bytes.bytes(), stored.len() as u64);
    let archive =
        decompress(&stored, compression, &section(&index, &trailer, IndexSection::Chunks));
    assert_eq!(archive.len() as u64, trailer.archive_bytes);
    check_extents(&parts, &section(&index, &trailer, IndexSection::Extents));
    let set = Set { parts, stored, archive, trailer, index };
    check_segments(&set);
    set
}

/// The records of a section.
pub fn section<T: Record>(index: &[u8], trailer: &Trailer, section: IndexSection) -> Vec<T> {
    let place = trailer.section(section);
    let start = place.offset_bytes as usize;
    let bytes = &index[start..start + place.summary.length_bytes as usize];
    IndexReader::new(bytes).collect::<Result<_, _>>().unwrap()
}

/// Segments, parts and volumes are counted without gaps, and every volume has one medium.
fn check_labels(parts: &[FoundPart], compression: Compression) {
    let (mut segment, mut part, mut volume) = (0, 0, 1);
    let mut media = Vec::new();
    for found in parts {
        let label = &found.label;
        assert_eq!(label.compression, compression);
        assert_eq!(
            u64::from(label.length_bytes) % u64::from(label.block_bytes),
            label.stream_bytes % u64::from(label.block_bytes)
        );
        if label.segment == segment {
            assert_eq!(label.part, part + 1, "{label:?}");
            assert!(label.volume > volume, "{label:?}");
        } else {
            assert_eq!((label.segment, label.part), (segment + 1, 1), "{label:?}");
        }
        assert!(label.volume == volume || label.volume == volume + 1, "{label:?}");
        (segment, part, volume) = (label.segment, label.part, label.volume);
        if media.len() < volume as usize {
            media.push((label.medium, found.cartridge));
        }
        assert_eq!(media[volume as usize - 1], (label.medium, found.cartridge), "{label:?}");
    }
    let index_starts = parts.iter().position(|found| found.label.kind == LabelKind::Index);
    let index_starts = index_starts.expect("a set that came to its end has an index");
    assert!(parts[index_starts..].iter().all(|found| found.label.kind == LabelKind::Index));
}

pub fn check_extents(parts: &[FoundPart], extents: &[ExtentRecord]) {
    let data = parts.iter().filter(|found| found.label.kind == LabelKind::Data);
    let expected: Vec<ExtentRecord> = data
        .map(|found| ExtentRecord {
            set: found.label.set,
            segment: found.label.segment,
            part: found.label.part,
            volume: found.label.volume,
            medium: found.label.medium,
            stream_offset_bytes: found.label.stream_bytes,
            stream_bytes: found.stream().len() as u64,
            label_block: Some(found.object),
            label_bytes: found.label.length_bytes,
            file_number: found.file,
        })
        .collect();
    assert_eq!(extents, expected);
}

/// Every segment is a whole archive.
fn check_segments(set: &Set) {
    let chunks: Vec<ChunkRecord> = section(&set.index, &set.trailer, IndexSection::Chunks);
    let data = set.parts.iter().filter(|found| found.label.kind == LabelKind::Data);
    let firsts: Vec<StoredOffset> =
        data.filter(|found| found.label.part == 1).map(|found| found.label.stream_bytes).collect();
    for (number, &start) in firsts.iter().enumerate() {
        let end =
            firsts.get(number + 1).copied().unwrap_or(StoredOffset::new(set.stored.len() as u64));
        let to_archive = |stored: StoredOffset| match set.trailer.compression {
            Compression::None => stored.bytes(),
            _ => chunks
                .iter()
                .find(|chunk| chunk.compressed_offset_bytes == stored)
                .map_or(set.archive.len() as u64, |chunk| chunk.content_offset_bytes.bytes()),
        };
        let segment = &set.archive[to_archive(start) as usize..to_archive(end) as usize];
        assert!(segment.len() >= 1024 && segment[segment.len() - 1024..] == [0; 1024]);
        pipe_into("tar -tf - > /dev/null", segment);
    }
}

fn decompress(stored: &[u8], compression: Compression, chunks: &[ChunkRecord]) -> Vec<u8> {
    let coding = match compression {
        Compression::None => return stored.to_vec(),
        Compression::Gzip { .. } => Coding::Gzip,
        Compression::Zstd { .. } => Coding::Zstd,
    };
    let mut archive = Vec::new();
    let (mut decompressor, mut content) = (ChunkDecompressor::new(), Vec::new());
    for chunk in chunks {
        let start = chunk.compressed_offset_bytes.bytes() as usize;
        let bytes = &stored[start..start + chunk.compressed_bytes as usize];
        assert_eq!(chunk.content_offset_bytes.bytes(), archive.len() as u64);
        if chunk.content_bytes > 0 {
            let limit = chunk.content_bytes as usize;
            decompressor
                .decompress(coding, bytes, StoredOffset::START, limit, &mut content)
                .unwrap();
            archive.extend_from_slice(&content);
        }
    }
    let tool = match coding {
        Coding::Gzip => "gzip -dc",
        Coding::Zstd => "zstd -dc",
    };
    assert!(pipe_into(tool, stored) == archive, "{tool} gets something else");
    archive
}

/// The output of a shell command on these bytes; it must succeed without output on standard error.
pub fn pipe_into(command: &str, bytes: &[u8]) -> Vec<u8> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    shell(&format!("({command}) < {}", file.path().display()), Path::new("/"))
}

/// Runs a command that has to succeed without a word on standard error.
pub fn shell(command: &str, directory: &Path) -> Vec<u8> {
    let output = Command::new("sh").args(["-c", command]).current_dir(directory).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{command}: {said}");
    output.stdout
}
