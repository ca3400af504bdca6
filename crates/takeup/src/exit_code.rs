//! Exit codes of all commands; [`crate::commands::EXIT_CODES`] explains them to the user.

/// A run that failed, misuse included.
pub const FAILED: u8 = 1;
/// A run that did its job but for what it warned about.
pub const WARNED: u8 = 2;
/// Something was written by a later version of this program.
pub const LATER_VERSION: u8 = 3;
