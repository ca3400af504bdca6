//! Errors of recording.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why nothing can be recorded.
#[derive(Debug, Error)]
pub enum TraceError {
    /// This process may not trace others.
    #[error("tracing needs root (CAP_SYS_ADMIN)")]
    NotAllowed,
    /// tracefs is not mounted, and Takeup cannot mount it.
    #[error("tracefs is not mounted and cannot be mounted")]
    NoTracefs {
        /// Why not.
        source: io::Error,
    },
    /// Process numbers here differ from the kernel's.
    #[error("this container has its own process numbers, and the kernel records those of the host")]
    Container,
    /// The kernel has no events of system calls.
    #[error("this kernel has no system call events (CONFIG_FTRACE_SYSCALLS)")]
    NoEvents,
    /// A file of tracefs could not be read or written.
    #[error("cannot {what} {}", path.display())]
    File {
        /// What Takeup tried: `read`, `write` and the like.
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A file with the layout of events cannot be parsed.
    #[error("cannot parse {}: {why}", path.display())]
    Format {
        path: PathBuf,
        /// What is wrong with it.
        why: LayoutError,
    },
}

/// What of the kernel's own description of events, or of a page of events, is malformed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// A format has no ID.
    #[error("no ID")]
    NoNumber,
    /// A field without a name or offset, or out of bounds.
    #[error("no name or offset in the field {0:?}")]
    Field(String),
    /// More fields than any event has.
    #[error("too many fields")]
    TooManyFields,
    /// A page ends within its own header.
    #[error("a page of {0} bytes is shorter than its header")]
    ShortPage(usize),
    /// A page claims more events than it has bytes.
    #[error("a page claims {said} bytes of events but has {has}")]
    PageLength {
        /// Bytes that the page claims.
        said: u64,
        /// Bytes that the page has.
        has: usize,
    },
    /// An entry goes beyond the end of the page.
    #[error("the entry at byte {0} ends after its page")]
    PageEntry(usize),
}
