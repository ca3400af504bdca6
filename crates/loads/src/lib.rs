//! What an experiment runs: streams of files ([`read`]), block devices with fio ([`disk`]), tape
//! drives ([`tape`]) and commands of others ([`programs`]). Each is an executor of a plan of
//! `experiment`. [`payload`] and [`framing`] make what is written to tape, [`memory`] takes memory
//! back from the host before a run, and [`calibrate`] finds the parameters of a device's model in
//! an experiment.
//!
//! Not here: the order of runs, their record and what they mean, which are `experiment`'s.

pub mod calibrate;
pub mod disk;
pub mod framing;
pub mod memory;
pub mod payload;
pub mod programs;
pub mod read;
pub mod tape;
