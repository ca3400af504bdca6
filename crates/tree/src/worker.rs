//! Makes objects, with one [`Worker`] per thread.
//!
//! An existing object is replaced only if the policy allows it, and then in one step: the new
//! object is made under a temporary name and renamed over the old one when it is complete. A
//! regular file has no name at all until it is complete. So an interrupted restore leaves under
//! each name the old object, the complete new one, or nothing.
//!
//! Objects that have a name from the start are made in a place that depends on who can change names
//! in the directory; see [`crate::folder`].
//!
//! Several workers write at once, also in one directory. Each keeps its last directories open. The
//! kernel locks a directory for every name made in it.

use std::borrow::Cow;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use archive::member::{Member, MemberKind};
use base::interruptible::openat;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, fstat, linkat, makedev, mkdirat, mknodat, statat,
    symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::attributes::Handle;
use crate::deferred::Made;
use crate::destination::{Destination, Overwrite, unreachable_parent};
use crate::folder::{Folder, Inheritance, Names, kind_of, lacks_unnamed};
use crate::identity::{Identity, Version};
use crate::metadata::{Metadata, MetadataPart, MetadataProblem, Owners, Privileges, Problems};
use crate::placing::{Over, Placed, clear_directory, link_file};
use crate::resolve::{Missing, Refusal, ResolveError, checked, split};
use crate::restore_error::RestoreError;
use crate::restore_file::{Home, Reserved, RestoreFile};

/// Makes objects in a [`Destination`]. Every thread has its own.
#[derive(Debug)]
pub struct Worker {
    destination: Arc<Destination>,
    overwrite: Overwrite,
    /// Most recently used first.
    folders: Vec<(Vec<u8>, Arc<Folder>)>,
}

/// The result for a regular file.
#[derive(Debug)]
pub enum Created {
    /// To be written and finished.
    File(RestoreFile),
    /// The existing file is as new, or newer, and stays.
    Kept,
    /// Like `Kept`, but the existing file is shorter: an interrupted program may have left it.
    KeptShorter,
}

/// Most directories that one worker keeps open.
pub const PARENTS_MAX: usize = 32;

/// Files larger than this are not written before their name is known to be free.
const BLIND_BYTES_MAX: u64 = 256 << 10;

/// What exists under the name of a new object.
enum There {
    Nothing,
    /// It may be replaced.
    Replaceable,
    Stays(Created),
}

/// Makes an object under a name in a directory, if that name is free.
type Make<'a> = dyn Fn(&OwnedFd, &[u8]) -> Result<(), Errno> + 'a;

/// Makes something in a directory that a worker has open.
type InFolder<'a, T> = dyn FnMut(&Worker, &Arc<Folder>) -> Result<T, Errno> + 'a;

impl Destination {
    /// A worker for one thread.
    pub fn worker(self: &Arc<Destination>) -> Worker {
        Worker::new(Arc::clone(self), self.overwrite)
    }

    /// A worker that replaces existing objects, for objects that this run made itself.
    pub fn replacing_worker(self: &Arc<Destination>) -> Worker {
        Worker::new(Arc::clone(self), Overwrite::Replace)
    }
}

impl Worker {
    pub(crate) fn new(destination: Arc<Destination>, overwrite: Overwrite) -> Worker {
        Worker { destination, overwrite, folders: Vec::with_capacity(PARENTS_MAX) }
    }

    /// Makes a regular file, still without content and name. `member.size_bytes` is its final size.
    ///
    /// # Errors
    /// See [`RestoreError`]; then nothing is left behind. An existing object may be reported here
    /// or when the file is finished.
    pub fn create_file(&mut self, member: &Member) -> Result<Created, RestoreError> {
        let destination = Arc::clone(&self.destination);
        let metadata = destination.policy().metadata_of(member, &destination.accounts);
        let path = check(&member.path)?;
        let (_, name) = split_member(member, &path)?;
        self.with_folder(member, &path, &|error| created(member, error), &mut |worker, folder| {
            let mut replaces = false;
            let is_large = member.size_bytes > BLIND_BYTES_MAX;
            let is_populated = folder.is_populated.load(Ordering::Relaxed);
            if worker.overwrite != Overwrite::Refuse || is_large || is_populated {
                match worker.look(member, folder, name)? {
                    Ok(There::Nothing) => {}
                    Ok(There::Replaceable) => replaces = true,
                    Ok(There::Stays(kept)) => return Ok(Ok(kept)),
                    Err(error) => return Ok(Err(error)),
                }
            }
            let mode = destination.policy().creation_mode(&metadata);
            let over = if replaces { Over::Anything } else { Over::Nothing };
            let (descriptor, home) = make_file(folder, name, mode, over)?;
            Ok(Ok(Created::File(RestoreFile {
                destination: Arc::clone(&destination),
                reserved: Reserved::of(&descriptor, member),
                descriptor,
                home,
                overwrite: worker.overwrite,
                replaces,
                metadata: metadata.clone(),
                size_bytes: member.size_bytes,
                end_bytes: 0,
            })))
        })?
    }

