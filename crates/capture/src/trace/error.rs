//! What may keep a recording from beginning.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why nothing can be recorded.
#[derive(Debug, Error)]
pub enum TraceError {
    /// This process may not look at what others do.
    #[error("tracing takes root's rights (CAP_SYS_ADMIN)")]
    NotAllowed,
    /// Neither mounted nor to be mounted.
    #[error("tracefs is not mounted and cannot be mounted")]
    NoTracefs {
        /// Why not.
        source: io::Error,
    },
    /// Numbers of processes are others than the kernel's.
    #[error("this is a container with process numbers of its own: the kernel records others")]
    Container,
    /// The kernel has none of the events that are wanted.
    #[error("this kernel has no events of system calls (CONFIG_FTRACE_SYSCALLS)")]
    NoEvents,
    /// A file of tracefs could not be read or written.
    #[error("cannot {what} {}", path.display())]
    File {
        /// What was done to it.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file that says how events are laid out makes no sense.
    #[error("{} is not understood: {why}", path.display())]
    Format {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: crate::trace::format::FormatError,
    },
}
