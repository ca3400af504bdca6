//! The 512-byte tar header: the places of its fields, the form of its numbers, and its checksum.
//!
//! Offsets are those of POSIX.1-2017 `pax`, "ustar Interchange Format"; the GNU and star extras
//! have the offsets of their own header layouts. Not here: members.

use std::ops::Range;

/// Bytes in a unit, tar's own grain: headers are one unit, content is padded to whole units.
pub const UNIT_BYTES: usize = 512;

/// One unit.
pub type Unit = [u8; UNIT_BYTES];

pub(crate) const NAME: Range<usize> = 0..100;
pub(crate) const MODE: Range<usize> = 100..108;
pub(crate) const UID: Range<usize> = 108..116;
pub(crate) const GID: Range<usize> = 116..124;
pub(crate) const SIZE: Range<usize> = 124..136;
pub(crate) const MTIME: Range<usize> = 136..148;
pub(crate) const CHECKSUM: Range<usize> = 148..156;
pub(crate) const TYPEFLAG: usize = 156;
pub(crate) const LINKNAME: Range<usize> = 157..257;
/// Magic and version together.
pub(crate) const MAGIC: Range<usize> = 257..265;
pub(crate) const USER: Range<usize> = 265..297;
pub(crate) const GROUP: Range<usize> = 297..329;
pub(crate) const DEVICE_MAJOR: Range<usize> = 329..337;
pub(crate) const DEVICE_MINOR: Range<usize> = 337..345;
pub(crate) const PREFIX: Range<usize> = 345..500;
/// star keeps access and change time behind a shorter prefix.
pub(crate) const STAR_PREFIX: Range<usize> = 345..476;
/// star ends its headers with `tar\0`.
pub(crate) const STAR_TRAILER: Range<usize> = 508..512;
/// GNU: offset of the content in a multi-volume continuation (`M`).
pub(crate) const GNU_OFFSET: Range<usize> = 369..381;

pub(crate) const MAGIC_USTAR: &[u8; 8] = b"ustar\x0000";
pub(crate) const MAGIC_GNU: &[u8; 8] = b"ustar  \0";

/// Largest value of a 7-digit octal field (`uid`, `gid`, `devmajor`, `devminor`).
pub(crate) const OCTAL_7_MAX: u64 = 0o7777777;
/// Largest value of an 11-digit octal field (`size`, `mtime`): 8 GiB - 1.
pub(crate) const OCTAL_11_MAX: u64 = 0o77777777777;

/// Which header layout a unit has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// No magic: only the fields up to the link name count.
    V7,
    /// POSIX ustar, which pax and Solaris share.
    Ustar,
    /// star: as ustar, with a shorter prefix.
    Star,
    /// GNU: no prefix, fields of its own in that place.
    Gnu,
}

impl Layout {
    pub(crate) fn of(unit: &Unit) -> Self {
        let magic = &unit[MAGIC];
        if magic == MAGIC_GNU {
            Self::Gnu
        } else if magic[..5] != MAGIC_USTAR[..5] {
            Self::V7
        } else if &unit[STAR_TRAILER] == b"tar\0" {
            Self::Star
        } else {
            Self::Ustar
        }
    }
}

/// The bytes of a text field up to its first NUL.
pub(crate) fn text(field: &[u8]) -> &[u8] {
    match field.iter().position(|byte| *byte == 0) {
        Some(end) => &field[..end],
        None => field,
    }
}

/// Writes `value` as zero-padded octal digits that fill `field` except for a final NUL.
pub(crate) fn put_octal(field: &mut [u8], value: u64) {
    let mut rest = value;
    let digits = field.len() - 1;
    for digit in field[..digits].iter_mut().rev() {
        *digit = b'0' + (rest & 7) as u8;
        rest >>= 3;
    }
    debug_assert_eq!(rest, 0, "the caller checked that the value fits");
}

/// Reads a numeric field: octal text, or GNU's base-256 (first bit set), which may be negative.
///
/// An empty field is 0, as in every reader. `None` for anything else that is not a number or does
/// not fit 64 bits.
pub(crate) fn number(field: &[u8]) -> Option<i64> {
    match field.first() {
        Some(first) if first & 0x80 != 0 => base_256(field),
        _ => octal(field),
    }
}

/// A numeric field that cannot be negative.
pub(crate) fn unsigned(field: &[u8]) -> Option<u64> {
    number(field).and_then(|value| u64::try_from(value).ok())
}

fn octal(field: &[u8]) -> Option<i64> {
    let start = field.iter().position(|byte| *byte != b' ').unwrap_or(field.len());
    let mut value: i64 = 0;
    let mut rest = &field[start..];
    while let [digit @ b'0'..=b'7', tail @ ..] = rest {
        value = value.checked_mul(8)?.checked_add(i64::from(digit - b'0'))?;
        rest = tail;
    }
    match rest.first() {
        None | Some(0 | b' ') => Some(value),
        Some(_) => None,
    }
}

