//! The backup run against the other tar programs, against trees that change while they are read,
//! and against itself with other numbers of threads, blocks and back ends.
//!
//! Targets that fail, signals and memory are tested where the user meets them: with the binary, in
//! the tests of `takeup`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test says why it failed or was left out"
)]

mod cached;
mod changing;
mod fuse;
mod harness;
mod histories;
mod index;
mod leases;
mod living;
mod races;
mod random;
mod read_order;
mod replacing;
mod reuse;
mod same_output;
mod snapshot;
mod sources;
mod sparse;
mod to_tape;
mod tools;
mod trees;
