//! A file system whose inode numbers are others on every mount, as SMB without inode numbers has
//! them: it shows another folder through FUSE, for reading.
//!
//! It counts what is opened, since what is unchanged must not be read again. All its times are an
//! hour ago, so that nothing is doubtful.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEntry,
    ReplyOpen, Request,
};
use sim::mount::attributes_of;

/// Whose numbers there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// Each file has one, whatever its names.
    OfFiles,
    /// Each name has one, so that names of one file look like files of their own.
    OfNames,
}

/// The file system, mounted until it is dropped.
pub struct Renumbered {
    opened: Arc<AtomicU64>,
    session: Option<BackgroundSession>,
}

impl Renumbered {
    /// Shows `folder` at `place`, with numbers that begin at `first`.
    pub fn mount(folder: &Path, place: &Path, numbers: Numbers, first: u64) -> Renumbered {
        let opened = Arc::<AtomicU64>::default();
        let shown = Shown {
            numbers,
            first,
            known: Mutex::new(Known::default()),
            opened: Arc::clone(&opened),
        };
        shown.known.lock().unwrap().paths.insert(1, folder.to_owned());
        let session = fuser::spawn_mount(shown, place, &Config::default()).unwrap();
        Renumbered { opened, session: Some(session) }
    }

    /// Files opened so far.
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }
}

impl Drop for Renumbered {
    fn drop(&mut self) {
        let _ = self.session.take().map(BackgroundSession::umount_and_join);
    }
}

struct Shown {
    numbers: Numbers,
    /// Added to all numbers.
    first: u64,
    known: Mutex<Known>,
    opened: Arc<AtomicU64>,
}

#[derive(Default)]
struct Known {
    /// A path of each number.
    paths: HashMap<u64, PathBuf>,
    /// The numbers of names.
    numbers: BTreeMap<PathBuf, u64>,
}

/// The kernel caches nothing.
const NO_TIME: Duration = Duration::ZERO;
const HOUR_SECONDS: i64 = 3600;

impl Shown {
    fn path(&self, number: INodeNo) -> Option<PathBuf> {
        self.known.lock().unwrap().paths.get(&number.into()).cloned()
    }

    fn attributes(&self, path: &Path) -> Option<FileAttr> {
        let status = fs::symlink_metadata(path).ok()?;
        let mut known = self.known.lock().unwrap();
        let next = self.first + 1 + known.numbers.len() as u64;
        let number = match self.numbers {
            _ if known.paths[&1] == path => 1,
            Numbers::OfFiles => self.first + status.ino(),
            Numbers::OfNames => *known.numbers.entry(path.to_owned()).or_insert(next),
        };
        known.paths.insert(number, path.to_owned());
        let time = |seconds: i64, nanoseconds: i64| {
            let seconds = Duration::from_secs((seconds - HOUR_SECONDS) as u64);
            UNIX_EPOCH + seconds + Duration::from_nanos(nanoseconds as u64)
        };
        let modified = time(status.mtime(), status.mtime_nsec());
        let kind = kind_of(status.file_type());
        Some(FileAttr {
            ctime: time(status.ctime(), status.ctime_nsec()),
            perm: (status.mode() & 0o7777) as u16,
            nlink: status.nlink() as u32,
            uid: status.uid(),
            gid: status.gid(),
            ..attributes_of(INodeNo(number), kind, status.size(), modified)
        })
    }
}

fn kind_of(kind: fs::FileType) -> FileType {
    if kind.is_dir() {
        FileType::Directory
    } else if kind.is_symlink() {
        FileType::Symlink
    } else if kind.is_fifo() {
        FileType::NamedPipe
    } else {
        FileType::RegularFile
    }
}

impl Filesystem for Shown {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let path = self.path(parent).map(|parent| parent.join(name));
        match path.and_then(|path| self.attributes(&path)) {
            Some(attributes) => reply.entry(&NO_TIME, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.path(number).and_then(|path| self.attributes(&path)) {
            Some(attributes) => reply.attr(&NO_TIME, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        match self.path(number).and_then(|path| fs::read_link(path).ok()) {
            Some(target) => reply.data(target.as_os_str().as_bytes()),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.opened.fetch_add(1, Ordering::Relaxed);
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut bytes = vec![0; size as usize];
        let file = self.path(number).and_then(|path| fs::File::open(path).ok());
        match file.and_then(|file| file.read_at(&mut bytes, offset).ok()) {
            Some(read) => reply.data(&bytes[..read]),
            None => reply.error(Errno::EIO),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let Some(entries) = self.path(number).and_then(|path| fs::read_dir(path).ok()) else {
            return reply.error(Errno::ENOENT);
        };
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for (at, path) in paths.iter().enumerate().skip(offset as usize) {
            let Some(it) = self.attributes(path) else { continue };
            if reply.add(it.ino, at as u64 + 1, it.kind, path.file_name().unwrap()) {
                break;
            }
        }
        reply.ok();
    }
}
