//! Tests of the walk, the capture and the restore on real file systems, against naive models.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stderr, reason = "a test that cannot be run says so")]

mod escapes;
mod fixture;
mod metadata;
mod overwrite;
mod privilege;
mod races;
mod reserving;
mod round_trip;
mod scan;
mod unprivileged;
