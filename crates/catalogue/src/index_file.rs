//! The index of an archive that can be read at any offset, found from the end of the file.
//!
//! A plain archive ends with the trailer. A zstd archive ends with its seek table, and the last
//! frame before that holds the trailer. A gzip archive ends with a stored member of known length.
//! If the parts do not fit together (another archive was appended, or something was put in front),
//! the index cannot be used from here; the reader then reads the whole archive, which needs no
//! index.

use std::io::{self, BufReader, Read};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use archive::chunk::gzip_member::find_stored_member;
use archive::chunk::seek_table::{SeekFrame, SeekTable, SeekTableLookup, parse_seek_table};
use archive::chunk::{ChunkDecompressor, Coding, Compression, StreamDecoder, StreamFormat};
use archive::index::{
    ABOUT_BYTES_MAX, About, AgainRecord, BlockHasher, ChunkRecord, ContentHasher, FileLayout,
    FileRecord, IndexError, IndexReader, IndexSection, NamedRow, NamedSection, NamedSections,
    RecordKind, SectionPlace, TRAILER_MEMBER_BYTES, TRAILER_TAIL_BYTES_MAX, Trailer, TreeReader,
    WarningRecord, block_checksum as xxh3, decode_table, find_trailer,
};
use archive::stream::{ArchiveOffset, StoredOffset, stored_plain};
use device::source::Source;

/// Bytes at the end of the file that are read first.
const TAIL_BYTES: u64 = 64 << 10;
/// More than the surplus of a frame over its content, apart from a share of the content
/// (`ZSTD_COMPRESSBOUND`).
const FRAME_SURPLUS_BYTES_MAX: usize = 64 << 10;
/// Longest seek table that is read: 2^21 frames, which take 80 MiB of memory during the search. A
/// longer archive is read as a whole.
const SEEK_TABLE_BYTES_MAX: usize = 16 << 20;
/// Most sentences about a run as a whole.
const OF_THE_RUN_MAX: usize = 16;
/// Longest list of what is to be stored again: as many records as a run keeps.
const AGAIN_BYTES_MAX: usize = 32 << 20;
/// Bytes of one read of compressed index.
const WINDOW_BYTES: usize = 256 << 10;

/// Where the index is and what its trailer says.
#[derive(Clone, Debug)]
pub struct IndexFile {
    file: Arc<OwnedFd>,
    /// Compression of the index itself: that of its archive, `None` if it stands alone.
    coding: Option<Coding>,
    /// Where the index starts in the file, which is a stored stream.
    start_bytes: StoredOffset,
    holds: Holds,
    /// Where chunks of a zstd index start: in the index, and in the file.
    chunk_starts: Arc<[(u64, StoredOffset)]>,
    /// The index's trailer.
    pub trailer: Trailer,
}

/// What the file holds besides the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    /// The archive that the index describes.
    Archive,
    /// Nothing: the archive is elsewhere.
    IndexOnly,
}

impl IndexFile {
    /// Finds the index of `source`; `None` if it has no usable one.
    pub fn find(source: &Source) -> Option<IndexFile> {
        let length_bytes = source.length_bytes?;
        let file = &source.file;
        let prefix = read_at(
            file,
            StoredOffset::START,
            StreamFormat::PREFIX_BYTES.min(length_bytes as usize),
        )
        .ok()?;
        let tail = read_tail(file, length_bytes, TAIL_BYTES)?;
        let mut chunk_starts = Vec::new();
        let (trailer, coding) = match StreamFormat::detect(&prefix) {
            StreamFormat::Plain => (find_in_plain(file, length_bytes, tail)?, None),
            StreamFormat::Compressed(Coding::Zstd) => {
                let (trailer, table) = find_in_zstd(file, length_bytes, tail)?;
                chunk_starts = starts_in_index(&table, trailer.archive_end_bytes());
                (trailer, Some(Coding::Zstd))
            }
            StreamFormat::Compressed(Coding::Gzip) => {
                let content = find_stored_member(&tail, TRAILER_MEMBER_BYTES)?;
                (find_trailer(&content).ok()??.trailer, Some(Coding::Gzip))
            }
            StreamFormat::Other(_) => return None,
        };
        let start_bytes = match coding {
            None => stored_plain(trailer.archive_end_bytes()),
            Some(_) => trailer.index_compressed_offset_bytes,
        };
        let (file, holds) = (Arc::clone(file), Holds::Archive);
        let chunk_starts = chunk_starts.into();
        let index = IndexFile { file, coding, start_bytes, holds, chunk_starts, trailer };
        index.starts_as_said().then_some(index)
    }

