//! The results of a decoder: events, notes and errors; and its limits.

use crate::encode::EXTENDED_BYTES_MAX;
use crate::malformed::Malformed;
use crate::member::Member;
use crate::sparse::EXTENTS_MAX;

/// Cost of a global record in addition to its keyword and value, because each is applied to every
/// member.
pub const GLOBAL_RECORD_BYTES: u64 = 256;

/// Limits beyond which a decoder returns an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Most bytes of extended headers for one member, and of one global header.
    pub extended_bytes_max: u64,
    /// Most bytes of the records of global headers that change members, each counted with
    /// [`GLOBAL_RECORD_BYTES`] on top. They are applied to every later member, so their cost is
    /// multiplied by the number of members.
    pub global_bytes_max: u64,
    /// Longest GNU long name or long link.
    pub long_name_bytes_max: u64,
    /// Most data runs in one sparse file.
    pub extents_max: usize,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self {
            extended_bytes_max: EXTENDED_BYTES_MAX,
            global_bytes_max: 16 << 10,
            long_name_bytes_max: 1 << 20,
            extents_max: EXTENTS_MAX,
        }
    }
}

/// The meaning of a unit.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// Nothing yet: the next unit belongs to the same header.
    More,
    /// An object. `stored_bytes` of content and then [`crate::header::padding_bytes`] of padding
    /// follow. For kinds other than `File` the content is meaningless and is skipped.
    Member {
        /// The object. Its `path` is as stored: it may be absolute or hold `..`.
        member: Box<Member>,
        /// Bytes of content in the archive: only the data runs if it is sparse.
        stored_bytes: u64,
        /// Values that could not be read or are not kept.
        notes: Vec<Note>,
    },
    /// A pax global header, which also changes the later members.
    GlobalHeader {
        /// Keywords and values in the order of the header.
        records: Vec<(Vec<u8>, Vec<u8>)>,
    },
    /// An entry that is not an object. The caller skips its content and padding.
    Skip {
        /// Bytes of content in the archive.
        stored_bytes: u64,
        /// Its kind.
        why: Skipped,
    },
    /// A unit of zeros. A second one in a row is [`Event::EndOfArchive`].
    ZeroUnit,
    /// The second unit of zeros in a row. Another archive may follow: the decoder starts again.
    EndOfArchive,
    /// Not a header. The caller counts the unit as garbage and tries the next.
    NotAHeader {
        /// How it was recognised.
        why: Malformed,
    },
}

/// The reason of an [`Event::Skip`].
#[derive(Debug, PartialEq, Eq)]
pub enum Skipped {
    /// GNU volume label (`V`).
    VolumeLabel(Vec<u8>),
    /// The rest of a file that began on an earlier volume (`M`, or pax `GNU.volume.*` records).
    Continuation {
        /// The file as in the header; `size_bytes` is that of the part stored here.
        member: Box<Member>,
        /// Offset in the stored content of the whole member at which this part begins.
        offset_bytes: u64,
        /// Stored bytes of the whole member, all parts together.
        total_bytes: u64,
    },
    /// An ACL in Solaris' form (`A`) for the next member.
    SolarisAcl,
    /// GNU's obsolete list of renames (`N`).
    OldNames,
    /// An object without a path.
    EmptyPath,
}

/// A note about a member that the caller should report to the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Note {
    /// A type that no known format has; POSIX requires reading it as a regular file.
    #[error("unknown type {:?}: read as a regular file", char::from(*.0))]
    UnknownTypeflag(u8),
    /// A header field that cannot be read: the owner becomes 65534 (nobody), the rest 0.
    #[error("the header's {field} cannot be read")]
    BadField {
        /// Name of the field as in POSIX.
        field: &'static str,
    },
    /// A record whose value cannot be read; the header's own field stays valid.
    #[error("the value of {} cannot be read", String::from_utf8_lossy(.keyword))]
    BadValue {
        /// Keyword of the record.
        keyword: Vec<u8>,
    },
    /// The extended headers of the member could not be read: path, size and attributes may be
    /// wrong. The error came before.
    #[error("its extended header is lost: path and attributes may be wrong")]
    ExtensionLost,
    /// An ACL that cannot be read and is left out.
    #[error("the ACL is left out: {0}")]
    BadAcl(Malformed),
    /// More extended attributes than any member can have here; the rest are left out.
    #[error("too many extended attributes: only the first {limit} are read")]
    TooManyAttributes { limit: usize },
    /// Further notes of the same member are dropped.
    #[error("its extended header has more values that cannot be read")]
    More,
    /// An ACL entry for a user or group that this machine does not know; the entry is left out.
    #[error("the ACL entry of {} is left out: no such account", String::from_utf8_lossy(.name))]
    UnknownAclName {
        /// Name in the entry.
        name: Vec<u8>,
    },
}

/// Why a header cannot be decoded. Its member is lost or incomplete. The decoder skips the rest of
/// the failed header (returning [`Event::More`]) and continues.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// An extended or global header holds a broken record; none of its records count.
    #[error("extended header: {0}")]
    Record(#[from] Malformed),
    /// A record that is needed to read the member has an invalid value.
    #[error("extended header: the value of {} is invalid", String::from_utf8_lossy(.keyword))]
    Value {
        /// Keyword of the record.
        keyword: Vec<u8>,
    },
    /// Extended or global headers beyond [`DecodeLimits::extended_bytes_max`].
    #[error("an extended header of {bytes} bytes exceeds the limit of {limit_bytes}")]
    ExtendedTooLarge {
        /// All extended headers of the member, or all global ones.
        bytes: u64,
        limit_bytes: u64,
    },
    /// A long name beyond [`DecodeLimits::long_name_bytes_max`].
    #[error("a name of {bytes} bytes exceeds the limit of {limit_bytes}")]
    NameTooLong {
        /// Length of the name.
        bytes: u64,
        limit_bytes: u64,
    },
    /// A sparse file with an invalid map; the member's content is skipped.
    #[error("{}: {source}", String::from_utf8_lossy(.path))]
    Sparse {
        /// Path of the member.
        path: Vec<u8>,
        /// The error in the map.
        source: Malformed,
    },
    /// An extended header or a long name without a member behind it.
    #[error("no member follows the extended header")]
    Dangling,
    /// The input ended inside a header.
    #[error("the archive ends inside a header")]
    Truncated,
}
