//! The order in which a drive recommends to read places of its medium.
//!
//! A medium is written to and fro in hundreds of wraps, so the order of block numbers is not the
//! quickest; where a place lies on the tape only the drive knows. Drives from LTO-9 on (full
//! height) take a list of segments and return it sorted: GENERATE and RECEIVE RECOMMENDED ACCESS
//! ORDER of SSC-5 and of IBM's LTO SCSI reference, "Recommended access order". The list holds for
//! the position at which it was made.

use super::prefix;
use crate::tape::raw::QuestionError;

/// RECEIVE RECOMMENDED ACCESS ORDER (maintenance in) for the limits of the drive.
pub const LIMITS: [u8; 12] = [0xa3, 0x80 | SERVICE_ACTION, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0];
/// Bytes of the answer to [`LIMITS`].
pub const LIMITS_BYTES: usize = 4;

const SERVICE_ACTION: u8 = 0x1d;
/// The drive sorts the segments.
const REORDER: u8 = 2;
/// Bytes before the segments, in both directions.
const HEADER_BYTES: usize = 8;
/// A segment without its geometry.
const SEGMENT_BYTES: usize = 32;
/// Bytes of a segment behind the field that counts them.
const SEGMENT_REST_BYTES: u16 = 30;
/// Decimal digits of a segment's name.
const NAME_BYTES: usize = 10;
const NAME_AT: usize = 5;
const FIRST_AT: usize = 16;
const LAST_AT: usize = 24;
const COMMAND: &str = "RECEIVE RECOMMENDED ACCESS ORDER";

/// Objects that are read in one go, by number: blocks and filemarks count alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    first: u64,
    last: u64,
}

impl Segment {
    /// `blocks` from the object `first` on. A single object would mean a start or end that is
    /// fixed, so at least two are named; there is always a filemark behind a block.
    pub fn of(first: u64, blocks: u64) -> Segment {
        Segment { first, last: first.saturating_add(blocks.max(2) - 1) }
    }
}

/// Most segments in one list, from the answer to [`LIMITS`].
///
/// # Errors
/// When it is too short.
pub fn parse_limits(bytes: &[u8]) -> Result<usize, QuestionError> {
    let answer = prefix::<LIMITS_BYTES>(COMMAND, bytes)?;
    Ok(usize::from(u16::from_be_bytes([answer[0], answer[1]])))
}

/// GENERATE RECOMMENDED ACCESS ORDER (maintenance out) with a list of so many bytes.
pub fn generate(list_bytes: usize) -> [u8; 12] {
    let length = u32::try_from(list_bytes).unwrap_or(u32::MAX).to_be_bytes();
    let [a, b, c, d] = length;
    [0xa4, SERVICE_ACTION, REORDER, 0, 0, 0, a, b, c, d, 0, 0]
}

/// The list for [`generate`]: the segments, each named by its number.
pub fn list_of(segments: &[Segment]) -> Vec<u8> {
    let mut list = vec![0; HEADER_BYTES];
    let bytes = u32::try_from(segments.len() * SEGMENT_BYTES).unwrap_or(u32::MAX);
    list[4..].copy_from_slice(&bytes.to_be_bytes());
    for (number, segment) in segments.iter().enumerate() {
        let mut descriptor = [0; SEGMENT_BYTES];
        descriptor[..2].copy_from_slice(&SEGMENT_REST_BYTES.to_be_bytes());
        let name = format!("{number:0NAME_BYTES$}");
        descriptor[NAME_AT..NAME_AT + NAME_BYTES].copy_from_slice(&name.as_bytes()[..NAME_BYTES]);
        descriptor[FIRST_AT..LAST_AT].copy_from_slice(&segment.first.to_be_bytes());
        descriptor[LAST_AT..].copy_from_slice(&segment.last.to_be_bytes());
        list.extend(descriptor);
    }
    list
}

/// RECEIVE RECOMMENDED ACCESS ORDER for a list of so many segments, and the bytes of its answer.
pub fn receive(segments: usize) -> ([u8; 12], usize) {
    let bytes = HEADER_BYTES + segments * SEGMENT_BYTES;
    let [a, b, c, d] = u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes();
    ([0xa3, SERVICE_ACTION, 0, 0, 0, 0, a, b, c, d, 0, 0], bytes)
}

