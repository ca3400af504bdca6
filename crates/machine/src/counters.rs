//! What the kernel counts: [`disk`]s, [`processor`] time, [`memory`], [`tape`] drives.
//!
//! Each kind has a parser of the kernel's text and a function that reads this machine. Counters
//! only go up. The kernel keeps some in 32 bits; these wrap to 0, and a difference covers at most
//! one wrap.

pub mod disk;
pub mod memory;
pub mod processor;
pub mod tape;

use std::io;

/// Why a counter is not known.
#[derive(Debug, thiserror::Error)]
pub enum CounterError {
    /// The kernel does not show the counter, or not to this user.
    #[error("cannot read {file}")]
    Unreadable { file: &'static str, source: io::Error },
    /// The counter is missing in the file.
    #[error("{file} has no {what}")]
    Missing {
        file: &'static str,
        /// What is missing.
        what: &'static str,
    },
    /// The line does not have the kernel's format.
    #[error("{file}, line {line}: no {what}")]
    Malformed {
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
