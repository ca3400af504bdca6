//! A program that is stopped at every system call of every thread, for tests: what it was about
//! to do can be seen, something can be done behind its back, and the call can be made to fail, to
//! take less than it was given, or to report an error after it was done.
//!
//! It is ptrace(2) and nothing else: the program runs as users run it, and the kernel does what is
//! not told otherwise. x86-64 only.

mod call;
mod traced;

pub use call::{Call, CallVerdict};
pub use traced::{ProgramEnd, Step, Stepped};
