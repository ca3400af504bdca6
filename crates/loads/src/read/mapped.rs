//! A file as memory, for the engine `mmap`.
//!
//! The mapping is only ever read, by copies into the blocks of a ring, never as a slice: somebody
//! else may write to the file meanwhile, and Rust's slices promise that nobody does. A file that is
//! cut while it is mapped ends the process with SIGBUS, as it does every program that maps files;
//! `docs/bench.md` says so.
#![allow(unsafe_code)]

use std::io;
use std::ptr::NonNull;

use rustix::fd::AsFd;
use rustix::mm::{MapFlags, ProtFlags};

/// The first bytes of a file.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    length_bytes: usize,
}

// SAFETY: the mapping is only read, and nothing here depends on the thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the first `length_bytes` of a file.
    pub fn new(file: impl AsFd, length_bytes: u64) -> io::Result<Mapping> {
        let length_bytes = usize::try_from(length_bytes)
            .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        // SAFETY: a new mapping at an address of the kernel's choice; nothing is replaced.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                length_bytes,
                ProtFlags::READ,
                MapFlags::SHARED,
                file,
                0,
            )?
        };
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { base, length_bytes })
    }

    /// Copies what lies at `offset`.
    pub fn copy(&self, offset: u64, into: &mut [u8]) {
        let offset = usize::try_from(offset).expect("an offset in a mapping fits");
        let end = offset.checked_add(into.len()).expect("a copy ends inside of the mapping");
        assert!(end <= self.length_bytes, "a copy ends inside of the mapping");
        // SAFETY: the range lies in the mapping, which lives as long as `self`; `into` is memory of
        // its own, so the two do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.base.as_ptr().add(offset),
                into.as_mut_ptr(),
                into.len(),
            );
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `new` made, and no reference to it exists.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.length_bytes) };
    }
}
