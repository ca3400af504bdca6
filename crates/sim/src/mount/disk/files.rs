//! The files of the folder, as FUSE asks for them.
//!
//! `disk` is opened for direct I/O: each call is one request of the disk, and there may be any
//! number at once. `cached` has the same bytes through the page cache, with the read-ahead of the
//! folder's backing device, like a file of a file system on that disk.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::failures::lock;
use fuser::{
    Errno, FopenFlags, InitFlags, KernelConfig, OpenAccMode, OpenFlags, ReplyData, ReplyEmpty,
    ReplyWrite,
};
use model::disk::Operation;
use rustix::fs::FallocateFlags;

use super::backing::{Access, Backing};
use super::queue::Queue;
use super::status;
use crate::mount::STATUS_NAME;
use crate::mount::folder::{Attributes, Files, StatusFiles};

/// Requests that the kernel sends without waiting for an answer: read-ahead and asynchronous direct
/// I/O. More than a loop device (128), or any disk's queue, has.
const BACKGROUND_MAX: u16 = 1024;
/// Buffers kept for the next reads, to avoid fresh pages for each.
const SPARE_BUFFERS_MAX: usize = 64;
/// Only the bytes of the disk ever change.
const FOREVER: Duration = Duration::from_secs(3600);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum File {
    Disk,
    Cached,
    Status,
}

impl File {
    fn is_disk(self) -> bool {
        matches!(self, File::Disk | File::Cached)
    }
}

/// What is behind the folder.
pub(super) struct DiskFiles {
    preset: String,
    backing: Arc<Backing>,
    queue: Arc<Queue>,
    request_bytes_max: u32,
    spare: Arc<Mutex<Vec<Vec<u8>>>>,
    status_files: StatusFiles,
    /// Whether the page cache of `cached` is stale because `disk` was written.
    written_past_cache: AtomicBool,
}

impl DiskFiles {
    pub(super) fn new(
        preset: String,
        backing: Arc<Backing>,
        queue: Arc<Queue>,
        request_bytes_max: u32,
    ) -> DiskFiles {
        DiskFiles {
            preset,
            backing,
            queue,
            request_bytes_max,
            spare: Arc::default(),
            status_files: StatusFiles::default(),
            written_past_cache: AtomicBool::new(false),
        }
    }

    fn buffer(&self, bytes: usize) -> Vec<u8> {
        let spare = lock(&self.spare).pop();
        let mut buffer = spare.unwrap_or_default();
        if buffer.len() < bytes {
            buffer.resize(bytes, 0);
        }
        buffer
    }

    fn read_disk(&self, offset: u64, size: u32, reply: ReplyData) {
        let bytes = self.backing.within(offset, u64::from(size));
        if bytes == 0 {
            return reply.data(&[]);
        }
        let arrival = self.queue.arrive(Operation::Read { offset, bytes });
        // At most `size`, which is 32 bits.
        let length = bytes as usize;
        let mut buffer = self.buffer(length);
        let read = self.backing.read(&mut buffer[..length], offset);
        let spare = Arc::clone(&self.spare);
        let answer = move || {
            match read {
                Ok(()) => reply.data(&buffer[..length]),
                Err(error) => reply.error(broken(&error)),
            }
            let mut spare = lock(&spare);
            if spare.len() < SPARE_BUFFERS_MAX {
                spare.push(buffer);
            }
        };
        self.queue.complete(arrival, bytes, Box::new(answer));
    }

    fn write_disk(&self, file: File, offset: u64, data: &[u8], reply: ReplyWrite) {
        let bytes = self.backing.within(offset, data.len() as u64);
        if bytes == 0 {
            return reply.error(Errno::ENOSPC);
        }
        if file == File::Disk {
            self.written_past_cache.store(true, Ordering::Release);
        }
        let arrival = self.queue.arrive(Operation::Write { offset, bytes });
        // At most one FUSE request.
        let length = bytes as usize;
        let written = self.backing.write(&data[..length], offset);
        let answer = move || match written {
            Ok(()) => reply.written(length as u32),
            Err(error) => reply.error(broken(&error)),
        };
        self.queue.complete(arrival, 0, Box::new(answer));
    }

    fn finish(
        &self,
        operation: Operation,
        reply: ReplyEmpty,
        act: impl FnOnce() -> io::Result<()>,
    ) {
        let arrival = self.queue.arrive(operation);
        let done = act();
        let answer = move || match done {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(broken(&error)),
        };
        self.queue.complete(arrival, 0, Box::new(answer));
    }
}

/// The error that a program sees for a failure of the backing file: the disk is broken. An
/// unsupported operation is reported as such.
fn broken(error: &io::Error) -> Errno {
    match error.kind() {
        io::ErrorKind::Unsupported => Errno::EOPNOTSUPP,
        _ => Errno::EIO,
    }
}

