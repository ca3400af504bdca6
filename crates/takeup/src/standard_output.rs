//! Whether there was a standard output when the program was started.
//!
//! Before `main`, Rust's runtime opens `/dev/null` in place of a closed standard output, so that no
//! later file gets its descriptor. From then on it looks like a redirection to `/dev/null` by the
//! user: a listing or a whole archive would be lost, and the run would look successful. So this
//! module looks before the runtime does.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// The loader calls the functions in this section before the runtime starts (System V ABI,
/// "Initialization and Termination Functions").
// SAFETY: the section holds pointers to functions with the C calling convention, as this one. The
// function needs nothing of the runtime: a system call, and a store to a static without set-up.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    let flags = rustix::io::fcntl_getfd(rustix::stdio::stdout());
    WAS_CLOSED.store(flags == Err(rustix::io::Errno::BADF), Ordering::Relaxed);
}

/// Whether the program was started with its standard output closed.
pub fn was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}
