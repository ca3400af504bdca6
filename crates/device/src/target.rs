//! What a backup is written to, from its opening until it is complete and on the disk.
//!
//! A regular file is written as `.NAME.takeup-partial` beside its final name, under a lock, and
//! renamed only after fsync. Whatever kills the run, the final name does not exist, is unchanged,
//! or is complete. The partial file of a killed run is not locked, and the next run to the same
//! name replaces it; where each run has its own name, [`remove_left_overs`] finds it. It is never
//! written into: in a folder that others can write to, it could be another user's file, or a hard
//! link to one of ours.
//!
//! An archive holds many users' secrets. So a new archive that root makes can be read by root only,
//! and one that replaces another file is no more open than that file was (`replaced`).

mod left_over;
mod links;
mod replaced;
mod unfinished;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use replaced::Replaced;

pub use left_over::{LeftOver, remove_left_overs};
pub use unfinished::abandon;

/// What to do if the target holds something already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Leave it and fail.
    #[default]
    Keep,
    /// Replace the old content, once the new one is complete.
    Replace,
}

/// Permissions of a new file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileMode {
    /// Those of the file that it replaces, including owner and ACL. If there is none: for root,
    /// access by the owner only; for other users, as umask and folder decide.
    #[default]
    Usual,
    /// Exactly these permissions, nine bits.
    Exactly(u32),
}

/// What to report about a complete target.
#[must_use]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completed {
    /// What could not be kept of the replaced file.
    pub not_kept: Option<String>,
}

/// The kind of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A regular file, written beside its name.
    File,
    /// A block device, written from its start.
    BlockDevice,
    CharacterDevice,
    /// A pipe, named or not.
    Pipe,
    /// A socket, or standard output into a terminal or into a file that another program opened.
    Stream,
}

