//! Exit codes of all commands; [`crate::commands::EXIT_CODES`] explains them to the user.

/// A run that failed, misuse included.
pub const FAILED: u8 = 1;
/// Something was written by a later version of this program.
pub const LATER_VERSION: u8 = 3;
