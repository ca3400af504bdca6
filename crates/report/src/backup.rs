//! The end of a backup, for people.

use service::backup::BackupDone;

use crate::run::{RunText, wrote};
use crate::tape;

/// The end of the run, and of its set on tape.
pub fn end(done: &BackupDone) -> RunText<'_> {
    let lines = done.tape.as_ref().map(tape::written).unwrap_or_default();
    RunText { summary: &done.summary, outcome: wrote(&done.to), lines }
}
