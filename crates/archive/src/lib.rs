//! Tar archives as bytes: encoding, decoding, chunks of compression and the index of a set.
//!
//! Nothing here opens a file or starts a thread. A [`member::Member`] becomes bytes, and the caller
//! adds its content behind them. Units of 512 bytes become events:
//!
//! ```
//! use archive::decode::{Decoder, Event, DecodeLimits};
//! use archive::encode::{encode_end_of_archive, encode_member};
//! use archive::header::{UNIT_BYTES, padding_bytes};
//! use archive::member::{MemberKind, Member, Timestamp};
//!
//! let content = b"hello";
//! let member = Member {
//!     path: b"greetings/hello".to_vec(),
//!     kind: MemberKind::File,
//!     mode: 0o644,
//!     uid: 1000,
//!     gid: 1000,
//!     user: Vec::new(),
//!     group: Vec::new(),
//!     modified: Timestamp { seconds: 1_700_000_000, nanoseconds: 5 },
//!     size_bytes: content.len() as u64,
//!     sparse: None,
//!     xattrs: Vec::new(),
//!     acl_access: None,
//!     acl_default: None,
//! };
//! let mut bytes = Vec::new();
//! encode_member(&member, &mut bytes)?;
//! let header_bytes = bytes.len();
//! bytes.extend_from_slice(content);
//! bytes.resize(bytes.len() + padding_bytes(member.size_bytes) as usize, 0);
//! encode_end_of_archive(&mut bytes);
//!
//! let (units, rest) = bytes[..header_bytes].as_chunks::<UNIT_BYTES>();
//! assert!(rest.is_empty());
//! let mut decoder = Decoder::new(DecodeLimits::default());
//! let mut found = None;
//! for unit in units {
//!     if let Event::Member { member, stored_bytes, .. } = decoder.push(unit)? {
//!         assert_eq!(stored_bytes, 5);
//!         found = Some(*member);
//!     }
//! }
//! assert_eq!(found, Some(member));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Map
//!
//! - [`stream`]: the two streams of an archive, before and after compression, and offsets in them.
//! - [`member`]: the type of a member, which all others use.
//! - [`encode`]: members to bytes.
//! - [`decode`]: bytes to events, with the overrides of pax and GNU tar.
//! - [`header`]: one unit of 512 bytes as a header.
//! - [`pax`]: extended records.
//! - `escaped`: any bytes as a word of ASCII.
//! - [`sparse`]: files with holes, in the formats of GNU tar and pax.
//! - `xattr`: extended attributes in pax records.
//! - [`acl`]: access control lists as text and as the kernel stores them.
//! - [`malformed`]: what of all these cannot be read.
//! - [`chunk`]: pieces that are compressed on their own, their ends, the seek table.
//! - [`index`]: names, hashes and checksums behind the end of an archive.
//! - [`label`]: the header of a part on tape.
//! - [`mark`]: the header at the front of an archive that is not on tape.

pub mod acl;
pub mod chunk;
pub mod decode;
pub mod encode;
mod escaped;
pub mod header;
pub mod index;
pub mod label;
pub mod malformed;
pub mod mark;
pub mod member;
pub mod pax;
pub mod sparse;
pub mod stream;
mod xattr;
