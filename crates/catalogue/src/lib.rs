//! What exists where: the index of an archive, found from the end of a file.
//!
//! The index of an archive lies behind it, that of a set on tape in a file of its own.
//!
//! Not here: the bytes of an index, which are `archive`'s, and how it comes from a tape, which is
//! `tapeset`'s.
//!
//! # Map
//!
//! - `index_file`: an index that lies in a file.

mod index_file;

pub use index_file::{IndexFile, read_at};
