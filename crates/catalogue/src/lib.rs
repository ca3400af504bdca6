//! Finds the index of an archive from the end of a file.
//!
//! The index of an archive lies behind the archive. The index of a set on tape is in a file of its
//! own.
//!
//! Not here: the bytes of an index, which are `archive`'s, and reading an index from tape, which is
//! `tapeset`'s.
//!
//! # Map
//!
//! - `index_file`: an index that lies in a file.

mod index_file;

pub use index_file::{IndexFile, read_at};
