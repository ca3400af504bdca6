//! Exit codes of all commands; [`crate::commands::EXIT_CODES`] explains them to the user.

use std::process::ExitCode;

use service::failure::{Failure, FailureKind};

/// A run that failed, misuse included.
pub const FAILED: u8 = 1;
/// A run that did its job but for what it warned about.
pub const WARNED: u8 = 2;
/// Something was written by a later version of this program.
pub const LATER_VERSION: u8 = 3;

/// The exit code of a failure.
pub trait FailureExitCode {
    /// 1, or 3 where a later version wrote the data.
    fn exit_code(&self) -> ExitCode;
}

impl FailureExitCode for Failure {
    fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.kind() {
            FailureKind::Failed => FAILED,
            FailureKind::LaterVersion => LATER_VERSION,
        })
    }
}
