//! How the test area of an experiment begins, by which others know it.

/// What the first block of a test area begins with: a line of text that says what it is to whoever
/// finds the medium.
pub const FIRST_LINE: &str = "takeup bench tape: what follows is test data and may be written over";

/// Whether a block is the first one of a test area.
pub fn begins(block: &[u8]) -> bool {
    block.starts_with(FIRST_LINE.as_bytes())
}
