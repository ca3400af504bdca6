//! Pages of the documents are true: what a reader is to type is typed, and prints what they say.
//!
//! A binary of its own, since a reader empties the page cache and keeps disks busy: tests run
//! beside it would find other limits.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod first_backup;
mod first_hour;
