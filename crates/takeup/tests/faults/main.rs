//! What becomes of a backup when something fails, with the real binary: targets that fail in every
//! way, kills and signals at any moment, and memory.
//!
//! The rule under test: the target's name leads to a complete archive, or to the old file. A run
//! that is not killed outright reports what happened, and leaves no other files.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stderr, reason = "a test that cannot be run says so")]

mod block_devices;
mod budgets;
#[path = "../command_line/captured_record.rs"]
mod captured_record;
mod command;
mod freshness;
mod fuse_target;
mod hostile_text;
mod kills;
mod memory;
mod named_files;
mod old_kernels;
mod panics;
mod places;
mod planted;
mod privileges;
mod shortage;
mod signals;
mod small_machine;
mod space;
#[path = "../command_line/watch_record.rs"]
mod watch_record;
