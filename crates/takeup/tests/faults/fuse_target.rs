//! A file system of this test, one folder in memory, with planned failures. A target for most
//! tests, a source for some.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow,
    WriteFlags,
};
use sim::mount::attributes_of;
use tempfile::TempDir;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// A write that reaches beyond `offset` gives this error.
    WriteFailsAt {
        offset: u64,
        code: i32,
    },
    /// A write takes at most this many bytes.
    ShortWrites(usize),
    /// A read that reaches beyond this byte gives EIO.
    ReadFailsAt(u64),
    /// Opening any file except `sound` gives this error.
    OpenFails(i32),
    FsyncFails,
    /// The file system does not support fsync of the folder.
    FsyncFolderUnknown,
    RenameFails,
}

#[derive(Debug, Default)]
struct Folder {
    /// Number of the file of each name.
    names: BTreeMap<String, u64>,
    contents: BTreeMap<u64, Vec<u8>>,
}

/// The file system, mounted until it is dropped.
pub struct Mounted {
    place: TempDir,
    folder: Arc<Mutex<Folder>>,
    session: Option<BackgroundSession>,
}

/// Mounts it; a test that does so needs FUSE.
pub fn mount(fault: Fault) -> Mounted {
    let place = tempfile::tempdir().unwrap();
    let folder = Arc::default();
    let failing = Failing { folder: Arc::clone(&folder), fault };
    let session = fuser::spawn_mount(failing, place.path(), &Config::default()).unwrap();
    Mounted { place, folder, session: Some(session) }
}

impl Mounted {
    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// Puts a file there without any fault.
    pub fn place(&self, name: &str, content: &[u8]) {
        let mut folder = self.folder.lock().unwrap();
        let number = folder.next_number();
        folder.names.insert(name.to_owned(), number);
        folder.contents.insert(number, content.to_vec());
    }

    /// The content of a file in the file system.
    pub fn content(&self, name: &str) -> Vec<u8> {
        let folder = self.folder.lock().unwrap();
        folder.contents[&folder.names[name]].clone()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = self.session.take().map(BackgroundSession::umount_and_join);
    }
}

impl Folder {
    fn next_number(&self) -> u64 {
        self.contents.keys().last().map_or(2, |last| last + 1)
    }

    fn attributes(&self, number: u64) -> Option<FileAttr> {
        let (size, kind) = match self.contents.get(&number) {
            Some(content) => (content.len() as u64, FileType::RegularFile),
            None if number == 1 => (0, FileType::Directory),
            None => return None,
        };
        Some(attributes_of(INodeNo(number), kind, size, UNIX_EPOCH))
    }
}

struct Failing {
    folder: Arc<Mutex<Folder>>,
    fault: Fault,
}

/// The kernel caches nothing: every request comes here.
const NO_TIME: Duration = Duration::ZERO;

impl Failing {
    fn folder(&self) -> MutexGuard<'_, Folder> {
        self.folder.lock().unwrap()
    }
}

impl Filesystem for Failing {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let folder = self.folder();
        let number = folder.names.get(&*name.to_string_lossy());
        match number.and_then(|number| folder.attributes(*number)) {
            Some(attributes) => reply.entry(&NO_TIME, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.folder().attributes(number.into()) {
            Some(attributes) => reply.attr(&NO_TIME, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
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
        let mut folder = self.folder();
        if let (Some(content), Some(size)) = (folder.contents.get_mut(&number.into()), size) {
            content.resize(size as usize, 0);
        }
        match folder.attributes(number.into()) {
            Some(attributes) => reply.attr(&NO_TIME, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn create(
        &self,
        _: &Request,
        _: INodeNo,
        name: &OsStr,
        _: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let mut folder = self.folder();
        let number = folder.next_number();
        folder.names.insert(name.to_string_lossy().into_owned(), number);
        folder.contents.insert(number, Vec::new());
        let attributes = folder.attributes(number).expect("it was made just now");
        let flags = FopenFlags::FOPEN_DIRECT_IO;
        reply.created(&NO_TIME, &attributes, Generation(0), FileHandle(0), flags);
    }

    fn open(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        if let Fault::OpenFails(code) = self.fault
            && self.folder().names.get("sound") != Some(&number.into())
        {
            return reply.error(Errno::from_i32(code));
        }
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
        if let Fault::ReadFailsAt(at) = self.fault
            && offset + u64::from(size) > at
        {
            return reply.error(Errno::EIO);
        }
        let folder = self.folder();
        let content = folder.contents.get(&number.into()).map_or(&[][..], Vec::as_slice);
        let start = content.len().min(offset as usize);
        let end = content.len().min(start + size as usize);
        reply.data(&content[start..end]);
    }

    fn write(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let data = match self.fault {
            Fault::WriteFailsAt { offset: from, code } if offset + data.len() as u64 > from => {
                return reply.error(Errno::from_i32(code));
            }
            Fault::ShortWrites(most) => &data[..data.len().min(most)],
            _ => data,
        };
        let mut folder = self.folder();
        let Some(content) = folder.contents.get_mut(&number.into()) else {
            return reply.error(Errno::ENOENT);
        };
        let end = offset as usize + data.len();
        content.resize(content.len().max(end), 0);
        content[offset as usize..end].copy_from_slice(data);
        reply.written(data.len() as u32);
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        match self.fault {
            Fault::FsyncFails => reply.error(Errno::EIO),
            _ => reply.ok(),
        }
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        match self.fault {
            Fault::FsyncFolderUnknown => reply.error(Errno::EINVAL),
            _ => reply.ok(),
        }
    }

    fn rename(
        &self,
        _: &Request,
        _: INodeNo,
        name: &OsStr,
        _: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if self.fault == Fault::RenameFails {
            return reply.error(Errno::EIO);
        }
        let mut folder = self.folder();
        let (name, new_name) = (name.to_string_lossy(), new_name.to_string_lossy());
        if !flags.is_empty() && folder.names.contains_key(&*new_name) {
            return reply.error(Errno::EEXIST);
        }
        match folder.names.remove(&*name) {
            Some(number) => {
                folder.names.insert(new_name.into_owned(), number);
                reply.ok();
            }
            None => reply.error(Errno::ENOENT),
        }
    }

    fn unlink(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        match self.folder().names.remove(&*name.to_string_lossy()) {
            Some(_) => reply.ok(),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        for (at, (name, number)) in self.folder().names.iter().enumerate().skip(offset as usize) {
            if reply.add(INodeNo(*number), at as u64 + 1, FileType::RegularFile, name) {
                break;
            }
        }
        reply.ok();
    }
}
