//! A program that is stopped at every system call of every thread, for tests. A test can see the
//! call, act before it, and make it fail, move fewer bytes than requested, or report an error after
//! it was made.
//!
//! It only uses ptrace(2): the program runs as users run it, and the kernel makes every call that a
//! test does not change. x86-64 only.

mod call;
mod traced;

pub use call::{Call, CallVerdict};
pub use traced::{ProgramEnd, Step, Stepped};
