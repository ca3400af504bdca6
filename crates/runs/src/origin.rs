//! Where a run reads an archive from.

use std::ffi::{OsStr, OsString};

use tapeset::TapeOrigin;

/// Where an archive is.
#[derive(Clone, Debug)]
pub enum Origin {
    /// In a file, on a block device or in a pipe, by its path; `-` is standard input.
    Path(OsString),
    Tape(TapeOrigin),
}

impl<T: Into<OsString>> From<T> for Origin {
    fn from(path: T) -> Origin {
        Origin::Path(path.into())
    }
}

impl Origin {
    /// Whether it is a tape.
    pub fn is_tape(&self) -> bool {
        matches!(self, Origin::Tape(_))
    }

    /// The tape, if it is one.
    pub fn as_tape(&self) -> Option<&TapeOrigin> {
        match self {
            Origin::Tape(tape) => Some(tape),
            Origin::Path(_) => None,
        }
    }

    /// Its path, or the name of its drive.
    pub fn name(&self) -> &OsStr {
        match self {
            Origin::Path(path) => path,
            Origin::Tape(tape) => tape.drive.name().as_ref(),
        }
    }
}
