//! Crash replay: what a file system holds when the power goes, at every barrier of a run.
//!
//! A file system of the kernel (ext4, XFS, btrfs) lies on a loop device over a file of ours (FUSE)
//! that keeps a log: every write, every barrier (a flush that the file system waits for), and the
//! moment when the program had said that it was done. Each prefix of the log that ends with a
//! barrier is a disk as a power cut may leave it; so is such a prefix with any part of the writes
//! that follow up to the next one, since until then a disk may have kept or lost each of them. Of
//! every such disk a copy is mounted, so that the kernel replays its journal, and looked at.
//!
//! So that barriers are not a matter of luck, the program is stepped (`stepper`): behind each call
//! that changes something, a neighbour on the same file system calls fsync for a file of its own,
//! which on ext4 and XFS makes all names durable that were given so far, and no content.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stderr, reason = "a campaign prints its counts")]

mod failing_disk;
mod recorder;
mod replay;
mod runs;
