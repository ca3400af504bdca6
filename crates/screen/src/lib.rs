//! Shows a watch to the user: as [`lines`] that scroll, or on the whole terminal. [`browse`] shows
//! the folders of backup sets there.
//!
//! A [`timeline::Timeline`] keeps the last intervals, from this machine or a record. A
//! [`view::View`] holds what the user has chosen with keys. [`draw::draw`] makes a picture of both,
//! independent of a terminal. [`run`] connects them with a terminal, which [`terminal::Screen`]
//! takes and restores.
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
//! - `details`: one device.
//! - `help`: the keys.
//! - [`terminal`]: the terminal, taken and restored.
//! - [`run`]: the loop.
//! - [`browse`]: folders of a catalogue as of a day.
//! - `browse::keys`: what keys do there.
//! - `browse::draw`: the picture of it.
//! - [`browse::run`]: its loop.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod browse;
mod details;
pub mod draw;
mod fields;
mod help;
pub mod lines;
pub mod run;
pub mod terminal;
pub mod timeline;
pub mod view;

#[cfg(test)]
mod tests;
