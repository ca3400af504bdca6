//! The directory that a restore writes into, and the workers that write.
//!
//! Nothing is ever made outside of it (see [`crate::resolve`]). What is there already is replaced
//! only if the policy says so, and then in one step: the new object is made under a temporary name
//! beside it and renamed over it when it is complete. So an interrupted restore leaves under an
//! existing name either the old object or the whole new one. Where nothing was before, a file is
//! written under its own name, since a half is no worse there than nothing and a rename is one more
//! change of the directory for every file; a worker that fails takes it away again.
//!
//! Directories get their owner, mode and times at the end, deepest first ([`Destination::finish`]),
//! so that a read-only one can be filled. Until then those that the archive lists belong to
//! whoever restores, and to nobody else (mode 0700).
//!
//! Several workers write at once. Each keeps the directories it used last open. The kernel takes a
//! lock per directory for every name made in it, so workers are fastest when no two of them work
//! in one directory; nothing depends on it.

use std::borrow::Cow;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use archive::member::{Kind, Member};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawDir, fstat, getxattr, makedev, mkdirat, mknodat, openat,
    statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::accounts::Accounts;
use crate::attributes::{ACL_DEFAULT, Handle, proc_path};
use crate::capture::Attributes;
use crate::deferred::{Deferred, Inheritance};
use crate::metadata::{
    Given, Metadata, MetadataPolicy, MetadataProblem, Modes, Owner, Owners, Problems,
};
use crate::placing::{Make, Placed, make_beside};
use crate::resolve::split;
use crate::resolve::{Beneath, Missing, Refusal, ResolveError, ResolveMethod, checked, open_path};
use crate::restore_error::RestoreError;
use crate::restore_file::RestoreFile;
use crate::synchronise::WrittenFileSystems;

/// What happens where something exists already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overwrite {
    /// It is an error and stays; a directory for a directory is none.
    #[default]
    Refuse,
    /// It is replaced in one step; a directory by something else only when it is empty.
    Replace,
    /// Like `Replace`, but a regular file that is as new as the archived one, or newer, stays.
    KeepNewer,
}

/// How objects are restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DestinationOptions {
    /// What happens to existing objects.
    pub overwrite: Overwrite,
    /// Whose the objects are.
    pub owners: Owners,
    /// Which permissions they get.
    pub modes: Modes,
    /// Whether extended attributes and ACLs are restored.
    pub attributes: Attributes,
    /// Which system calls resolve paths.
    pub resolve: ResolveMethod,
}

impl DestinationOptions {
    /// What GNU tar does by default: everything as archived for the superuser; own files with the
    /// umask for anybody else.
    pub fn for_this_user() -> DestinationOptions {
        let (owners, modes) = match rustix::process::geteuid().is_root() {
            true => (Owners::Names, Modes::Exact),
            false => (Owners::Ignore, Modes::Umask),
        };
        DestinationOptions {
            overwrite: Overwrite::Refuse,
            owners,
            modes,
            attributes: Attributes::Read,
            resolve: ResolveMethod::Auto,
        }
    }
}

/// The directory that a restore writes into. Shared by the workers.
#[derive(Debug)]
pub struct Destination {
    beneath: Beneath,
    overwrite: Overwrite,
    policy: MetadataPolicy,
    accounts: Arc<Accounts>,
    deferred: Mutex<Deferred>,
    root_is_ours: bool,
    next_temporary: AtomicU64,
    written: WrittenFileSystems,
}

/// Makes objects in a [`Destination`]. Every thread has its own.
#[derive(Debug)]
pub struct Worker {
    destination: Arc<Destination>,
    /// Most recently used first.
    parents: Vec<(Vec<u8>, Arc<Parent>)>,
}

/// What came of a regular file.
#[derive(Debug)]
pub enum Created {
    /// To be written and finished.
    File(RestoreFile),
    /// What is there is as new or newer and stays.
    Kept,
}

/// Directories that one worker keeps open.
pub const PARENTS_MAX: usize = 32;

/// An open directory that objects are made in.
#[derive(Debug)]
pub(crate) struct Parent {
    pub(crate) descriptor: OwnedFd,
    /// Owner that the kernel gives to what is made here: set-group-ID directories, mount options
    /// and mapped users all have a say, so the first object is looked at.
    given: OnceLock<Owner>,
    /// What is made here inherits an ACL, and the umask does not apply (acl(5)).
    has_default_acl: bool,
}

