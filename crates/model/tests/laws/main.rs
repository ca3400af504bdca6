//! Laws that the models of drive, disk and programs obey for any input.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod disk;
mod drive;
mod heads;
mod plan;
mod speed;
mod sweep;
