//! What a path really is, and how it likes to be read and written.
//!
//! [`target`] opens what a backup is written to and closes it so that a crash never leaves
//! something that looks whole. [`source`] opens what an archive is read from. [`mod@file`] answers
//! the questions that decide how a file is read: how direct I/O must be aligned, and how much of
//! the file the page cache holds already.
//!
//! Not here: the moving of bytes, which is `flow`'s.

pub mod file;
pub mod pipe;
pub mod source;
pub mod tape;
pub mod target;
