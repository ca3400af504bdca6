//! What becomes of a backup when something goes wrong, with the binary as users run it: targets
//! that fail in every way, kills and signals at any moment, and memory.
//!
//! The rule that is tested: under the name of the target is a complete archive, or what was there
//! before. Whoever is not killed outright says what happened, and leaves nothing else behind.
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
mod panics;
mod places;
mod planted;
mod privileges;
mod shortage;
mod signals;
mod space;
#[path = "../command_line/watch_record.rs"]
mod watch_record;
