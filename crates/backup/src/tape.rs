//! Sets on tape, the writing side: labels, blocks, filemarks, and what happens at the end of a
//! volume.
//!
//! `docs/format.md` ("On tape") says what lies on the medium. Reading it back is
//! `crate::read::tape`; what the drive means by its answers is `device::tape`.

mod begin;
mod change;
mod end;
mod error;
mod members;
mod options;
mod sink;
mod stream;
mod volume;

use std::fs::File;
use std::io::Read;

pub(crate) use begin::Writing;
pub use change::{
    CHANGE_ATTEMPTS_MAX, ChangeError, Refused, VolumeChanger, VolumePurpose, VolumeRequest,
};
pub use error::{Safe, TapeSetError};
pub use options::{BlockLayout, START_FILL_PERCENT, TapeOptions, ring_bytes, segment_bytes};
pub(crate) use sink::{SetPlan, TapeSink};
pub(crate) use stream::TapeStream;

/// An id that nobody else has made up.
fn random_id() -> Result<[u8; 16], TapeSetError> {
    let mut id = [0; 16];
    let read = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut id));
    read.map(|()| id).map_err(TapeSetError::Random)
}
