//! The directory that a restore writes into, and what its workers share.
//!
//! Nothing is ever made outside of it (see [`crate::resolve`]). Directories get their owner, mode
//! and times at the end, deepest first ([`Destination::finish`]), so that a read-only one can be
//! filled. Until then those that the archive lists belong to whoever restores, and to nobody else
//! (mode 0700).

use std::collections::HashMap;
use std::fs::DirBuilder;
use std::hash::BuildHasher;
use std::hash::RandomState;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use base::failures::lock;
use base::interruptible::openat;
use rustix::fs::{Mode, OFlags};

use crate::accounts::Accounts;
use crate::capture::Attributes;
use crate::deferred::Deferred;
use crate::folder::{Folder, Names, is_empty};
use crate::identity::Identity;
use crate::metadata::{MetadataPolicy, MetadataProblem, Modes, Owners, Privileges, Problems};
use crate::resolve::{Beneath, Missing, Refusal, ResolveError, ResolveMethod, checked, split};
use crate::restore_error::RestoreError;
use crate::synchronise::WrittenFileSystems;

/// What happens where something exists already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overwrite {
    /// It is an error and stays; a directory for a directory is none.
    #[default]
    Refuse,
    /// It is replaced in one step; a directory by something else only when it is empty.
    Replace,
    /// Like `Replace`, but a regular file that is newer than the archived one stays, and so does
    /// one with its time and size.
    KeepNewer,
}

/// What is done so that a file that replaces another one is on the disk before it has its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replaced {
    /// fsync(2) on the new one: after a power cut there is the old one or the new one.
    #[default]
    Flushed,
    /// Nothing: after a power cut there may be neither.
    Unflushed,
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
    /// Whether they get what lends rights.
    pub privileges: Privileges,
    /// Whether what replaces a file is on the disk first.
    pub replaced: Replaced,
    /// Whether extended attributes and ACLs are restored.
    pub attributes: Attributes,
    /// Which system calls resolve paths.
    pub resolve: ResolveMethod,
}

impl DestinationOptions {
    /// What GNU tar does by default: everything as archived for the superuser; own files with the
    /// umask for anybody else.
    pub fn for_this_user() -> DestinationOptions {
        let (owners, modes) = if rustix::process::geteuid().is_root() {
            (Owners::Names, Modes::Exact)
        } else {
            (Owners::Ignore, Modes::Umask)
        };
        DestinationOptions {
            overwrite: Overwrite::Refuse,
            owners,
            modes,
            privileges: Privileges::WithOwner,
            replaced: Replaced::Flushed,
            attributes: Attributes::Read,
            resolve: ResolveMethod::Auto,
        }
    }
}

/// Objects made where others can change names that are remembered, so that a hard link to one is a
/// link to it and to nothing else, and directories that could not be made: some 50 bytes each.
const REMEMBERED_MAX: usize = 1 << 18;

/// What no directory is.
const NOTHING: Identity = Identity { device: 0, inode: 0 };

