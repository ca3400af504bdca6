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
//!
//! A file of a tree begins with a record of stream 1, of which the name, the size and the time of
//! change are here and not the rest of what Bacula keeps. What no record fills at the end of a
//! block is zeros, and not part of its block size.
//!
//! Bacula's storage daemon does three things in the thread that writes to the drive: it copies each
//! record into the block, it sums the block up, and it ends a file with a filemark when that has
//! grown to [`FILE_BYTES_MAX`]. A trace and a profile of its `btape` (9.6.7) on a virtual LTO-4
//! show what these cost of 1 GiB in blocks of 64,512 bytes: sum and copy 0.9 to 1.1 s of processor
//! time, a tenth of it the copy, and the filemark, behind 15,500 blocks, 3.0 s. A call of lseek(2)
//! for each block is left out here: the driver answers it at once.
//!
//! So a block is made in two steps here: [`fill`] and [`fill_of_tree`] are what a file daemon
//! sends; [`seal`] is the writer's.

use super::crc::crc32;
use crate::payload::tree::Tree;
use crate::payload::{Payload, PayloadError};

/// Bytes of a block's header.
const BLOCK_HEADER_BYTES: usize = 24;
/// Bytes of a record's header.
const RECORD_HEADER_BYTES: usize = 12;
/// What a file daemon sends at once.
const RECORD_BYTES_MAX: usize = 64 << 10;
/// `Maximum File Size` of a device in `bacula-sd.conf`, where that says nothing: no block goes over
/// it, and there is a filemark instead.
pub const FILE_BYTES_MAX: u64 = 1_000_000_000;
/// Name and attributes of a file.
const STREAM_ATTRIBUTES: u32 = 1;
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

/// Fills a block, which is to be sealed.
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
    put_header(block, block_bytes, number);
    Ok(())
}

/// Fills a block with what follows of a tree. `file_index` is the number of the present file.
pub fn fill_of_tree(block: &mut [u8], number: u64, tree: &mut Tree, file_index: &mut u32) {
    let mut at = BLOCK_HEADER_BYTES;
    let mut attributes = Vec::new();
    while let Some(room) = (block.len() - at).checked_sub(RECORD_HEADER_BYTES).filter(|&it| it > 0)
    {
        let data = at + RECORD_HEADER_BYTES;
        let (stream, bytes) = if tree.left() > 0 {
            let left = usize::try_from(tree.left()).unwrap_or(room);
            let bytes = room.min(RECORD_BYTES_MAX).min(left);
            tree.read(&mut block[data..][..bytes]);
            (STREAM_FILE_DATA, bytes)
        } else {
            let Some(member) = tree.next_member() else { break };
            *file_index += 1;
            attributes.clear();
            attributes.extend_from_slice(format!("{file_index} 3 ").as_bytes());
            attributes.extend_from_slice(&member.path);
            let rest = format!("\0{} {}\0\0", member.size_bytes, member.modified.seconds);
            attributes.extend_from_slice(rest.as_bytes());
            let bytes = room.min(attributes.len());
            block[data..][..bytes].copy_from_slice(&attributes[..bytes]);
            (STREAM_ATTRIBUTES, bytes)
        };
        put(block, at, [*file_index, stream, bytes as u32]);
        at = data + bytes;
    }
    block[at..].fill(0);
    put_header(block, at, number);
}

/// Copies a block that was filled, and sums it up.
pub fn seal(filled: &[u8], block: &mut [u8]) {
    block.copy_from_slice(filled);
    let used_bytes = u32::from_be_bytes([block[4], block[5], block[6], block[7]]) as usize;
    let checksum = crc32(&block[4..used_bytes]);
    put(block, 0, [checksum]);
}

/// All of a block's header but the sum.
fn put_header(block: &mut [u8], used_bytes: usize, number: u64) {
    // The number wraps, as it does in a field of 32 bits.
    put(block, 0, [0, used_bytes as u32, number as u32]);
    block[12..16].copy_from_slice(b"BB02");
    put(block, 16, [SESSION_ID, SESSION_TIME]);
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
