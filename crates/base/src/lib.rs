//! What every crate may use: system calls that survive a signal ([`interruptible`]), errors with
//! their causes and locks that outlive a panic ([`failures`]), byte offsets typed by the stream
//! they count in ([`offset`]), findings with the rules that make them ([`finding`]), and how
//! numbers ([`format`](mod@format), [`rounding`]), points in time ([`calendar`]), text of others
//! ([`escape`]) and mistyped names ([`names`]) are written.
//!
//! This crate knows no other crate of Takeup.
//!
//! # Map
//!
//! - [`interruptible`]: system calls that a signal may interrupt, made again.
//! - [`failures`]: errors with their causes, locks that outlive a panic.
//! - [`offset`]: byte offsets, typed by the stream they count in.
//! - [`finding`]: what was found, and by which rule.
//! - [`format`](mod@format): sizes, rates and times as text.
//! - [`rounding`]: how many digits a number has.
//! - [`calendar`]: points in time.
//! - [`escape`]: names and text of others, safe for a terminal.
//! - [`names`]: what a mistyped name meant.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod calendar;
pub mod escape;
pub mod failures;
pub mod finding;
pub mod format;
pub mod interruptible;
pub mod names;
pub mod offset;
pub mod rounding;
