//! Directories that the walk could not read, reported in their place among the entries.

use std::fmt;
use std::io;

/// Why some or all contents of a directory are missing from the walk.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {}", String::from_utf8_lossy(path))]
pub struct ScanProblem {
    /// Path in the archive.
    pub path: Vec<u8>,
    pub what: ScanProblemKind,
    /// The kernel's error, if a call failed.
    pub source: Option<io::Error>,
}

/// The problem of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanProblemKind {
    /// It cannot be opened; none of its contents follow.
    OpenDirectory,
    /// It cannot be read to its end; the names read so far follow.
    ReadDirectory,
    /// It was moved or replaced during the walk below it; its remaining contents are missing.
    Moved,
    /// It is one of its own ancestors (by a bind mount); it is not entered again.
    Loop,
    /// Its path is longer than [`crate::PATH_BYTES_MAX`]; it is not entered.
    PathTooLong,
}

impl fmt::Display for ScanProblemKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            ScanProblemKind::OpenDirectory => "cannot open directory",
            ScanProblemKind::ReadDirectory => "cannot read directory to its end",
            ScanProblemKind::Moved => "directory moved away while it was read",
            ScanProblemKind::Loop => "directory is inside itself, not entered again",
            ScanProblemKind::PathTooLong => "path too long, directory not entered",
        })
    }
}

impl ScanProblem {
    pub(crate) fn open_directory(path: Vec<u8>, source: io::Error) -> ScanProblem {
        ScanProblem { path, what: ScanProblemKind::OpenDirectory, source: Some(source) }
    }

    pub(crate) fn read_directory(path: Vec<u8>, source: io::Error) -> ScanProblem {
        ScanProblem { path, what: ScanProblemKind::ReadDirectory, source: Some(source) }
    }
}