    /// The index in a file of its own, with a length of `length_bytes` including padding.
    pub fn alone(file: Arc<OwnedFd>, length_bytes: u64) -> Option<IndexFile> {
        let tail = read_tail(&file, length_bytes, TAIL_BYTES)?;
        let (trailer, start_bytes) = find_plain_trailer(&file, length_bytes, tail)?;
        let holds = Holds::IndexOnly;
        let chunk_starts = Arc::default();
        let index = IndexFile { file, coding: None, start_bytes, holds, chunk_starts, trailer };
        (start_bytes == StoredOffset::START && index.starts_as_said()).then_some(index)
    }

    /// Whether an index archive starts at the place that the trailer names.
    fn starts_as_said(&self) -> bool {
        let mut start = [0; archive::index::INDEX_HEADER_BYTES];
        self.reader().read_exact(&mut start).is_ok() && archive::index::is_index_header(&start)
    }

    fn reader(&self) -> Box<dyn Read + Send> {
        self.reader_from(self.start_bytes)
    }

    /// What is stored from a place on, which a chunk of a compressed index starts at.
    fn reader_from(&self, offset_bytes: StoredOffset) -> Box<dyn Read + Send> {
        let file = Arc::clone(&self.file);
        match self.coding {
            None => Box::new(FileAt { file, offset_bytes }),
            Some(coding) => {
                let window_bytes_max = StreamDecoder::WINDOW_BYTES_DEFAULT;
                Box::new(Decoded {
                    file: FileAt { file, offset_bytes },
                    decoder: StreamDecoder::new(coding, offset_bytes, window_bytes_max),
                    window: Vec::new(),
                    from: 0,
                    ended: false,
                })
            }
        }
    }

    /// The content of a section.
    ///
    /// # Errors
    /// When the index cannot be read up to the section.
    pub fn section(&self, section: IndexSection) -> io::Result<impl Read + Send + use<>> {
        self.content(self.trailer.section(section))
    }

