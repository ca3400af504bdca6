//! The files of the folder, as FUSE asks for them.
//!
//! `disk` is opened for direct I/O: what a program asks for is what the disk sees, a request for
//! each call, any number at once. `cached` has the same bytes through the page cache, with the
//! read-ahead of the folder's backing device, as a file of a file system on that disk would have.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use failures::lock;
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenAccMode, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request,
};
use rustix::fs::FallocateFlags;

use super::backing::{Access, Backing};
use super::queue::{Asked, Queue};
use super::status;

/// Requests that the kernel sends without waiting for an answer: read-ahead and asynchronous direct
/// I/O. More than a loop device has (128), or any disk's queue.
const BACKGROUND_MAX: u16 = 1024;
/// Buffers that are kept for the next read, so that not each one has to be made of fresh pages.
const SPARE_BUFFERS_MAX: usize = 64;
/// Nothing about the disk ever changes but its bytes.
const FOREVER: Duration = Duration::from_secs(3600);
const BLOCK_BYTES: u32 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Folder,
    Disk,
    Cached,
    Status,
}

const NODES: [(Node, &str); 3] =
    [(Node::Disk, super::DISK_NAME), (Node::Cached, super::CACHED_NAME), (Node::Status, "status")];

impl Node {
    fn of(number: INodeNo) -> Option<Node> {
        match number.0 {
            1 => Some(Node::Folder),
            other => NODES.get(usize::try_from(other).ok()?.checked_sub(2)?).map(|(node, _)| *node),
        }
    }

    fn number(self) -> u64 {
        NODES.iter().zip(2..).find(|((node, _), _)| *node == self).map_or(1, |(_, number)| number)
    }

    fn is_disk(self) -> bool {
        matches!(self, Node::Disk | Node::Cached)
    }
}

/// What is behind the folder.
pub(super) struct Folder {
    preset: String,
    backing: Arc<Backing>,
    queue: Arc<Queue>,
    request_bytes_max: u32,
    since: SystemTime,
    spare: Arc<Mutex<Vec<Vec<u8>>>>,
    /// What `status` said when it was opened, for each descriptor.
    told: Mutex<HashMap<u64, String>>,
    opened: AtomicU64,
    /// The page cache of `cached` has what `disk` had meanwhile written over.
    written_past_cache: AtomicBool,
}

impl Folder {
    pub(super) fn new(
        preset: String,
        backing: Arc<Backing>,
        queue: Arc<Queue>,
        request_bytes_max: u32,
    ) -> Folder {
        Folder {
            preset,
            backing,
            queue,
            request_bytes_max,
            since: SystemTime::now(),
            spare: Arc::default(),
            told: Mutex::default(),
            opened: AtomicU64::new(0),
            written_past_cache: AtomicBool::new(false),
        }
    }

    fn attributes(&self, node: Node) -> FileAttr {
        let writable = self.backing.access() == Access::ReadWrite;
        let (kind, perm) = match node {
            Node::Folder => (FileType::Directory, 0o755),
            Node::Disk | Node::Cached if writable => (FileType::RegularFile, 0o600),
            Node::Disk | Node::Cached => (FileType::RegularFile, 0o400),
            Node::Status => (FileType::RegularFile, 0o444),
        };
        let size = if node.is_disk() { self.backing.bytes() } else { 0 };
        FileAttr {
            ino: INodeNo(node.number()),
            size,
            blocks: size.div_ceil(512),
            atime: self.since,
            mtime: self.since,
            ctime: self.since,
            crtime: self.since,
            kind,
            perm,
            nlink: 1,
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            rdev: 0,
            blksize: BLOCK_BYTES,
            flags: 0,
        }
    }

    fn time_to_live(node: Node) -> Duration {
        if node == Node::Status { Duration::ZERO } else { FOREVER }
    }

    fn open_status(&self) -> FileHandle {
        let text = status::to_json(&self.preset, &self.backing, &self.queue.reading());
        let handle = self.opened.fetch_add(1, Ordering::Relaxed);
        self.told().insert(handle, text);
        FileHandle(handle)
    }

    fn read_status(&self, handle: FileHandle, offset: u64, size: u32) -> Vec<u8> {
        let told = self.told();
        let text = told.get(&handle.0).map_or(&[][..], String::as_bytes);
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
        let end = start.saturating_add(size as usize).min(text.len());
        text[start..end].to_vec()
    }

    fn told(&self) -> MutexGuard<'_, HashMap<u64, String>> {
        lock(&self.told)
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
        let arrival = self.queue.arrive(Asked::Read { offset, bytes });
        // No more than `size`, which is 32 bits.
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

    fn write_disk(&self, node: Node, offset: u64, data: &[u8], reply: ReplyWrite) {
        let bytes = self.backing.within(offset, data.len() as u64);
        if bytes == 0 {
            return reply.error(Errno::ENOSPC);
        }
        if node == Node::Disk {
            self.written_past_cache.store(true, Ordering::Release);
        }
        let arrival = self.queue.arrive(Asked::Write { offset, bytes });
        // No more than one request of FUSE holds.
        let length = bytes as usize;
        let written = self.backing.write(&data[..length], offset);
        let answer = move || match written {
            Ok(()) => reply.written(length as u32),
            Err(error) => reply.error(broken(&error)),
        };
        self.queue.complete(arrival, 0, Box::new(answer));
    }