impl Files for DiskFiles {
    type File = File;
    const NAMES: &'static [(File, &'static str)] = &[
        (File::Disk, super::names::DISK_NAME),
        (File::Cached, super::names::CACHED_NAME),
        (File::Status, STATUS_NAME),
    ];

    fn begin(&self, config: &mut KernelConfig) {
        // Kernels without these features do without: one direct I/O at a time, no shared maps.
        for wanted in [InitFlags::FUSE_ASYNC_DIO, InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP] {
            let _ = config.add_capabilities(wanted);
        }
        let _ = config.set_max_background(BACKGROUND_MAX);
        let _ = config.set_max_write(self.request_bytes_max);
        if let Err(most) = config.set_max_readahead(self.request_bytes_max) {
            let _ = config.set_max_readahead(most);
        }
    }

    fn attributes(&self, file: File) -> Attributes {
        let bytes = if file.is_disk() { self.backing.bytes() } else { 0 };
        let permissions = match (file, self.backing.access()) {
            (File::Status, _) => 0o444,
            (_, Access::ReadWrite) => 0o600,
            (_, Access::ReadOnly) => 0o400,
        };
        Attributes { permissions, bytes }
    }

    fn time_to_live(&self, file: Option<File>) -> Duration {
        if file == Some(File::Status) { Duration::ZERO } else { FOREVER }
    }

    fn room_bytes(&self) -> u64 {
        self.backing.bytes()
    }

    // Its size cannot change.
    fn resize(&self, file: File, bytes: u64) -> Result<(), Errno> {
        if file.is_disk() && bytes != 0 && bytes != self.backing.bytes() {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }

    fn open(&self, file: File, flags: OpenFlags) -> Result<(u64, FopenFlags), Errno> {
        let writes = flags.acc_mode() != OpenAccMode::O_RDONLY;
        if writes && (file == File::Status || self.backing.access() == Access::ReadOnly) {
            return Err(Errno::EROFS);
        }
        Ok(match file {
            File::Status => {
                let state = || status::status(&self.preset, &self.backing, &self.queue.reading());
                (self.status_files.open(state)?, FopenFlags::FOPEN_DIRECT_IO)
            }
            File::Disk => {
                (0, FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES)
            }
            // The cache is like a disk's: it outlives the descriptor.
            File::Cached if self.written_past_cache.swap(false, Ordering::AcqRel) => {
                (0, FopenFlags::empty())
            }
            File::Cached => (0, FopenFlags::FOPEN_KEEP_CACHE),
        })
    }

    fn read(&self, file: File, handle: u64, offset: u64, size: u32, reply: ReplyData) {
        match file {
            File::Disk | File::Cached => self.read_disk(offset, size, reply),
            File::Status => self.status_files.read(handle, offset, size, reply),
        }
    }

    fn write(&self, file: File, _handle: u64, offset: u64, data: &[u8], reply: ReplyWrite) {
        if file.is_disk() {
            self.write_disk(file, offset, data, reply);
        } else {
            reply.error(Errno::EACCES);
        }
    }

    fn synchronise(&self, file: File, reply: ReplyEmpty) {
        if file.is_disk() {
            self.finish(Operation::Flush, reply, || self.backing.flush());
        } else {
            reply.ok();
        }
    }

    fn release(&self, file: File, handle: u64) {
        if file == File::Status {
            self.status_files.close(handle);
        }
    }

    fn allocate(&self, file: File, offset: u64, length: u64, mode: i32, reply: ReplyEmpty) {
        if !file.is_disk() {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let bytes = self.backing.within(offset, length);
        let mode = FallocateFlags::from_bits_retain(mode as u32);
        if bytes < length && !mode.contains(FallocateFlags::KEEP_SIZE) {
            return reply.error(Errno::ENOSPC);
        }
        if bytes == 0 {
            return reply.ok();
        }
        let clears = FallocateFlags::PUNCH_HOLE | FallocateFlags::ZERO_RANGE;
        if mode.intersects(clears) {
            if file == File::Disk {
                self.written_past_cache.store(true, Ordering::Release);
            }
            let act = || self.backing.discard(offset, bytes);
            self.finish(Operation::Discard { offset }, reply, act);
        } else if (mode - FallocateFlags::KEEP_SIZE).is_empty() {
            // A disk has its room; allocating it is between this program and its file.
            self.finish(Operation::Discard { offset }, reply, || {
                self.backing.allocate(offset, bytes)
            });
        } else {
            reply.error(Errno::EOPNOTSUPP);
        }
    }
}
