//! Why a volume cannot be written to, and the volumes that a run has used.

use crate::change::Refused;
use crate::write::error::TapeSetError;
use device::tape::{Tape, TapeError};

/// Why a medium is not written to.
pub(in crate::write) enum Unfit {
    /// Another one may do.
    Refused(Refused),
    /// No other one will help.
    Failed(TapeSetError),
}

impl From<TapeError> for Unfit {
    /// An unreadable medium may be the medium's fault.
    fn from(error: TapeError) -> Unfit {
        Unfit::Failed(error.into())
    }
}

/// A medium that this set has used already.
#[derive(Clone, Copy, Debug)]
pub(in crate::write) struct UsedMedium {
    pub(super) medium: [u8; 16],
    /// Number of the volume; `None` if it had no room for any of the set.
    pub(super) volume: Option<u32>,
}

/// Whether the drive reports its position. Asked before the medium is checked: later, a question
/// without an answer is a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::write) enum Numbers {
    Told,
    Unknown,
}

impl Numbers {
    pub(super) fn of(tape: &mut Tape) -> Numbers {
        if tape.position().is_ok() { Numbers::Told } else { Numbers::Unknown }
    }

    /// Number of the next object.
    pub(super) fn ask(self, tape: &mut Tape) -> Result<Option<u64>, TapeError> {
        match self {
            Numbers::Told => tape.position().map(Some),
            Numbers::Unknown => Ok(None),
        }
    }
}
