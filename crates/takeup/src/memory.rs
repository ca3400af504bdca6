//! Ends the run when memory runs out: exit code 1, one line, no partial file.
//!
//! The standard library would abort: a signal, a core file, and a partial file left behind. The run
//! cannot continue, since even printing needs memory, so this module ends the process without
//! allocating.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};

use crate::exit_code::FAILED;

/// The allocator of the system, which ends the process instead of returning null.
pub struct OrEnd;

// SAFETY: every call is passed on to the system allocator with the same arguments. A null pointer
// is not returned, since the process ends first.
unsafe impl GlobalAlloc for OrEnd {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that the system allocator requires.
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
    // SAFETY: no destructor and no handler of this process runs after it.
    unsafe { nix::libc::_exit(i32::from(FAILED)) }
}
