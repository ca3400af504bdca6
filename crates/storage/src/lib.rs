//! The storage below a path: which layers there are, how they are set, what stands out, and how a
//! setting is changed and comes back.
//!
//! [`layers`] is what a run has to know of its storage, [`stack`] every layer in detail, of this or
//! of a recorded machine, and [`findings`] the rules that say what is wrong or slow in it.
//! [`queue`] is how the queue of a block device is set; [`settings`] what can be set, for a while
//! or to stay. [`DiskWatch`] says what other programs moved on the disk of a run.
//!
//! Not here: rates, which are measured by `loads`, and counters over time, which are `watch`'s.
//!
//! # Map
//!
//! - [`layers`]: what a run has to know of its storage.
//! - [`stack`]: every layer in detail, of this machine or a recorded one.
//! - [`findings`]: the rules that say what is wrong or slow in it.
//! - [`queue`]: how the queue of a block device is set.
//! - [`settings`]: what can be set, for a while or to stay, and how it comes back.
//! - `disk_watch`: what other programs moved on the disk of a run.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

mod disk_watch;
pub mod findings;
pub mod layers;
pub mod queue;
pub mod settings;
pub mod stack;

pub use disk_watch::{DiskTime, DiskWatch};
