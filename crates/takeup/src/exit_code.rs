//! Exit codes of all commands; [`crate::commands::EXIT_CODES`] explains them to the user.

use std::process::ExitCode;

use service::failure::{Failure, FailureKind};
use service::outcome::Outcome;

/// The run failed, or the command line was wrong.
pub const FAILED: u8 = 1;
/// The run did its job, except what a warning named.
pub const WARNED: u8 = 2;
/// The data were written by a later version of Takeup.
pub const LATER_VERSION: u8 = 3;

/// The exit code of an outcome.
pub fn code_of(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Done => 0,
        Outcome::Warned => WARNED,
        Outcome::Bad => FAILED,
        Outcome::Later => LATER_VERSION,
    }
}

/// The exit code of a failure.
pub trait FailureExitCode {
    /// 1, or 3 where a later version wrote the data.
    fn code(&self) -> u8;

    /// The same, to end the process with.
    fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }
}

impl FailureExitCode for Failure {
    fn code(&self) -> u8 {
        match self.kind() {
            FailureKind::Failed => FAILED,
            FailureKind::LaterVersion => LATER_VERSION,
        }
    }
}
