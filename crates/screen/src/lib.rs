//! How a watch is shown to a person: in [`lines`] that scroll by, or on a whole terminal.
//!
//! A [`timeline::Timeline`] keeps the last intervals, whether they come from this machine or from a
//! record; a [`view::View`] is what a person has chosen to see of them, changed by keys;
//! [`draw::draw`] makes a picture of both and knows no terminal. [`run`] joins them with one, which
//! [`terminal::Screen`] takes and gives back as it was.
//!
//! A whole record is a text or a page ([`history`]), and so are two of them side by side
//! ([`comparison`]) and one of a capture with the devices that were watched beside it
//! ([`captured`]); what the stages of our own runs did meanwhile stands above it ([`stages`]).
//!
//! Not here: what any of the numbers mean (`watch`), and where readings come from, which is the
//! command's.
//!
//! # Map
//!
//! - [`lines`]: intervals as lines that scroll by.
//! - [`timeline`]: the last intervals, from this machine or a record.
//! - [`view`]: what the keys have chosen.
//! - [`draw`]: a picture of both, for any terminal.
//! - `fields`: the columns that fit.
//! - `tree`: layers below what lies on them.
//! - [`glyphs`]: letters and blocks that a terminal can draw.
//! - `details`: one device.
//! - `help`: the keys.
//! - [`terminal`]: the terminal, taken and given back as it was.
//! - [`run`]: the loop.
//! - [`history`]: a record as a text and a page.
//! - [`comparison`]: two records side by side.
//! - [`captured`]: a capture with its devices on one page.
//! - [`stages`]: the stages of our own runs above them.
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
