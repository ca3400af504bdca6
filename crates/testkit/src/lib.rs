//! Shared parts of the tests of all crates: needs of tests ([`needs`], with the macros
//! [`require!`], [`fully!`], [`long_run!`], [`kernel_since!`] and [`does_not_apply!`]), data and
//! recorded machines ([`samples`]), file systems of their own ([`mounted`]), and a program that is
//! stopped at every system call ([`stepper`]).
//!
//! Nothing outside of tests may depend on this crate.
//!
//! # Map
//!
//! - `behind`: a command behind another one.
//! - [`mounted`]: a file system that is mounted as long as a test uses it.
//! - [`needs`]: the needs of a test.
//! - [`samples`]: data from a seed, and recorded machines.
//! - [`stepper`]: a program that is stopped at every system call.
//! - [`typed_page`]: a page whose commands are typed.

mod behind;
pub mod mounted;
pub mod needs;
pub mod samples;
#[cfg(target_arch = "x86_64")]
pub mod stepper;
pub mod typed_page;
