//! What of an archive cannot be read: a header, a pax record, the map of a sparse file, an ACL.
//!
//! No caller decides anything by the kind: each is a text in an error or a note that says where.

/// What of a header or of its values is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The checksum does not match.
    #[error("the checksum does not match")]
    HeaderChecksum,
    /// The size is not a number, negative, or out of range.
    #[error("the size is invalid")]
    HeaderSize,
    /// The length is not a decimal number followed by a space.
    #[error("the length of a record is not a number")]
    RecordLength,
    /// The length reaches beyond the header or is shorter than the record's own syntax.
    #[error("the length of a record does not fit its header")]
    RecordExtent,
    /// The byte at the end of the record is not a newline.
    #[error("a record does not end in a newline")]
    RecordNewline,
    /// No keyword, or no equals sign behind it.
    #[error("a record has no keyword")]
    RecordKeyword,
    /// A number in the map is missing, not a number, or beyond 64 bits.
    #[error("a number in the sparse map cannot be read")]
    MapNumber,
    /// More data runs than the limit allows.
    #[error("the sparse map has more than {limit} data runs")]
    MapTooMany { limit: usize },
    /// A run begins before the end of the previous one.
    #[error("the data runs overlap or run backwards at offset {offset_bytes}")]
    MapOrder {
        /// Offset of the run in the file.
        offset_bytes: u64,
    },
    /// The length of a run other than the last is not a multiple of a unit;
    /// [`crate::sparse::align_extents`] fixes that.
    #[error("the data run at offset {offset_bytes} does not end with a whole unit")]
    MapPartialUnit {
        /// Offset of the run in the file.
        offset_bytes: u64,
    },
    /// A run ends behind the end of the file.
    #[error("a data run at offset {offset_bytes} exceeds the file's size")]
    MapBeyondEnd {
        /// Offset of the run in the file.
        offset_bytes: u64,
    },
    /// The runs hold more or fewer bytes than are stored, or the map itself is longer than that.
    #[error("the sparse map does not match the {stored_bytes} stored bytes")]
    MapStored {
        /// Bytes that the archive holds for the member.
        stored_bytes: u64,
    },
    /// The size of the whole file is missing.
    #[error("the size of the sparse file is missing")]
    MapNoSize,
    /// A format of GNU sparse files other than 0.0, 0.1 and 1.0.
    #[error("unknown sparse format {major}.{minor}")]
    MapVersion { major: u64, minor: u64 },
    /// Not version 2, or not a whole number of entries.
    #[error("not in the kernel's ACL format")]
    AclForm,
    /// An entry has an unknown tag or unknown permissions.
    #[error("an entry has an unknown tag or unknown permissions")]
    AclEntry,
}
