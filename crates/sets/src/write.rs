//! Writing sets: labels, blocks, filemarks, and what happens at the end of a volume.
//!
//! `docs/format.md` ("On tape") says what lies on the medium; what the drive means by its answers is
//! `device::tape`.

mod begin;
mod end;
mod error;
mod members;
mod report;
mod sink;
mod stream;
mod volume;

use std::fs::File;
use std::io::Read;

pub use error::{Safe, TapeSetError};
pub use report::TapeReport;
pub use sink::{SetPlan, TapeSink};
pub use stream::TapeStream;

/// An id that nobody else has made up.
fn random_id() -> Result<[u8; 16], TapeSetError> {
    let mut id = [0; 16];
    let read = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut id));
    read.map(|()| id).map_err(TapeSetError::Random)
}