/// Why a target cannot be written to, or cannot be completed.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// It cannot be opened or created.
    #[error("cannot open {}", path.display())]
    Open { path: PathBuf, source: io::Error },
    /// Something of this name exists.
    #[error("{} exists already", path.display())]
    Exists { path: PathBuf },
    /// A block device that is not blank.
    #[error("{} holds data", path.display())]
    HoldsData { path: PathBuf },
    /// Another run is writing to the same name.
    #[error("another run is writing to {}", path.display())]
    Busy { path: PathBuf },
    /// A character device that is not a tape drive.
    #[error("{} is a character device, not a tape drive: data cannot be read back", path.display())]
    NoStorage { path: PathBuf },
    /// A name below `/dev` that no device has.
    #[error("there is no device {}", path.display())]
    NoDevice { path: PathBuf },
    #[error("{} is a directory; name a file in it", path.display())]
    Directory { path: PathBuf },
    /// A named pipe without a reader.
    #[error("no program reads from {}", path.display())]
    NoReader { path: PathBuf },
    /// Standard output is a terminal.
    #[error("standard output is a terminal: takeup does not write an archive there")]
    Terminal,
    /// No file can be made beside the one to be replaced.
    #[error("cannot create the temporary file that would replace {}", path.display())]
    NoNewFile { path: PathBuf, source: io::Error },
    /// The data were written, but storing them could not be confirmed.
    #[error("cannot {step} {}", path.display())]
    Complete {
        /// The step that failed: synchronise, rename.
        step: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

/// An opened target.
#[derive(Debug)]
pub struct Target {
    /// The open file.
    pub file: Arc<OwnedFd>,
    pub kind: TargetKind,
    /// Name for messages.
    pub name: String,
    path: PathBuf,
    pending: Option<Pending>,
}

/// A file that has not got its final name yet.
#[derive(Debug)]
struct Pending {
    directory: Arc<OwnedFd>,
    partial: OsString,
    name: OsString,
    existing: Existing,
    mode: FileMode,
    replaced: Option<Replaced>,
}

impl Target {
    /// Opens `path`; `-` is standard output.
    pub fn open(path: &OsStr, existing: Existing, mode: FileMode) -> Result<Target, TargetError> {
        if path == "-" {
            return Target::standard_output();
        }
        let shown = PathBuf::from(path);
        let status = match rustix::fs::stat(path) {
            Ok(status) => status,
            // A symbolic link that leads nowhere counts as existing.
            Err(Errno::NOENT) if existing == Existing::Keep && rustix::fs::lstat(path).is_ok() => {
                return Err(TargetError::Exists { path: shown });
            }
            Err(Errno::NOENT) => {
                Target::check_new_file(&shown)?;
                return Target::new_file(&shown, existing, mode);
            }
            Err(error) => return Err(TargetError::Open { path: shown, source: error.into() }),
        };
        let kind = FileType::from_raw_mode(status.st_mode);
        match kind {
            FileType::RegularFile if existing == Existing::Keep => {
                return Err(TargetError::Exists { path: shown });
            }
            // The file is written beside the target of a link, which is resolved then.
            FileType::RegularFile => return Target::new_file(&shown, existing, mode),
            FileType::Directory => return Err(TargetError::Directory { path: shown }),
            _ => {}
        }
        let open_error = |source| TargetError::Open { path: shown.clone(), source };
        let looked_at = links::followed(&shown).map_err(open_error)?;
        let opened = match kind {
            FileType::BlockDevice => Target::block_device(&shown, existing),
            FileType::Fifo => Target::named_pipe(&shown),
            FileType::CharacterDevice => Target::open_special(&shown, TargetKind::CharacterDevice),
            _ => Target::open_special(&shown, TargetKind::Stream),
        }?;
        let status = rustix::fs::fstat(&opened.file).map_err(|error| open_error(error.into()))?;
        // Another program may have put a link in its place meanwhile.
        if looked_at.object.is_some_and(|object| object != (status.st_dev, status.st_ino)) {
            return Err(open_error(io::Error::other("another file replaced it")));
        }
        Ok(opened)
    }

    /// Checks whether data written to `path` can be read back, by the kind of the file: a character
    /// device that is not a tape keeps nothing. `/dev/null` is exempt, since its name says so, and
    /// `/dev/full`, since it accepts nothing.
    ///
    /// # Errors
    /// `NoStorage`.
    pub fn check_storage(path: &OsStr) -> Result<(), TargetError> {
        let Ok(status) = rustix::fs::stat(path) else { return Ok(()) };
        let honest = [rustix::fs::makedev(1, 3), rustix::fs::makedev(1, 7)];
        let is_device = FileType::from_raw_mode(status.st_mode) == FileType::CharacterDevice;
        if is_device && path != "-" && !honest.contains(&status.st_rdev) {
            Err(TargetError::NoStorage { path: path.into() })
        } else {
            Ok(())
        }
    }

    /// Checks whether a file may be made at `path`. Not in `/dev` itself: a missing name there is a
    /// mistyped device, and a file would be kept in memory. Other file systems below `/dev`, such
    /// as `/dev/shm`, are allowed.
    ///
    /// # Errors
    /// `NoDevice`.
    pub fn check_new_file(path: &Path) -> Result<(), TargetError> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let number = |path: &Path| rustix::fs::stat(path).ok().map(|status| status.st_dev);
        let devices = number(Path::new("/dev"));
        if devices.is_some() && devices != number(Path::new("/")) && devices == number(folder) {
            Err(TargetError::NoDevice { path: path.to_owned() })
        } else {
            Ok(())
        }
    }

    /// Device and inode number of the file being written, so that a backup skips its own archive.
    pub fn identity(&self) -> Option<(u64, u64)> {
        let status = rustix::fs::fstat(&self.file).ok()?;
        let regular = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
        regular.then_some((status.st_dev, status.st_ino))
    }

    /// Device and inode number of the file that will be replaced. It is held open, so no other file
    /// can get these numbers before the target is completed.
    pub fn replaced(&self) -> Option<(u64, u64)> {
        self.pending.as_ref()?.replaced.as_ref()?.identity()
    }

    /// Makes the data durable, and gives a file its name. Only after this has returned may the
    /// caller report that the backup is done.
    ///
    /// # Errors
    /// `Complete` and `Exists`.
    pub fn complete(mut self) -> Result<Completed, TargetError> {
        let path = self.path.clone();
        let fail = |step, error: Errno| TargetError::Complete {
            step,
            path: path.clone(),
            source: error.into(),
        };
        // Before the data are made durable, and before the file has its final name.
        let not_kept = match &self.pending {
            Some(pending) => pending
                .settle_access(&self.file)
                .map_err(|error| fail("set owner and mode of", error))?,
            None => None,
        };
        // After an interruption the kernel still reports lost writes.
        match base::interruptible::fsync(&self.file) {
            Ok(()) => {}
            // Pipes, sockets and most character devices have nothing to synchronise.
            Err(Errno::INVAL | Errno::ROFS | Errno::NOTSUP) if self.pending.is_none() => {}
            Err(error) => return Err(fail("synchronise", error)),
        }
        let Some(pending) = &self.pending else { return Ok(Completed { not_kept }) };
        // If the partial file was removed, another run, still incomplete, may have taken its name.
        if !is_at(&self.file, &pending.directory, &pending.partial) {
            return Err(fail("rename", Errno::NOENT));
        }
        let flags = match pending.existing {
            Existing::Keep => rustix::fs::RenameFlags::NOREPLACE,
            Existing::Replace => rustix::fs::RenameFlags::empty(),
        };
        let directory = &pending.directory;
        let (from, to) = (&pending.partial, &pending.name);
        match rustix::fs::renameat_with(directory, from, directory, to, flags) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(TargetError::Exists { path }),
            // Some network file systems support no flags; then the check at the start has to do.
            Err(Errno::INVAL | Errno::NOSYS) => {
                rustix::fs::renameat(directory, from, directory, to)
                    .map_err(|error| fail("rename", error))?;
            }
            Err(error) => return Err(fail("rename", error)),
        }
        match base::interruptible::fsync(directory) {
            // File systems without fsync of a folder write names through.
            Ok(()) | Err(Errno::INVAL | Errno::NOTSUP | Errno::NOSYS) => {}
            Err(error) => return Err(fail("synchronise the folder of", error)),
        }
        self.pending = None;
        unfinished::remove(&self.file);
        Ok(Completed { not_kept })
    }

    fn standard_output() -> Result<Target, TargetError> {
        if rustix::termios::isatty(rustix::stdio::stdout()) {
            return Err(TargetError::Terminal);
        }
        let path = PathBuf::from("-");
        let open_error =
            |error: Errno| TargetError::Open { path: path.clone(), source: error.into() };
        let file =
            rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3).map_err(open_error)?;
        let status = rustix::fs::fstat(&file).map_err(open_error)?;
        let kind = match FileType::from_raw_mode(status.st_mode) {
            FileType::Fifo => TargetKind::Pipe,
            FileType::CharacterDevice => TargetKind::CharacterDevice,
            _ => TargetKind::Stream,
        };
        crate::pipe::enlarge(file.as_fd());
        let name = "standard output".to_owned();
        Ok(Target { file: Arc::new(file), kind, name, path, pending: None })
    }

    fn open_special(path: &Path, kind: TargetKind) -> Result<Target, TargetError> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
        let file = base::interruptible::open(path, flags, Mode::empty())
            .map_err(|error| TargetError::Open { path: path.into(), source: error.into() })?;
        crate::pipe::enlarge(file.as_fd());
        Ok(Target::of(file, kind, path, None))
    }

    /// Without a reader this fails at once. Waiting in the kernel for a reader could not be
    /// interrupted.
    fn named_pipe(path: &Path) -> Result<Target, TargetError> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let open_error =
            |error: Errno| TargetError::Open { path: path.into(), source: error.into() };
        let file = match base::interruptible::open(path, flags, Mode::empty()) {
            Err(Errno::NXIO) => return Err(TargetError::NoReader { path: path.into() }),
            other => other.map_err(open_error)?,
        };
        let flags = rustix::fs::fcntl_getfl(&file).map_err(open_error)?;
        rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK).map_err(open_error)?;
        crate::pipe::enlarge(file.as_fd());
        Ok(Target::of(file, TargetKind::Pipe, path, None))
    }

    fn of(file: OwnedFd, kind: TargetKind, path: &Path, pending: Option<Pending>) -> Target {
        let name = path.display().to_string();
        Target { file: Arc::new(file), kind, name, path: path.into(), pending }
    }

    fn block_device(path: &Path, existing: Existing) -> Result<Target, TargetError> {
        // O_EXCL on a block device fails with EBUSY while it is mounted or part of an array.
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::EXCL;
        let open_error =
            |error: Errno| TargetError::Open { path: path.into(), source: error.into() };
        let file = base::interruptible::open(path, flags, Mode::empty()).map_err(open_error)?;
        if existing == Existing::Keep {
            let mut start = vec![0u8; 1 << 20];
            let read = base::interruptible::read_at(&file, &mut start, 0).map_err(open_error)?;
            if start[..read].iter().any(|&byte| byte != 0) {
                return Err(TargetError::HoldsData { path: path.into() });
            }
        }
        Ok(Target::of(file, TargetKind::BlockDevice, path, None))
    }

    fn new_file(path: &Path, existing: Existing, mode: FileMode) -> Result<Target, TargetError> {
        let open_error =
            |error: Errno| TargetError::Open { path: path.into(), source: error.into() };
        // An existing target may be a symbolic link: write beside the file that it leads to.
        let real = match existing {
            Existing::Replace => {
                let followed = links::followed(path);
                followed.map_err(|source| TargetError::Open { path: path.into(), source })?.path
            }
            Existing::Keep => path.to_path_buf(),
        };
        let name = real.file_name().ok_or_else(|| open_error(Errno::ISDIR))?.to_owned();
        let parent = match real.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
            None => Path::new("/"),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory =
            base::interruptible::open(parent, flags, Mode::empty()).map_err(open_error)?;
        let mut partial = OsString::from(".");
        partial.push(&name);
        partial.push(left_over::PARTIAL_END);
        if partial.as_bytes().len() > 255 {
            return Err(open_error(Errno::NAMETOOLONG));
        }
        let replaced = match existing {
            Existing::Replace => Replaced::find(&directory, &name),
            Existing::Keep => None,
        };
        let first_mode = match mode {
            FileMode::Exactly(mode) => mode & 0o600,
            FileMode::Usual if replaced.is_some() || rustix::process::geteuid().is_root() => 0o600,
            FileMode::Usual => 0o666,
        };
        let file = lock_partial(&directory, &partial, path, first_mode)?;
        let directory = Arc::new(directory);
        let pending = Pending { directory, partial, name, existing, mode, replaced };
        let target = Target::of(file, TargetKind::File, path, Some(pending));
        if let Some(pending) = &target.pending {
            unfinished::add(&target.file, &pending.directory, &pending.partial);
        }
        Ok(target)
    }
}