impl Destination {
    /// Opens the directory, or makes it (with its parents) when it is missing.
    ///
    /// # Errors
    /// [`RestoreError::Destination`].
    pub fn open(
        into: &Path,
        options: DestinationOptions,
        accounts: Arc<Accounts>,
    ) -> Result<Arc<Destination>, RestoreError> {
        let failed = |source| RestoreError::Destination { path: into.into(), source };
        if let Err(source) = std::fs::create_dir_all(into) {
            // A part of the way may be a file as well, which the kernel says itself.
            return Err(match into.metadata() {
                Ok(status) if !status.is_dir() => RestoreError::NotAFolder { path: into.into() },
                _ => failed(source),
            });
        }
        let beneath = Beneath::open(into, options.resolve).map_err(failed)?;
        let root_is_ours = is_empty(&beneath).map_err(failed)?;
        let written = WrittenFileSystems::default();
        written.note(beneath.root());
        Ok(Arc::new(Destination {
            beneath,
            overwrite: options.overwrite,
            policy: MetadataPolicy {
                owners: options.owners,
                modes: options.modes,
                attributes: options.attributes,
                umask: umask(),
            },
            accounts,
            deferred: Mutex::default(),
            root_is_ours,
            next_temporary: AtomicU64::new(0),
            written,
        }))
    }

    /// A worker for one thread.
    pub fn worker(self: &Arc<Destination>) -> Worker {
        Worker { destination: Arc::clone(self), parents: Vec::with_capacity(PARENTS_MAX) }
    }

    /// Gives the directories their metadata, deepest first. Call it once, when all workers are
    /// done; problems are handed to `report` one by one. Returns the number of directories.
    pub fn finish(&self, mut report: impl FnMut(MetadataProblem)) -> u64 {
        let deferred = std::mem::take(&mut *self.deferred());
        deferred.apply(&self.beneath, &self.policy, &mut report)
    }

    /// Waits until everything on the file systems of the destination that this object has written
    /// to is on their disks, and reports write errors that came up meanwhile.
    ///
    /// # Errors
    /// [`RestoreError::Synchronise`].
    pub fn synchronise(&self) -> Result<(), RestoreError> {
        let synchronised = self.written.synchronise();
        synchronised.map_err(|error| RestoreError::Synchronise { source: error.into() })
    }

    fn deferred(&self) -> std::sync::MutexGuard<'_, Deferred> {
        self.deferred.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Worker {
    /// Makes a regular file, still without content. `member.size_bytes` is what it will have.
    ///
    /// # Errors
    /// See [`RestoreError`]; nothing is left behind then.
    pub fn create_file(&mut self, member: &Member) -> Result<Created, RestoreError> {
        let destination = Arc::clone(&self.destination);
        let policy = &destination.policy;
        let metadata = policy.metadata_of(member, &destination.accounts);
        let mode = policy.creation_mode(&metadata);
        let make = |parent: &Parent, name: &[u8]| {
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            openat(&parent.descriptor, name, flags, Mode::from_raw_mode(mode))
        };
        let Some((descriptor, placed)) = self.place(member, &make)? else {
            return Ok(Created::Kept);
        };
        let owner = match placed.parent.given.get() {
            Some(owner) => *owner,
            None => {
                let stat = fstat(&descriptor).map_err(|error| created(member, error))?;
                let owner = Owner { uid: stat.st_uid, gid: stat.st_gid };
                *placed.parent.given.get_or_init(|| owner)
            }
        };
        let inherits_acl = placed.parent.has_default_acl;
        let given =
            Given { owner, mode: (!inherits_acl).then_some(mode & !policy.umask), inherits_acl };
        let size_bytes = member.size_bytes;
        Ok(Created::File(RestoreFile::new(
            destination,
            descriptor,
            placed,
            metadata,
            given,
            size_bytes,
        )))
    }

    /// Makes a directory, or takes one that is there. Its metadata follow in
    /// [`Destination::finish`]; those of the destination itself only if it was empty at first.
    ///
    /// # Errors
    /// See [`RestoreError`].
    pub fn create_directory(&mut self, member: &Member) -> Result<(), RestoreError> {
        let path = check(&member.path)?;
        let destination = Arc::clone(&self.destination);
        let metadata = destination.policy.metadata_of(member, &destination.accounts);
        if path.is_empty() {
            if destination.root_is_ours {
                destination.deferred().add(b"", metadata, Inheritance::Nothing);
            }
            return Ok(());
        }
        let make = |parent: &Parent, name: &[u8]| {
            let made = mkdirat(&parent.descriptor, name, Mode::from_raw_mode(0o700));
            if made == Err(Errno::EXIST) {
                let stat = statat(&parent.descriptor, name, AtFlags::SYMLINK_NOFOLLOW)?;
                if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                    return Ok(());
                }
            }
            made
        };
        let Some(((), placed)) = self.place(member, &make)? else { return Ok(()) };
        let inheritance = match placed.parent.has_default_acl {
            true => Inheritance::Acl,
            false => Inheritance::Nothing,
        };
        placed.put(&member.path)?;
        destination.deferred().add(&path, metadata, inheritance);
        Ok(())
    }

