//! A file that acts as a disk, and logs its requests in their order.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, TimeOrNow, WriteFlags,
};
use sim::mount::attributes_of;
use tempfile::TempDir;

/// A request to the disk.
#[derive(Clone, Debug)]
pub enum Event {
    Write {
        offset_bytes: usize,
        bytes: Vec<u8>,
    },
    /// Everything before it is on the medium.
    Barrier,
    /// Not a request: what the program had done at this time.
    Mark(String),
}

/// Kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Read,
    Write,
    Flush,
}

/// Which request fails, with EIO: the `at`-th of its kind, from 1.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    pub request: Request,
    pub at: usize,
    pub lasting: Lasting,
}

/// For how many requests the failure lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// The next one of the kind succeeds.
    Once,
    /// All that follow fail as well.
    Forever,
}

#[derive(Default)]
struct Disk {
    image: Vec<u8>,
    /// Requests of each kind since counting started.
    counts: [usize; 3],
    failure: Option<Failure>,
    failed: usize,
    /// `None` while nothing is recorded.
    log: Option<Vec<Event>>,
}

/// The file, mounted until it is dropped.
pub struct Recorder {
    folder: TempDir,
    disk: Arc<Mutex<Disk>>,
    session: Option<BackgroundSession>,
}

impl Recorder {
    pub fn new(image: Vec<u8>) -> Recorder {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(Mutex::new(Disk { image, ..Disk::default() }));
        let mut config = Config::default();
        config.n_threads = Some(2);
        let served = Served(Arc::clone(&disk));
        let session = fuser::spawn_mount(served, folder.path(), &config)
            .expect("FUSE: needs /dev/fuse and root or fusermount3");
        Recorder { folder, disk, session: Some(session) }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join(NAME)
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap()
    }

    /// Begins the log. Gives the disk as it is now.
    pub fn begin(&self) -> Vec<u8> {
        let mut disk = self.disk();
        disk.log = Some(Vec::new());
        disk.image.clone()
    }

    /// Counts requests from now on, and lets one fail.
    pub fn fail(&self, failure: Option<Failure>) {
        let mut disk = self.disk();
        disk.counts = [0; 3];
        disk.failed = 0;
        disk.failure = failure;
    }

    /// Requests of a kind since [`Recorder::fail`], and how many failed.
    pub fn counted(&self, request: Request) -> (usize, usize) {
        let disk = self.disk();
        (disk.counts[request as usize], disk.failed)
    }

    /// The disk as it is now.
    pub fn image(&self) -> Vec<u8> {
        self.disk().image.clone()
    }

    pub fn mark(&self, what: &str) {
        if let Some(log) = &mut self.disk().log {
            log.push(Event::Mark(what.to_owned()));
        }
    }

    /// Ends the log and gives it.
    pub fn end(&self) -> Vec<Event> {
        self.disk().log.take().unwrap_or_default()
    }
}

impl Disk {
    /// Counts a request; whether it fails.
    fn fails(&mut self, request: Request) -> bool {
        let count = &mut self.counts[request as usize];
        *count += 1;
        let fails = self.failure.is_some_and(|failure| {
            failure.request == request
                && match failure.lasting {
                    Lasting::Once => *count == failure.at,
                    Lasting::Forever => *count >= failure.at,
                }
        });
        self.failed += usize::from(fails);
        fails
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.session.take().map(BackgroundSession::umount_and_join);
    }
}

const NAME: &str = "disk";
const FILE: INodeNo = INodeNo(2);
const LONG: Duration = Duration::from_secs(3600);

struct Served(Arc<Mutex<Disk>>);

impl Served {
    fn attributes(&self, number: INodeNo) -> FileAttr {
        let size = self.0.lock().unwrap().image.len() as u64;
        if number == FILE {
            attributes_of(number, FileType::RegularFile, size, UNIX_EPOCH)
        } else {
            attributes_of(number, FileType::Directory, 0, UNIX_EPOCH)
        }
    }
}

impl Filesystem for Served {
    fn lookup(&self, _: &fuser::Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == NAME {
            reply.entry(&LONG, &self.attributes(FILE), Generation(0))
        } else {
            reply.error(Errno::ENOENT)
        }
    }

    fn getattr(
        &self,
        _: &fuser::Request,
        number: INodeNo,
        _: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        reply.attr(&LONG, &self.attributes(number));
    }

    fn setattr(
        &self,
        _: &fuser::Request,
        number: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<std::time::SystemTime>,
        _: Option<FileHandle>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        reply.attr(&LONG, &self.attributes(number));
    }

    fn open(&self, _: &fuser::Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // No page cache: what the loop device writes arrives here, in its order.
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut disk = self.0.lock().unwrap();
        if disk.fails(Request::Read) {
            return reply.error(Errno::EIO);
        }
        let start = disk.image.len().min(offset as usize);
        let end = disk.image.len().min(start + size as usize);
        reply.data(&disk.image[start..end]);
    }

    fn write(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut disk = self.0.lock().unwrap();
        if disk.fails(Request::Write) {
            return reply.error(Errno::EIO);
        }
        let start = offset as usize;
        let Some(place) = disk.image.get_mut(start..start + data.len()) else {
            return reply.error(Errno::ENOSPC);
        };
        place.copy_from_slice(data);
        if let Some(log) = &mut disk.log {
            log.push(Event::Write { offset_bytes: start, bytes: data.to_vec() });
        }
        reply.written(data.len() as u32);
    }

    fn fsync(&self, _: &fuser::Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let mut disk = self.0.lock().unwrap();
        if disk.fails(Request::Flush) {
            return reply.error(Errno::EIO);
        }
        if let Some(log) = &mut disk.log {
            log.push(Event::Barrier);
        }
        reply.ok();
    }
}
