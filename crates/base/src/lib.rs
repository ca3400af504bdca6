//! What every crate may use: system calls that survive a signal ([`interruptible`]), errors with
//! their causes and locks that outlive a panic ([`failures`]), byte offsets typed by the stream
//! they count in ([`offset`]), and findings with the rules that make them ([`finding`]).
//!
//! This crate knows no other crate of Takeup.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod failures;
pub mod finding;
pub mod interruptible;
pub mod offset;
