//! Whether there was a standard output when the program was started.
//!
//! The runtime of the language opens `/dev/null` in the place of a standard output that is closed,
//! before `main` (so that no file that is opened later gets its number), and from then on nobody
//! can tell it from one that the user has sent there: what should have been printed, a listing or
//! a whole archive, is gone, and the run looks successful. So this looks before the runtime does.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// The loader calls what stands in this section before the runtime begins (System V ABI,
/// "Initialization and Termination Functions").
// SAFETY: the section holds pointers to functions with the C calling convention, and this is one.
// It needs nothing of the runtime: a system call, and a store to a static that needs no set-up.
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