/// The directory that a restore writes into. Shared by the workers.
#[derive(Debug)]
pub struct Destination {
    pub(crate) beneath: Beneath,
    pub(crate) overwrite: Overwrite,
    replaced: Replaced,
    policy: MetadataPolicy,
    pub(crate) accounts: Arc<Accounts>,
    deferred: Mutex<Deferred>,
    /// It and the directories above it that were made for it, itself first.
    made: Vec<PathBuf>,
    /// Nothing was in it, so its own metadata may change.
    pub(crate) was_empty: bool,
    written: WrittenFileSystems,
    /// By hash of their path.
    made_among_others: Mutex<HashMap<u64, Identity>>,
    hashes: RandomState,
    without_privilege: AtomicU64,
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
        // Without a slash at the end, which would follow a link whatever the flags.
        let into = into.components().as_path();
        let failed = |source| RestoreError::Destination { path: into.into(), source };
        let missing = into.ancestors().take_while(|path| !path.as_os_str().is_empty());
        let missing = missing.take_while(|path| path.symlink_metadata().is_err());
        let made: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        let follow = match make(into) {
            Ok(follow) => follow,
            // A part of the way may be a file as well, which the kernel says itself.
            Err(source) => {
                take_back(&made);
                return Err(match into.metadata() {
                    Ok(status) if !status.is_dir() => {
                        RestoreError::NotAFolder { path: into.into() }
                    }
                    _ => failed(source),
                });
            }
        };
        let beneath = Beneath::open(into, follow, options.resolve).map_err(failed)?;
        let was_empty = root_is_empty(&beneath).map_err(failed)?;
        let written = WrittenFileSystems::default();
        written.note(beneath.root());
        Ok(Arc::new(Destination {
            beneath,
            overwrite: options.overwrite,
            replaced: options.replaced,
            made,
            policy: MetadataPolicy {
                owners: options.owners,
                modes: options.modes,
                privileges: options.privileges,
                attributes: options.attributes,
                umask: umask(),
            },
            accounts,
            deferred: Mutex::default(),
            was_empty,
            written,
            made_among_others: Mutex::default(),
            hashes: RandomState::new(),
            without_privilege: AtomicU64::new(0),
        }))
    }

    /// Gives the directories their metadata, deepest first. Call it once, when all workers are
    /// done; problems are handed to `report` one by one. Returns the number of directories.
    pub fn finish(&self, mut report: impl FnMut(MetadataProblem)) -> u64 {
        let deferred = std::mem::take(&mut *self.deferred());
        deferred.apply(self, &mut report)
    }

    /// Objects that were restored without their set-ID bits, capabilities or other privilege: what
    /// [`Privileges`] says, or an owner that could not be set. For directories known at the end.
    pub fn without_privilege(&self) -> u64 {
        self.without_privilege.load(Ordering::Relaxed)
    }

    /// Takes the directories away that were made for it, unless something came into them: a restore
    /// that comes to nothing leaves nothing.
    pub fn take_back(&self) {
        take_back(&self.made);
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

    pub(crate) fn policy(&self) -> &MetadataPolicy {
        &self.policy
    }

    pub(crate) fn replaced(&self) -> Replaced {
        self.replaced
    }

    pub(crate) fn deferred(&self) -> std::sync::MutexGuard<'_, Deferred> {
        lock(&self.deferred)
    }

    /// What was found wrong with an object; that privilege was left off is counted.
    pub(crate) fn take_problems(&self, problems: Problems<'_>) -> Vec<MetadataProblem> {
        self.without_privilege.fetch_add(problems.left_off.into(), Ordering::Relaxed);
        problems.found
    }

    /// The directory at a checked path, to make objects in.
    pub(crate) fn folder(&self, path: &[u8], missing: Missing) -> Result<Folder, ResolveError> {
        self.check_made(path)?;
        let descriptor = self.beneath.directory(path, missing)?;
        self.written.note(&descriptor);
        Folder::new(descriptor).map_err(ResolveError::Io)
    }

    /// Refuses a path through a directory that is another one than this run made there, or is gone,
    /// or could not be made: what is restored below was to be as closed as that was.
    fn check_made(&self, path: &[u8]) -> Result<(), ResolveError> {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        for end in slashes.map(|(at, _)| at).chain([path.len()]) {
            let Some(made) = self.remembered(&path[..end]) else { continue };
            let found = self.beneath.directory(&path[..end], Missing::Fail);
            let found = found.ok().and_then(|found| Identity::of_descriptor(found).ok());
            if found != Some(made) {
                return Err(ResolveError::Refused(Refusal::Changed));
            }
        }
        Ok(())
    }

    /// The directory of the member at `path`, made again.
    pub(crate) fn folder_again(&self, path: &[u8]) -> Result<Arc<Folder>, RestoreError> {
        let refused = |reason| RestoreError::Refused { path: path.to_vec(), reason };
        let checked = checked(path).map_err(refused)?;
        let folder = self.folder(split(&checked).0, Missing::Create);
        folder.map(Arc::new).map_err(|error| unreachable_parent(path, error))
    }

    /// Remembers what was made at `path`, if somebody may put something else there.
    pub(crate) fn remember(&self, folder: &Folder, path: &[u8], identity: Identity) {
        let Ok(path) = checked(path) else { return };
        if folder.names == Names::Others {
            let mut made = self.made_among_others();
            if made.len() < REMEMBERED_MAX {
                made.insert(self.hashes.hash_one(&path), identity);
            }
        }
    }

    /// Remembers that a directory could not be made, so that none is made there as a mere parent,
    /// less closed than it was to be.
    pub(crate) fn remember_failure(&self, path: &[u8]) {
        let mut made = self.made_among_others();
        if made.len() < REMEMBERED_MAX {
            made.insert(self.hashes.hash_one(path), NOTHING);
        }
    }

    /// It was made after all: the archive has it twice.
    pub(crate) fn forget_failure(&self, path: &[u8]) {
        let mut made = self.made_among_others();
        let key = self.hashes.hash_one(path);
        if made.get(&key) == Some(&NOTHING) {
            made.remove(&key);
        }
    }

    /// What this run made at a checked path, if that is known.
    pub(crate) fn remembered(&self, path: &[u8]) -> Option<Identity> {
        self.made_among_others().get(&self.hashes.hash_one(path)).copied()
    }

    fn made_among_others(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Identity>> {
        lock(&self.made_among_others)
    }
}

/// The directory of a member cannot be had.
pub(crate) fn unreachable_parent(path: &[u8], error: ResolveError) -> RestoreError {
    let path = path.to_vec();
    match error {
        ResolveError::Refused(reason) => RestoreError::Refused { path, reason },
        ResolveError::Io(error) => RestoreError::Parent { path, source: error.into() },
    }
}

/// Makes the directory when it is missing, and says whether its last name may be a symbolic link:
/// not when it was made here, because then somebody put that in its place.
fn make(into: &Path) -> io::Result<OFlags> {
    if into.metadata().is_ok_and(|status| status.is_dir()) {
        return Ok(OFlags::empty());
    }
    if let Some(parent) = into.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o777).create(into) {
        Ok(()) => Ok(OFlags::NOFOLLOW),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && into.is_dir() => {
            Ok(OFlags::empty())
        }
        Err(error) => Err(error),
    }
}

/// From the deepest one up, as far as they are empty.
fn take_back(made: &[PathBuf]) {
    // One with something in it stays, and so do those above.
    let _ = made.iter().try_for_each(std::fs::remove_dir);
}

/// Whether nothing is in the root yet.
fn root_is_empty(beneath: &Beneath) -> io::Result<bool> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(root) = openat(beneath.root(), c".", flags, Mode::empty()) else { return Ok(false) };
    Ok(is_empty(&root)?)
}

/// The umask of the process, read where that does not mean to set it: other threads may be making
/// files. Without /proc (or before Linux 4.7) the usual one is taken; the modes come out right
/// because a file whose permissions are not sure is looked after with fchmod.
fn umask() -> u32 {
    let octal = machine::processes::own_status("Umask");
    octal.and_then(|octal| u32::from_str_radix(&octal, 8).ok()).unwrap_or(0o022)
}
