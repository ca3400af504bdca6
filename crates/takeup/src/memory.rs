//! The end of a run whose memory does not suffice: exit code 1, one line, no partial file.
//!
//! The standard library aborts where an allocation fails: a signal, a core file, and a partial file
//! that stays. Nothing can go on then, since every line that is printed needs memory, so the
//! process ends here without any.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};

use crate::exit_code::FAILED;

/// The allocator of the system, which never fails and returns.
pub struct OrEnd;

// SAFETY: every call is the system allocator's, with the arguments that came. A null pointer is
// not returned, since the process has ended then.
unsafe impl GlobalAlloc for OrEnd {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the same as those that are asked for.
        or_end(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        or_end(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as above.
        or_end(unsafe { System.realloc(at, layout, bytes) })
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

fn or_end(at: *mut u8) -> *mut u8 {
    if at.is_null() {
        end();
    }
    at
}

#[cold]
fn end() -> ! {
    let _ = rustix::io::write(rustix::stdio::stderr(), b"takeup: out of memory\n");
    device::target::abandon();
    // SAFETY: nothing of this process runs behind it: no destructor, no handler.
    unsafe { nix::libc::_exit(i32::from(FAILED)) }
}
