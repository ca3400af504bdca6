//! The arguments of the command line: what is typed becomes a request of `service`.
//!
//! Only clap is used here: no terminal, no exit code. A second program can take the same arguments.
//!
//! # Map
//!
//! - [`quantity`]: sizes, rates and times as they are typed.
//! - [`parameter`]: a parameter of a drive as it is typed.
//! - [`plan`]: the arguments of `takeup plan`.
//! - [`probe`]: the arguments of `takeup probe`.
//! - [`tune`]: the arguments of `takeup tune`.
//! - [`sim`]: the arguments of `takeup sim`.

pub mod parameter;
pub mod plan;
pub mod probe;
pub mod quantity;
pub mod tune;
pub mod sim;
