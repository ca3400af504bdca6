//! Fault at the n-th call: every system call that has to do with files fails once, in every way
//! that the kernel could let it fail, in every command that moves data.
//!
//! The rule that is tested: a run ends by itself with exit code 0, 1 or 2, and the code is true. 0
//! means that everything is there and right; 2 that it is, but for what the messages name; 1 that
//! the run says why. Under a final name is a complete archive, or a complete file, or what was
//! there before. A call that took less than it was given, or that a signal interrupted, is no
//! failure at all.
//!
//! The program is the real one under ptrace (`stepper`); only the one call is not the kernel's.
//! Threads make the order of calls vary, so calls are counted by name, and each number up to the
//! last one is tried. The engine is pread: what io_uring does is seen by nobody here, and its
//! faults come from a file system that fails (`tests/faults`, `crates/runs/tests/backup`).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stderr, reason = "a campaign prints its counts")]

mod campaign;
mod fault;
mod runs;
mod tree;
