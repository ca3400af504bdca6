//! What a backup on a disk with heads reads ahead of the order of names, for a forecast of it.
//!
//! The run itself has [`Limits`], which also depend on open files.

use super::run::GROUP_BYTES_MAX;
use crate::sweep::{Limits, WINDOW_FOLDERS};

/// What is read ahead at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadWindow {
    pub bytes: u64,
    pub objects: u64,
    /// Larger files are not read ahead.
    pub file_bytes_max: u64,
    /// Larger files are read alone, and smaller ones several at once.
    pub several_bytes_max: u64,
}

impl ReadWindow {
    /// That of a run with this much memory for its ring. Without `bytes` it depends on the memory
    /// that is available now.
    pub fn of_run(bytes: Option<u64>, ring_bytes: u64) -> ReadWindow {
        let number = |bytes| usize::try_from(bytes).unwrap_or(usize::MAX);
        let window_bytes = bytes.map(number);
        let several_bytes_max = number(ring_bytes / 8).min(GROUP_BYTES_MAX);
        let limits = Limits::of(window_bytes, WINDOW_FOLDERS, several_bytes_max);
        ReadWindow {
            bytes: limits.window_bytes as u64,
            objects: limits.window_entries as u64,
            file_bytes_max: limits.file_bytes_max,
            several_bytes_max: several_bytes_max as u64,
        }
    }
}
