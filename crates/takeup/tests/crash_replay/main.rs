//! Crash replay: what a file system holds when the power goes, at every barrier of a run.
//!
//! A file system of the kernel (ext4, XFS, btrfs) is on a loop device over a FUSE file of the test,
//! which keeps a log: every write, every barrier (a flush that the file system waits for), and the
//! moment when the program reported that it was done. Each prefix of the log that ends with a
//! barrier is a disk as a power cut can leave it. So is such a prefix with any part of the writes
//! up to the next barrier, since a disk can have kept or lost each of them. The test mounts a copy
//! of every such disk, so that the kernel replays its journal, and checks it.
//!
//! The program is stepped (`stepper`), so that barriers do not depend on luck: after each call that
//! changes something, another program on the same file system calls fsync on its own file. On ext4
//! and XFS this makes all earlier names durable, but no content.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stderr, reason = "a campaign prints its counts")]

mod failing_disk;
mod recorder;
mod replay;
mod runs;
