//! The end of a backup: the index archive behind the archive, made of the sections from the hash
//! stage, in chunks if the archive is compressed, and zstd's seek table last.

use std::hash::Hasher as _;

use archive::chunk::seek_table::SeekTableBuilder;
use archive::chunk::{ChunkCompressor, Compression};
use archive::header::Unit;
use archive::index::{
    About, AgainRecord, ChunkRecord, ExtentRecord, INDEX_HEADER_BYTES, IndexHasher, IndexLayout,
    IndexSection, IndexWriter, MustBeUnderstood, NamedRow, NamedSection, NamedSections,
    SectionSummary, Trailer, encode_index_header, encode_named_header, encode_section_header,
    encode_table, encode_trailer, padding_bytes,
};
use archive::stream::{ArchiveOffset, StoredOffset, stored_plain};
use flow::account::Account;
use flow::ring::Producer;
use tapeset::Chunks;

use twox_hash::XxHash3_64;

use super::compressor::put;
use super::error::BackupError;
use super::hasher::Gathered;
use super::options::IndexCopy;
use crate::report::ListReport;
use crate::spool::Spool;

/// Where an index goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IndexPlace {
    /// Behind the archive, compressed as it is.
    BehindArchive,
    /// Into a segment of its own on tape, never compressed.
    OwnSegment,
}

/// Properties of the archive and its index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub(super) compression: Compression,
    pub(super) block_bytes: usize,
    pub(super) place: IndexPlace,
}

/// What an index is made of.
pub(super) struct Sections {
    pub(super) gathered: Gathered,
    pub(super) chunks: Chunks,
    pub(super) extents: Vec<ExtentRecord>,
    pub(super) set: Option<SetSections>,
}

/// What the index of a set in a chain has besides that of an archive.
pub(super) struct SetSections {
    pub(super) tree: (Spool, SectionSummary),
    pub(super) again: Vec<AgainRecord>,
    pub(super) about: About,
    /// What became of the sets before it.
    pub(super) journal: Vec<u8>,
    /// What a list of changes did; it is not written.
    pub(super) list: Option<ListReport>,
}

/// Writes the index to `producer` and ends its stream. Returns the bytes of the index before
/// compression.
pub(super) fn write(
    sections: Sections,
    form: Form,
    producer: Producer,
    copy: Option<&IndexCopy>,
    account: &mut Account,
) -> Result<u64, BackupError> {
    let Form { compression, block_bytes, place } = form;
    let Sections { gathered, chunks, extents, set } = sections;
    let (chunk_section, chunk_summary, stored_end) = chunk_section(&chunks)?;
    let (extent_section, extent_summary) = extent_section(&extents)?;
    let summaries =
        [gathered.files.1, gathered.blocks.1, chunk_summary, gathered.warnings.1, extent_summary];
    let mut layout = IndexLayout::new(summaries).map_err(BackupError::Index)?;
    let named = set.map(|set| Named::new(set, &mut layout)).transpose()?;
    let is_plain = compression == Compression::None;
    let plain_end = stored_plain(ArchiveOffset::new(gathered.archive_bytes));
    let mut trailer = Trailer {
        set_id: gathered.set_id,
        compression,
        chunk_bytes: if is_plain { 0 } else { compression.chunk_bytes() as u32 },
        block_bytes: block_bytes as u32,
        archive_bytes: gathered.archive_bytes,
        index_compressed_offset_bytes: if is_plain { plain_end } else { stored_end },
        sections: layout.sections,
        index_hash: None,
        named: named.as_ref().map(|named| named.place),
    };
    let coding = match place {
        IndexPlace::BehindArchive => compression,
        IndexPlace::OwnSegment => Compression::None,
    };
    let mut output = Output::new(coding, chunks, producer, account)?;
    output.copy = copy;
    let header: [u8; INDEX_HEADER_BYTES] = encode_index_header();
    output.append(&header)?;
    let spools = [
        &gathered.files.0,
        &gathered.blocks.0,
        &chunk_section,
        &gathered.warnings.0,
        &extent_section,
    ];
    for (section, spool) in IndexSection::ALL.into_iter().zip(spools) {
        let header = encode_section_header(section, spool.length_bytes());
        output.member(&header.map_err(BackupError::Index)?, spool)?;
    }
    for (section, spool) in named.into_iter().flat_map(|named| named.sections) {
        let header = encode_named_header(section, spool.length_bytes());
        output.member(&header.map_err(BackupError::Index)?, &spool)?;
    }
    trailer.index_hash = Some(output.hasher.finish());
    output.finish(&encode_trailer(&trailer).map_err(BackupError::Index)?)?;
    Ok(layout.index_bytes)
}

/// The named sections, in the order in which they are written.
struct Named {
    sections: Vec<(NamedSection, Spool)>,
    place: NamedSections,
}

impl Named {
    /// Lays them out, with the table last.
    fn new(set: SetSections, layout: &mut IndexLayout) -> Result<Named, BackupError> {
        let SetSections { tree, again, about, journal, .. } = set;
        let identity = about.set;
        let mut again_bytes = Vec::new();
        again.iter().for_each(|record| record.encode(&mut again_bytes));
        let whole = |bytes: Vec<u8>, records: u64| {
            let length_bytes = bytes.len() as u64;
            (Spool::from(bytes), SectionSummary { length_bytes, records })
        };
        let mut sections = vec![
            (NamedSection::Tree, tree),
            (NamedSection::Again, whole(again_bytes, again.len() as u64)),
            (NamedSection::About, whole(about.encode(), 1)),
        ];
        if !journal.is_empty() {
            let lines = journal.iter().filter(|byte| **byte == b'\n').count();
            sections.push((NamedSection::Journal, whole(journal, lines as u64)));
        }
        let (mut rows, mut spools) = (Vec::new(), Vec::new());
        for (section, (spool, summary)) in sections {
            let place = layout.add(section, summary).map_err(BackupError::Index)?;
            let mut checksum = XxHash3_64::new();
            spool.read_through(|bytes| checksum.write(bytes)).map_err(BackupError::Spool)?;
            let (name, checksum) = (section.name().to_owned(), checksum.finish());
            let must_be_understood = MustBeUnderstood::No;
            rows.push(NamedRow { name, must_be_understood, place, checksum });
            spools.push((section, spool));
        }
        let (table, summary) = whole(encode_table(&rows), rows.len() as u64);
        let place = layout.add(NamedSection::Table, summary).map_err(BackupError::Index)?;
        spools.push((NamedSection::Table, table));
        let place = NamedSections { set: identity, table: place };
        Ok(Named { sections: spools, place })
    }
}

