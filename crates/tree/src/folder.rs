//! A directory that objects are made in, and who else can change the names in it.
//!
//! What is made by name (symbolic links, pipes, devices, directories) and then opened to get its
//! metadata must be what was made. In a directory that only we can write to, it is. In one that
//! somebody else can write to, who made a name says nothing about what is found under it a moment
//! later. There such objects are made in a *workshop*: a directory of ours with mode 0700 in that
//! directory, so that they inherit what is inherited there. It is opened and looked at before it is
//! used: whatever was put in its place, nobody but us can change a name in what we opened. From
//! there an object is renamed to where it belongs when it has all of its metadata.
//!
//! Regular files need none of this: they are made without a name and get one by their descriptor.

use std::hash::{BuildHasher, RandomState};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use base::failures::lock;
use base::interruptible::openat;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawDir, Stat, fstat, getxattr, mkdirat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};

use crate::attributes::{ACL_ACCESS, ACL_DEFAULT, proc_path};
use crate::placing::remove;

/// An open directory that objects are made in.
#[derive(Debug)]
pub(crate) struct Folder {
    /// Opened with O_PATH.
    pub(crate) descriptor: OwnedFd,
    /// What it was when it was opened.
    pub(crate) owner: u32,
    /// Who can change names in it.
    pub(crate) names: Names,
    /// What is made here may inherit an ACL, and the umask does not apply then (acl(5)).
    pub(crate) inheritance: Inheritance,
    /// Something was in the way of an object here, so it is worth a look before the next one.
    pub(crate) is_populated: AtomicBool,
    /// Files without a name can be made here.
    pub(crate) takes_unnamed: AtomicBool,
    /// Made when it is first needed.
    workshop: Mutex<Option<Workshop>>,
    keeps_owners: OnceLock<bool>,
}

/// Who can change the names in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// We, and root.
    Ours,
    /// Others as well.
    Others,
}

/// Whether an object came into being with an ACL of the directory above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inheritance {
    /// No ACL came with it.
    Nothing,
    /// The default ACL of the one above may have become its own.
    Acl,
}

/// A directory of ours in one that others can write to.
#[derive(Debug)]
struct Workshop {
    name: Vec<u8>,
    descriptor: OwnedFd,
}

/// How often a name is tried that turns out to be taken, or somebody else's.
pub(crate) const TRIES_MAX: usize = 100;

impl Folder {
    pub(crate) fn new(descriptor: OwnedFd) -> Result<Folder, Errno> {
        let stat = fstat(&descriptor)?;
        // ENODATA for no ACL, EOPNOTSUPP where there are none; anything else is no ACL either.
        let path = proc_path(&descriptor);
        let has = |name| matches!(getxattr(&*path, name, &mut [0; 8]), Ok(1..) | Err(Errno::RANGE));
        let inheritance = if has(ACL_DEFAULT) { Inheritance::Acl } else { Inheritance::Nothing };
        let names = names(&stat, || has(ACL_ACCESS));
        Ok(Folder {
            descriptor,
            owner: stat.st_uid,
            names,
            inheritance,
            is_populated: AtomicBool::new(false),
            takes_unnamed: AtomicBool::new(true),
            workshop: Mutex::default(),
            keeps_owners: OnceLock::new(),
        })
    }

    /// Calls `make` with the directory in which an object may be made by name and a name for it
    /// that is not taken. Gives the name as well; the directory is that of [`Folder::with_place`].
    pub(crate) fn make_apart<T>(
        &self,
        mut make: impl FnMut(&OwnedFd, &[u8]) -> Result<T, Errno>,
    ) -> Result<(T, Vec<u8>), Errno> {
        for _ in 0..TRIES_MAX {
            let name = temporary_name();
            let made = self.with_place(|place| {
                let made = make(place, &name);
                // A file server may report an error of what it has done. The name is nobody else's:
                // it was made up here.
                if made.as_ref().is_err_and(|error| *error != Errno::EXIST) {
                    remove(place, &name);
                }
                made
            })?;
            match made {
                Err(Errno::EXIST) => {}
                Err(Errno::NOENT) if self.lost_workshop() => {}
                result => return result.map(|made| (made, name)),
            }
        }
        Err(Errno::EXIST)
    }

    /// Calls `act` with the directory in which objects are made under temporary names: this one, or
    /// its workshop.
    ///
    /// # Errors
    /// A workshop cannot be made.
    pub(crate) fn with_place<T>(&self, act: impl FnOnce(&OwnedFd) -> T) -> Result<T, Errno> {
        if self.names == Names::Ours {
            return Ok(act(&self.descriptor));
        }
        let mut workshop = lock(&self.workshop);
        if workshop.is_none() && self.keeps_owners()? {
            *workshop = Some(self.make_workshop()?);
        }
        Ok(act(workshop.as_ref().map_or(&self.descriptor, |workshop| &workshop.descriptor)))
    }

