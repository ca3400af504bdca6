//! What a process does to its files: operations of a recording, and what they say of each file.
//!
//! [`operation`] is the one model of an operation that a live recording and all imports share;
//! whoever records hands each to a [`Recording`](operation::Recording). [`profile`] is what they
//! come to, [`words`] says it by [`rules`], and [`presentation`] shows it. [`live`] records a
//! process that runs; [`import`] reads recordings of others, and [`record`] keeps what came of
//! one. Where calls cannot be recorded, [`sampled`] reports what `/proc` shows in their place.
//! [`trace`] reads the kernel's tracepoints, and [`job`] makes a job for fio of what was recorded.
//!
//! # Map
//!
//! - [`operation`]: one model of an operation, for live recordings and imports.
//! - [`trace`]: the tracepoints of the kernel.
//! - [`live`]: a process that runs, recorded.
//! - [`import`]: recordings of strace, blkparse and fio.
//! - [`sampled`]: what `/proc` shows where calls cannot be recorded.
//! - [`profile`]: what operations come to, in limited memory.
//! - [`record`]: a capture in a file.
//! - [`job`]: a job for fio that repeats the load.
//! - [`words`]: what a capture means, in words.
//! - [`rules`]: by which rules.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod import;
pub mod job;
pub mod live;
pub mod operation;
pub mod profile;
pub mod record;
pub mod rules;
pub mod sampled;
pub mod trace;
pub mod words;
