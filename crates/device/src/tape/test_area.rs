//! The beginning of the test area of an experiment, by which other commands recognise it.

/// The first line of a test area's first block: it explains the area to a person who finds the
/// medium.
pub const FIRST_LINE: &str = "takeup bench tape: what follows is test data and may be written over";

/// Whether this is the first block of a test area.
pub fn begins(block: &[u8]) -> bool {
    block.starts_with(FIRST_LINE.as_bytes())
}