    /// Whether somebody removed the workshop while nothing was in it; the next one is another.
    fn lost_workshop(&self) -> bool {
        let mut workshop = lock(&self.workshop);
        let is_gone = |workshop: &mut Workshop| {
            fstat(&workshop.descriptor).is_ok_and(|stat| stat.st_nlink == 0)
        };
        workshop.take_if(is_gone).is_some()
    }

    /// Whether this file system says truly who made a file: some give everything to one user.
    /// Nobody can be told apart there, and owners cannot be set.
    fn keeps_owners(&self) -> Result<bool, Errno> {
        if let Some(known) = self.keeps_owners.get() {
            return Ok(*known);
        }
        let file = unnamed_or_named(&self.descriptor)?;
        let stat = fstat(file)?;
        let keeps = stat.st_uid == geteuid().as_raw() && stat.st_mode & 0o777 == 0o600;
        Ok(*self.keeps_owners.get_or_init(|| keeps))
    }

    fn make_workshop(&self) -> Result<Workshop, Errno> {
        for _ in 0..TRIES_MAX {
            let name = temporary_name();
            match mkdirat(&self.descriptor, &name[..], Mode::RWXU) {
                Ok(()) => {}
                Err(Errno::EXIST) => continue,
                Err(error) => return Err(error),
            }
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let Ok(descriptor) = openat(&self.descriptor, &name[..], flags, Mode::empty()) else {
                continue;
            };
            if is_private(&descriptor)? {
                return Ok(Workshop { name, descriptor });
            }
        }
        // Somebody is always faster.
        Err(Errno::AGAIN)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let workshop = self.workshop.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(workshop) = workshop {
            // Nothing but an empty directory goes by this.
            let _ = unlinkat(&self.descriptor, &workshop.name[..], AtFlags::REMOVEDIR);
        }
    }
}

/// Whether nobody else can make or find a name in a directory, and nothing is in it.
fn is_private(directory: &OwnedFd) -> Result<bool, Errno> {
    let stat = fstat(directory)?;
    // The bits of the group are the mask of an ACL, if there is one.
    let is_ours = stat.st_uid == geteuid().as_raw() && stat.st_mode & 0o777 == 0o700;
    Ok(is_ours && is_empty(directory)?)
}

/// Whether nothing is in a directory, opened for reading.
pub(crate) fn is_empty(directory: &OwnedFd) -> Result<bool, Errno> {
    let mut buffer = Vec::with_capacity(4096);
    let mut entries = RawDir::new(directory.as_fd(), buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        match entry {
            Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
            Ok(_) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Group-writable counts as ours where the group is our own and nobody else was let in by an ACL:
/// many give each user a group and umask 002.
fn names(stat: &Stat, has_acl: impl FnOnce() -> bool) -> Names {
    let by_group = stat.st_mode & 0o020 != 0 && (stat.st_gid != getegid().as_raw() || has_acl());
    let by_others = stat.st_mode & 0o002 != 0;
    let owner = stat.st_uid == geteuid().as_raw();
    if owner && !by_group && !by_others { Names::Ours } else { Names::Others }
}

/// A file of ours in a directory, gone when it is closed.
fn unnamed_or_named(directory: &OwnedFd) -> Result<OwnedFd, Errno> {
    let mode = Mode::RUSR | Mode::WUSR;
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    match openat(directory, c".", flags | OFlags::TMPFILE, mode) {
        Err(error) if lacks_unnamed(error) => {
            let name = temporary_name();
            let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            let file = openat(directory, &name[..], flags, mode)?;
            let _ = unlinkat(directory, &name[..], AtFlags::empty());
            Ok(file)
        }
        result => result,
    }
}

/// Whether this error of O_TMPFILE says that the file system has no files without a name.
pub(crate) fn lacks_unnamed(error: Errno) -> bool {
    matches!(error, Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS)
}

/// A name that nobody can foresee. What a killed run leaves under one can be removed.
fn temporary_name() -> Vec<u8> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    static SECRET: OnceLock<RandomState> = OnceLock::new();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let random = SECRET.get_or_init(RandomState::new).hash_one(number);
    format!(".takeup-{}-{random:016x}", std::process::id()).into_bytes()
}

/// The kind of what a status describes.
pub(crate) fn kind_of(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}
