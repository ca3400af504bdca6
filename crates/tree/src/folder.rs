//! A directory that objects are made in, and which users can change the names in it.
//!
//! Symbolic links, pipes, devices and directories are made by name and then opened to get their
//! metadata. The opened object must be the one that was made. In a directory that only we can write
//! to, it is. If another user can write to it, that user can replace the name a moment later. In
//! such a directory the objects are made in a *workshop*: our own directory inside it with mode
//! 0700, so that they inherit its default ACL. The workshop is opened and checked before use: even
//! if another one was put in its place, only we can change names in the one we opened. From there
//! an object is renamed to its final name once it has all of its metadata.
//!
//! Regular files need no workshop: they are made without a name and get one by their descriptor.

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
    /// Its owner when it was opened.
    pub(crate) owner: u32,
    /// Who can change names in it.
    pub(crate) names: Names,
    /// Objects made here may inherit an ACL; the umask does not apply then (acl(5)).
    pub(crate) inheritance: Inheritance,
    /// An object was in the way here before, so it is worth a check before the next one.
    pub(crate) is_populated: AtomicBool,
    /// Files without a name can be made here.
    pub(crate) takes_unnamed: AtomicBool,
    /// Made when first needed.
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

/// Whether a new object inherited an ACL from the directory above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inheritance {
    /// It inherited no ACL.
    Nothing,
    /// It may have inherited the default ACL of the directory above.
    Acl,
}

/// Our own directory inside one that others can write to.
#[derive(Debug)]
struct Workshop {
    name: Vec<u8>,
    descriptor: OwnedFd,
}

/// How often another name is tried if a name is taken, or belongs to another user.
pub(crate) const TRIES_MAX: usize = 100;

impl Folder {
    pub(crate) fn new(descriptor: OwnedFd) -> Result<Folder, Errno> {
        let stat = fstat(&descriptor)?;
        // ENODATA means no ACL, EOPNOTSUPP no support for ACLs. Any other error counts as no ACL,
        // too.
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

    /// Calls `make` with the directory in which an object may be made by name, and with a free name
    /// for it. Also returns the name; the directory is that of [`Folder::with_place`].
    pub(crate) fn make_apart<T>(
        &self,
        mut make: impl FnMut(&OwnedFd, &[u8]) -> Result<T, Errno>,
    ) -> Result<(T, Vec<u8>), Errno> {
        for _ in 0..TRIES_MAX {
            let name = temporary_name();
            let made = self.with_place(|place| {
                let made = make(place, &name);
                // A file server may report an error for something it has done. The name is random,
                // so it can only be ours.
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
    /// When a workshop cannot be made.
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

    /// Whether another program removed the empty workshop; then the next one is new.
    fn lost_workshop(&self) -> bool {
        let mut workshop = lock(&self.workshop);
        let is_gone = |workshop: &mut Workshop| {
            fstat(&workshop.descriptor).is_ok_and(|stat| stat.st_nlink == 0)
        };
        workshop.take_if(is_gone).is_some()
    }

    /// Whether this file system reports the true maker of a file: some give all files to one user.
    /// There users cannot be distinguished, and owners cannot be set.
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
            // This removes only an empty directory.
            let _ = unlinkat(&self.descriptor, &workshop.name[..], AtFlags::REMOVEDIR);
        }
    }
}

/// Whether a directory is empty and only we can make or find a name in it.
fn is_private(directory: &OwnedFd) -> Result<bool, Errno> {
    let stat = fstat(directory)?;
    // If there is an ACL, the group bits are its mask.
    let is_ours = stat.st_uid == geteuid().as_raw() && stat.st_mode & 0o777 == 0o700;
    Ok(is_ours && is_empty(directory)?)
}

/// Whether a directory, open for reading, is empty.
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

/// A group-writable directory counts as ours if the group is our own and no ACL admits others: many
/// systems give each user a group and umask 002.
fn names(stat: &Stat, has_acl: impl FnOnce() -> bool) -> Names {
    let by_group = stat.st_mode & 0o020 != 0 && (stat.st_gid != getegid().as_raw() || has_acl());
    let by_others = stat.st_mode & 0o002 != 0;
    let owner = stat.st_uid == geteuid().as_raw();
    if owner && !by_group && !by_others { Names::Ours } else { Names::Others }
}

/// A file of ours in a directory; it is gone when it is closed.
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

/// Whether this error of O_TMPFILE means that the file system does not support files without a
/// name.
pub(crate) fn lacks_unnamed(error: Errno) -> bool {
    matches!(error, Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS)
}

/// A name that nobody can predict. A name left by a killed run can be removed.
fn temporary_name() -> Vec<u8> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    static SECRET: OnceLock<RandomState> = OnceLock::new();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let random = SECRET.get_or_init(RandomState::new).hash_one(number);
    format!(".takeup-{}-{random:016x}", std::process::id()).into_bytes()
}

/// The file type in a stat result.
pub(crate) fn kind_of(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}
