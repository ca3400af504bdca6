//! The end of a pipe, for people.

use service::pipe::PipeDone;

use crate::run::{RunText, wrote};

/// The end of the run.
pub fn end(done: &PipeDone) -> RunText<'_> {
    RunText { summary: &done.summary, outcome: wrote(&done.to), lines: String::new() }
}
