//! How a process uses its files: records operations, and makes a profile of each file.
//!
//! [`operation`] is the model of an operation that live recordings and imports share; a recorder
//! passes each one to a [`Recording`](operation::Recording). [`profile`] sums them up, [`words`]
//! makes findings by [`rules`]. [`live`] records a running
//! process, [`import`] reads recordings of other tools, and [`record`] keeps a capture in a file.
//! Where calls cannot be recorded, [`sampled`] samples `/proc` instead. [`trace`] reads the
//! tracepoints of the kernel, and [`job`] writes the load as a job for fio.
//!
//! # Map
//!
//! - [`operation`]: one model of an operation, for live recordings and imports.
//! - [`trace`]: the tracepoints of the kernel.
//! - [`live`]: records a running process.
//! - [`import`]: recordings of strace, blkparse and fio.
//! - [`sampled`]: samples of `/proc` where calls cannot be recorded.
//! - [`profile`]: sums of operations, in limited memory.
//! - [`record`]: a capture in a file.
//! - [`job`]: a job for fio that repeats the load.
//! - [`words`]: findings of a capture.
//! - [`rules`]: the rules of the findings.
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
