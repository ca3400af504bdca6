//! The arguments of the command line: what is typed becomes a request of `service`.
//!
//! Only clap is used here: no terminal, no exit code. A second program can take the same arguments.
//!
//! # Map
//!
//! - [`probe`]: the arguments of `takeup probe`.
//! - [`bench`]: those of `takeup bench`.
//! - [`compare`]: those of `takeup compare`.
//! - [`report`]: those of `takeup report`.

pub mod bench;
pub mod compare;
pub mod probe;
pub mod report;

pub use base::quantity;
