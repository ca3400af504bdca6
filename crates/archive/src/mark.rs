//! The mark: a header at the front of our archives which states that an index must follow.
//!
//! Some archives lost their index: the tail became zeros, or the file was cut off at the end of a
//! member. Without the mark they would look like archives that never had one. Like the label of a
//! part on tape it is a pax global header with a `comment` record, which all readers skip silently.
//! It holds nothing that depends on the clock or the machine; `docs/format.md` draws its bytes.
//!
//! Segments on tape have labels instead: see [`crate::label`].

use crate::encode::encode_global_header;
use crate::header::{self, UNIT_BYTES};
use crate::pax::Records;

/// Length of a mark: a header unit and one unit of records.
pub const MARK_BYTES: usize = 2 * UNIT_BYTES;

const START: &str = "takeup archive ";
const VERSION: &str = "1";
const COMMENT: &[u8] = b"comment";

/// The content of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Bytes of the blocks with checksums in the index; `None` in marks of a later version.
    pub block_bytes: Option<u32>,
}

impl Mark {
    /// The mark in the value of a `comment` record, if it is one. A mark of a later version only
    /// shows that an index must follow.
    pub fn of_comment(comment: &[u8]) -> Option<Mark> {
        let text = std::str::from_utf8(comment).ok()?.strip_prefix(START)?;
        let mut fields = text.split(' ');
        if fields.next() != Some(VERSION) {
            return Some(Mark { block_bytes: None });
        }
        let block = fields.find_map(|field| field.strip_prefix("block="));
        let block_bytes = block.and_then(|digits| digits.parse().ok()).filter(|bytes| *bytes > 0);
        Some(Mark { block_bytes })
    }

    /// The mark at the very front of an archive; `prefix` is the beginning of the archive.
    pub fn of_prefix(prefix: &[u8]) -> Option<Mark> {
        let (unit, records) = prefix.split_first_chunk::<UNIT_BYTES>()?;
        if unit[header::TYPEFLAG] != b'g' || !header::checksum_holds(unit) {
            return None;
        }
        let bytes = usize::try_from(header::unsigned(&unit[header::SIZE])?).ok()?;
        let records = records.get(..bytes)?;
        Records::new(records)
            .map_while(Result::ok)
            .find(|(keyword, _)| *keyword == COMMENT)
            .and_then(|(_, comment)| Mark::of_comment(comment))
    }
}

/// The mark of an archive whose blocks have `block_bytes`.
pub fn encode_mark(block_bytes: u32) -> [u8; MARK_BYTES] {
    let text = format!("{START}{VERSION} index=follows block={block_bytes}");
    let mut out = Vec::with_capacity(MARK_BYTES);
    encode_global_header("GlobalHead", &[(COMMENT, text.as_bytes())], &mut out)
        .expect("a short keyword and value without NULs");
    *out.first_chunk().expect("a header and one unit of records")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_back() {
        for block_bytes in [512, 1 << 20, u32::MAX] {
            let mark = encode_mark(block_bytes);
            assert_eq!(Mark::of_prefix(&mark), Some(Mark { block_bytes: Some(block_bytes) }));
            for length in [0, 1, 512, 530] {
                assert_eq!(Mark::of_prefix(&mark[..length]), None);
            }
        }
        let text = &encode_mark(1 << 20)[512..600];
        assert!(text.starts_with(b"56 comment=takeup archive 1 index=follows block=1048576\n"));
    }

    #[test]
    fn other_comments_are_none() {
        for comment in ["", "takeup index 1", "takeup 1 set=", "takeup", "takeup archiver 1"] {
            assert_eq!(Mark::of_comment(comment.as_bytes()), None, "{comment}");
        }
        for comment in ["takeup archive 2 blocks=7", "takeup archive 1", "takeup archive 1 block=0"]
        {
            let mark = Mark::of_comment(comment.as_bytes());
            assert_eq!(mark, Some(Mark { block_bytes: None }), "{comment}");
        }
    }
}
