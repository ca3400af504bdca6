//! List, restore and verify against archives of the real tools, whole and damaged.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod bench;
mod damage;
mod excerpts;
mod listing;
mod restoring;
mod round_trip;
mod tape;
mod verifying;