/// The order of the segments, as numbers in `segments`.
///
/// # Errors
/// When a segment is missing, comes twice, or is not the one that was sent under its name.
pub fn parse_order(bytes: &[u8], segments: &[Segment]) -> Result<Vec<usize>, QuestionError> {
    let wrong = |offset| QuestionError::Inconsistent { command: COMMAND, offset };
    let header = prefix::<HEADER_BYTES>(COMMAND, bytes)?;
    let listed = u32::from_be_bytes([header[4], header[5], header[6], header[7]]) as usize;
    let needed = HEADER_BYTES + segments.len() * SEGMENT_BYTES;
    if listed != needed - HEADER_BYTES {
        return Err(wrong(4));
    }
    let rest = bytes.get(HEADER_BYTES..needed).ok_or(QuestionError::Short {
        command: COMMAND,
        bytes: bytes.len(),
        needed,
    })?;
    let mut is_met = vec![false; segments.len()];
    let mut order = Vec::with_capacity(segments.len());
    for (place, descriptor) in rest.chunks_exact(SEGMENT_BYTES).enumerate() {
        let number = number_of(descriptor, segments).filter(|number| !is_met[*number]);
        let number = number.ok_or(wrong(HEADER_BYTES + place * SEGMENT_BYTES))?;
        is_met[number] = true;
        order.push(number);
    }
    Ok(order)
}

/// The segment that a descriptor names, if its places are those that were sent.
fn number_of(descriptor: &[u8], segments: &[Segment]) -> Option<usize> {
    let name = std::str::from_utf8(&descriptor[NAME_AT..NAME_AT + NAME_BYTES]).ok()?;
    let number: usize = name.parse().ok()?;
    let object = |at: usize| descriptor[at..at + 8].try_into().map(u64::from_be_bytes).ok();
    let found = Segment { first: object(FIRST_AT)?, last: object(LAST_AT)? };
    (segments.get(number) == Some(&found)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments() -> [Segment; 3] {
        [Segment::of(700, 5), Segment::of(20, 1), Segment::of(u64::MAX, 9)]
    }

    /// The list of segments in another order, as a drive returns it.
    fn sorted(order: &[usize]) -> Vec<u8> {
        let list = list_of(&segments());
        let of = |number: &usize| &list[HEADER_BYTES + number * SEGMENT_BYTES..][..SEGMENT_BYTES];
        let mut answer = vec![2, 1, 0, 0];
        answer.extend((order.len() as u32 * 32).to_be_bytes());
        order.iter().for_each(|number| answer.extend(of(number)));
        answer
    }

    #[test]
    fn lists_have_the_layout_of_the_standard() {
        let list = list_of(&segments());
        assert_eq!(list.len(), 8 + 3 * 32);
        assert_eq!(&list[..8], [0, 0, 0, 0, 0, 0, 0, 96]);
        assert_eq!(&list[40..55], b"\0\x1e\0\0\x000000000001");
        // Partition, first and last object: a single one would be a binding point.
        assert_eq!(&list[55..72], [0, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 21]);
        assert_eq!(&list[88..104], [255; 16]);
        assert_eq!(generate(104), [0xa4, 0x1d, 2, 0, 0, 0, 0, 0, 0, 104, 0, 0]);
        assert_eq!(receive(3), ([0xa3, 0x1d, 0, 0, 0, 0, 0, 0, 0, 104, 0, 0], 104));
        assert_eq!(parse_limits(&[0x0a, 0xaa, 0, 32]).unwrap(), 2730);
        assert!(parse_limits(&[0x0a]).is_err());
    }

    #[test]
    fn only_an_order_of_all_segments_is_taken() {
        let parse = |bytes: &[u8]| parse_order(bytes, &segments());
        assert_eq!(parse(&sorted(&[2, 0, 1])).unwrap(), [2, 0, 1]);
        for order in [&[2, 0][..], &[2, 0, 0], &[0, 1, 2, 2]] {
            assert!(matches!(parse(&sorted(order)), Err(QuestionError::Inconsistent { .. })));
        }
        let answer = sorted(&[2, 0, 1]);
        assert!(matches!(parse(&answer[..103]), Err(QuestionError::Short { needed: 104, .. })));
        // Every byte that says what is where is checked.
        for at in (4..8).chain(13..23).chain(24..40) {
            let mut other = answer.clone();
            other[at] ^= 1;
            assert!(parse(&other).is_err(), "byte {at}");
        }
    }
}
