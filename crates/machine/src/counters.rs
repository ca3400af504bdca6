//! What the kernel counts: [`disk`]s, [`processor`] time, [`memory`], [`tape`] drives.
//!
//! Each kind has a parser of the kernel's text and a look at this machine. Counters only go up, but
//! for those that the kernel keeps in 32 bits: these begin again, and a difference is taken over at
//! most one such wrap.

pub mod disk;
pub mod memory;
pub mod processor;
pub mod tape;

use std::io;

/// Why a counter is not known.
#[derive(Debug, thiserror::Error)]
pub enum CounterError {
    /// The kernel does not show it, or not to this user.
    #[error("cannot read {file}")]
    Unreadable {
        /// The file.
        file: &'static str,
        /// Why.
        source: io::Error,
    },
    /// It does not stand among the others.
    #[error("{file} has no {what}")]
    Missing {
        /// The file.
        file: &'static str,
        /// What is missing.
        what: &'static str,
    },
    /// A line that is not as the kernel writes it.
    #[error("{file}, line {line}: no {what}")]
    Malformed {
        /// The file.
        file: &'static str,
        /// From 1.
        line: usize,
        /// What is missing.
        what: &'static str,
    },
}

/// The text of a file of this machine.
fn read(file: &'static str) -> Result<Vec<u8>, CounterError> {
    std::fs::read(file).map_err(|source| CounterError::Unreadable { file, source })
}
