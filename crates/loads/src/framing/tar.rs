//! One tar member for each block: its header, then data to the end of the block.

use archive::encode::encode_member;
use archive::header::UNIT_BYTES;
use archive::member::{Member, MemberKind, Timestamp};

use crate::payload::{Payload, PayloadError};

/// Whether an archive ends in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It goes on.
    More,
    /// Two units of zeros are its end.
    Last,
}

/// A header, a unit of content, and the two units that end an archive.
const BLOCK_BYTES_MIN: usize = 4 * UNIT_BYTES;

/// Why a block of this size cannot be one.
pub fn refusal(block_bytes: usize) -> Option<&'static str> {
    let fits = block_bytes.is_multiple_of(UNIT_BYTES) && block_bytes >= BLOCK_BYTES_MIN;
    (!fits).then_some("tar takes multiples of 512 from 2048 on")
}

/// Fills a block; `headers` is memory that is used again.
pub fn fill(
    block: &mut [u8],
    number: u64,
    end: End,
    payload: &mut Payload,
    headers: &mut Vec<u8>,
) -> Result<(), PayloadError> {
    let end_bytes = match end {
        End::More => 0,
        End::Last => 2 * UNIT_BYTES,
    };
    let content_bytes = block.len() - UNIT_BYTES - end_bytes;
    headers.clear();
    encode_member(&member(number, content_bytes), headers)
        .expect("a short name and small numbers fit");
    assert_eq!(headers.len(), UNIT_BYTES, "nothing of it needs an extended header");
    let (header, rest) = block.split_at_mut(UNIT_BYTES);
    header.copy_from_slice(headers);
    let (content, zeros) = rest.split_at_mut(content_bytes);
    zeros.fill(0);
    payload.fill(content)
}

fn member(number: u64, content_bytes: usize) -> Member {
    Member {
        path: format!("takeup-bench/{number:012}").into_bytes(),
        kind: MemberKind::File,
        mode: 0o644,
        uid: 0,
        gid: 0,
        user: b"root".to_vec(),
        group: b"root".to_vec(),
        modified: Timestamp::default(),
        size_bytes: content_bytes as u64,
        sparse: None,
        xattrs: Vec::new(),
        acl_access: None,
        acl_default: None,
    }
}