    /// Makes any object but a regular file and gives it its metadata.
    ///
    /// # Errors
    /// See [`RestoreError`]. Metadata that could not be restored are no error but the list.
    ///
    /// # Panics
    /// For a regular file: that is [`Worker::create_file`].
    pub fn create(&mut self, member: &Member) -> Result<Vec<MetadataProblem>, RestoreError> {
        match &member.kind {
            Kind::File => panic!("regular files are made by create_file()"),
            Kind::Directory => self.create_directory(member).map(|()| Vec::new()),
            Kind::SymbolicLink { target } => self.create_symbolic_link(member, target),
            Kind::HardLink { target } => self.create_hard_link(member, target).map(|()| Vec::new()),
            Kind::Fifo => self.create_special(member, FileType::Fifo, 0),
            Kind::CharacterDevice { major, minor } => {
                self.create_special(member, FileType::CharacterDevice, makedev(*major, *minor))
            }
            Kind::BlockDevice { major, minor } => {
                self.create_special(member, FileType::BlockDevice, makedev(*major, *minor))
            }
        }
    }

    fn create_symbolic_link(
        &mut self,
        member: &Member,
        target: &[u8],
    ) -> Result<Vec<MetadataProblem>, RestoreError> {
        let make = |parent: &Parent, name: &[u8]| symlinkat(target, &parent.descriptor, name);
        let Some(((), placed)) = self.place(member, &make)? else { return Ok(Vec::new()) };
        let policy = &self.destination.policy;
        let metadata = policy.metadata_of(member, &self.destination.accounts);
        let mut problems = Problems::of(&member.path);
        match placed.parent.given_to(placed.made_name()) {
            Ok(given) => policy.apply_to_link(
                placed.parent.descriptor.as_fd(),
                placed.made_name(),
                &metadata,
                given,
                &mut problems,
            ),
            Err(error) => return Err(created(member, error)),
        }
        let found = problems.found;
        placed.put(&member.path)?;
        Ok(found)
    }

    fn create_hard_link(&mut self, member: &Member, target: &[u8]) -> Result<(), RestoreError> {
        let refused = |reason| RestoreError::LinkRefused {
            path: member.path.clone(),
            target: target.to_vec(),
            reason,
        };
        let failed = |error: Errno| RestoreError::Link {
            path: member.path.clone(),
            target: target.to_vec(),
            source: error.into(),
        };
        let target_path = checked(target).map_err(refused)?;
        let (target_directory, target_name) = split(&target_path);
        if target_name.is_empty() {
            return Err(refused(Refusal::Empty));
        }
        let target_parent = match self.parent(target_directory, Missing::Fail) {
            Ok(parent) => parent,
            Err(ResolveError::Refused(reason)) => return Err(refused(reason)),
            Err(ResolveError::Io(error)) => return Err(failed(error)),
        };
        let make = |parent: &Parent, name: &[u8]| {
            let (from, to) = (&target_parent.descriptor, &parent.descriptor);
            // Without AT_SYMLINK_FOLLOW a link to a symbolic link is one to the link itself.
            rustix::fs::linkat(from, target_name, to, name, AtFlags::empty())
        };
        let Some(((), placed)) = self.place_or(member, &make, &failed)? else { return Ok(()) };
        placed.put(&member.path)
    }