    fn finish(&self, asked: Asked, reply: ReplyEmpty, act: impl FnOnce() -> io::Result<()>) {
        let arrival = self.queue.arrive(asked);
        let done = act();
        let answer = move || match done {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(broken(&error)),
        };
        self.queue.complete(arrival, 0, Box::new(answer));
    }
}

/// What a program sees of trouble with the backing file: that is not its business, the disk is
/// broken. What cannot be done at all is told as that.
fn broken(error: &io::Error) -> Errno {
    match error.kind() {
        io::ErrorKind::Unsupported => Errno::EOPNOTSUPP,
        _ => Errno::EIO,
    }
}

impl Filesystem for Folder {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // What a kernel does not have it does without: direct I/O one at a time, no shared maps.
        for wanted in [InitFlags::FUSE_ASYNC_DIO, InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP] {
            let _ = config.add_capabilities(wanted);
        }
        let _ = config.set_max_background(BACKGROUND_MAX);
        let _ = config.set_max_write(self.request_bytes_max);
        if let Err(most) = config.set_max_readahead(self.request_bytes_max) {
            let _ = config.set_max_readahead(most);
        }
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = NODES.iter().find(|(_, known)| known.as_bytes() == name.as_bytes());
        match found {
            Some((node, _)) if parent == INodeNo::ROOT => {
                let alive = Folder::time_to_live(*node);
                reply.entry(&alive, &self.attributes(*node), Generation(0));
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match Node::of(number) {
            Some(node) => reply.attr(&Folder::time_to_live(node), &self.attributes(node)),
            None => reply.error(Errno::ENOENT),
        }
    }

    // A program that creates its target truncates it, which a disk does not mind. Another size it
    // cannot have.
    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<fuser::TimeOrNow>,
        _mtime: Option<fuser::TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let fits = |size: u64| size == 0 || size == self.backing.bytes();
        match Node::of(number) {
            Some(node) if node.is_disk() && !size.is_none_or(fits) => reply.error(Errno::EINVAL),
            Some(node) => reply.attr(&Folder::time_to_live(node), &self.attributes(node)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        reply: ReplyDirectory,
    ) {
        if number != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let entry = |node: Node| (node.number(), self.attributes(node).kind);
        crate::front::list(Node::Folder, &NODES, offset, entry, reply);
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let blocks = self.backing.bytes() / u64::from(BLOCK_BYTES);
        reply.statfs(blocks, 0, 0, NODES.len() as u64, 0, BLOCK_BYTES, 255, BLOCK_BYTES);
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let Some(node) = Node::of(number) else {
            return reply.error(Errno::ENOENT);
        };
        let writes = flags.acc_mode() != OpenAccMode::O_RDONLY;
        if writes && (node == Node::Status || self.backing.access() == Access::ReadOnly) {
            return reply.error(Errno::EROFS);
        }
        let how = match node {
            Node::Folder => return reply.error(Errno::EISDIR),
            Node::Status => {
                return reply.opened(self.open_status(), FopenFlags::FOPEN_DIRECT_IO);
            }
            Node::Disk => FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES,
            // The cache is as a disk's: it lives longer than the descriptor.
            Node::Cached => {
                if self.written_past_cache.swap(false, Ordering::AcqRel) {
                    FopenFlags::empty()
                } else {
                    FopenFlags::FOPEN_KEEP_CACHE
                }
            }
        };
        reply.opened(FileHandle(0), how);
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match Node::of(number) {
            Some(Node::Disk | Node::Cached) => self.read_disk(offset, size, reply),
            Some(Node::Status) => reply.data(&self.read_status(handle, offset, size)),
            _ => reply.error(Errno::EISDIR),
        }
    }

    fn write(
        &self,
        _: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: fuser::WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match Node::of(number) {
            Some(node) if node.is_disk() => self.write_disk(node, offset, data, reply),
            _ => reply.error(Errno::EACCES),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        // A close is no concern of a disk.
        reply.ok();
    }

    fn fsync(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        match Node::of(number) {
            Some(node) if node.is_disk() => {
                self.finish(Asked::Flush, reply, || self.backing.flush());
            }
            _ => reply.ok(),
        }
    }

    fn release(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        if Node::of(number) == Some(Node::Status) {
            self.told().remove(&handle.0);
        }
        reply.ok();
    }

    fn fallocate(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let Some(node) = Node::of(number).filter(|node| node.is_disk()) else {
            return reply.error(Errno::EOPNOTSUPP);
        };
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
            if node == Node::Disk {
                self.written_past_cache.store(true, Ordering::Release);
            }
            let act = || self.backing.discard(offset, bytes);
            self.finish(Asked::Discard { offset }, reply, act);
        } else if (mode - FallocateFlags::KEEP_SIZE).is_empty() {
            // A disk has its room; to take it now is between this program and its file.
            self.finish(Asked::Discard { offset }, reply, || self.backing.allocate(offset, bytes));
        } else {
            reply.error(Errno::EOPNOTSUPP);
        }
    }
}