    /// Makes a directory, or takes over an existing one. [`Destination::finish`] sets most of its
    /// metadata, and sets those of the destination itself only if it was empty at first.
    ///
    /// # Errors
    /// See [`RestoreError`]. Metadata that could not be restored are returned in the list, not as
    /// an error.
    pub fn create_directory(
        &mut self,
        member: &Member,
    ) -> Result<Vec<MetadataProblem>, RestoreError> {
        let path = check(&member.path)?;
        let made = self.make_or_take(member, &path);
        match &made {
            Ok(_) => self.destination.forget_failure(&path),
            Err(_) => self.destination.remember_failure(&path),
        }
        made
    }

    fn make_or_take(
        &mut self,
        member: &Member,
        path: &[u8],
    ) -> Result<Vec<MetadataProblem>, RestoreError> {
        let destination = Arc::clone(&self.destination);
        let metadata = destination.policy().metadata_of(member, &destination.accounts);
        if path.is_empty() {
            if !destination.was_empty {
                return Ok(Vec::new());
            }
            let root = destination.beneath.root();
            let made =
                Made::of(root, Inheritance::Nothing).map_err(|error| created(member, error))?;
            return self.defer(member, path, root, metadata, made);
        }
        let (_, name) = split_member(member, path)?;
        let failed = |error| match error {
            Errno::EXIST => RestoreError::Exists { path: member.path.clone() },
            error => created(member, error),
        };
        let (directory, placed, found) =
            self.with_folder(member, path, &failed, &mut |worker, folder| {
                match make_directory(folder, name) {
                    Err(Errno::EXIST) if worker.overwrite != Overwrite::Refuse => {
                        // Neither can be renamed over the other, so this takes two steps.
                        unlinkat(&folder.descriptor, name, AtFlags::empty())?;
                        make_directory(folder, name)
                    }
                    result => result,
                }
            })?;
        if let Found::AmongOthers(stat) = &found
            && !self.may_take_over(&metadata, &placed.folder, stat)
        {
            let owners = destination.policy().owners;
            return Ok(left_as_it_is(member, &metadata, owners, stat).into_iter().collect());
        }
        let inheritance = match found {
            Found::Nothing => placed.folder.inheritance,
            Found::Ours | Found::AmongOthers(_) => Inheritance::Nothing,
        };
        let made = Made::of(directory.as_fd(), inheritance).map_err(failed)?;
        let folder = Arc::clone(&placed.folder);
        placed.put(&member.path)?;
        if matches!(found, Found::Nothing) {
            destination.remember(&folder, &member.path, made.identity());
        }
        self.defer(member, path, directory.as_fd(), metadata, made)
    }

    /// Sets the early metadata and stores the rest until the end.
    fn defer(
        &self,
        member: &Member,
        path: &[u8],
        directory: std::os::fd::BorrowedFd<'_>,
        mut metadata: Metadata,
        made: Made,
    ) -> Result<Vec<MetadataProblem>, RestoreError> {
        let mut problems = Problems::of(&member.path);
        let handle = Handle::Path(directory);
        self.destination.policy().apply_early(handle, &mut metadata, &mut problems);
        let added = self.destination.deferred().add(path, &metadata, made);
        added.map_err(|source| RestoreError::Remember { path: member.path.clone(), source })?;
        Ok(self.destination.take_problems(problems))
    }

    /// Whether an existing directory, in a parent that others can change, gets the archived
    /// metadata: only if the parent's owner could have set them himself. Any other directory, even
    /// one of ours, may have been put there so that it is given away.
    fn may_take_over(&self, metadata: &Metadata, folder: &Folder, stat: &Stat) -> bool {
        let policy = self.destination.policy();
        let keeps_owner =
            policy.owners == Owners::Ignore || metadata.archived_owner.uid == Some(stat.st_uid);
        let is_ours = stat.st_uid == rustix::process::geteuid().as_raw();
        let is_theirs = keeps_owner && stat.st_uid == folder.owner && !is_ours;
        is_theirs || policy.privileges == Privileges::Keep
    }

