//! A folder of files with fixed names, as FUSE needs it: the common part of all virtual devices.
//! What a file does is defined by its [`Files`].

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use base::failures::lock;
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, IoctlFlags,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyOpen, ReplyStatfs, ReplyWrite,
    Request,
};
use serde::Serialize;

/// Most status files open at the same time.
const STATUS_FILES_MAX: usize = 64;
const BLOCK_BYTES: u32 = 4096;

/// The file attributes that differ between files.
pub(super) struct Attributes {
    pub(super) permissions: u16,
    pub(super) bytes: u64,
}

/// The files of a folder: what each call does.
pub(super) trait Files: Send + Sync + 'static {
    /// One of the files.
    type File: Copy + PartialEq;
    /// All of them, with their names.
    const NAMES: &'static [(Self::File, &'static str)];

    /// The capabilities requested when the kernel connects.
    fn begin(&self, _config: &mut KernelConfig) {}

    fn attributes(&self, file: Self::File) -> Attributes;

    /// How long the kernel may keep the attributes; `None` means the folder's.
    fn time_to_live(&self, _file: Option<Self::File>) -> Duration {
        Duration::ZERO
    }

    /// The size that `df` shows.
    fn room_bytes(&self) -> u64 {
        0
    }

    /// A program that creates its target truncates it, which a device ignores.
    fn resize(&self, _file: Self::File, _bytes: u64) -> Result<(), Errno> {
        Ok(())
    }

    fn open(&self, file: Self::File, flags: OpenFlags) -> Result<(u64, FopenFlags), Errno>;

    fn read(&self, file: Self::File, handle: u64, offset: u64, size: u32, reply: ReplyData);

    fn write(&self, file: Self::File, handle: u64, offset: u64, data: &[u8], reply: ReplyWrite);

    /// An ioctl; returns its answer.
    fn control(
        &self,
        _file: Self::File,
        _handle: u64,
        _command: u32,
        _input: &[u8],
    ) -> Result<Vec<u8>, Errno> {
        Err(Errno::ENOTTY)
    }

    /// A descriptor was closed; others may be open.
    fn close(&self, _file: Self::File, _handle: u64) -> Result<(), Errno> {
        Ok(())
    }

    fn synchronise(&self, _file: Self::File, reply: ReplyEmpty) {
        reply.ok();
    }

    fn allocate(&self, _: Self::File, _offset: u64, _length: u64, _mode: i32, reply: ReplyEmpty) {
        reply.error(Errno::EOPNOTSUPP);
    }

    /// The last descriptor was closed.
    fn release(&self, file: Self::File, handle: u64);
}

/// A folder of such files.
pub(super) struct Folder<F> {
    files: F,
    since: SystemTime,
}

impl<F: Files> Folder<F> {
    pub(super) fn new(files: F) -> Folder<F> {
        Folder { files, since: SystemTime::now() }
    }

    /// The file of that number: they follow the folder's. The folder itself is an error, which fits
    /// most calls.
    fn file(number: INodeNo) -> Result<F::File, Errno> {
        let index = match number {
            INodeNo::ROOT => return Err(Errno::EISDIR),
            INodeNo(other) => usize::try_from(other.saturating_sub(2)).unwrap_or(usize::MAX),
        };
        F::NAMES.get(index).map(|(file, _)| *file).ok_or(Errno::ENOENT)
    }

    /// Attributes of a file, or of the folder.
    fn attributes(&self, number: INodeNo) -> Option<(Duration, FileAttr)> {
        let file = match Self::file(number) {
            Ok(file) => Some(file),
            Err(_) if number == INodeNo::ROOT => None,
            Err(_) => return None,
        };
        let (kind, attributes) = match file {
            Some(file) => (FileType::RegularFile, self.files.attributes(file)),
            None => (FileType::Directory, Attributes { permissions: 0o755, bytes: 0 }),
        };
        let perm = attributes.permissions;
        let attributes = attributes_of(number, kind, attributes.bytes, self.since);
        Some((self.files.time_to_live(file), FileAttr { perm, ..attributes }))
    }

