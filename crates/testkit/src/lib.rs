//! What tests of all crates share: what a test needs of the machine ([`needs`], with the macros
//! [`require!`], [`fully!`], [`long_run!`] and [`does_not_apply!`]), data and recorded machines
//! ([`samples`]), and a program that is stopped at every system call ([`stepper`]).
//!
//! Nothing outside of tests may depend on this crate.
//!
//! # Map
//!
//! - [`needs`]: what a test needs of the machine.
//! - [`samples`]: data from a seed, and recorded machines.
//! - [`stepper`]: a program that is stopped at every system call.

pub mod needs;
pub mod samples;
pub mod stepper;