    /// Makes any object but a regular file and gives it its metadata.
    ///
    /// # Errors
    /// See [`RestoreError`]. Metadata that could not be restored are returned in the list, not as
    /// an error.
    ///
    /// # Panics
    /// For a regular file: use [`Worker::create_file`].
    pub fn create(&mut self, member: &Member) -> Result<Vec<MetadataProblem>, RestoreError> {
        match &member.kind {
            MemberKind::File => panic!("regular files are made by create_file()"),
            MemberKind::Directory => self.create_directory(member),
            MemberKind::SymbolicLink { target } => {
                let make = |place: &OwnedFd, name: &[u8]| symlinkat(&target[..], place, name);
                self.create_named(member, FileType::Symlink, 0, &make)
            }
            MemberKind::HardLink { target } => {
                self.create_hard_link(member, target).map(|()| Vec::new())
            }
            MemberKind::Fifo => self.create_special(member, FileType::Fifo, 0),
            MemberKind::CharacterDevice { major, minor } => {
                self.create_special(member, FileType::CharacterDevice, makedev(*major, *minor))
            }
            MemberKind::BlockDevice { major, minor } => {
                self.create_special(member, FileType::BlockDevice, makedev(*major, *minor))
            }
        }
    }

    fn create_special(
        &mut self,
        member: &Member,
        kind: FileType,
        device: u64,
    ) -> Result<Vec<MetadataProblem>, RestoreError> {
        let policy = self.destination.policy();
        let metadata = policy.metadata_of(member, &self.destination.accounts);
        let mode = Mode::from_raw_mode(policy.creation_mode(&metadata));
        let make = |place: &OwnedFd, name: &[u8]| mknodat(place, name, kind, mode, device);
        self.create_named(member, kind, device, &make)
    }

