//! Tar archives as bytes: encoding, decoding, chunks of compression and the index of a set.

pub mod chunk;
pub mod member;
