//! Exit codes of all commands; [`crate::commands::EXIT_CODES`] explains them to the user.

/// The run failed, or the command line was wrong.
pub const FAILED: u8 = 1;
/// The run did its job, except what a warning named.
pub const WARNED: u8 = 2;
/// The data were written by a later version of Takeup.
pub const LATER_VERSION: u8 = 3;