    /// Makes an object by name, opens it and gives it its metadata.
    fn create_named(
        &mut self,
        member: &Member,
        kind: FileType,
        device: u64,
        make: &Make<'_>,
    ) -> Result<Vec<MetadataProblem>, RestoreError> {
        let failed = |error: Errno| match (error, kind) {
            (Errno::PERM, FileType::CharacterDevice | FileType::BlockDevice) => {
                RestoreError::DeviceNeedsRoot { path: member.path.clone() }
            }
            _ => created(member, error),
        };
        let Some(placed) = self.place(member, make, Apart::AmongOthers, &failed)? else {
            return Ok(Vec::new());
        };
        let opened = placed.with_made(|place, name| {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            openat(place, name, flags, Mode::empty())
        });
        let object = opened.map_err(failed)?;
        let stat = fstat(&object).map_err(failed)?;
        if kind_of(&stat) != kind || (device != 0 && stat.st_rdev != device) {
            return Err(RestoreError::Changed { path: member.path.clone() });
        }
        let policy = self.destination.policy();
        let metadata = policy.metadata_of(member, &self.destination.accounts);
        let mut problems = Problems::of(&member.path);
        let inheritance = placed.folder.inheritance;
        let handle = Handle::Path(object.as_fd());
        policy.apply(handle, &metadata, &stat, inheritance, &mut problems);
        let folder = Arc::clone(&placed.folder);
        placed.put(&member.path)?;
        self.destination.remember(&folder, &member.path, Identity::of(&stat));
        Ok(self.destination.take_problems(problems))
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
        let target_folder = match self.folder(target_directory, Missing::Fail) {
            Ok(folder) => folder,
            Err(ResolveError::Refused(reason)) => return Err(refused(reason)),
            Err(ResolveError::Io(error)) => return Err(failed(error)),
        };
        if target_folder.names == Names::Ours {
            let make = |place: &OwnedFd, name: &[u8]| {
                // Without AT_SYMLINK_FOLLOW a link to a symbolic link is a link to the symbolic
                // link itself.
                linkat(&target_folder.descriptor, target_name, place, name, AtFlags::empty())
            };
            let placed = self.place(member, &make, Apart::ToReplace, &failed)?;
            return placed.map_or(Ok(()), |placed| placed.put(&member.path));
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let object = openat(&target_folder.descriptor, target_name, flags, Mode::empty());
        let object = object.map_err(failed)?;
        let stat = fstat(&object).map_err(failed)?;
        if !self.is_link_target(member, &target_path, &stat) {
            let (path, target) = (member.path.clone(), target.to_vec());
            return Err(RestoreError::LinkChanged { path, target });
        }
        let make = |place: &OwnedFd, name: &[u8]| link_file(&object, place, name);
        let Some(placed) = self.place(member, &make, Apart::ToReplace, &failed)? else {
            return Ok(());
        };
        let folder = Arc::clone(&placed.folder);
        placed.put(&member.path)?;
        self.destination.remember(&folder, &member.path, Identity::of(&stat));
        Ok(())
    }

    /// Whether the object at the target of a hard link, where others can change names, is the one
    /// that this run made there. If this run made none, whether it has the archived owner.
    fn is_link_target(&self, member: &Member, target_path: &[u8], stat: &Stat) -> bool {
        if let Some(made) = self.destination.remembered(target_path) {
            return made == Identity::of(stat);
        }
        let policy = self.destination.policy();
        let wanted = match policy.owners {
            Owners::Ignore => Some(rustix::process::geteuid().as_raw()),
            _ => policy.metadata_of(member, &self.destination.accounts).archived_owner.uid,
        };
        wanted == Some(stat.st_uid)
    }

    /// Makes an object at its place, or apart if an existing one may be replaced, or if `apart`
    /// requires it. `None` if the existing one stays.
    fn place(
        &mut self,
        member: &Member,
        make: &Make<'_>,
        apart: Apart,
        failed: &dyn Fn(Errno) -> RestoreError,
    ) -> Result<Option<Placed>, RestoreError> {
        let path = check(&member.path)?;
        let (_, name) = split_member(member, &path)?;
        self.with_folder(member, &path, failed, &mut |worker, folder| {
            let at_once = apart == Apart::ToReplace || folder.names == Names::Ours;
            if at_once {
                match make(&folder.descriptor, name) {
                    Ok(()) => return Ok(Ok(Some(Placed::at(Arc::clone(folder), name)))),
                    Err(Errno::EXIST) => {}
                    Err(error) => return Err(error),
                }
            }
            let over = match worker.look(member, folder, name)? {
                Ok(There::Nothing) => Over::Nothing,
                Ok(There::Replaceable) => Over::Anything,
                Ok(There::Stays(_)) => return Ok(Ok(None)),
                Err(error) => return Ok(Err(error)),
            };
            if over == Over::Anything
                && let Err(error) = clear_directory(folder, name, &member.path)?
            {
                return Ok(Err(error));
            }
            let ((), temporary) = folder.make_apart(make)?;
            Ok(Ok(Some(Placed::apart(Arc::clone(folder), name, temporary, over))))
        })?
    }

    /// What exists under a name, and whether it may be replaced.
    fn look(
        &self,
        member: &Member,
        folder: &Folder,
        name: &[u8],
    ) -> Result<Result<There, RestoreError>, Errno> {
        let stat = match statat(&folder.descriptor, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(Ok(There::Nothing)),
            Err(error) => return Err(error),
        };
        folder.is_populated.store(true, Ordering::Relaxed);
        if self.overwrite == Overwrite::Refuse {
            return Ok(Err(RestoreError::Exists { path: member.path.clone() }));
        }
        let are_files = member.kind == MemberKind::File && kind_of(&stat) == FileType::RegularFile;
        if self.overwrite == Overwrite::KeepNewer && are_files {
            let there = Version::of(&stat);
            if there.modified > member.modified && there.size_bytes < member.size_bytes {
                return Ok(Ok(There::Stays(Created::KeptShorter)));
            }
            let is_same =
                there.modified == member.modified && there.size_bytes == member.size_bytes;
            if there.modified > member.modified || is_same {
                return Ok(Ok(There::Stays(Created::Kept)));
            }
        }
        Ok(Ok(There::Replaceable))
    }

    /// Calls `act` with the directory of a member, again if that was removed since it was opened.
    fn with_folder<T>(
        &mut self,
        member: &Member,
        path: &[u8],
        failed: &dyn Fn(Errno) -> RestoreError,
        act: &mut InFolder<'_, T>,
    ) -> Result<T, RestoreError> {
        let (directory, _) = split(path);
        for attempt in 0.. {
            let folder = self
                .folder(directory, Missing::Create)
                .map_err(|error| unreachable_parent(&member.path, error))?;
            match act(self, &folder) {
                // ext4 returns EPERM for a file without a name there.
                Err(Errno::NOENT | Errno::PERM) if attempt == 0 && !is_there(&folder) => {
                    self.folders.retain(|(path, _)| path != directory);
                }
                result => return result.map_err(failed),
            }
        }
        unreachable!("the second attempt returns")
    }

    /// The open directory at a checked path, usually the one used last.
    fn folder(&mut self, path: &[u8], missing: Missing) -> Result<Arc<Folder>, ResolveError> {
        if let Some(at) = self.folders.iter().position(|(known, _)| known == path) {
            if at > 0 {
                self.folders[..=at].rotate_right(1);
            }
            return Ok(Arc::clone(&self.folders[0].1));
        }
        let folder = Arc::new(self.destination.folder(path, missing)?);
        self.folders.truncate(PARENTS_MAX - 1);
        self.folders.insert(0, (path.to_vec(), Arc::clone(&folder)));
        Ok(folder)
    }
}

/// When an object is made apart, under a temporary name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Apart {
    /// Only if it replaces an existing object.
    ToReplace,
    /// Also if others could replace it before it has its metadata.
    AmongOthers,
}

