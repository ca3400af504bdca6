//! A test file system whose files misbehave, each in its way and always at the same place.
//!
//! Nothing here depends on time: a file changes at its first read, a read fails at a given byte.
//! All files are opened for direct reads, so that the backup's requests arrive here unchanged.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEntry,
    ReplyLseek, ReplyOpen, Request,
};
use sim::mount::attributes_of;
use tempfile::TempDir;

/// The misbehaviour of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// After the first read the file has another size.
    SizeAfterRead(u64),
    /// After the first read the file has another time of change, and the same size.
    TouchedByRead,
    /// Reads in this range of bytes fail with EIO.
    ReadFails {
        from: u64,
        to: u64,
    },
    /// No read gives more than this many bytes.
    ShortReads(usize),
    /// Every read takes this long.
    Slow(Duration),
    /// It is listed, but not there.
    Vanished,
    /// It cannot be opened.
    OpenFails(i32),
    /// It is listed as a file, and is something else.
    TurnedInto(FileType),
    /// It says that it has data in these runs only, of any grain.
    Sparse(Vec<(u64, u64)>),
    /// A folder that cannot be listed.
    UnreadableFolder,
    /// It is listed as a folder, and is a file.
    FolderTurnedFile,
}

struct File {
    name: String,
    size: u64,
    fault: Fault,
    read: AtomicBool,
}

/// The misbehaving file system, mounted until it is dropped.
pub struct Mounted {
    pub folder: TempDir,
    session: Option<BackgroundSession>,
}

/// Byte `at` of every file.
pub fn byte_at(at: u64) -> u8 {
    // SplitMix64 of the place. No byte is zero, so that zeros show missing data.
    let mut mixed = at.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed >> 56) as u8 | 1
}

/// The first `size` bytes of every file.
pub fn content(size: u64) -> Vec<u8> {
    (0..size).map(byte_at).collect()
}

/// Mounts files; a test that does so needs FUSE.
pub fn mount(files: &[(&str, u64, Fault)]) -> Mounted {
    let files: BTreeMap<u64, File> = files
        .iter()
        .zip(2..)
        .map(|((name, size, fault), number)| {
            let (name, fault) = ((*name).to_owned(), fault.clone());
            (number, File { name, size: *size, fault, read: AtomicBool::new(false) })
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.n_threads = Some(4);
    let session = fuser::spawn_mount(Faulty { files }, folder.path(), &config).unwrap();
    Mounted { folder, session: Some(session) }
}

impl Mounted {
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = self.session.take().map(BackgroundSession::umount_and_join);
    }
}

struct Faulty {
    files: BTreeMap<u64, File>,
}

/// The kernel caches nothing: every question comes here.
const NO_TIME: Duration = Duration::ZERO;

impl Faulty {
    fn file(&self, number: INodeNo) -> Option<&File> {
        self.files.get(&u64::from(number))
    }

    fn attributes(&self, number: u64) -> Option<FileAttr> {
        let (size, kind, was_read) = match self.files.get(&number) {
            None if number == 1 => (0, FileType::Directory, false),
            None => return None,
            Some(file) => (file.size_now(), file.kind(), file.read.load(Ordering::SeqCst)),
        };
        let touched = match self.files.get(&number).map(|file| &file.fault) {
            Some(Fault::TouchedByRead | Fault::SizeAfterRead(_)) => was_read,
            _ => false,
        };
        let time: SystemTime = UNIX_EPOCH + Duration::from_secs(1_000_000_000 + u64::from(touched));
        let is_sparse =
            matches!(self.files.get(&number).map(|file| &file.fault), Some(Fault::Sparse(_)));
        let blocks = if is_sparse { 0 } else { size.div_ceil(512) };
        Some(FileAttr { blocks, ..attributes_of(INodeNo(number), kind, size, time) })
    }
}

impl File {
    fn size_now(&self) -> u64 {
        match self.fault {
            Fault::SizeAfterRead(size) if self.read.load(Ordering::SeqCst) => size,
            _ => self.size,
        }
    }

    fn kind(&self) -> FileType {
        match self.fault {
            Fault::TurnedInto(kind) => kind,
            Fault::UnreadableFolder => FileType::Directory,
            _ => FileType::RegularFile,
        }
    }

    fn listed_kind(&self) -> FileType {
        match self.fault {
            Fault::UnreadableFolder | Fault::FolderTurnedFile => FileType::Directory,
            _ => FileType::RegularFile,
        }
    }

    /// The answer to a read.
    fn read(&self, offset: u64, bytes: u64) -> Result<Vec<u8>, Errno> {
        self.read.store(true, Ordering::SeqCst);
        let mut end = (offset + bytes).min(self.size_now());
        match self.fault {
            Fault::ReadFails { from, to } if offset < to && end > from => {
                if offset >= from {
                    return Err(Errno::EIO);
                }
                end = from;
            }
            Fault::ShortReads(most) => end = end.min(offset + most as u64),
            Fault::Slow(time) => std::thread::sleep(time),
            _ => {}
        }
        Ok((offset..end).map(byte_at).collect())
    }
}

impl Filesystem for Faulty {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.files.iter().find(|(_, file)| file.name.as_bytes() == name.as_bytes());
        match found {
            Some((number, file)) if file.fault != Fault::Vanished => {
                let attributes = self.attributes(*number).expect("the file is there");
                reply.entry(&NO_TIME, &attributes, Generation(0));
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(number.into()) {
            Some(attributes) => reply.attr(&NO_TIME, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn readlink(&self, _: &Request, _: INodeNo, reply: ReplyData) {
        reply.data(b"where it points to");
    }

    fn open(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.file(number).map(|file| &file.fault) {
            Some(Fault::OpenFails(code)) => reply.error(Errno::from_i32(*code)),
            _ => reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO),
        }
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
        match self.file(number).map(|file| file.read(offset, size.into())) {
            Some(Ok(bytes)) => reply.data(&bytes),
            Some(Err(error)) => reply.error(error),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn lseek(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let Some(Fault::Sparse(runs)) = self.file(number).map(|file| &file.fault) else {
            return reply.error(Errno::EINVAL);
        };
        let offset = offset as u64;
        let run = runs.iter().find(|(start, length)| start + length > offset);
        match (run, whence) {
            (Some((start, _)), libc::SEEK_DATA) => reply.offset(offset.max(*start) as i64),
            (None, libc::SEEK_DATA) => reply.error(Errno::ENXIO),
            (Some((start, length)), _) if *start <= offset => {
                reply.offset((start + length) as i64);
            }
            _ => reply.offset(offset as i64),
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
        if number != INodeNo::ROOT {
            return reply.error(Errno::EIO);
        }
        for (at, (number, file)) in self.files.iter().enumerate().skip(offset as usize) {
            let (number, next) = (INodeNo(*number), at as u64 + 1);
            if reply.add(number, next, file.listed_kind(), &file.name) {
                break;
            }
        }
        reply.ok();
    }
}
