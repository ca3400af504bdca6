//! A file whose reads take a fixed time each and run in parallel: a disk with a known latency,
//! without hardware.
//!
//! Answers wait in one queue and are sent by one thread when their time has come; with a fixed
//! latency that is the order in which the questions came. The file holds zeros.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEntry,
    ReplyOpen, Request,
};

/// Name of the one file.
pub const NAME: &str = "disk";

/// Requests that may wait at once; the kernel sends no more than `max_background` and a few.
const WAITING_MAX: usize = 1024;

/// Mounts it; the file is there until the session ends.
pub fn mount(place: &Path, length_bytes: u64, latency: Duration) -> io::Result<BackgroundSession> {
    let (waiting, due) = sync_channel(WAITING_MAX);
    std::thread::Builder::new().name("slow-disk".into()).spawn(move || answer(&due))?;
    fuser::spawn_mount(SlowDisk { length_bytes, latency, waiting }, place, &Config::default())
}

struct Waiting {
    due: Instant,
    bytes: usize,
    reply: ReplyData,
}

fn answer(waiting: &Receiver<Waiting>) {
    let zeros = vec![0; 4 << 20];
    while let Ok(next) = waiting.recv() {
        std::thread::sleep(next.due.saturating_duration_since(Instant::now()));
        next.reply.data(&zeros[..next.bytes.min(zeros.len())]);
    }
}

struct SlowDisk {
    length_bytes: u64,
    latency: Duration,
    waiting: SyncSender<Waiting>,
}

const FOREVER: Duration = Duration::from_secs(3600);
const FILE: u64 = 2;

impl SlowDisk {
    fn attributes(&self, number: u64) -> FileAttr {
        let is_file = number == FILE;
        let size = if is_file { self.length_bytes } else { 0 };
        FileAttr {
            ino: INodeNo(number),
            size,
            blocks: size.div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_file { FileType::RegularFile } else { FileType::Directory },
            perm: 0o555,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for SlowDisk {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // As many as a disk with a deep queue would take; where the kernel allows less, it is less.
        let _ = config.set_max_background(256);
        if let Err(most) = config.set_max_readahead(64 << 20) {
            let _ = config.set_max_readahead(most);
        }
        Ok(())
    }

    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match name == NAME {
            true => reply.entry(&FOREVER, &self.attributes(FILE), Generation(0)),
            false => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOREVER, &self.attributes(number.0));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let bytes = self.length_bytes.saturating_sub(offset).min(u64::from(size)) as usize;
        let due = Instant::now() + self.latency;
        // When the thread is gone the mount is going, too.
        let _ = self.waiting.send(Waiting { due, bytes, reply });
    }
}
