//! A folder with a virtual tape drive in it, for any program: FUSE.
//!
//! ```text
//! nst0      the drive; stays where it is when it is closed
//! st0       the same drive; rewinds when it is closed
//! status    how it is, as JSON; made anew at each opening
//! medium    the path of the medium file that is in; a path that is written to it is loaded
//! ```
//!
//! The two tape files are opened for direct I/O, so that a write(2) is one request and a read(2)
//! gets the length of the answer; they cannot be sought in, as programs would take a seek for a
//! motion. The ioctls of `linux/mtio.h` come as restricted ioctls.
//!
//! Two things differ from a device node. The kernel does not tell which close of a descriptor is
//! the last one, so each close waits until everything is on the medium, and the filemark follows
//! when the file is released; an open waits for that. And a block that is larger than what FUSE
//! passes in one piece (`fs.fuse.max_pages_limit`) would come in two: see
//! [`Mount::block_bytes_max`].
//!
//! Not here: the drive, which is [`crate::tape`]'s, and the folder with a disk in it, [`disk`].

mod deck;
pub mod disk;
mod mtio;
mod page_limit;
mod status;

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    IoctlFlags, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyOpen, ReplyWrite, Request, Session, SessionUnmounter,
};

use crate::tape::real_time::Gauge;
use crate::tape::{CartridgeSettings, OnClose, VirtualDrive};
use deck::Deck;

/// What is mounted.
pub struct FrontSettings {
    /// The drive, with a cartridge or without.
    pub drive: VirtualDrive,
    /// A look at its time, when it takes any.
    pub gauge: Option<Gauge>,
    /// Name of its generation.
    pub generation: String,
    /// The medium file that is in.
    pub medium: Option<PathBuf>,
    /// What a medium file that is made anew becomes.
    pub new_medium: CartridgeSettings,
}

/// Why there is no folder with a drive.
#[derive(Debug, thiserror::Error)]
pub enum FrontError {
    /// FUSE does not mount it.
    #[error("cannot mount a virtual drive on {path}")]
    Mount {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The connection to the kernel broke.
    #[error("the connection of {path} to the kernel broke")]
    Connection {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A mounted drive.
pub struct Mount {
    session: Session<Front>,
    path: PathBuf,
    block_bytes_max: u64,
}

/// Takes a mounted drive away, from another thread.
pub struct Unmounter {
    inner: SessionUnmounter,
    path: PathBuf,
    gauge: Option<Gauge>,
}

/// Requests that are answered at the same time: one may wait for the tape while others ask how it
/// is.
const THREADS: usize = 4;

impl Mount {
    /// Mounts a drive on a folder. Blocks of up to `block_bytes` pass in one piece where the kernel
    /// can be told so.
    ///
    /// # Errors
    /// When FUSE does not mount it.
    pub fn new(
        settings: FrontSettings,
        path: &Path,
        block_bytes: u64,
    ) -> Result<Mount, FrontError> {
        let mut config = Config::default();
        config.mount_options =
            vec![MountOption::FSName("takeup".into()), MountOption::Subtype("tape".into())];
        config.n_threads = Some(THREADS);
        // The limit counts when the connection is made; afterwards it is as it was.
        let limit = page_limit::raise(block_bytes);
        let block_bytes_max = limit.block_bytes();
        let drive = settings.drive.clone();
        drive.change_settings(|settings| {
            let most = u32::try_from(block_bytes_max).unwrap_or(u32::MAX);
            settings.block_bytes_max = settings.block_bytes_max.min(most);
        });
        let session = Session::new(Front::new(settings), path, &config)
            .map_err(|source| FrontError::Mount { path: path.to_owned(), source })?;
        drop(limit);
        Ok(Mount { session, path: path.to_owned(), block_bytes_max })
    }

    /// The largest block that comes in one piece.
    pub fn block_bytes_max(&self) -> u64 {
        self.block_bytes_max
    }

    /// A way to end [`Mount::run`].
    pub fn unmounter(&mut self, gauge: Option<Gauge>) -> Unmounter {
        Unmounter { inner: self.session.unmount_callable(), path: self.path.clone(), gauge }
    }

    /// Answers requests until the folder is unmounted.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn run(self) -> Result<(), FrontError> {
        let path = self.path;
        serve_at_once();
        self.session.run().map_err(|source| FrontError::Connection { path, source })
    }
}

impl Unmounter {
    /// Unmounts. A program that still has a file open keeps it until it closes it or this process
    /// ends; nobody can open one any more, and no command waits for time.
    ///
    /// # Errors
    /// When the folder cannot even be detached.
    pub fn unmount(&mut self) -> io::Result<()> {
        if let Some(gauge) = &self.gauge {
            gauge.stop();
        }
        match self.inner.unmount() {
            Ok(()) => Ok(()),
            // Busy.
            Err(_) => Ok(rustix::mount::unmount(&self.path, rustix::mount::UnmountFlags::DETACH)?),
        }
    }
}

/// Lists the folder from entry `offset` on, `.` and `..` before the files: `entry` gives number and
/// kind of each.
fn list<N: Copy>(
    folder: N,
    files: &[(N, &str)],
    offset: u64,
    entry: impl Fn(N) -> (u64, FileType),
    mut reply: ReplyDirectory,
) {
    let own = [(folder, "."), (folder, "..")];
    let all = own.iter().chain(files).zip(1..).skip(offset as usize);
    for ((node, name), next) in all {
        let (number, kind) = entry(*node);
        if reply.add(INodeNo(number), next, kind, OsStr::new(name)) {
            break;
        }
    }
    reply.ok();
}

/// Makes this thread and those that it starts serve as a device does: at once. Without the
/// privilege it does without.
fn serve_at_once() {
    /// In front of everything that has not asked for more.
    const NICE: i32 = -15;
    // On Linux this is the thread's alone.
    let _ = rustix::process::setpriority_process(None, NICE);
}

/// The files of the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Folder,
    /// `nst0`.
    Staying,
    /// `st0`.
    Rewinding,
    Status,
    Medium,
}

const NODES: [(Node, &str); 4] = [
    (Node::Staying, "nst0"),
    (Node::Rewinding, "st0"),
    (Node::Status, "status"),
    (Node::Medium, "medium"),
];

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