impl Pending {
    /// Gives the file its final owner and mode. Returns what could not be kept of the replaced
    /// file.
    fn settle_access(&self, file: &OwnedFd) -> rustix::io::Result<Option<String>> {
        let asked = match self.mode {
            FileMode::Usual => None,
            FileMode::Exactly(mode) => Some(mode),
        };
        match (&self.replaced, asked) {
            (Some(replaced), asked) => replaced.hand_on(file, asked),
            (None, Some(mode)) => {
                rustix::fs::fchmod(file, Mode::from_raw_mode(mode)).map(|()| None)
            }
            (None, None) => Ok(None),
        }
    }
}

impl Drop for Target {
    /// An incomplete target leaves no partial file behind.
    fn drop(&mut self) {
        if let Some(pending) = &self.pending
            && is_at(&self.file, &pending.directory, &pending.partial)
        {
            let _ = unlink(&pending.directory, &pending.partial);
        }
        unfinished::remove(&self.file);
    }
}

/// Whether `name` is still the name of the open file.
fn is_at(file: &OwnedFd, directory: &OwnedFd, name: &OsStr) -> bool {
    let there = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    let mine = rustix::fs::fstat(file);
    let identity = |status: rustix::fs::Stat| (status.st_dev, status.st_ino);
    mine.is_ok_and(|mine| there.is_ok_and(|there| identity(there) == identity(mine)))
}

