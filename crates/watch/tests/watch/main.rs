//! Columns compared with those of other programs, and records that are read back.
#![allow(clippy::unwrap_used)]

mod iostat;
mod loads;
mod loop_device;
mod published;
mod records;
mod unplugged;
