//! The index of a set: the members of the archive with their places, and checksums to verify them.
//!
//! It is a tar archive of its own behind the end-of-archive mark (or a filemark) of the archive it
//! describes, so a plain tar reader stops before it and extracts no extra files. Its members are
//! the five *sections* (files, blocks, chunks, warnings, extents) and last a *trailer* of fixed
//! length with the places of the sections. A reader with random access starts from the trailer at
//! the end; a sequential reader meets the sections on its way.
//!
//! A section is a sequence of groups of records ([`IndexWriter`], [`IndexReader`]). A group is
//! independent (paths are compressed only against the previous path within the group) and has a
//! checksum. So both sides hold one group at a time however many files there are, and damage is
//! located. All functions work on bytes: the caller spools sections to a temporary file, compresses
//! and places them. `docs/format.md` draws the bytes.
//!
//! A set of a chain of backups has more: what was found at the sources ([`TreeEntry`]), what has to
//! be stored again ([`AgainRecord`]) and which set it is ([`About`]). Such sections are found by
//! their names ([`NamedSection`]).

mod about;
mod again;
mod chunk_record;
mod content;
mod content_batch;
mod content_tree;
mod envelope;
mod error;
mod extent_record;
mod file_record;
mod named;
mod section;
mod trailer;
mod tree_entry;
mod tree_section;
mod varint;
mod warning;

pub use about::{
    ABOUT_BYTES_MAX, About, AboutSource, AboutSubvolume, CHAIN_SETS_MAX, ChainSet, SubvolumeLine,
};
pub use again::{AgainReason, AgainRecord};
pub use chunk_record::{BlockChecksum, ChunkRecord};
pub use content::{BlockHasher, ContentHasher, IndexHasher, SetIdHasher, block_checksum};
pub use content_batch::ContentBatch;
pub use content_tree::{ContentTree, JoinedContent, Stretch};
pub use envelope::{
    INDEX_COMMENT, INDEX_HEADER_BYTES, IndexLayout, SectionPlace, SectionSummary, UNIT_BYTES,
    begins_index, encode_index_header, encode_named_header, encode_section_header,
    index_member_bytes, index_version, is_index_header, is_index_member, is_trailer_header,
    names_index, padding_bytes,
};
pub use error::IndexError;
pub use extent_record::ExtentRecord;
pub use file_record::{FileLayout, FileRecord, RecordKind};
pub use named::{
    MustBeUnderstood, NamedRow, NamedSection, TABLE_BYTES_MAX, decode_table, encode_table,
};
pub use section::{GROUP_BYTES_MAX, IndexReader, IndexWriter, Record};
pub use trailer::{
    FoundTrailer, NamedSections, TRAILER_CONTENT_BYTES, TRAILER_MEMBER_BYTES,
    TRAILER_TAIL_BYTES_MAX, Trailer, encode_trailer, find_trailer,
};
pub use tree_entry::{Certainty, EntryState, ObjectKind, StoreReason, TreeEntry, walk_order};
pub use tree_section::{TreeReader, TreeWriter};
pub use warning::WarningRecord;

/// Version of header and sections; the trailer has one of its own.
pub const INDEX_VERSION: u8 = 1;
/// Number of sections.
pub const SECTIONS: usize = 5;

/// The five sections, in the order in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexSection {
    /// [`FileRecord`]s, one for every member of the archive, in archive order.
    Files,
    /// [`BlockChecksum`]s of the archive's uncompressed blocks.
    Blocks,
    /// [`ChunkRecord`]s of a compressed archive; none otherwise.
    Chunks,
    /// [`WarningRecord`]s of the run that wrote the archive.
    Warnings,
    /// [`ExtentRecord`]s of a set on tape; none otherwise.
    Extents,
}

/// Name of the trailer as the last member of an index archive.
pub const TRAILER_NAME: &str = "takeup-index/trailer";

impl IndexSection {
    /// All sections in order.
    pub const ALL: [IndexSection; SECTIONS] = [
        IndexSection::Files,
        IndexSection::Blocks,
        IndexSection::Chunks,
        IndexSection::Warnings,
        IndexSection::Extents,
    ];

    /// Name of the section as a member of the index archive.
    pub fn member_name(self) -> &'static str {
        match self {
            IndexSection::Files => "takeup-index/files",
            IndexSection::Blocks => "takeup-index/blocks",
            IndexSection::Chunks => "takeup-index/chunks",
            IndexSection::Warnings => "takeup-index/warnings",
            IndexSection::Extents => "takeup-index/extents",
        }
    }

    /// First bytes of the section; the version follows.
    pub(crate) fn magic(self) -> [u8; 7] {
        match self {
            IndexSection::Files => *b"TKUPFIL",
            IndexSection::Blocks => *b"TKUPBLK",
            IndexSection::Chunks => *b"TKUPCHK",
            IndexSection::Warnings => *b"TKUPWRN",
            IndexSection::Extents => *b"TKUPEXT",
        }
    }
}
