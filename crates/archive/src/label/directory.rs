//! The directory in the label of an index: which sets are in front of it on the medium.
//!
//! It is the comment of a second global header, so that other readers of tar pass over it, and so
//! do versions of Takeup that do not know it. What its lines say is up to who writes them.

use twox_hash::XxHash3_64;

use crate::header::{self, UNIT_BYTES};

/// Longest directory that is written or read.
pub const DIRECTORY_BYTES_MAX: usize = 256 << 10;

const START: &str = "takeup-sets 1 check=";

/// The comment with a directory.
pub(super) fn comment(text: &str) -> Vec<u8> {
    let check = XxHash3_64::oneshot(text.as_bytes());
    format!("{START}{check:016x} bytes={}\n{text}", text.len()).into_bytes()
}

/// The directory in the bytes of a whole label, if it has one that is not damaged.
pub fn find_directory(label: &[u8]) -> Option<&str> {
    let (_, rest) = global_header(label)?;
    let (records, _) = global_header(rest)?;
    let digits = records.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let comment = records[digits..].strip_prefix(b" comment=")?.strip_prefix(START.as_bytes())?;
    let head_end = comment.iter().take(100).position(|byte| *byte == b'\n')?;
    let (check, bytes) = std::str::from_utf8(&comment[..head_end]).ok()?.split_once(" bytes=")?;
    let bytes: usize = bytes.parse().ok().filter(|bytes| *bytes <= DIRECTORY_BYTES_MAX)?;
    let text = comment.get(head_end + 1..)?.get(..bytes)?;
    let is_whole = u64::from_str_radix(check, 16) == Ok(XxHash3_64::oneshot(text));
    std::str::from_utf8(text).ok().filter(|_| is_whole)
}

/// The records of the global header at the front, and what follows it.
fn global_header(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (unit, rest) = bytes.split_first_chunk::<UNIT_BYTES>()?;
    if unit[header::TYPEFLAG] != b'g' || !header::checksum_holds(unit) {
        return None;
    }
    let size = usize::try_from(header::unsigned(&unit[header::SIZE])?).ok()?;
    let end = size.checked_next_multiple_of(UNIT_BYTES)?;
    Some((rest.get(..size)?, rest.get(end..)?))
}
