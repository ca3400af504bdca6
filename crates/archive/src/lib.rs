//! Tar archives as bytes: encoding, decoding, chunks of compression and the index of a set.

pub mod acl;
pub mod chunk;
pub mod decode;
pub mod encode;
pub mod header;
pub mod index;
pub mod label;
pub mod mark;
pub mod member;
pub mod pax;
pub mod sparse;
mod xattr;
