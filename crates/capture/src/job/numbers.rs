//! Numbers as a job for fio has them.

use base::format::{binary_size, size};

/// A size for a comment: what fio would be told, and what people read.
pub(super) fn bytes(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 10) && bytes < 1 << 30 { binary_size(bytes) } else { size(bytes) }
}

/// The nearest whole number; of what is none or too large, 0 or the largest.
#[expect(clippy::cast_possible_truncation, reason = "what a cast does is what is wanted")]
pub(super) fn whole(value: f64) -> u64 {
    value.round() as u64
}
