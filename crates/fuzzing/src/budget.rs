//! What a reader may use of the machine for an input, enforced on every input of every target: an
//! allocator that counts, and the kernel's count of processor time.
//!
//! The constants are generous, since a target reads each input in several ways; what they catch is
//! what grows with the square of the input, or with what the input claims. Memory that zstd takes
//! for itself is not seen here; `crates/takeup/tests/faults/budgets.rs` sees all of it.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use machine::counters::processor::thread_ns;

/// Bytes that any input may take, 16 MiB of them the largest block of a tape; and for each of its
/// bytes.
const BASE_BYTES: usize = (16 << 20) + (4 << 20);
const BYTES_PER_BYTE: usize = 256;
/// Processor time that any input may take, and for each of its bytes.
const BASE_NS: u64 = 200_000_000;
const NS_PER_BYTE: u64 = 20_000;

struct Counting;

/// Bytes in use, and the most of them since a budget began. What a thread frees may come from
/// another one: the difference counts.
#[derive(Clone, Copy)]
struct Memory {
    used: isize,
    peak: isize,
}

thread_local! {
    static MEMORY: Cell<Memory> = const { Cell::new(Memory { used: 0, peak: 0 }) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(bytes: isize) {
    // A thread that ends frees its last memory after its own variables are gone.
    let _ = MEMORY.try_with(|memory| {
        let Memory { used, peak } = memory.get();
        let used = used.wrapping_add(bytes);
        memory.set(Memory { used, peak: peak.max(used) });
    });
}

// SAFETY: all that is asked for is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller keeps to what `alloc` asks of it.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller keeps to what `alloc_zeroed` asks of it.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the memory came from `System` with this layout.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes.cast_signed());
        count(-layout.size().cast_signed());
        // SAFETY: the memory came from `System` with this layout.
        unsafe { System.realloc(memory, layout, bytes) }
    }
}

/// Held while an input is read; when dropped it panics if that has taken too much.
pub struct Budget {
    input_bytes: usize,
    used_before: isize,
    ns_before: u64,
}

impl Budget {
    /// The budget of an input, which is read from now on.
    #[must_use]
    pub fn of(input: &[u8]) -> Budget {
        let ns_before = thread_ns();
        let used_before = MEMORY.get().used;
        MEMORY.set(Memory { used: used_before, peak: used_before });
        Budget { input_bytes: input.len(), used_before, ns_before }
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let bytes = (MEMORY.get().peak - self.used_before).cast_unsigned();
        let bytes_max = BASE_BYTES + BYTES_PER_BYTE * self.input_bytes;
        assert!(bytes <= bytes_max, "{bytes} bytes of memory for {}", self.input_bytes);
        let ns = thread_ns() - self.ns_before;
        let ns_max = BASE_NS + NS_PER_BYTE * self.input_bytes as u64;
        assert!(ns <= ns_max, "{ns} ns of processor time for {} bytes", self.input_bytes);
    }
}
