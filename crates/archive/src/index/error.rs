//! Errors of the index.

use super::IndexSection;

/// Writing or reading an index failed.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The bytes could not be read.
    #[error("cannot read the index section {}", section.member_name())]
    Read {
        section: IndexSection,
        #[source]
        source: std::io::Error,
    },
    /// The section ends too early.
    #[error("index section {} is cut off after {offset_bytes} bytes", section.member_name())]
    Truncated {
        section: IndexSection,
        /// Bytes of the section that were read.
        offset_bytes: u64,
    },
    /// The section contains invalid data.
    #[error(
        "index section {} is damaged in the group at byte {offset_bytes}: {reason}",
        section.member_name()
    )]
    Damaged {
        section: IndexSection,
        /// Where the group starts in the section.
        offset_bytes: u64,
        /// The cause.
        reason: &'static str,
    },
    /// A newer version of the format, or not a section.
    #[error("index section {} has an unknown version, not 1", section.member_name())]
    UnknownVersion { section: IndexSection },
    /// A record that the format cannot store. It is not written.
    #[error("cannot write a record of index section {}: {reason}", section.member_name())]
    Unwritable { section: IndexSection, reason: &'static str },
    /// A section too large for the size field of its tar header.
    #[error("index section {} of {length_bytes} bytes is too large", section.member_name())]
    SectionTooLarge { section: IndexSection, length_bytes: u64 },
    /// A section that is found by its name contains invalid data, or cannot hold a record.
    #[error("index section {section} is damaged: {reason}")]
    Named { section: &'static str, reason: &'static str },
    /// A section that is found by its name could not be read.
    #[error("cannot read the index section {section}")]
    NamedRead {
        section: &'static str,
        #[source]
        source: std::io::Error,
    },
    /// It is not damaged, but of a later version of the format.
    #[error(
        "{what} was written by a later version of takeup, which has what this one does not know"
    )]
    Later { what: &'static str },
    /// The trailer exists but is invalid.
    #[error("damaged index trailer: {reason}")]
    Trailer {
        /// The cause.
        reason: &'static str,
    },
}
