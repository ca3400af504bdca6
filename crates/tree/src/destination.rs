//! The directory that a restore writes into, and the state that its workers share.
//!
//! Nothing is ever made outside of it (see [`crate::resolve`]). Directories get their owner, mode
//! and times at the end, deepest first ([`Destination::finish`]), so that a read-only one can be
//! filled. Until then the directories that the archive lists belong to the user who restores, with
//! access for that user only (mode 0700).

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
use rustix::fs::{Mode, OFlags, fstatfs};

use crate::accounts::Accounts;
use crate::capture::Attributes;
use crate::deferred::Deferred;
use crate::folder::{Folder, Names, is_empty};
use crate::identity::Identity;
use crate::metadata::{MetadataPolicy, MetadataProblem, Modes, Owners, Privileges, Problems};
use crate::resolve::{Beneath, Missing, Refusal, ResolveError, ResolveMethod, checked, split};
use crate::restore_error::RestoreError;
use crate::synchronise::WrittenFileSystems;

/// What happens if an object exists already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overwrite {
    /// It stays, and that is an error, except for an existing directory where a directory goes.
    #[default]
    Refuse,
    /// It is replaced in one step. A directory is replaced by another kind only if it is empty.
    Replace,
    /// Like `Replace`, but a regular file stays if it is newer than the archived one, or has the
    /// same time and size.
    KeepNewer,
}

/// How to make sure that a file that replaces another one is on the disk before it gets its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replaced {
    /// fsync(2) on the new file: after a power cut the old or the new file is there.
    #[default]
    Flushed,
    /// Not at all: after a power cut neither may be there.
    Unflushed,
}

/// How objects are restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DestinationOptions {
    /// What happens to existing objects.
    pub overwrite: Overwrite,
    /// The owner of restored objects.
    pub owners: Owners,
    /// Which permissions they get.
    pub modes: Modes,
    /// Whether objects get back privilege.
    pub privileges: Privileges,
    /// Whether a replacement is on the disk before it gets its name.
    pub replaced: Replaced,
    /// Whether extended attributes and ACLs are restored.
    pub attributes: Attributes,
    /// Which system calls resolve paths.
    pub resolve: ResolveMethod,
}

impl DestinationOptions {
    /// GNU tar's defaults: for root everything as archived; for other users their own files with
    /// the umask.
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

/// Most objects remembered, some 50 bytes each: objects made where others can change names, so that
/// a hard link to one links to exactly it, and directories that could not be made.
const REMEMBERED_MAX: usize = 1 << 18;

/// An identity that no directory has.
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
    /// It was empty, so its own metadata may change.
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
            // A component may also be a file; the kernel reports that itself.
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
    /// done. Problems are passed to `report` one by one. Returns the number of directories.
    pub fn finish(&self, mut report: impl FnMut(MetadataProblem)) -> u64 {
        let deferred = std::mem::take(&mut *self.deferred());
        deferred.apply(self, &mut report)
    }

    /// Number of objects restored without their set-ID bits, capabilities or other privilege:
    /// because of [`Privileges`], or because an owner could not be set. For directories it is known
    /// at the end.
    pub fn without_privilege(&self) -> u64 {
        self.without_privilege.load(Ordering::Relaxed)
    }

    /// Removes the directories that were made for it, if they are still empty: a failed restore
    /// leaves nothing.
    pub fn take_back(&self) {
        take_back(&self.made);
    }

    /// Waits until everything that this object has written is on the disks, on all file systems of
    /// the destination, and reports write errors that occurred meanwhile.
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

    /// The problems found with an object. Objects without their privilege are counted.
    pub(crate) fn take_problems(&self, problems: Problems<'_>) -> Vec<MetadataProblem> {
        self.without_privilege.fetch_add(problems.left_off.into(), Ordering::Relaxed);
        problems.found
    }

    /// Whether the order in which small files are written decides where they lie on the disk, by
    /// the file system of the destination itself. XFS gives places by folder, and what is in memory
    /// has none.
    pub fn is_placed_as_written(&self) -> bool {
        /// `f_type` of statfs(2), from <linux/magic.h>: XFS, tmpfs, ramfs.
        const OTHERS: [u64; 3] = [0x5846_5342, 0x0102_1994, 0x8584_58f6];
        let status = fstatfs(self.beneath.root());
        !status.is_ok_and(|status| OTHERS.contains(&(status.f_type as u64)))
    }

    /// The directory at a checked path, to make objects in.
    pub(crate) fn folder(&self, path: &[u8], missing: Missing) -> Result<Folder, ResolveError> {
        self.check_made(path)?;
        let descriptor = self.beneath.directory(path, missing)?;
        self.written.note(&descriptor);
        Folder::new(descriptor).map_err(ResolveError::Io)
    }

    /// Refuses a path through a directory that this run made and that was replaced or is gone, or
    /// that could not be made. The objects below it must not become more accessible than that
    /// directory was to be.
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

    /// Makes the directory of the member at `path` again.
    pub(crate) fn folder_again(&self, path: &[u8]) -> Result<Arc<Folder>, RestoreError> {
        let refused = |reason| RestoreError::Refused { path: path.to_vec(), reason };
        let checked = checked(path).map_err(refused)?;
        let folder = self.folder(split(&checked).0, Missing::Create);
        folder.map(Arc::new).map_err(|error| unreachable_parent(path, error))
    }

    /// Remembers the object made at `path`, if others could replace it.
    pub(crate) fn remember(&self, folder: &Folder, path: &[u8], identity: Identity) {
        let Ok(path) = checked(path) else { return };
        if folder.names == Names::Others {
            let mut made = self.made_among_others();
            if made.len() < REMEMBERED_MAX {
                made.insert(self.hashes.hash_one(&path), identity);
            }
        }
    }

    /// Remembers that a directory could not be made. Otherwise it might be made as a mere parent
    /// with wider permissions.
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

    /// The object that this run made at a checked path, if known.
    pub(crate) fn remembered(&self, path: &[u8]) -> Option<Identity> {
        self.made_among_others().get(&self.hashes.hash_one(path)).copied()
    }

    fn made_among_others(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Identity>> {
        lock(&self.made_among_others)
    }
}

/// The directory of a member cannot be opened or made.
pub(crate) fn unreachable_parent(path: &[u8], error: ResolveError) -> RestoreError {
    let path = path.to_vec();
    match error {
        ResolveError::Refused(reason) => RestoreError::Refused { path, reason },
        ResolveError::Io(error) => RestoreError::Parent { path, source: error.into() },
    }
}

/// Makes the directory if it is missing. Also decides whether its last name may be a symbolic link:
/// not if it was made here, because then another program put the link there.
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

/// Removes them from the deepest one up, as long as they are empty.
fn take_back(made: &[PathBuf]) {
    // A directory that is not empty stays, and so do those above it.
    let _ = made.iter().try_for_each(std::fs::remove_dir);
}

/// Whether the root is still empty.
fn root_is_empty(beneath: &Beneath) -> io::Result<bool> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(root) = openat(beneath.root(), c".", flags, Mode::empty()) else { return Ok(false) };
    Ok(is_empty(&root)?)
}

/// The umask of the process, read without setting it, since other threads may be making files.
/// Without /proc (or before Linux 4.7) the usual one is assumed. The modes still come out right,
/// because a file with uncertain permissions is corrected with fchmod.
fn umask() -> u32 {
    let octal = machine::processes::own_status("Umask");
    octal.and_then(|octal| u32::from_str_radix(&octal, 8).ok()).unwrap_or(0o022)
}
