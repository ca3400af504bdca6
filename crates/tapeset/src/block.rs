//! Tape blocks whose size is not known in advance.
//!
//! The drive is in variable mode: each read returns one block of any size, or reports that the
//! block is larger than the buffer.

use device::tape::{Tape, TapeError, TapeRead};

/// First buffer for blocks of unknown size; doubled until the block fits. Bareos uses the same
/// steps.
pub(crate) const FIRST_BUFFER_BYTES: usize = 1 << 20;
/// Largest block: a drive has 24 bits for its length (SSC-3, READ BLOCK LIMITS).
pub(crate) const BLOCK_BYTES_MAX: usize = 16 << 20;

/// Enlarges the buffer, up to `most_bytes`; false if it has that size already.
pub(crate) fn grow(buffer: &mut Vec<u8>, most_bytes: usize) -> bool {
    let bytes = (2 * buffer.len()).min(most_bytes);
    let grows = bytes > buffer.len();
    if grows {
        buffer.resize(bytes, 0);
    }
    grows
}

/// Reads the next object; the buffer grows as needed, up to `most_bytes`.
///
/// # Errors
/// What the drive reports.
pub(crate) fn read_any(
    tape: &mut Tape,
    buffer: &mut Vec<u8>,
    most_bytes: usize,
) -> Result<TapeRead, TapeError> {
    loop {
        match tape.read(buffer)? {
            TapeRead::LargerBlock if grow(buffer, most_bytes) => {}
            read => return Ok(read),
        }
    }
}