    fn create_special(
        &mut self,
        member: &Member,
        kind: FileType,
        device: u64,
    ) -> Result<Vec<MetadataProblem>, RestoreError> {
        let policy = &self.destination.policy;
        let metadata = policy.metadata_of(member, &self.destination.accounts);
        let mode = policy.creation_mode(&metadata);
        let make = |parent: &Parent, name: &[u8]| {
            mknodat(&parent.descriptor, name, kind, Mode::from_raw_mode(mode), device)
        };
        let failed = |error: Errno| match (error, kind) {
            (Errno::PERM, FileType::CharacterDevice | FileType::BlockDevice) => {
                RestoreError::DeviceNeedsRoot { path: member.path.clone() }
            }
            _ => created(member, error),
        };
        let Some(((), placed)) = self.place_or(member, &make, &failed)? else {
            return Ok(Vec::new());
        };
        let mut problems = Problems::of(&member.path);
        let name = std::ffi::CString::new(placed.made_name()).expect("checked for NUL");
        let object = open_path(&placed.parent.descriptor, &name).map_err(failed)?;
        let stat = fstat(&object).map_err(failed)?;
        let owner = Owner { uid: stat.st_uid, gid: stat.st_gid };
        let inherits_acl = placed.parent.has_default_acl;
        let given = Given { owner, mode: Some(stat.st_mode & 0o7777), inherits_acl };
        let given = Given { mode: given.mode.filter(|_| !inherits_acl), ..given };
        let policy = &self.destination.policy;
        policy.apply(Handle::Path(object.as_fd()), &metadata, given, &mut problems);
        let found = problems.found;
        placed.put(&member.path)?;
        Ok(found)
    }

    fn place<T>(
        &mut self,
        member: &Member,
        make: &Make<'_, T>,
    ) -> Result<Option<(T, Placed)>, RestoreError> {
        self.place_or(member, make, &|error| created(member, error))
    }

    /// Makes an object at its place, or beside it when something is there that may be replaced.
    /// `None` when what is there stays.
    fn place_or<T>(
        &mut self,
        member: &Member,
        make: &Make<'_, T>,
        failed: &dyn Fn(Errno) -> RestoreError,
    ) -> Result<Option<(T, Placed)>, RestoreError> {
        let path = check(&member.path)?;
        let (directory, name) = split(&path);
        if name.is_empty() {
            return Err(RestoreError::Refused {
                path: member.path.clone(),
                reason: Refusal::Empty,
            });
        }
        for attempt in 0.. {
            let parent = self.parent_of(member, directory)?;
            match make(&parent, name) {
                Ok(made) => return Ok(Some((made, Placed::at(parent, name)))),
                // The directory was removed since it was opened, by this archive or by somebody.
                Err(Errno::NOENT) if attempt == 0 && !self.is_there(directory) => {
                    self.parents.retain(|(path, _)| path != directory);
                }
                Err(Errno::EXIST) => return self.replace(member, &parent, name, make, failed),
                Err(error) => return Err(failed(error)),
            }
        }
        unreachable!("the second attempt returns")
    }

    fn replace<T>(
        &self,
        member: &Member,
        parent: &Arc<Parent>,
        name: &[u8],
        make: &Make<'_, T>,
        failed: &dyn Fn(Errno) -> RestoreError,
    ) -> Result<Option<(T, Placed)>, RestoreError> {
        let exists = || RestoreError::Exists { path: member.path.clone() };
        if self.destination.overwrite == Overwrite::Refuse {
            return Err(exists());
        }
        let stat = statat(&parent.descriptor, name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        let is = FileType::from_raw_mode(stat.st_mode);
        if self.destination.overwrite == Overwrite::KeepNewer
            && member.kind == Kind::File
            && is == FileType::RegularFile
            && crate::identity::Version::of(&stat).modified >= member.modified
        {
            return Ok(None);
        }
        if is == FileType::Directory || member.kind == Kind::Directory {
            // Neither can be renamed over the other, so this is not one step.
            let flags = match is {
                FileType::Directory => AtFlags::REMOVEDIR,
                _ => AtFlags::empty(),
            };
            match unlinkat(&parent.descriptor, name, flags) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(Errno::NOTEMPTY | Errno::EXIST) => {
                    return Err(RestoreError::DirectoryInTheWay { path: member.path.clone() });
                }
                Err(error) => return Err(failed(error)),
            }
            let made = make(parent, name).map_err(|error| match error {
                Errno::EXIST => exists(),
                error => failed(error),
            })?;
            return Ok(Some((made, Placed::at(Arc::clone(parent), name))));
        }
        let numbers = || self.destination.next_temporary.fetch_add(1, Ordering::Relaxed);
        make_beside(parent, name, numbers, make).map(Some).map_err(failed)
    }