/// Two's complement, most significant byte first. The very first bit only marks the form, the
/// second is the sign (GNU tar, "Extensions to tar format").
fn base_256(field: &[u8]) -> Option<i64> {
    let negative = field[0] & 0x40 != 0;
    let mut value: i64 = if negative { -1 } else { 0 };
    for (index, byte) in field.iter().enumerate() {
        let mut byte = *byte;
        if index == 0 && !negative {
            byte &= 0x7f;
        }
        value = value.checked_mul(256)?.checked_add(i64::from(byte))?;
    }
    Some(value)
}

/// Sum of all bytes of a header with the checksum field read as spaces.
pub(crate) fn checksum(unit: &Unit) -> u32 {
    let field: u32 = unit[CHECKSUM].iter().map(|byte| u32::from(*byte)).sum();
    sum(unit) - field + 8 * u32::from(b' ')
}

/// Sum of all bytes, eight at a time in four lanes of 16 bits: twice per small file on the hot
/// path. A lane takes two bytes from each of 64 words, at most 32,640.
fn sum(unit: &Unit) -> u32 {
    const EVEN_BYTES: u64 = 0x00ff_00ff_00ff_00ff;
    let (words, _) = unit.as_chunks::<8>();
    let lanes: u64 = words.iter().fold(0, |lanes, word| {
        let word = u64::from_le_bytes(*word);
        lanes + (word & EVEN_BYTES) + (word >> 8 & EVEN_BYTES)
    });
    (0..4).map(|lane| (lanes >> (16 * lane)) as u32 & 0xffff).sum()
}

/// The sum that early tars on machines with signed characters wrote.
fn checksum_signed(unit: &Unit) -> i64 {
    let sum = |bytes: &[u8]| -> i64 { bytes.iter().map(|byte| i64::from(*byte as i8)).sum() };
    sum(unit) - sum(&unit[CHECKSUM]) + 8 * i64::from(b' ')
}

/// Whether the stored checksum matches the header, unsigned or signed.
pub(crate) fn checksum_holds(unit: &Unit) -> bool {
    match octal(&unit[CHECKSUM]) {
        Some(stored) => stored == i64::from(checksum(unit)) || stored == checksum_signed(unit),
        None => false,
    }
}

/// Byte offset of the first plausible header at any alignment: POSIX or GNU magic and a matching
/// checksum. For archives with leading garbage; headers without magic (v7) are not found.
#[must_use]
pub fn find_header(bytes: &[u8]) -> Option<usize> {
    let last = bytes.len().checked_sub(UNIT_BYTES)?;
    let mut from = 0;
    while from <= last {
        let window = &bytes[from + MAGIC.start..last + MAGIC.start + 1];
        from += window.iter().position(|byte| *byte == b'u')?;
        let unit: &Unit = bytes[from..from + UNIT_BYTES].try_into().expect("a slice of one unit");
        if Layout::of(unit) != Layout::V7 && checksum_holds(unit) {
            return Some(from);
        }
        from += 1;
    }
    None
}

/// Whether less than a unit looks like the start of a header with a magic number. Without the rest
/// its checksum cannot be computed.
#[must_use]
pub fn may_begin_header(bytes: &[u8]) -> bool {
    const WORD: &[u8] = b"ustar";
    bytes.get(MAGIC.start..MAGIC.start + WORD.len()) == Some(WORD)
}

/// Bytes that follow `content_bytes` of content up to the next whole unit, 0 to 511.
#[must_use]
pub fn padding_bytes(content_bytes: u64) -> u64 {
    content_bytes.wrapping_neg() % UNIT_BYTES as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_gnu_tar_writes_them() {
        assert_eq!(number(b"0000644\0"), Some(0o644));
        assert_eq!(number(b"   644 \0"), Some(0o644));
        assert_eq!(number(b"\0\0\0\0\0\0\0\0"), Some(0));
        assert_eq!(number(b"77777777777"), Some(0o77777777777));
        assert_eq!(number(b"00006x4\0"), None);
        assert_eq!(number(b"-0000001"), None);
        assert_eq!(number(&[0x80, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1]), None, "over 64 bits");
        assert_eq!(number(&[0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1]), Some((2 << 32) + 1));
        assert_eq!(number(&[0xff; 12]), Some(-1));
        assert_eq!(number(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe]), Some(-2));
        assert_eq!(
            number(&[0xff, 0xff, 0xff, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0]),
            Some(i64::MIN),
            "the least number that fits"
        );
        assert_eq!(number(&[0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn octal_fields_are_filled() {
        let mut field = [0u8; 8];
        put_octal(&mut field, 0o1234);
        assert_eq!(&field, b"0001234\0");
    }

    #[test]
    fn sums_do_not_overflow_their_lanes() {
        assert_eq!(sum(&[0xff; UNIT_BYTES]), 512 * 255);
        let counted: Unit = std::array::from_fn(|at| (at * 7) as u8);
        assert_eq!(sum(&counted), counted.iter().map(|byte| u32::from(*byte)).sum::<u32>());
    }

    #[test]
    fn padding_completes_the_unit() {
        let padded: Vec<u64> = [0, 1, 511, 512, 513].map(padding_bytes).to_vec();
        assert_eq!(padded, [0, 511, 1, 0, 511]);
    }
}
