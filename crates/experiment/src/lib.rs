//! Experiments: plan, run, judge.
//!
//! [`plan`] defines what is varied; [`run`] executes its cells in randomised blocks through an
//! [`run::Executor`] and appends each run to a file of [`record`]s as soon as it ends. The analysis
//! comes later and from the file alone: `statistics` has the methods and the fitted curves,
//! [`judgement`] turns the results into sentences, and [`compare`] compares two experiments;
//! [`power`] computes how many repeats a difference needs. [`quantities`] has the properties of
//! factors and measures by name, [`environment`] and [`observed`] record the conditions of a run,
//! [`import`] reads tables of other measurements.
//!
//! Not here: what a run does (executors in `loads`), drawing (`report`), and command-line arguments
//! (the binary).
//!
//! # Map
//!
//! - [`plan`]: what is varied, and how often.
//! - [`run`]: the cells of a plan in randomised blocks, through an executor.
//! - [`record`]: the file of runs.
//! - [`environment`]: the kernel, the device and their settings.
//! - [`observed`]: counters of the device and the machine during a run.
//! - [`quantities`]: factors and measures by their names.
//! - [`judgement`]: from runs to sentences.
//! - [`compare`]: two experiments side by side.
//! - [`power`]: how many repeats a difference needs.
//! - [`import`]: tables of other measurements as an experiment.

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
