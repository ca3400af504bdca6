//! Experiments: plan, run, judge.
//!
//! [`plan`] says what is varied; [`run`] executes its cells in randomised blocks through an
//! [`run::Executor`] and appends each run to a file of [`record`]s the moment it ends. What the
//! numbers mean is found later and from the file alone: [`statistics`] holds the methods, each with
//! its citation, [`model`] the curves that are fitted, [`judgement`] turns both into sentences, and
//! [`compare`] sets two experiments side by side; [`calibrate`] finds the parameters of a drive's
//! model in one. What is known of factors and measures by name is in [`quantities`]. [`read`],
//! [`disk`], [`tape`] and
//! [`programs`] are the executors; [`payload`] and [`framing`] make what the last one writes.
//!
//! Not here: drawing, which is `report`'s, and arguments, which are the binary's.

pub mod calibrate;
pub mod compare;
pub mod disk;
pub mod environment;
pub mod framing;
pub mod histogram;
pub mod import;
pub mod judgement;
pub mod memory;
pub mod model;
pub mod observed;
pub mod payload;
pub mod plan;
pub mod power;
pub mod presentation;
pub mod programs;
pub mod quantities;
pub mod random;
pub mod read;
pub mod record;
pub mod run;
pub mod series;
pub mod statistics;
pub mod tape;
