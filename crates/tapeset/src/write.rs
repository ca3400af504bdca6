//! Writing sets: labels, blocks, filemarks, and the end of a volume.
//!
//! `docs/format.md` ("On tape") describes the medium; `device::tape` knows what the drive's answers
//! mean.

mod another;
mod begin;
mod early;
mod end;
mod error;
mod left;
mod members;
mod named;
mod passing;
mod plan;
mod report;
mod sink;
mod stream;
mod unfit;
mod volume;

use std::fmt;
use std::sync::{Arc, Mutex};

use device::tape::TapeDrive;

use crate::change::VolumeChanger;
use crate::known::Memory;
use crate::media::Media;
use crate::options::TapeOptions;
pub use early::Cut;
pub use error::{Safe, TapeSetError};
pub use plan::{SetIdentity, SetPlan};
pub use report::TapeReport;
pub use sink::TapeSink;
pub use stream::TapeStream;

/// The tape that a run writes to.
#[derive(Clone)]
pub struct TapeDestination {
    pub drive: Arc<dyn TapeDrive>,
    /// The layout of the set.
    pub options: TapeOptions,
    /// Asks for other volumes.
    pub changer: Arc<Mutex<dyn VolumeChanger>>,
    pub media: Media,
    /// What is known of media, and where it is noted how they are left.
    pub memory: Memory,
}

impl fmt::Debug for TapeDestination {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TapeDestination")
            .field("drive", &self.drive.name())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// A random id.
fn random_id() -> Result<[u8; 16], TapeSetError> {
    base::random::id().map_err(TapeSetError::Random)
}
