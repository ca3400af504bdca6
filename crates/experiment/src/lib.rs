//! Experiments: plan, run, judge.
//!
//! [`plan`] says what is varied; [`run`] executes its cells in randomised blocks through an
//! [`run::Executor`] and appends each run to a file of [`record`]s the moment it ends. What the
//! numbers mean is found later and from the file alone: `statistics` holds the methods and the
//! curves that are fitted, [`judgement`] turns both into sentences, and [`compare`] sets two
//! experiments side by side; [`power`] says how many repeats a difference needs. Factors and
//! measures are known by name in [`quantities`], [`environment`] and [`observed`] hold what was
//! seen beside the run, [`import`] reads what others measured.
//!
//! Not here: what a run does, which is an executor of `loads`; drawing, which is `report`'s; and
//! arguments, which are the binary's.
//!
//! # Map
//!
//! - [`plan`]: what is varied, and how often.
//! - [`run`]: the cells of a plan in randomised blocks, through an executor.
//! - [`record`]: the file of runs.
//! - [`environment`]: the kernel, the device and their settings.
//! - [`observed`]: what was seen from outside during a run.
//! - [`quantities`]: factors and measures by their names.
//! - [`judgement`]: from runs to sentences.
//! - [`compare`]: two experiments side by side.
//! - [`power`]: how many repeats a difference needs.
//! - [`import`]: tables of others as an experiment.

pub mod compare;
pub mod environment;
pub mod import;
pub mod judgement;
pub mod observed;
pub mod plan;
pub mod power;
pub mod quantities;
pub mod record;
pub mod run;
