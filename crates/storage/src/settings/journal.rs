//! The journal: the file that remembers settings for the next process, and when that may trust it.
//!
//! The journal is complete or absent: it gets its name after it was written and synchronised, and
//! never replaces another file. An incomplete one has another name, and no setting was changed.
//!
//! Values in the journal are written into kernel settings, usually by root. So Takeup trusts it
//! only if no other user can have made it: a regular file of this user that others cannot write,
//! opened without following a link, in a folder with the same properties. All checks use the open
//! file, not its name. `settings.rs` decides which settings it may name.

use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::StorageError;
use machine::processes::Process;

/// More than any list of disks needs.
const BYTES_MAX: u64 = 1 << 20;

/// The text of the journal; `None` if there is no journal.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, StorageError> {
    let Some(folder) = folder(path)? else { return Ok(None) };
    remove_unfinished(&folder, path);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match base::interruptible::openat(&folder, name(path), flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(untrusted(path, "it is a symbolic link")),
        Err(error) => return Err(failed("read", path)(error.into())),
    };
    trust(&file, path, FileType::RegularFile, "it")?;
    let mut text = Vec::new();
    let read = File::from(file).take(BYTES_MAX).read_to_end(&mut text);
    read.map_err(failed("read", path))?;
    Ok(Some(text))
}

/// Writes a journal, which must not be there yet, and synchronises it.
pub(super) fn write(path: &Path, text: &str) -> Result<(), StorageError> {
    put(path, text, RenameFlags::NOREPLACE)
}

/// Writes a journal, replaces the old one if there is one, and synchronises it. A reader finds
/// either the old or the new one, complete.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), StorageError> {
    put(path, text, RenameFlags::empty())
}

fn put(path: &Path, text: &str, flags: RenameFlags) -> Result<(), StorageError> {
    let folder = made_folder(path)?;
    let unfinished = unfinished_name(path, std::process::id());
    let written = write_in(&folder, &unfinished, name(path), text, flags);
    written
        .inspect_err(|_| {
            let _ = rustix::fs::unlinkat(&folder, &unfinished, AtFlags::empty());
        })
        .map_err(failed("write", path))
}

/// Locks the journal against other processes that lock it, until the result is dropped.
pub(super) fn lock(path: &Path) -> Result<OwnedFd, StorageError> {
    let folder = made_folder(path)?;
    let locked = base::interruptible::flock(&folder, FlockOperation::LockExclusive);
    locked.map_err(|error| failed("lock", path)(error.into()))?;
    Ok(folder)
}

/// The folder of the journal, created if it is absent.
fn made_folder(path: &Path) -> Result<OwnedFd, StorageError> {
    if let Some(folder) = path.parent() {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(failed("write", path))?;
    }
    folder(path)?.ok_or_else(|| failed("write", path)(Errno::NOENT.into()))
}

fn write_in(
    folder: &OwnedFd,
    unfinished: &Path,
    name: &Path,
    text: &str,
    replacing: RenameFlags,
) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = base::interruptible::openat(folder, unfinished, flags, Mode::from_raw_mode(0o600))?;
    let mut file = File::from(file);
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    rustix::fs::renameat_with(folder, unfinished, folder, name, replacing)?;
    base::interruptible::fsync(folder)?;
    Ok(())
}

/// The name of a journal while a process writes it.
fn unfinished_name(path: &Path, pid: u32) -> PathBuf {
    PathBuf::from(format!("{}{pid}", unfinished_prefix(path)))
}

fn unfinished_prefix(path: &Path) -> String {
    format!(".{}.", name(path).display())
}

/// Removes incomplete journals of processes that have ended.
fn remove_unfinished(folder: &OwnedFd, path: &Path) {
    let prefix = unfinished_prefix(path);
    let Ok(entries) = Dir::read_from(folder) else { return };
    for entry in entries.flatten() {
        let pid = entry.file_name().to_str().ok().and_then(|name| name.strip_prefix(&prefix));
        let Some(pid) = pid.and_then(|pid| pid.parse().ok()) else { continue };
        if pid == std::process::id() || Process::of(pid).is_none() {
            let _ = rustix::fs::unlinkat(folder, entry.file_name(), AtFlags::empty());
        }
    }
}

/// Removes the journal.
pub(super) fn remove(path: &Path) -> Result<(), StorageError> {
    let Some(folder) = folder(path)? else { return Ok(()) };
    let removed = rustix::fs::unlinkat(&folder, name(path), AtFlags::empty());
    removed.map_err(|error| failed("remove", path)(error.into()))?;
    // So that the journal does not reappear after a crash.
    let _ = base::interruptible::fsync(&folder);
    Ok(())
}

/// Removes the journal, if it exists.
pub(super) fn remove_if_there(path: &Path) -> Result<(), StorageError> {
    if read(path)?.is_some() { remove(path) } else { Ok(()) }
}

/// The folder of the journal, if there is one.
fn folder(path: &Path) -> Result<Option<OwnedFd>, StorageError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match base::interruptible::open(folder, flags, Mode::empty()) {
        Ok(opened) => {
            trust(&opened, path, FileType::Directory, "its folder")?;
            Ok(Some(opened))
        }
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::LOOP | Errno::NOTDIR) => Err(untrusted(path, "its parent is not a folder")),
        Err(error) => Err(failed("read", path)(error.into())),
    }
}

/// Checks that no other user can have made it or written to it.
fn trust(file: impl AsFd, path: &Path, kind: FileType, what: &str) -> Result<(), StorageError> {
    let status = rustix::fs::fstat(file).map_err(|error| failed("read", path)(error.into()))?;
    if FileType::from_raw_mode(status.st_mode) != kind {
        return Err(untrusted(path, &format!("{what} has the wrong file type")));
    }
    if status.st_uid != rustix::process::geteuid().as_raw() {
        return Err(untrusted(path, &format!("{what} belongs to user {}", status.st_uid)));
    }
    if status.st_mode & 0o022 != 0 {
        return Err(untrusted(path, &format!("other users can write to {what}")));
    }
    // It could be a hard link to another file of this user.
    if kind == FileType::RegularFile && status.st_nlink != 1 {
        return Err(untrusted(path, "it has a second hard link"));
    }
    Ok(())
}

fn name(path: &Path) -> &Path {
    path.file_name().map_or(path, Path::new)
}

fn untrusted(path: &Path, why: &str) -> StorageError {
    StorageError::Untrusted { path: path.to_owned(), why: why.to_owned() }
}

pub(super) fn failed(what: &'static str, path: &Path) -> impl Fn(io::Error) -> StorageError {
    let path = path.to_owned();
    move |source| StorageError::Journal { what, path: path.clone(), source }
}