/// The chunks section, and where the chunks end in the stored stream.
fn chunk_section(chunks: &Chunks) -> Result<(Spool, SectionSummary, StoredOffset), BackupError> {
    let mut section = Spool::default();
    let mut writer = IndexWriter::new();
    let mut ends = (StoredOffset::START, ArchiveOffset::START);
    for &(compressed_bytes, content_bytes) in chunks {
        let record = ChunkRecord {
            compressed_offset_bytes: ends.0,
            compressed_bytes,
            content_offset_bytes: ends.1,
            content_bytes,
        };
        writer.push(&record, section.buffer()).map_err(BackupError::Index)?;
        section.settle().map_err(BackupError::Spool)?;
        ends.0 += u64::from(compressed_bytes);
        ends.1 += u64::from(content_bytes);
    }
    let summary = writer.finish(section.buffer());
    Ok((section, summary, ends.0))
}

fn extent_section(extents: &[ExtentRecord]) -> Result<(Spool, SectionSummary), BackupError> {
    let mut section = Spool::default();
    let mut writer = IndexWriter::new();
    for extent in extents {
        writer.push(extent, section.buffer()).map_err(BackupError::Index)?;
        section.settle().map_err(BackupError::Spool)?;
    }
    let summary = writer.finish(section.buffer());
    Ok((section, summary))
}

/// Takes the bytes of the index and passes on blocks or chunks.
struct Output<'a> {
    compressor: Option<ChunkCompressor>,
    /// Hash of everything appended.
    hasher: IndexHasher,
    compression: Compression,
    pending: Vec<u8>,
    chunk: Vec<u8>,
    chunks: Chunks,
    producer: Producer,
    /// Gets the same bytes, before compression.
    copy: Option<&'a IndexCopy>,
    account: &'a mut Account,
}

impl<'a> Output<'a> {
    fn new(
        compression: Compression,
        chunks: Chunks,
        producer: Producer,
        account: &'a mut Account,
    ) -> Result<Output<'a>, BackupError> {
        let compressor = match compression {
            Compression::None => None,
            _ => Some(ChunkCompressor::new(compression).map_err(BackupError::Compression)?),
        };
        let (pending, chunk) = (Vec::new(), Vec::new());
        let hasher = IndexHasher::default();
        let copy = None;
        Ok(Output {
            compressor,
            hasher,
            compression,
            pending,
            chunk,
            chunks,
            producer,
            copy,
            account,
        })
    }

    /// A section with its header and padding.
    fn member(&mut self, header: &Unit, content: &Spool) -> Result<(), BackupError> {
        self.append(header)?;
        content.try_read_through(|bytes| self.append(bytes), BackupError::Spool)?;
        self.append(&[0; 512][..padding_bytes(content.length_bytes())])
    }

    fn append(&mut self, mut bytes: &[u8]) -> Result<(), BackupError> {
        self.hasher.update(bytes);
        self.copy.inspect(|copy| copy.append(bytes));
        let full = match self.compressor {
            Some(_) => self.compression.chunk_bytes(),
            None => self.producer.block_bytes(),
        };
        while !bytes.is_empty() {
            let room = full - self.pending.len();
            let (now, later) = bytes.split_at(bytes.len().min(room));
            self.pending.extend_from_slice(now);
            if self.pending.len() == full {
                self.flush()?;
            }
            bytes = later;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), BackupError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let Some(compressor) = &mut self.compressor else {
            put(&self.producer, &self.pending, self.account)?;
            self.pending.clear();
            return Ok(());
        };
        compressor.compress(&self.pending, &mut self.chunk).map_err(BackupError::Compress)?;
        self.put_chunk()
    }

    fn put_chunk(&mut self) -> Result<(), BackupError> {
        self.chunks.push((self.chunk.len() as u32, self.pending.len() as u32));
        self.pending.clear();
        Ok(put(&self.producer, &self.chunk, self.account)?)
    }

    /// Writes the trailer as a chunk of its own, so that it is found from the end of a file.
    fn finish(mut self, trailer: &[u8]) -> Result<(), BackupError> {
        self.flush()?;
        self.copy.inspect(|copy| copy.append(trailer));
        self.pending.extend_from_slice(trailer);
        match &mut self.compressor {
            Some(compressor) => {
                compressor
                    .compress_last(&self.pending, &mut self.chunk)
                    .map_err(BackupError::Compress)?;
                self.put_chunk()?;
            }
            None => self.flush()?,
        }
        if let Compression::Zstd { .. } = self.compression {
            let mut table = SeekTableBuilder::new();
            for &(compressed_bytes, content_bytes) in &self.chunks {
                table
                    .push(compressed_bytes.into(), content_bytes.into(), None)
                    .map_err(BackupError::SeekTable)?;
            }
            put(&self.producer, &table.encode(), self.account)?;
        }
        self.producer.finish();
        Ok(())
    }
}
