//! Byte offsets, typed by the stream they count in.
//!
//! A byte of a backup has an offset in the archive, in the stored stream, in a ring, in a file. All
//! are numbers, and some are equal as long as nothing is compressed, so that a test without
//! compression passes with the wrong one. An [`Offset`] carries its stream as its type: offsets in
//! two streams do not mix.
//!
//! ```
//! use base::offset::Offset;
//!
//! enum Archive {}
//! enum Stored {}
//!
//! let header: Offset<Archive> = Offset::new(1536);
//! let content = header + 512;
//! assert_eq!(content - header, 512);
//! assert_eq!(content.block(1024), 2);
//! // Allowed only where both streams begin together.
//! let stored: Offset<Stored> = header.same_in();
//! assert_eq!(stored.bytes(), 1536);
//! ```
//!
//! An offset in one stream does not fit another:
//!
//! ```compile_fail
//! # use base::offset::Offset;
//! # enum Archive {}
//! # enum Stored {}
//! fn read_at(_: Offset<Stored>) {}
//! read_at(Offset::<Archive>::new(1536));
//! ```
//!
//! The streams are not defined here: each crate names its own.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ops::{Add, AddAssign, Range, Rem, Sub, SubAssign};

/// Bytes from the beginning of the stream `In`, a type without values.
pub struct Offset<In> {
    bytes: u64,
    stream: PhantomData<fn() -> In>,
}

impl<In> Offset<In> {
    /// The first byte.
    pub const START: Offset<In> = Offset::new(0);
    /// Behind everything.
    pub const MAX: Offset<In> = Offset::new(u64::MAX);

    /// The offset this many bytes behind the beginning.
    pub const fn new(bytes: u64) -> Offset<In> {
        Offset { bytes, stream: PhantomData }
    }

    /// Bytes from the beginning.
    pub const fn bytes(self) -> u64 {
        self.bytes
    }

    /// The same number in another stream. Use it only where both streams begin together and hold
    /// the same bytes up to here.
    pub const fn same_in<Other>(self) -> Offset<Other> {
        Offset::new(self.bytes)
    }

    /// `bytes` further on; `None` behind the largest offset.
    pub fn checked_add(self, bytes: u64) -> Option<Offset<In>> {
        self.bytes.checked_add(bytes).map(Offset::new)
    }

    /// `bytes` further on, at most the largest offset.
    pub fn saturating_add(self, bytes: u64) -> Offset<In> {
        Offset::new(self.bytes.saturating_add(bytes))
    }

    /// Bytes from `earlier` to here; `None` if `earlier` lies behind.
    pub fn checked_since(self, earlier: Offset<In>) -> Option<u64> {
        self.bytes.checked_sub(earlier.bytes)
    }

    /// Bytes from `earlier` to here; 0 if `earlier` lies behind.
    pub fn saturating_since(self, earlier: Offset<In>) -> u64 {
        self.bytes.saturating_sub(earlier.bytes)
    }

    /// Number of the block that holds this byte, with blocks of `block_bytes`.
    pub fn block(self, block_bytes: u64) -> u64 {
        self.bytes / block_bytes
    }

    /// The first byte of block `number`, with blocks of `block_bytes`.
    pub fn of_block(number: u64, block_bytes: u64) -> Offset<In> {
        Offset::new(number * block_bytes)
    }

    /// The first byte of the block that holds this byte.
    pub fn round_down(self, block_bytes: u64) -> Offset<In> {
        Offset::of_block(self.block(block_bytes), block_bytes)
    }

    /// The first byte of the next block, or this byte if it is the first of its block.
    pub fn round_up(self, block_bytes: u64) -> Offset<In> {
        Offset::new(self.bytes.next_multiple_of(block_bytes))
    }

    /// A range from two numbers.
    pub fn range(bytes: Range<u64>) -> Range<Offset<In>> {
        Offset::new(bytes.start)..Offset::new(bytes.end)
    }
}

impl<In> Clone for Offset<In> {
    fn clone(&self) -> Offset<In> {
        *self
    }
}

impl<In> Copy for Offset<In> {}

impl<In> Default for Offset<In> {
    fn default() -> Offset<In> {
        Offset::START
    }
}

impl<In> PartialEq for Offset<In> {
    fn eq(&self, other: &Offset<In>) -> bool {
        self.bytes == other.bytes
    }
}

impl<In> Eq for Offset<In> {}

impl<In> PartialOrd for Offset<In> {
    fn partial_cmp(&self, other: &Offset<In>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<In> Ord for Offset<In> {
    fn cmp(&self, other: &Offset<In>) -> Ordering {
        self.bytes.cmp(&other.bytes)
    }
}

impl<In> Hash for Offset<In> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes.hash(state);
    }
}

impl<In> fmt::Debug for Offset<In> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes.fmt(formatter)
    }
}

impl<In> fmt::Display for Offset<In> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes.fmt(formatter)
    }
}

/// The offset this many bytes further on.
impl<In> Add<u64> for Offset<In> {
    type Output = Offset<In>;

    fn add(self, bytes: u64) -> Offset<In> {
        Offset::new(self.bytes + bytes)
    }
}

impl<In> AddAssign<u64> for Offset<In> {
    fn add_assign(&mut self, bytes: u64) {
        self.bytes += bytes;
    }
}

/// The offset this many bytes back.
impl<In> Sub<u64> for Offset<In> {
    type Output = Offset<In>;

    fn sub(self, bytes: u64) -> Offset<In> {
        Offset::new(self.bytes - bytes)
    }
}

impl<In> SubAssign<u64> for Offset<In> {
    fn sub_assign(&mut self, bytes: u64) {
        self.bytes -= bytes;
    }
}

/// Bytes between two offsets.
impl<In> Sub for Offset<In> {
    type Output = u64;

    fn sub(self, earlier: Offset<In>) -> u64 {
        self.bytes - earlier.bytes
    }
}

/// The place of the byte in its block.
impl<In> Rem<u64> for Offset<In> {
    type Output = u64;

    fn rem(self, block_bytes: u64) -> u64 {
        self.bytes % block_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    enum Here {}

    #[test]
    fn blocks_hold_the_bytes_that_they_are_told_to() {
        for bytes in [0, 1, 511, 512, 513, 5000] {
            let offset: Offset<Here> = Offset::new(bytes);
            let (number, within) = (offset.block(512), offset % 512);
            assert_eq!(Offset::of_block(number, 512) + within, offset);
            assert!(offset.round_down(512) <= offset && offset <= offset.round_up(512));
            assert!(offset.round_up(512) - offset.round_down(512) <= 512);
            assert_eq!((offset.round_up(512) % 512, offset.round_down(512) % 512), (0, 0));
        }
    }

    #[test]
    fn distances_end_where_there_is_none() {
        let (near, far): (Offset<Here>, _) = (Offset::new(10), Offset::new(30));
        assert_eq!((far - near, far.checked_since(near)), (20, Some(20)));
        assert_eq!((near.checked_since(far), near.saturating_since(far)), (None, 0));
        assert_eq!(Offset::<Here>::MAX.checked_add(1), None);
        assert_eq!(Offset::<Here>::MAX.saturating_add(1), Offset::MAX);
    }

    #[test]
    fn an_offset_is_told_as_its_number() {
        let range: Range<Offset<Here>> = Offset::range(512..1024);
        assert_eq!(format!("{range:?} {}", range.start), "512..1024 512");
        assert!(range.contains(&Offset::new(1023)) && !range.contains(&Offset::new(1024)));
    }
}