    fn is_there(&self, directory: &[u8]) -> bool {
        // A cached directory that has no links any more was removed.
        let cached = self.parents.iter().find(|(path, _)| path == directory);
        cached.is_some_and(|(_, parent)| {
            fstat(&parent.descriptor).is_ok_and(|stat| stat.st_nlink > 0)
        })
    }

    fn parent_of(&mut self, member: &Member, path: &[u8]) -> Result<Arc<Parent>, RestoreError> {
        self.parent(path, Missing::Create).map_err(|error| match error {
            ResolveError::Refused(reason) => {
                RestoreError::Refused { path: member.path.clone(), reason }
            }
            ResolveError::Io(error) => {
                RestoreError::Parent { path: member.path.clone(), source: error.into() }
            }
        })
    }

    /// The open directory at a checked path, most likely the one used last.
    fn parent(&mut self, path: &[u8], missing: Missing) -> Result<Arc<Parent>, ResolveError> {
        if let Some(at) = self.parents.iter().position(|(known, _)| known == path) {
            if at > 0 {
                self.parents[..=at].rotate_right(1);
            }
            return Ok(Arc::clone(&self.parents[0].1));
        }
        let descriptor = self.destination.beneath.directory(path, missing)?;
        self.destination.written.note(&descriptor);
        // ENODATA for no ACL, EOPNOTSUPP where there are none; anything else is no ACL either.
        let mut acl = [0; 8];
        let answer = getxattr(&*proc_path(&descriptor), ACL_DEFAULT, &mut acl);
        let has_default_acl = matches!(answer, Ok(1..) | Err(Errno::RANGE));
        let parent = Arc::new(Parent { descriptor, given: OnceLock::new(), has_default_acl });
        self.parents.truncate(PARENTS_MAX - 1);
        self.parents.insert(0, (path.to_vec(), Arc::clone(&parent)));
        Ok(parent)
    }
}

impl Parent {
    /// Owner of what is made here, looked up at `name` the first time.
    fn given_to(&self, name: &[u8]) -> Result<Owner, Errno> {
        if let Some(owner) = self.given.get() {
            return Ok(*owner);
        }
        let stat = statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(*self.given.get_or_init(|| Owner { uid: stat.st_uid, gid: stat.st_gid }))
    }
}

impl Destination {
    /// Gives a finished file its metadata.
    pub(crate) fn apply_to_file(
        &self,
        file: &OwnedFd,
        metadata: &Metadata,
        given: Given,
        problems: &mut Problems<'_>,
    ) {
        self.policy.apply(Handle::Open(file.as_fd()), metadata, given, problems);
    }
}

fn check(path: &[u8]) -> Result<Cow<'_, [u8]>, RestoreError> {
    checked(path).map_err(|reason| RestoreError::Refused { path: path.to_vec(), reason })
}

fn created(member: &Member, error: Errno) -> RestoreError {
    RestoreError::Create { path: member.path.clone(), source: error.into() }
}

/// Whether nothing is in the root yet.
fn is_empty(beneath: &Beneath) -> io::Result<bool> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(root) = openat(beneath.root(), c".", flags, Mode::empty()) else { return Ok(false) };
    let mut buffer = Vec::with_capacity(4096);
    let mut entries = RawDir::new(root, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The umask of the process, read where that does not mean to set it: other threads may be making
/// files. Without /proc (or before Linux 4.7) the usual one is taken; the modes come out right
/// because a file whose permissions are not sure is looked after with fchmod.
fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok()).unwrap_or(0o022)
}
