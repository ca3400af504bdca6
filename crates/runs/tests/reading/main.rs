//! List, restore and verify against archives of the real tools, whole and damaged.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod damage;
mod ends;
mod excerpts;
mod from_tape;
mod golden;
mod harness;
mod listing;
mod live_order;
mod lying_disk;
mod restoring;
mod round_trip;
mod verifying;
