//! Damage of an archive, as plain data with a sentence.

use std::fmt;

use archive::index::INDEX_VERSION;
use archive::stream::{ArchiveOffset, StoredOffset};
use flow::monitor::Harm;

/// One damaged place. Offsets count bytes of the archive before compression, from the start of the
/// source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where it starts.
    pub offset_bytes: ArchiveOffset,
    /// Its length; 0 if unknown, or for a single place.
    pub length_bytes: u64,
    pub kind: DamageKind,
    /// Path of the member it is in, empty if it is in none.
    pub path: Vec<u8>,
}

/// Kinds of damage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// Bytes in front of the first header.
    LeadingGarbage,
    /// Bytes between members: what a damaged header described is lost.
    Garbage {
        /// How it was noticed.
        why: String,
    },
    /// An invalid header; its member is lost.
    Header { why: String },
    /// Bytes that could not be read or decompressed.
    Lost { why: String },
    /// The header of a compressed chunk was changed, in bits that decompressors ignore. Other
    /// damage shows whether the content is intact.
    ChunkHeader {
        /// Offset in the source.
        stored_bytes: StoredOffset,
    },
    /// The archive ends inside a member or header.
    Truncated,
    /// The archive ends after a member without an end-of-archive mark, so more may be missing.
    NoEndMark,
    /// A part of a file that began on another volume.
    Continuation,
    /// The archive announces an index, but none follows, or only a part.
    IndexMissing,
    /// More zeros behind an end-of-archive mark than tar writes: data may have become zeros.
    /// Nothing proves that data are missing.
    Zeros,
    /// Bytes after the end of the archive that are no archive. No error: tapes and devices keep
    /// older data.
    Trailing,
    /// A checksum or hash of the index does not match what was read.
    Checksum {
        /// `checksum` or `hash`.
        what: &'static str,
    },
    /// The index has an unknown, later version, or something that only a later version knows.
    Later { version: Option<u32> },
    /// The index itself is damaged.
    Index { why: String },
}

impl Damage {
    pub(crate) fn new(offset_bytes: ArchiveOffset, length_bytes: u64, kind: DamageKind) -> Damage {
        Damage { offset_bytes, length_bytes, kind, path: Vec::new() }
    }

    /// Damage of the index as a whole.
    pub(crate) fn of_index(why: String) -> Damage {
        Damage::new(ArchiveOffset::START, 0, DamageKind::Index { why })
    }

    /// Damage of the header of a compressed chunk.
    pub(crate) fn of_chunk_header(stored_bytes: StoredOffset) -> Damage {
        Damage::new(ArchiveOffset::START, 0, DamageKind::ChunkHeader { stored_bytes })
    }

    /// Whether it is a warning. Trailing bytes are not.
    pub fn counts(&self) -> bool {
        self.kind != DamageKind::Trailing
    }

    /// Whether it proves that the archive is damaged.
    pub fn is_certain(&self) -> bool {
        matches!(self.harm(), Harm::Damage | Harm::CutOff)
    }

    /// What it means for the data.
    pub(crate) fn harm(&self) -> Harm {
        match self.kind {
            DamageKind::Trailing | DamageKind::Zeros => Harm::Doubt,
            DamageKind::Later { .. } => Harm::Later,
            DamageKind::Truncated | DamageKind::NoEndMark | DamageKind::IndexMissing => {
                Harm::CutOff
            }
            _ => Harm::Damage,
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage { offset_bytes: at, length_bytes: length, .. } = self;
        match &self.kind {
            DamageKind::LeadingGarbage => {
                write!(
                    formatter,
                    "the archive starts at byte {length}, after bytes that are not tar"
                )
            }
            DamageKind::Garbage { why } => write!(
                formatter,
                "{length} bytes at byte {at} belong to no member and were skipped: {why}"
            ),
            DamageKind::Header { why } => write!(formatter, "damaged header at byte {at}: {why}"),
            DamageKind::Lost { why } if *length == 0 => {
                write!(formatter, "an unknown number of bytes is missing at byte {at}: {why}")
            }
            DamageKind::Lost { why } => {
                write!(formatter, "{length} bytes are missing at byte {at}: {why}")
            }
            DamageKind::ChunkHeader { stored_bytes } => write!(
                formatter,
                "the header of the compressed chunk at byte {stored_bytes} of the source was \
                 changed"
            ),
            DamageKind::Truncated if self.path.is_empty() => {
                write!(formatter, "the archive is cut off at byte {at}, inside a header")
            }
            DamageKind::Truncated => {
                write!(formatter, "the archive is cut off at byte {at}, inside this member")
            }
            DamageKind::NoEndMark => write!(
                formatter,
                "the archive ends at byte {at} without an end-of-archive mark: it may be cut off"
            ),
            DamageKind::Continuation => write!(
                formatter,
                "continues a file of an earlier volume at byte {at}; this part was skipped"
            ),
            DamageKind::IndexMissing => write!(
                formatter,
                "the archive announces an index, but ends at byte {at} without a complete one: \
                 its end is lost or was overwritten"
            ),
            DamageKind::Zeros => write!(
                formatter,
                "{length} bytes of zeros follow the member that ends at byte {at}, more than tar \
                 writes at the end: data there may be lost"
            ),
            DamageKind::Trailing => {
                write!(formatter, "{length} bytes after the end of the archive were skipped")
            }
            DamageKind::Checksum { what } if *length == 0 => {
                write!(formatter, "the {what} of the content does not hold")
            }
            DamageKind::Checksum { what } => {
                write!(formatter, "the {what} of the {length} bytes at byte {at} does not hold")
            }
            DamageKind::Later { version: None } => formatter.write_str(
                "a later version of takeup wrote the index, and it is not all known here: the \
                 contents were not checked with it",
            ),
            DamageKind::Later { version: Some(version) } => write!(
                formatter,
                "a later version of takeup wrote the index (version {version}, and this one knows \
                 {INDEX_VERSION}): the contents were not checked with it"
            ),
            DamageKind::Index { why } => write!(formatter, "the index is damaged: {why}"),
        }
    }
}

/// Whether damage lies in the content of the current member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InMember {
    Yes,
    No,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_said_where_it_is_known() {
        let shown = |kind: DamageKind, length_bytes: u64| {
            let at = ArchiveOffset::new(512);
            let damage = Damage { path: Vec::new(), kind, offset_bytes: at, length_bytes };
            damage.to_string()
        };
        let lost = || DamageKind::Lost { why: "no sector".to_owned() };
        let of_block = || DamageKind::Checksum { what: "checksum" };
        for (kind, length_bytes, said) in [
            (lost(), 0, "an unknown number of bytes is missing at byte 512: no sector"),
            (lost(), 7, "7 bytes are missing at byte 512: no sector"),
            (of_block(), 0, "the checksum of the content does not hold"),
            (of_block(), 7, "the checksum of the 7 bytes at byte 512 does not hold"),
        ] {
            assert_eq!(shown(kind, length_bytes), said);
        }
    }
}