    /// The content at a place of the index.
    fn content(&self, place: SectionPlace) -> io::Result<impl Read + Send + use<>> {
        let reader: Box<dyn Read + Send> = match self.coding {
            None => {
                let file = Arc::clone(&self.file);
                let offset_bytes = self.start_bytes + place.offset_bytes;
                Box::new(FileAt { file, offset_bytes })
            }
            Some(_) => {
                let after = self.chunk_starts.partition_point(|it| it.0 <= place.offset_bytes);
                let (from, stored) = match after.checked_sub(1) {
                    Some(chunk) => self.chunk_starts[chunk],
                    None => (0, self.start_bytes),
                };
                let mut reader = self.reader_from(stored);
                let wanted = place.offset_bytes - from;
                let passed = io::copy(&mut (&mut reader).take(wanted), &mut io::sink())?;
                if passed < wanted {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                reader
            }
        };
        Ok(BufReader::with_capacity(64 << 10, reader.take(place.summary.length_bytes)))
    }

    /// A section that is found by its name, with its place; `None` if the index has none.
    fn named(&self, section: NamedSection) -> Result<Option<NamedRow>, IndexError> {
        let Some(NamedSections { table, .. }) = self.trailer.named else { return Ok(None) };
        let bytes = self.whole(NamedSection::Table, table)?;
        let rows = decode_table(&bytes, table.summary.records)?;
        Ok(rows.into_iter().find(|row| row.name == section.name()))
    }

    /// All of a section, whose length was checked.
    fn whole(&self, section: NamedSection, place: SectionPlace) -> Result<Vec<u8>, IndexError> {
        let failed = |source| IndexError::NamedRead { section: section.name(), source };
        let mut bytes = Vec::new();
        self.content(place).map_err(failed)?.read_to_end(&mut bytes).map_err(failed)?;
        Ok(bytes)
    }

    /// All of a short section, if the index has it and it is not damaged.
    fn short(&self, section: NamedSection, most: usize) -> Result<Option<Vec<u8>>, IndexError> {
        let damaged = |reason| IndexError::Named { section: section.name(), reason };
        let Some(row) = self.named(section)? else { return Ok(None) };
        if row.place.summary.length_bytes > most as u64 {
            return Err(damaged("it is too long"));
        }
        let bytes = self.whole(section, row.place)?;
        if xxh3(&bytes) != row.checksum {
            return Err(damaged("its checksum does not match"));
        }
        Ok(Some(bytes))
    }

    /// Which set of a chain it is; `None` of an archive outside of one.
    ///
    /// # Errors
    /// When it cannot be read, or is of a later version.
    pub fn about(&self) -> Result<Option<About>, IndexError> {
        let section = self.short(NamedSection::About, ABOUT_BYTES_MAX)?;
        section.map(|section| About::decode(&section)).transpose()
    }

    /// What the next set of the chain has to store again.
    ///
    /// # Errors
    /// When it cannot be read, or is of a later version.
    pub fn again(&self) -> Result<Vec<AgainRecord>, IndexError> {
        let section = self.short(NamedSection::Again, AGAIN_BYTES_MAX)?;
        section.map_or(Ok(Vec::new()), |section| AgainRecord::decode_all(&section))
    }

    /// What became of the sets before it, of at most `most` bytes; empty if it has nothing of that.
    ///
    /// # Errors
    /// When it cannot be read, or is longer.
    pub fn journal(&self, most: usize) -> Result<Vec<u8>, IndexError> {
        Ok(self.short(NamedSection::Journal, most)?.unwrap_or_default())
    }

    /// Whether all of what was found at the sources can be read, by its checksum; `None` if the
    /// index has nothing of that.
    ///
    /// # Errors
    /// When it cannot be read, or is of a later version.
    pub fn tree_holds(&self) -> Result<Option<bool>, IndexError> {
        let section = NamedSection::Tree;
        let failed = |source| IndexError::NamedRead { section: section.name(), source };
        let Some(row) = self.named(section)? else { return Ok(None) };
        let mut content = self.content(row.place).map_err(failed)?;
        let (mut checksum, mut buffer) = (BlockHasher::new(usize::MAX), vec![0; 64 << 10]);
        loop {
            match content.read(&mut buffer).map_err(failed)? {
                0 => return Ok(Some(checksum.finish() == Some(row.checksum))),
                bytes => checksum.update(&buffer[..bytes], |_| ()),
            }
        }
    }

    /// What was found at the sources, of a set of a chain.
    ///
    /// # Errors
    /// When it cannot be read, or is of a later version.
    pub fn tree(&self) -> Result<Option<TreeReader<Box<dyn Read + Send>>>, IndexError> {
        let section = NamedSection::Tree;
        let Some(row) = self.named(section)? else { return Ok(None) };
        let failed = |source| IndexError::NamedRead { section: section.name(), source };
        let content = self.content(row.place).map_err(failed)?;
        Ok(Some(TreeReader::new(Box::new(content))))
    }

    /// Whether the content of a file, read again, has the hash of the index. `None` if that cannot
    /// be checked: a sparse file, whose map is needed; a compressed archive, or one that is not in
    /// this file; a member without a hash.
    pub fn hash_holds(&self, record: &FileRecord) -> Option<bool> {
        let RecordKind::File { stored_bytes, layout, content_hash, .. } = &record.kind else {
            return None;
        };
        let expected = content_hash.filter(|_| *layout == FileLayout::Whole)?;
        let offset_bytes = self.place_in_file(record.content_offset_bytes)?;
        let mut content = FileAt { file: Arc::clone(&self.file), offset_bytes }.take(*stored_bytes);
        let (mut hasher, mut buffer) = (ContentHasher::whole(), vec![0; 64 << 10]);
        loop {
            match content.read(&mut buffer) {
                Ok(0) => return Some(hasher.finish() == expected),
                Ok(bytes) => hasher.update(&buffer[..bytes]),
                Err(_) => return Some(false),
            }
        }
    }

    /// Where a place of the archive is in the file; `None` if the archive is compressed, or not in
    /// this file.
    pub fn place_in_file(&self, place: ArchiveOffset) -> Option<StoredOffset> {
        (!self.is_compressed() && self.holds_archive()).then(|| stored_plain(place))
    }

    /// The place in the archive of a place in the stored stream. If the archive is compressed, a
    /// chunk must begin there; `None` if the index has no such chunk.
    pub fn place_in_archive(&self, place: StoredOffset) -> Option<ArchiveOffset> {
        if !self.is_compressed() {
            return Some(place.same_in());
        }
        let mut chunks = self.chunks().ok()?.map_while(Result::ok);
        let chunk = chunks.find(|chunk| chunk.compressed_offset_bytes >= place)?;
        (chunk.compressed_offset_bytes == place).then_some(chunk.content_offset_bytes)
    }

    /// The file with the index, and perhaps the archive.
    pub fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// Whether the archive is compressed.
    pub fn is_compressed(&self) -> bool {
        self.trailer.compression != Compression::None
    }

    /// How the archive is compressed. The file is compressed alike, if it holds the archive and not
    /// only its index.
    pub fn archive_coding(&self) -> Option<Coding> {
        match self.trailer.compression {
            Compression::None => None,
            Compression::Gzip { .. } => Some(Coding::Gzip),
            Compression::Zstd { .. } => Some(Coding::Zstd),
        }
    }

    /// Whether the file holds the archive that the index describes.
    pub fn holds_archive(&self) -> bool {
        self.holds == Holds::Archive
    }

    /// The chunks of a compressed archive.
    ///
    /// # Errors
    /// When the index cannot be read up to the chunks.
    pub fn chunks(&self) -> io::Result<IndexReader<ChunkRecord, impl Read + use<>>> {
        Ok(IndexReader::new(self.section(IndexSection::Chunks)?))
    }

    /// The members of the archive.
    ///
    /// # Errors
    /// When the index cannot be read up to the members.
    pub fn files(&self) -> io::Result<IndexReader<FileRecord, impl Read + use<>>> {
        Ok(IndexReader::new(self.section(IndexSection::Files)?))
    }

    /// What befell the run as a whole, in words; warnings about single objects are passed over.
    /// Nothing of a section that cannot be read.
    pub fn of_the_run(&self) -> Vec<String> {
        let Ok(section) = self.section(IndexSection::Warnings) else { return Vec::new() };
        let records = IndexReader::<WarningRecord, _>::new(section).map_while(Result::ok);
        let of_run = records.filter(|record| record.path.is_empty());
        of_run.take(OF_THE_RUN_MAX).map(|record| record.text).collect()
    }
}

fn find_in_plain(file: &OwnedFd, length_bytes: u64, tail: Vec<u8>) -> Option<Trailer> {
    let (trailer, start_bytes) = find_plain_trailer(file, length_bytes, tail)?;
    (start_bytes == stored_plain(trailer.archive_end_bytes())).then_some(trailer)
}

/// The trailer, and where its index starts.
fn find_plain_trailer(
    file: &OwnedFd,
    length_bytes: u64,
    mut tail: Vec<u8>,
) -> Option<(Trailer, StoredOffset)> {
    if tail.iter().all(|byte| *byte == 0) {
        tail = read_tail(file, length_bytes, TRAILER_TAIL_BYTES_MAX as u64)?;
    }
    let found = find_trailer(&tail).ok()??;
    let trailer_offset_bytes = length_bytes - found.member_to_end_bytes as u64;
    let start_bytes = trailer_offset_bytes.checked_sub(found.trailer.offset_bytes().ok()?)?;
    Some((found.trailer, StoredOffset::new(start_bytes)))
}

fn find_in_zstd(file: &OwnedFd, length_bytes: u64, tail: Vec<u8>) -> Option<(Trailer, SeekTable)> {
    let table: SeekTable = match parse_seek_table(&tail).ok()? {
        SeekTableLookup::Found(table) => table,
        SeekTableLookup::NeedTail { tail_bytes } if tail_bytes > SEEK_TABLE_BYTES_MAX => {
            return None;
        }
        SeekTableLookup::NeedTail { tail_bytes } => {
            let tail = read_tail(file, length_bytes, tail_bytes as u64)?;
            match parse_seek_table(&tail).ok()? {
                SeekTableLookup::Found(table) => table,
                _ => return None,
            }
        }
        SeekTableLookup::Absent => return None,
    };
    if table.compressed_end_bytes() + table.table_bytes as u64 != StoredOffset::new(length_bytes) {
        return None;
    }
    let last = table.frames.iter().rev().find(|frame| frame.content_bytes > 0)?;
    // The content size of a frame does not give the frame's own length.
    let content_bytes = last.content_bytes as usize;
    let frame_bytes_max = content_bytes + content_bytes / 128 + FRAME_SURPLUS_BYTES_MAX;
    if content_bytes > TRAILER_TAIL_BYTES_MAX || last.compressed_bytes as usize > frame_bytes_max {
        return None;
    }
    let offset_bytes = last.compressed_offset_bytes;
    let frame = read_at(file, offset_bytes, last.compressed_bytes as usize).ok()?;
    let mut content = Vec::new();
    ChunkDecompressor::new()
        .decompress(Coding::Zstd, &frame, offset_bytes, last.content_bytes as usize, &mut content)
        .ok()?;
    Some((find_trailer(&content).ok()??.trailer, table))
}

/// Where chunks start in the index behind an archive of this length, and where in the file.
fn starts_in_index(table: &SeekTable, archive_end: ArchiveOffset) -> Vec<(u64, StoredOffset)> {
    let frames = table.frames.iter().filter(|frame| frame.content_bytes > 0);
    let in_index = frames.filter(|frame| frame.content_offset_bytes >= archive_end);
    let start = |frame: &SeekFrame| {
        (frame.content_offset_bytes - archive_end, frame.compressed_offset_bytes)
    };
    in_index.map(start).collect()
}

fn read_tail(file: &OwnedFd, length_bytes: u64, bytes: u64) -> Option<Vec<u8>> {
    let bytes = bytes.min(length_bytes);
    read_at(file, StoredOffset::new(length_bytes - bytes), bytes as usize).ok()
}

/// Reads `bytes` of a file, which is a stored stream, from an offset on.
///
/// # Errors
/// What the system says; `UnexpectedEof` when the file ends early.
pub fn read_at(file: &OwnedFd, offset_bytes: StoredOffset, bytes: usize) -> io::Result<Vec<u8>> {
    let mut out = vec![0; bytes];
    base::interruptible::read_exact_at(file, &mut out, offset_bytes.bytes())?;
    Ok(out)
}

/// Reads a file from an offset on, without using the file's own position.
struct FileAt {
    file: Arc<OwnedFd>,
    offset_bytes: StoredOffset,
}

impl Read for FileAt {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let bytes = base::interruptible::read_at(&self.file, out, self.offset_bytes.bytes())?;
        self.offset_bytes += bytes as u64;
        Ok(bytes)
    }
}

/// Reads the content of frames or members one after the other.
struct Decoded {
    file: FileAt,
    decoder: StreamDecoder,
    window: Vec<u8>,
    from: usize,
    ended: bool,
}

impl Read for Decoded {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while !out.is_empty() {
            let step = self.decoder.push(&self.window[self.from..], out);
            let step = step.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            self.from += step.consumed_bytes;
            if step.produced_bytes > 0 {
                return Ok(step.produced_bytes);
            }
            if self.from == self.window.len() {
                if self.ended {
                    return Ok(0);
                }
                self.window.resize(WINDOW_BYTES, 0);
                let bytes = self.file.read(&mut self.window)?;
                self.window.truncate(bytes);
                self.from = 0;
                self.ended = bytes == 0;
            }
        }
        Ok(0)
    }
}