/// Whether a directory existed before.
enum Found {
    Nothing,
    Ours,
    /// In a directory whose names others can change.
    AmongOthers(Stat),
}

fn make_file(
    folder: &Arc<Folder>,
    name: &[u8],
    mode: u32,
    over: Over,
) -> Result<(OwnedFd, Home), Errno> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    if folder.takes_unnamed.load(Ordering::Relaxed) {
        let mode = Mode::from_raw_mode(mode);
        match openat(&folder.descriptor, c".", flags | OFlags::TMPFILE, mode) {
            Ok(file) => {
                let home = Home::Unnamed { folder: Arc::clone(folder), name: name.to_vec() };
                return Ok((file, home));
            }
            Err(error) if lacks_unnamed(error) => {
                folder.takes_unnamed.store(false, Ordering::Relaxed);
            }
            Err(error) => return Err(error),
        }
    }
    let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    // While it has a temporary name, only we may read it.
    let mode = Mode::RUSR | Mode::WUSR;
    let (file, temporary) =
        folder.make_apart(|place, temporary| openat(place, temporary, flags, mode))?;
    Ok((file, Home::Named(Placed::apart(Arc::clone(folder), name, temporary, over))))
}

/// A directory under a name, made or found. EEXIST if another kind of object is there.
fn make_directory(folder: &Arc<Folder>, name: &[u8]) -> Result<(OwnedFd, Placed, Found), Errno> {
    let open = |place: &OwnedFd, name: &[u8]| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(place, name, flags, Mode::empty())
    };
    let at_place = || Placed::at(Arc::clone(folder), name);
    if folder.names == Names::Ours {
        match mkdirat(&folder.descriptor, name, Mode::RWXU) {
            Ok(()) => return Ok((open(&folder.descriptor, name)?, at_place(), Found::Nothing)),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
    match open(&folder.descriptor, name) {
        Ok(directory) if folder.names == Names::Ours => Ok((directory, at_place(), Found::Ours)),
        Ok(directory) => {
            let stat = fstat(&directory)?;
            Ok((directory, at_place(), Found::AmongOthers(stat)))
        }
        Err(Errno::NOENT) if folder.names == Names::Others => {
            let make = |place: &OwnedFd, temporary: &[u8]| {
                mkdirat(place, temporary, Mode::RWXU)?;
                open(place, temporary)
            };
            let (directory, temporary) = folder.make_apart(make)?;
            let placed = Placed::apart(Arc::clone(folder), name, temporary, Over::Nothing);
            Ok((directory, placed, Found::Nothing))
        }
        Err(Errno::NOTDIR | Errno::LOOP) => Err(Errno::EXIST),
        Err(error) => Err(error),
    }
}

/// Reports if an unchanged directory has another owner or mode than the archived one.
fn left_as_it_is(
    member: &Member,
    metadata: &Metadata,
    owners: Owners,
    stat: &Stat,
) -> Option<MetadataProblem> {
    let same_owner = owners == Owners::Ignore || metadata.archived_owner.uid == Some(stat.st_uid);
    if same_owner && stat.st_mode & 0o7777 == metadata.mode {
        return None;
    }
    let text = "others can write to its parent folder, which has another owner; takeup left \
                owner and mode alone (--privileges=keep sets them)";
    Some(MetadataProblem {
        path: member.path.clone(),
        what: MetadataPart::FoundDirectory,
        source: std::io::Error::other(text),
    })
}

/// A directory without links was removed.
fn is_there(folder: &Folder) -> bool {
    fstat(&folder.descriptor).is_ok_and(|stat| stat.st_nlink > 0)
}

fn check(path: &[u8]) -> Result<Cow<'_, [u8]>, RestoreError> {
    checked(path).map_err(|reason| RestoreError::Refused { path: path.to_vec(), reason })
}

fn split_member<'a>(member: &Member, path: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), RestoreError> {
    let (directory, name) = split(path);
    if name.is_empty() {
        return Err(RestoreError::Refused { path: member.path.clone(), reason: Refusal::Empty });
    }
    Ok((directory, name))
}

fn created(member: &Member, error: Errno) -> RestoreError {
    RestoreError::Create { path: member.path.clone(), source: error.into() }
}
