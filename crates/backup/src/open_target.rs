//! Opening a target, and waiting for the reader of a named pipe in a way that an interrupt ends.

use std::ffi::OsStr;
use std::time::Duration;

use device::target::{Existing, FileMode, Target, TargetError};
use flow::cancel::{Cancel, Stopped};

/// Time between two looks for a reader. Nobody is told when one comes.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Opens a target; that of a named pipe once somebody reads it, or not at all when the run is
/// stopped before.
pub(crate) fn open_target(
    path: &OsStr,
    existing: Existing,
    mode: FileMode,
    cancel: &Cancel,
) -> Result<Result<Target, TargetError>, Stopped> {
    loop {
        match Target::open(path, existing, mode) {
            Err(TargetError::NoReader { .. }) => {
                cancel.check()?;
                std::thread::sleep(LOOK_AGAIN);
            }
            other => return Ok(other),
        }
    }
}
