//! What an experiment runs: streams of files ([`read`]), block devices with fio ([`disk`]), tape
//! drives ([`tape`]) and commands of others ([`programs`]). Each is an executor of a plan of
//! `experiment`. [`payload`] and [`framing`] make what is written to tape, [`memory`] takes memory
//! back from the host before a run, and [`calibrate`] finds the parameters of a device's model in
//! an experiment.
//!
//! Not here: the order of runs, their record and what they mean, which are `experiment`'s.
//!
//! # Map
//!
//! - [`read`]: streams of files.
//! - [`disk`]: block devices and files, with fio.
//! - [`tape`]: tape drives.
//! - [`programs`]: commands of the shell.
//! - [`payload`]: what is written to tape.
//! - [`framing`]: its layout: plain blocks, tar, Bacula.
//! - [`calibrate`]: from runs to the parameters of a model.
//! - [`memory`]: memory that a virtual machine has given back.

pub mod calibrate;
pub mod disk;
pub mod framing;
pub mod memory;
pub mod payload;
pub mod programs;
pub mod read;
pub mod tape;
