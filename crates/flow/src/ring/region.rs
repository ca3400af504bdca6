//! The aligned buffers: one anonymous mapping that a ring cuts into blocks.
//!
//! Its `unsafe` code is the memory itself. A [`Region`] hands out [`Span`]s, each the only owner of
//! its bytes while it lives; the ring decides who owns which bytes when. Direct I/O and the tape
//! driver's direct transfers need page alignment. Huge pages keep a 1 MiB block in one piece of
//! physical memory, which saves the kernel 256 page look-ups for each transfer.
#![allow(unsafe_code)]

use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::mm::{Advice, MapFlags, ProtFlags};

/// One anonymous mapping, unmapped when the last span of it is gone.
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    length_bytes: usize,
}

// SAFETY: the mapping is plain memory owned by this value; all access goes through spans, which
// never overlap (see `Region::span`).
unsafe impl Send for Region {}
// SAFETY: as above; `Region` itself has no method that reads or writes the mapping.
unsafe impl Sync for Region {}

impl Region {
    /// Maps `length_bytes` of zeroed, page-aligned memory; rounded up to 2 MiB so that the kernel
    /// can back it with huge pages.
    pub fn new(length_bytes: usize) -> io::Result<Arc<Region>> {
        const HUGE_PAGE_BYTES: usize = 2 << 20;
        let length_bytes = length_bytes.max(1).next_multiple_of(HUGE_PAGE_BYTES);
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a fresh anonymous private mapping at an address of the kernel's choice.
        let base = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                length_bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
            )?
        };
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: the range is exactly the mapping made above. Huge pages are a wish: a kernel
        // without them says EINVAL and ordinary pages serve.
        let _ = unsafe {
            rustix::mm::madvise(base.as_ptr().cast(), length_bytes, Advice::LinuxHugepage)
        };
        Ok(Arc::new(Region { base, length_bytes }))
    }

    /// Exclusive access to `length_bytes` at `offset_bytes`.
    ///
    /// # Safety
    /// No other span of an overlapping range may exist while the returned one lives, except spans
    /// that are only read while this one is only read too.
    pub(super) unsafe fn span(
        self: &Arc<Region>,
        offset_bytes: usize,
        length_bytes: usize,
    ) -> Span {
        let end = offset_bytes.checked_add(length_bytes).expect("a span lies in its region");
        assert!(end <= self.length_bytes, "a span lies in its region");
        Span { region: Arc::clone(self), offset_bytes, length_bytes }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this length, and no span is left, since each
        // holds an `Arc` of the region.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.length_bytes) };
    }
}

/// Some bytes of a region, owned by the holder of this span.
#[derive(Debug)]
pub struct Span {
    region: Arc<Region>,
    offset_bytes: usize,
    length_bytes: usize,
}

impl Span {
    /// Cuts the first `bytes` off; `self` keeps the rest.
    pub fn split_front(&mut self, bytes: usize) -> Span {
        assert!(bytes <= self.length_bytes, "a span is cut inside its bounds");
        let front = Span {
            region: Arc::clone(&self.region),
            offset_bytes: self.offset_bytes,
            length_bytes: bytes,
        };
        self.offset_bytes += bytes;
        self.length_bytes -= bytes;
        front
    }

    /// Address of the first byte, for system calls that outlive a borrow (io_uring).
    pub(crate) fn address(&self) -> *mut u8 {
        // SAFETY: the offset lies in the mapping (checked when the span was made).
        unsafe { self.region.base.as_ptr().add(self.offset_bytes) }
    }
}

impl Deref for Span {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: in bounds of a live mapping, initialised (zero pages), and by the contract of
        // `Region::span` no one writes these bytes while this span is borrowed.
        unsafe { std::slice::from_raw_parts(self.address(), self.length_bytes) }
    }
}

impl DerefMut for Span {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and by the contract of `Region::span` this is the only span here.
        unsafe { std::slice::from_raw_parts_mut(self.address(), self.length_bytes) }
    }
}
