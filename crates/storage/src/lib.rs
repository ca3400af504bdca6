//! The storage below a path: its layers, their settings, findings about them, and changes of
//! settings that can be reverted.
//!
//! Not here: rates (crate `loads` measures them) and counters over time (crate `watch`).
//!
//! # Map
//!
//! - [`layers`]: what a run needs to know about its storage.
//! - [`stack`]: every layer in detail, of this machine or a recorded one.
//! - [`findings`]: the rules that report what is wrong or slow in a stack.
//! - [`queue`]: the settings of the queue of a block device.
//! - [`settings`]: settings that can be changed, temporarily or permanently, and reverted.
//! - `error`: why storage could not be read or changed.
//! - `disk_watch`: I/O of other programs on the disk of a run.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

mod disk_watch;
mod error;
pub mod findings;
pub mod layers;
pub mod queue;
pub mod settings;
pub mod stack;

pub use disk_watch::{DiskTime, DiskWatch};
pub use error::StorageError;
