//! Shows a watch to the user: as [`lines`] that scroll, or on the whole terminal.
//!
//! A [`timeline::Timeline`] keeps the last intervals, from this machine or a record. A
//! [`view::View`] holds what the user has chosen with keys. [`draw::draw`] makes a picture of both,
//! independent of a terminal. [`run`] connects them with a terminal, which [`terminal::Screen`]
//! takes and restores.
//!
//! A whole record becomes a text or a page ([`history`]). So does a comparison of two records
//! ([`comparison`]), and a capture with the devices that were watched at the same time
//! ([`captured`]); the stages of Takeup's own runs are above it ([`stages`]).
//!
//! Not here: the meaning of the numbers (crate `watch`), and the source of readings (the command).
//!
//! # Map
//!
//! - [`lines`]: intervals as lines that scroll.
//! - [`timeline`]: the last intervals, from this machine or a record.
//! - [`view`]: what the user has chosen with keys.
//! - [`draw`]: a picture of both, for any terminal.
//! - `fields`: the columns that fit.
//! - `tree`: layers as a tree.
//! - [`glyphs`]: characters that a terminal can draw.
//! - `details`: one device.
//! - `help`: the keys.
//! - [`terminal`]: the terminal, taken and restored.
//! - [`run`]: the loop.
//! - [`history`]: a record as a text and a page.
//! - [`comparison`]: a comparison of two records.
//! - [`captured`]: a capture with its devices on one page.
//! - [`stages`]: the stages of Takeup's own runs.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod captured;
pub mod comparison;
mod details;
pub mod draw;
mod fields;
pub mod glyphs;
mod help;
pub mod history;
pub mod lines;
pub mod run;
pub mod stages;
pub mod terminal;
pub mod timeline;
mod tree;
pub mod view;

#[cfg(test)]
mod tests;
