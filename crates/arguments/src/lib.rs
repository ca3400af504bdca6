//! The arguments of the command line: what is typed becomes a request of `service`.
//!
//! Only clap is used here: no terminal, no exit code. A second program can take the same arguments.
//!
//! # Map
//!
//! - [`quantity`]: sizes, rates and times as they are typed.
//! - [`probe`]: the arguments of `takeup probe`.
//! - [`explain`]: the arguments of `takeup explain`.
//! - [`capture`]: the arguments of `takeup capture`.
//! - [`watch`]: the arguments of `takeup watch`.

pub mod capture;
pub mod explain;
pub mod probe;
pub mod quantity;
pub mod watch;
