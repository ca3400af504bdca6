//! The io_uring wrapper, with the `unsafe` code that it needs.
//!
//! Buffers are not registered: with huge pages behind the ring the cost of pinning them per
//! transfer is below one percent at 1 MiB, and registration counts against RLIMIT_MEMLOCK, which
//! is 8 MiB for ordinary users.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, types};

use super::{Backend, Completion, Memory, TransferRequest};

/// Transfers through an io_uring instance of its own.
pub struct UringBackend {
    uring: IoUring,
    slots: Vec<Option<TransferRequest>>,
    free: Vec<usize>,
}

impl UringBackend {
    /// A back end for up to `depth` transfers at once.
    pub fn new(depth: usize) -> io::Result<UringBackend> {
        let depth = depth.max(1);
        let uring = IoUring::builder().setup_clamp().build(depth.next_power_of_two() as u32)?;
        let slots = (0..depth).map(|_| None).collect();
        Ok(UringBackend { uring, slots, free: (0..depth).rev().collect() })
    }
}

impl Backend for UringBackend {
    fn name(&self) -> &'static str {
        "io_uring"
    }

    fn depth(&self) -> usize {
        self.slots.len()
    }

    fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn submit(&mut self, operation: TransferRequest) -> io::Result<()> {
        let slot = self.free.pop().expect("the caller keeps to the depth");
        let file = types::Fd(operation.file.as_raw_fd());
        let length = (operation.memory.len() - operation.done_bytes) as u32;
        let entry = match &operation.memory {
            Memory::Fill(piece) => {
                let address = piece.address().wrapping_add(operation.done_bytes);
                opcode::Read::new(file, address, length).offset(operation.offset_bytes).build()
            }
            Memory::Drain(block) => {
                let address = block.address().wrapping_add(operation.done_bytes);
                opcode::Write::new(file, address, length).offset(operation.offset_bytes).build()
            }
        };
        self.slots[slot] = Some(operation);
        // SAFETY: the memory and the descriptor belong to the operation, which stays in its slot
        // until its completion is reaped; `drop` waits for all that are left.
        let pushed = unsafe { self.uring.submission().push(&entry.user_data(slot as u64)) };
        pushed.expect("the queue is as long as the depth");
        self.uring.submit().map(|_| ())
    }

    fn wait(&mut self) -> io::Result<Completion> {
        loop {
            if let Some(entry) = self.uring.completion().next() {
                let slot = entry.user_data() as usize;
                let operation = self.slots[slot].take().expect("a completion has its operation");
                self.free.push(slot);
                let result = match entry.result() {
                    bytes if bytes >= 0 => Ok(bytes as usize),
                    error => Err(io::Error::from_raw_os_error(-error)),
                };
                return Ok(Completion { operation, result });
            }
            match self.uring.submit_and_wait(1) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
    }
}

impl Drop for UringBackend {
    /// The kernel may still write to the memory of operations in flight: wait for them.
    fn drop(&mut self) {
        while self.in_flight() > 0 {
            if self.wait().is_err() {
                // The ring itself is broken. The memory must then never be freed.
                self.slots.drain(..).flatten().for_each(std::mem::forget);
                self.free.clear();
                return;
            }
        }
    }
}
