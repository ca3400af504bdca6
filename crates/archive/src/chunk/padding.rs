//! Padding that every decompressor skips, in any length from [`PADDING_BYTES_MIN`] on.
//!
//! On tape a compressed stream has to fill whole blocks wherever it is interrupted. Zeros would
//! work only at its very end: in the middle `gzip -d` treats them as the end, and `zstd -d` as
//! damage. So zstd gets a skippable frame (RFC 8878, 3.1.2) and gzip empty members (RFC 1952, 2.2)
//! with an extra field of the wanted length.

use super::error::Coding;
use super::gzip_member::{self, MemberLengths};
use crate::stream::StoredOffset;

/// Shortest padding (besides none) that [`encode_padding`] can make for any coding.
pub const PADDING_BYTES_MIN: usize = EMPTY_MEMBER_BYTES;

/// The low four bits distinguish skippable frames; no other program uses this value.
const SKIPPABLE_MAGIC: [u8; 4] = [0x5f, 0x2a, 0x4d, 0x18];
/// Name of the subfield that holds zeros ("Takeup, Padding").
const SUBFIELD_NAME: [u8; 2] = *b"TP";
/// Deflate of an empty content: one final block of fixed codes with only the end-of-block code.
const EMPTY_DEFLATE: [u8; 2] = [3, 0];
const SUBFIELD_HEADER_BYTES: usize = 4;
/// A member of ours without content and with an empty padding subfield.
const EMPTY_MEMBER_BYTES: usize = gzip_member::HEADER_BYTES
    + SUBFIELD_HEADER_BYTES
    + EMPTY_DEFLATE.len()
    + gzip_member::FOOTER_BYTES;
/// Most zeros that leave the extra field below 64 KiB.
const SUBFIELD_BYTES_MAX: usize = 65_535 - 16 - SUBFIELD_HEADER_BYTES;

/// The bytes to add behind a stream that ends at `end_bytes`, so that it ends with a whole block:
/// none, or at least [`PADDING_BYTES_MIN`].
pub fn padding_to_block(end_bytes: StoredOffset, block_bytes: usize) -> usize {
    let block = block_bytes as u64;
    let missing = (end_bytes.round_up(block) - end_bytes) as usize;
    match missing {
        0 => 0,
        short if short < PADDING_BYTES_MIN => {
            let more = PADDING_BYTES_MIN - short;
            short + more.next_multiple_of(block_bytes)
        }
        enough => enough,
    }
}

/// Appends exactly `bytes` that decompress to nothing.
///
/// # Panics
/// If `bytes` is neither 0 nor at least [`PADDING_BYTES_MIN`], or above 4 GiB.
pub fn encode_padding(coding: Coding, bytes: usize, out: &mut Vec<u8>) {
    if bytes == 0 {
        return;
    }
    assert!(bytes >= PADDING_BYTES_MIN, "less than the shortest padding");
    match coding {
        Coding::Zstd => {
            let length = u32::try_from(bytes - 8).expect("padding is less than a block");
            out.extend_from_slice(&SKIPPABLE_MAGIC);
            out.extend_from_slice(&length.to_le_bytes());
            out.resize(out.len() + bytes - 8, 0);
        }
        Coding::Gzip => {
            let mut rest = bytes;
            while rest > 0 {
                let largest = EMPTY_MEMBER_BYTES + SUBFIELD_BYTES_MAX;
                let now = match rest {
                    last if last <= largest => last,
                    // The rest must be long enough for another member.
                    more => largest.min(more - EMPTY_MEMBER_BYTES),
                };
                encode_empty_member(now, out);
                rest -= now;
            }
        }
    }
}

/// A gzip member of `bytes` without content.
fn encode_empty_member(bytes: usize, out: &mut Vec<u8>) {
    let zeros = bytes - EMPTY_MEMBER_BYTES;
    let lengths = MemberLengths { member_bytes: bytes as u32, content_bytes: 0 };
    let mut header = gzip_member::encode_header(lengths);
    let extra_bytes = gzip_member::HEADER_BYTES - 12 + SUBFIELD_HEADER_BYTES + zeros;
    header[10..12].copy_from_slice(&(extra_bytes as u16).to_le_bytes());
    out.extend_from_slice(&header);
    out.extend_from_slice(&SUBFIELD_NAME);
    out.extend_from_slice(&(zeros as u16).to_le_bytes());
    out.resize(out.len() + zeros, 0);
    out.extend_from_slice(&EMPTY_DEFLATE);
    // CRC-32 and length of an empty content.
    out.extend_from_slice(&[0; gzip_member::FOOTER_BYTES]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn streams_are_padded_to_whole_blocks(stream: u32, units in 1usize..4000) {
            let (stream, block) = (u64::from(stream), units * 512);
            let padding = padding_to_block(StoredOffset::new(stream), block);
            prop_assert!((stream + padding as u64).is_multiple_of(block as u64));
            prop_assert!(padding == 0 || padding >= PADDING_BYTES_MIN);
            prop_assert!(padding < block + PADDING_BYTES_MIN);
        }

        #[test]
        fn padding_has_the_length_asked_for(bytes in PADDING_BYTES_MIN..300_000) {
            for coding in [Coding::Zstd, Coding::Gzip] {
                let mut out = Vec::new();
                encode_padding(coding, bytes, &mut out);
                prop_assert_eq!(out.len(), bytes);
            }
        }
    }
}
