//! Fault at the n-th call: every system call about files fails once, in every way that the kernel
//! could let it fail, in every command that moves data.
//!
//! The rule under test: a run ends by itself with exit code 0, 1 or 2, and the code is true. 0
//! means that everything is there and right. 2 means the same except for what the messages name. 1
//! means that the run failed and reported why. A final name leads to a complete archive or file, or
//! to the old one. A call that moved less than requested, or was interrupted by a signal, is not a
//! failure.
//!
//! The program is the real one under ptrace (`stepper`); only the one call does not reach the
//! kernel. Threads make the order of calls vary, so calls are counted by name, and each number up
//! to the last is tried. The engine is pread: ptrace cannot see what io_uring does. Its faults come
//! from a file system that fails (`tests/faults`, `crates/runs/tests/backup`).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stderr, reason = "a campaign prints its counts")]

mod campaign;
mod fault;
mod runs;
mod tree;
