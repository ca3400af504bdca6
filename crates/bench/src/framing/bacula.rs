//! Bacula's blocks: a header of 24 bytes, then records with a header of 12 bytes each.
//!
//! Written from Bacula's own description, "Storage Media Output Format" in its developer's guide
//! (version BB02), all numbers with the most significant byte first:
//!
//! ```text
//!  0  checksum        CRC-32 of the block behind these four bytes
//!  4  block size      bytes of the block with its header
//!  8  block number    from 0, within the session
//! 12  "BB02"
//! 16  session id
//! 20  session time    seconds of Unix time
//! 24  file index      first record: number of the file in the session, from 1
//! 28  stream          2: data of a file as they are
//! 32  data size       bytes that follow
//! 36  data, and further records
//! ```
//!
//! A file daemon sends its data in pieces of 64 KiB, and so do these blocks. Where Bacula would let
//! a piece go on in the next block, a shorter piece ends the block here, which is just as valid.
//! No volume label stands in front: this is for measuring, not for restoring.

use crate::payload::{Payload, PayloadError};

/// Bytes of a block's header.
const BLOCK_HEADER_BYTES: usize = 24;
/// Bytes of a record's header.
const RECORD_HEADER_BYTES: usize = 12;
/// What a file daemon sends at once.
const RECORD_BYTES_MAX: usize = 64 << 10;
/// Data of a file as they are.
const STREAM_FILE_DATA: u32 = 2;
/// A session of its own: all runs look alike, and the numbers mean nothing.
const SESSION_ID: u32 = 1;
const SESSION_TIME: u32 = 1_000_000_000;

/// Why a block of this size cannot be one.
pub fn refusal(block_bytes: usize) -> Option<&'static str> {
    let fits = block_bytes > BLOCK_HEADER_BYTES + RECORD_HEADER_BYTES
        && u32::try_from(block_bytes).is_ok();
    (!fits).then_some("Bacula's headers take 36 bytes, and a size has 32 bits")
}

/// Fills a block.
pub fn fill(block: &mut [u8], number: u64, payload: &mut Payload) -> Result<(), PayloadError> {
    let block_bytes = block.len();
    let mut at = BLOCK_HEADER_BYTES;
    while at < block_bytes {
        let data_bytes = next_record_bytes(block_bytes - at);
        put(block, at, [1, STREAM_FILE_DATA, data_bytes as u32]);
        at += RECORD_HEADER_BYTES;
        payload.fill(&mut block[at..][..data_bytes])?;
        at += data_bytes;
    }
    // The number wraps, as it does in a field of 32 bits.
    put(block, 4, [block_bytes as u32, number as u32]);
    block[12..16].copy_from_slice(b"BB02");
    put(block, 16, [SESSION_ID, SESSION_TIME]);
    let checksum = libdeflater::crc32(&block[4..]);
    put(block, 0, [checksum]);
    Ok(())
}

/// Data of the next record in a room that begins with its header: what is left behind it is
/// nothing, or has a place for another header and a byte.
fn next_record_bytes(room: usize) -> usize {
    let most = room - RECORD_HEADER_BYTES;
    match most.saturating_sub(RECORD_BYTES_MAX) {
        0 => most,
        left if left > RECORD_HEADER_BYTES => RECORD_BYTES_MAX,
        _ => RECORD_BYTES_MAX / 2,
    }
}

fn put<const N: usize>(block: &mut [u8], at: usize, words: [u32; N]) {
    for (place, word) in block[at..].as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *place = word.to_be_bytes();
    }
}