    fn is_tape(self) -> bool {
        matches!(self, Node::Staying | Node::Rewinding)
    }
}

/// Nothing is kept by the kernel.
const NO_TIME: Duration = Duration::ZERO;

struct Front {
    deck: Deck,
    since: SystemTime,
}

impl Front {
    fn new(settings: FrontSettings) -> Front {
        Front { deck: Deck::new(settings), since: SystemTime::now() }
    }

    fn attributes(&self, node: Node) -> FileAttr {
        let (kind, perm) = match node {
            Node::Folder => (FileType::Directory, 0o755),
            Node::Status => (FileType::RegularFile, 0o444),
            _ => (FileType::RegularFile, 0o666),
        };
        FileAttr {
            ino: INodeNo(node.number()),
            size: 0,
            blocks: 0,
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
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for Front {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = NODES.iter().find(|(_, known)| known.as_bytes() == name.as_bytes());
        match found {
            Some((node, _)) if parent == INodeNo::ROOT => {
                reply.entry(&NO_TIME, &self.attributes(*node), Generation(0));
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match Node::of(number) {
            Some(node) => reply.attr(&NO_TIME, &self.attributes(node)),
            None => reply.error(Errno::ENOENT),
        }
    }

    // A program that creates its target truncates it: a tape does not care.
    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        _size: Option<u64>,
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
        match Node::of(number) {
            Some(node) => reply.attr(&NO_TIME, &self.attributes(node)),
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
        list(Node::Folder, &NODES, offset, entry, reply);
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let opened = match Node::of(number) {
            Some(Node::Staying) => self.deck.open_tape(flags, OnClose::Stay).map(FileHandle),
            Some(Node::Rewinding) => self.deck.open_tape(flags, OnClose::Rewind).map(FileHandle),
            Some(Node::Status) => self.deck.open_status().map(FileHandle),
            Some(Node::Medium) => Ok(FileHandle(0)),
            _ => Err(Errno::EISDIR),
        };
        match opened {
            Ok(handle) => {
                let seekable = if Node::of(number).is_some_and(Node::is_tape) {
                    FopenFlags::FOPEN_NONSEEKABLE
                } else {
                    FopenFlags::empty()
                };
                reply.opened(handle, FopenFlags::FOPEN_DIRECT_IO | seekable);
            }
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
        match Node::of(number) {
            Some(Node::Status) => reply.data(&self.deck.read_status(handle.0, offset, size)),
            Some(Node::Medium) => reply.data(&self.deck.read_medium(offset, size)),
            Some(node) if node.is_tape() => self.deck.read_tape(handle.0, size, reply),
            _ => reply.error(Errno::EISDIR),
        }
    }

    fn write(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        _offset: u64,
        data: &[u8],
        _write_flags: fuser::WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = match Node::of(number) {
            Some(Node::Medium) => self.deck.change_medium(data).map(|()| data.len()),
            Some(node) if node.is_tape() => self.deck.write_tape(handle.0, data),
            _ => Err(Errno::EACCES),
        };
        match written {
            Ok(bytes) => reply.written(bytes as u32),
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
        let is_tape = Node::of(number).is_some_and(Node::is_tape);
        if !is_tape || flags.contains(IoctlFlags::FUSE_IOCTL_COMPAT) {
            return reply.error(Errno::ENOTTY);
        }
        match self.deck.control(handle.0, command, input) {
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
        let settled = if Node::of(number).is_some_and(Node::is_tape) {
            self.deck.settle(handle.0)
        } else {
            Ok(())
        };
        match settled {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }

    fn fsync(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        // The tape driver has no fsync.
        match (Node::of(number), handle) {
            (Some(node), _) if node.is_tape() => reply.error(Errno::EINVAL),
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
        match Node::of(number) {
            Some(node) if node.is_tape() => self.deck.close_tape(handle.0),
            _ => self.deck.close_status(handle.0),
        }
        reply.ok();
    }
}
