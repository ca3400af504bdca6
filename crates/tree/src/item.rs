//! What a scan finds: objects not yet opened, and directories that cannot be walked.

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::{fmt, io};

use base::interruptible::openat_ahead;
use rustix::fs::{Mode, OFlags, fstat};
use rustix::io::Errno;

use crate::directory::Directory;
use crate::entry_kind::EntryKind;
use crate::scan_problem::ScanProblem;
use crate::status::Status;

/// One object, found but not yet opened. Cheap to clone and to send to another thread. It keeps its
/// directory open.
#[derive(Clone)]
pub struct Entry {
    pub(crate) directory: Arc<Directory>,
    pub(crate) index: u32,
}

impl Entry {
    /// The object of a name, by its position in archive order.
    pub fn of(directory: &Arc<Directory>, index: u32) -> Entry {
        Entry { directory: Arc::clone(directory), index }
    }

    /// The directory that the object is in.
    pub fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// Name in that directory.
    pub fn name(&self) -> &CStr {
        self.directory.names().name(self.index)
    }

    /// The kind that getdents(2) reported. It may have changed since.
    pub fn kind(&self) -> EntryKind {
        self.directory.names().kind(self.index)
    }

    /// The inode number that getdents(2) reported. It may have changed since.
    pub fn inode(&self) -> u64 {
        self.directory.names().inode(self.index)
    }

    /// Number of the device that its directory is on.
    pub fn directory_device(&self) -> u64 {
        self.directory.names().identity.device
    }

    /// Opens a regular file for reading, as a capture does it: through no symbolic link, without a
    /// wait for the holder of a lease, and without changing the access time where that is allowed.
    ///
    /// # Errors
    /// Those of openat(2) and fstat(2); `InvalidInput` if it is no regular file.
    pub fn open_file(&self) -> io::Result<(OwnedFd, Status)> {
        let usual = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = |flags| openat_ahead(&*self.directory, self.name(), flags, Mode::empty());
        let file = match open(usual | OFlags::NOATIME) {
            Err(Errno::PERM) => open(usual)?,
            result => result?,
        };
        let status = Status::of(&fstat(&file)?);
        match status.kind {
            EntryKind::File => Ok((file, status)),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// The state of the object, if it is no directory and the scan was to look.
    pub fn status(&self) -> Option<&Status> {
        self.directory.status(self.index)
    }

    /// Index of its source, from 0.
    pub fn source(&self) -> usize {
        self.directory.names().source as usize
    }

    /// Appends the path in the archive.
    pub fn append_path(&self, path: &mut Vec<u8>) {
        self.directory.names().append_entry_path(self.index, path);
    }

    /// Path in the archive.
    pub fn path(&self) -> Vec<u8> {
        let names = self.directory.names();
        let length = names.path_bytes() + 1 + names.name_bytes(self.index).len();
        let mut path = Vec::with_capacity(length);
        self.append_path(&mut path);
        path
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = String::from_utf8_lossy(&self.path()).into_owned();
        formatter.debug_struct("Entry").field("path", &path).field("kind", &self.kind()).finish()
    }
}

/// One item of the walk.
#[derive(Debug)]
pub enum Item {
    /// An object to archive.
    Entry(Entry),
    /// A directory to archive, of a scan that looks at the state of everything.
    Folder(Box<FolderEntry>),
    /// A directory could not be walked. The entry of the directory itself came before.
    Problem(Box<ScanProblem>),
}

/// A directory and what is in it. Of one that could be listed, only the directories in it follow as
/// items; what is no directory is had by [`Entry::of`].
#[derive(Debug)]
pub struct FolderEntry {
    pub entry: Entry,
    /// Its state before it was listed, if it could be seen.
    pub status: Option<Status>,
    pub contents: FolderContents,
    /// How much of it the walk goes on to look at; [`crate::Scan::list_last`] asks for more.
    pub extent: Extent,
}

/// How much of a folder is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Everything in it, at any depth.
    Whole,
    /// What is directly in it, and deeper what is on the way to a path of
    /// [`crate::ScanOptions::changed`].
    Names,
}

/// The names in a directory.
#[derive(Debug)]
pub enum FolderContents {
    /// All of them. Its directories come next.
    Listed(Arc<Directory>),
    /// It was not to be entered: another file system.
    NotEntered,
    /// It could not be listed, or not to its end: a problem follows.
    Unlisted,
    /// Its names were not read, since no path of [`crate::ScanOptions::changed`] is directly in it.
    /// Only those of its folders follow that lead to one. The directory, if it had to be opened.
    NotRead(Option<Arc<Directory>>),
}

impl FolderContents {
    /// The folder itself, if it was opened.
    pub fn directory(&self) -> Option<&Arc<Directory>> {
        match self {
            FolderContents::Listed(directory) => Some(directory),
            FolderContents::NotRead(directory) => directory.as_ref(),
            FolderContents::NotEntered | FolderContents::Unlisted => None,
        }
    }
}