    fn tell_attributes(&self, number: INodeNo, reply: ReplyAttr) {
        match self.attributes(number) {
            Some((alive, attributes)) => reply.attr(&alive, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }
}

/// stat(2) of a file or folder that all may read, unchanged since it was made.
pub fn attributes_of(number: INodeNo, kind: FileType, bytes: u64, since: SystemTime) -> FileAttr {
    FileAttr {
        ino: number,
        size: bytes,
        blocks: bytes.div_ceil(512),
        atime: since,
        mtime: since,
        ctime: since,
        crtime: since,
        kind,
        perm: 0o755,
        nlink: 1,
        uid: rustix::process::getuid().as_raw(),
        gid: rustix::process::getgid().as_raw(),
        rdev: 0,
        blksize: BLOCK_BYTES,
        flags: 0,
    }
}

fn tell(result: Result<(), Errno>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

impl<F: Files> Filesystem for Folder<F> {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        self.files.begin(config);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut numbered = F::NAMES.iter().zip(2..);
        let found = numbered.find(|((_, known), _)| known.as_bytes() == name.as_bytes());
        let number = found.filter(|_| parent == INodeNo::ROOT).map(|(_, number)| INodeNo(number));
        match number.and_then(|number| self.attributes(number)) {
            Some((alive, attributes)) => reply.entry(&alive, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    /// Looks up a missing name, which many programs do as if to create it. Nothing can be created
    /// here, as in `/proc`, which answers the same.
    fn create(
        &self,
        _: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        reply.error(Errno::ENOENT);
    }

    fn mknod(
        &self,
        _: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        _device: u32,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::ENOENT);
    }

    fn mkdir(
        &self,
        _: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EPERM);
    }

    fn unlink(&self, _: &Request, _parent: INodeNo, _name: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EPERM);
    }

    fn rmdir(&self, _: &Request, _parent: INodeNo, _name: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EPERM);
    }

    fn rename(
        &self,
        _: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _to: INodeNo,
        _new_name: &OsStr,
        _flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EPERM);
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.tell_attributes(number, reply);
    }

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
        if let (Ok(file), Some(bytes)) = (Self::file(number), size)
            && let Err(error) = self.files.resize(file, bytes)
        {
            return reply.error(error);
        }
        self.tell_attributes(number, reply);
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
            return reply.error(Errno::ENOTDIR);
        }
        let own = [(1, FileType::Directory, "."), (1, FileType::Directory, "..")];
        let files = F::NAMES.iter().zip(2..);
        let files = files.map(|((_, name), number)| (number, FileType::RegularFile, *name));
        for ((number, kind, name), next) in
            own.into_iter().chain(files).zip(1..).skip(offset as usize)
        {
            if reply.add(INodeNo(number), next, kind, OsStr::new(name)) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let blocks = self.files.room_bytes() / u64::from(BLOCK_BYTES);
        reply.statfs(blocks, 0, 0, F::NAMES.len() as u64, 0, BLOCK_BYTES, 255, BLOCK_BYTES);
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match Self::file(number).and_then(|file| self.files.open(file, flags)) {
            Ok((handle, how)) => reply.opened(FileHandle(handle), how),
            Err(error) => reply.error(error),
        }
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
        match Self::file(number) {
            Ok(file) => self.files.read(file, handle.0, offset, size, reply),
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: fuser::WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match Self::file(number) {
            Ok(file) => self.files.write(file, handle.0, offset, data, reply),
            Err(error) => reply.error(error),
        }
    }

    fn ioctl(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        flags: IoctlFlags,
        command: u32,
        input: &[u8],
        _output_size: u32,
        reply: ReplyIoctl,
    ) {
        let answer = match Self::file(number) {
            Ok(file) if !flags.contains(IoctlFlags::FUSE_IOCTL_COMPAT) => {
                self.files.control(file, handle.0, command, input)
            }
            _ => Err(Errno::ENOTTY),
        };
        match answer {
            Ok(answer) => reply.ioctl(0, &answer),
            Err(error) => reply.error(error),
        }
    }

    fn flush(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        tell(Self::file(number).and_then(|file| self.files.close(file, handle.0)), reply);
    }

    fn fsync(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        match Self::file(number) {
            Ok(file) => self.files.synchronise(file, reply),
            Err(_) => reply.ok(),
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
        let released = Self::file(number).map(|file| self.files.release(file, handle.0));
        tell(released, reply);
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
        match Self::file(number) {
            Ok(file) => self.files.allocate(file, offset, length, mode, reply),
            Err(_) => reply.error(Errno::EOPNOTSUPP),
        }
    }
}

/// The texts of open status files, by descriptor.
#[derive(Default)]
pub(super) struct StatusFiles(Mutex<(u64, BTreeMap<u64, String>)>);

impl StatusFiles {
    /// Keeps the state of now as text; returns its handle.
    pub(super) fn open<S: Serialize>(&self, state: impl FnOnce() -> S) -> Result<u64, Errno> {
        let mut inner = lock(&self.0);
        let (last, texts) = &mut *inner;
        if texts.len() >= STATUS_FILES_MAX {
            return Err(Errno::ENFILE);
        }
        let text = serde_json::to_string_pretty(&state()).map_err(|_| Errno::EIO)?;
        *last += 1;
        texts.insert(*last, text + "\n");
        Ok(*last)
    }

    pub(super) fn read(&self, handle: u64, offset: u64, size: u32, reply: ReplyData) {
        let inner = lock(&self.0);
        let text = inner.1.get(&handle).map_or(&[][..], String::as_bytes);
        reply.data(part(text, offset, size));
    }

    pub(super) fn close(&self, handle: u64) {
        lock(&self.0).1.remove(&handle);
    }
}

/// What a read of a text returns.
pub(super) fn part(text: &[u8], offset: u64, size: u32) -> &[u8] {
    let from = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
    let to = from.saturating_add(size as usize).min(text.len());
    &text[from..to]
}
