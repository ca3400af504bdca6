//! Text for standard error.

use std::io::Write;

use base::escape::Printable;
use service::notify::Notify;

/// Back to the start of the line, and clear to its end.
pub(super) const CLEAR: &str = "\r\x1b[K";

/// Writes to standard error, without control characters that a terminal would obey, except a
/// leading [`CLEAR`]. Write errors are ignored: there is no other place to report them.
pub fn to_standard_error(text: &str) {
    let (clear, text) = match text.strip_prefix(CLEAR) {
        Some(rest) => (CLEAR, rest),
        None => ("", text),
    };
    let text = Printable::of(text.as_bytes());
    let _ = std::io::stderr().lock().write_all(&[clear.as_bytes(), text.as_bytes()].concat());
}

/// Standard error as a place for lines that the user must see.
pub struct StandardError;

impl Notify for StandardError {
    fn notify(&self, line: &str) {
        to_standard_error(&format!("takeup: {line}\n"));
    }
}
