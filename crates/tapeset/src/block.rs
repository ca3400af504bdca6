//! Blocks of a tape whose size nobody knows beforehand.
//!
//! The drive is in variable mode, where each read gives one block whatever its size, or says that
//! it is larger than the buffer.

use device::tape::{Tape, TapeError, TapeRead};

/// Buffer for blocks of unknown size to begin with; doubled until the block fits. Bareos tries the
/// same steps.
pub(crate) const FIRST_BUFFER_BYTES: usize = 1 << 20;
/// Largest block: a drive counts the bytes of one in 24 bits (SSC-3, READ BLOCK LIMITS).
pub(crate) const BLOCK_BYTES_MAX: usize = 16 << 20;

/// Makes room for a larger block, up to `most_bytes`; false when there is as much already.
pub(crate) fn grow(buffer: &mut Vec<u8>, most_bytes: usize) -> bool {
    let bytes = (2 * buffer.len()).min(most_bytes);
    let grows = bytes > buffer.len();
    if grows {
        buffer.resize(bytes, 0);
    }
    grows
}

/// Reads what comes next; the buffer grows as it must, up to `most_bytes`.
///
/// # Errors
/// What the drive says.
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
