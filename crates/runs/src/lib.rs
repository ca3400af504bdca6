//! The runs: backup, restore, list, verify and pipe, each put together from stages of `flow`.
//!
//! A run takes an options structure, a [`flow::monitor::Monitor`] to tell what it does, and a
//! [`flow::cancel::Cancel`]; it returns a [`flow::run::RunReport`] or an error. Nothing here prints
//! or knows a flag.

pub mod backup;
pub mod destination;
pub mod list;
pub mod origin;
mod past_cache;
pub mod pipe;
pub mod read;
pub mod report;
pub mod restore;
pub mod selection;
mod spool;
pub mod verify;
mod warnings;

#[cfg(test)]
mod echoes;