/// How long to wait for a lock. If a killed process used io_uring, the kernel closes its files a
/// little after the process is gone (`io_ring_exit_work` runs on its own).
const LOCK_WAIT: Duration = Duration::from_secs(2);
const LOCK_STEP: Duration = Duration::from_millis(20);

/// Makes and locks the partial file. If the old one is locked, another run is writing; if it is not
/// locked, a killed run left it, and it is removed.
fn lock_partial(
    directory: &OwnedFd,
    partial: &OsStr,
    path: &Path,
    mode: u32,
) -> Result<OwnedFd, TargetError> {
    let started = Instant::now();
    loop {
        match try_lock_partial(directory, partial, path, mode)? {
            Some(file) => return Ok(file),
            None if started.elapsed() < LOCK_WAIT => std::thread::sleep(LOCK_STEP),
            None => return Err(TargetError::Busy { path: path.into() }),
        }
    }
}

/// One attempt. `None` if another run has the file, or had it a moment ago.
fn try_lock_partial(
    directory: &OwnedFd,
    partial: &OsStr,
    path: &Path,
    mode: u32,
) -> Result<Option<OwnedFd>, TargetError> {
    let open_error = |error: Errno| TargetError::Open { path: path.into(), source: error.into() };
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let make = || base::interruptible::openat(directory, partial, flags, Mode::from_raw_mode(mode));
    let file = match make() {
        Err(Errno::EXIST) if remove_left_over(directory, partial, path)? => make(),
        made => made,
    };
    let file = match file {
        Ok(file) => file,
        Err(Errno::EXIST) => return Ok(None),
        // Virtual file systems allow no new files.
        Err(error) if path.exists() => {
            return Err(TargetError::NoNewFile { path: path.into(), source: error.into() });
        }
        Err(error) => return Err(open_error(error)),
    };
    match lock(&file) {
        Ok(()) => {}
        // Another run is removing it as a left-over at this moment.
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(error) if knows_no_locks(error) => {}
        Err(error) => {
            if is_at(&file, directory, partial) {
                let _ = unlink(directory, partial);
            }
            return Err(open_error(error));
        }
    }
    Ok(is_at(&file, directory, partial).then_some(file))
}

