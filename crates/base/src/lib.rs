//! What every crate may use: system calls that survive a signal ([`interruptible`]), errors with
//! their causes and locks that survive a panic ([`failures`]), byte offsets typed by the stream
//! they count in ([`offset`]), findings and their rules ([`finding`]), and the text form of numbers
//! ([`format`](mod@format), [`rounding`]), numbers as they are typed ([`quantity`]), points in time
//! ([`calendar`]), foreign text ([`escape`]), mistyped names ([`names`]) and names of tape drives
//! ([`drive_names`]).
//!
//! This crate depends on no other crate of Takeup.
//!
//! # Map
//!
//! - [`interruptible`]: system calls that are repeated after a signal.
//! - [`failures`]: errors with their causes, locks that survive a panic.
//! - [`offset`]: byte offsets, typed by the stream they count in.
//! - [`finding`]: findings and their rules.
//! - [`format`](mod@format): sizes, rates and times as text.
//! - [`random`]: random identities.
//! - [`rounding`]: how many digits to print.
//! - [`calendar`]: points in time.
//! - [`escape`]: foreign names and text, made safe for a terminal.
//! - [`names`]: suggestions for a mistyped name.
//! - [`drive_names`]: names that only tape drives have.
//! - [`quantity`]: sizes, rates and times as they are typed.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod calendar;
pub mod drive_names;
pub mod escape;
pub mod failures;
pub mod finding;
pub mod format;
pub mod interruptible;
pub mod names;
pub mod offset;
pub mod quantity;
pub mod random;
pub mod rounding;