/// Removes a partial file without a writer. Returns false if a run is writing to it.
fn remove_left_over(
    directory: &OwnedFd,
    partial: &OsStr,
    path: &Path,
) -> Result<bool, TargetError> {
    let error_of = |error: Errno| TargetError::Open {
        path: path.with_file_name(partial),
        source: error.into(),
    };
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match base::interruptible::openat(directory, partial, flags, Mode::empty()) {
        Ok(file) => {
            match lock(&file) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Ok(false),
                // Without locks two runs cannot detect each other: the first will find its file
                // gone.
                Err(error) if knows_no_locks(error) => {}
                Err(error) => return Err(error_of(error)),
            }
            // Between open and lock the other run may have renamed the file to its final name.
            if is_at(&file, directory, partial) {
                unlink(directory, partial).map_err(error_of)?;
            }
            Ok(true)
        }
        Err(Errno::NOENT) => Ok(true),
        // A symbolic link: not made by Takeup.
        Err(Errno::LOOP) => unlink(directory, partial).map(|()| true).map_err(error_of),
        Err(error) => Err(error_of(error)),
    }
}

fn unlink(directory: &OwnedFd, name: &OsStr) -> rustix::io::Result<()> {
    match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(()),
        result => result,
    }
}

fn lock(file: &OwnedFd) -> rustix::io::Result<()> {
    base::interruptible::lock_unless_in_use(file, FlockOperation::NonBlockingLockExclusive)
}

fn knows_no_locks(error: Errno) -> bool {
    matches!(error, Errno::NOTSUP | Errno::NOLCK | Errno::NOSYS)
}
