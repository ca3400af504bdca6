//! The file that remembers settings for who comes next, and why that one may believe it.
//!
//! It is whole or not there: it gets its name when it is written and synchronised, and takes it
//! from nobody. Half of one has another name, and nothing was changed before.
//!
//! What stands in it is written into settings of the kernel, by root as a rule. So it is believed
//! only where nobody else can have made it: a regular file of this user that others cannot write,
//! opened without following a link, in a folder of which the same holds. All looks go to what was
//! opened and not to its name. What it may name, `settings.rs` decides.

use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::guard::GuardError;
use machine::processes::Process;

/// Longer than any list of disks.
const BYTES_MAX: u64 = 1 << 20;

/// The text of the journal; none where there is no journal.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, GuardError> {
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
pub(super) fn write(path: &Path, text: &str) -> Result<(), GuardError> {
    put(path, text, RenameFlags::NOREPLACE)
}

/// Writes a journal in the place of the one there is, if there is one, and synchronises it. Whoever
/// reads it finds the one or the other.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), GuardError> {
    put(path, text, RenameFlags::empty())
}

fn put(path: &Path, text: &str, flags: RenameFlags) -> Result<(), GuardError> {
    let folder = made_folder(path)?;
    let unfinished = unfinished_name(path, std::process::id());
    let written = write_in(&folder, &unfinished, name(path), text, flags);
    written
        .inspect_err(|_| {
            let _ = rustix::fs::unlinkat(&folder, &unfinished, AtFlags::empty());
        })
        .map_err(failed("write", path))
}

/// Keeps all others who do the same from the journal until it is dropped.
pub(super) fn lock(path: &Path) -> Result<OwnedFd, GuardError> {
    let folder = made_folder(path)?;
    let locked = base::interruptible::flock(&folder, FlockOperation::LockExclusive);
    locked.map_err(|error| failed("lock", path)(error.into()))?;
    Ok(folder)
}

/// The folder of the journal, made where it is not there.
fn made_folder(path: &Path) -> Result<OwnedFd, GuardError> {
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

/// What a journal is called while it is written by a process.
fn unfinished_name(path: &Path, pid: u32) -> PathBuf {
    PathBuf::from(format!("{}{pid}", unfinished_prefix(path)))
}

fn unfinished_prefix(path: &Path) -> String {
    format!(".{}.", name(path).display())
}

/// Removes what was never finished, of processes that are gone.
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
pub(super) fn remove(path: &Path) -> Result<(), GuardError> {
    let Some(folder) = folder(path)? else { return Ok(()) };
    let removed = rustix::fs::unlinkat(&folder, name(path), AtFlags::empty());
    removed.map_err(|error| failed("remove", path)(error.into()))?;
    // So that the journal does not come back with the next crash.
    let _ = base::interruptible::fsync(&folder);
    Ok(())
}

/// Removes the journal, which need not be there.
pub(super) fn remove_if_there(path: &Path) -> Result<(), GuardError> {
    if read(path)?.is_some() { remove(path) } else { Ok(()) }
}

/// The folder of the journal, if there is one.
fn folder(path: &Path) -> Result<Option<OwnedFd>, GuardError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match base::interruptible::open(folder, flags, Mode::empty()) {
        Ok(opened) => {
            trust(&opened, path, FileType::Directory, "its folder")?;
            Ok(Some(opened))
        }
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::LOOP | Errno::NOTDIR) => Err(untrusted(path, "its folder is no folder")),
        Err(error) => Err(failed("read", path)(error.into())),
    }
}

/// Whether nobody but this user can have made it or written to it.
fn trust(file: impl AsFd, path: &Path, kind: FileType, what: &str) -> Result<(), GuardError> {
    let status = rustix::fs::fstat(file).map_err(|error| failed("read", path)(error.into()))?;
    if FileType::from_raw_mode(status.st_mode) != kind {
        return Err(untrusted(path, &format!("{what} is of another kind")));
    }
    if status.st_uid != rustix::process::geteuid().as_raw() {
        return Err(untrusted(path, &format!("{what} belongs to user {}", status.st_uid)));
    }
    if status.st_mode & 0o022 != 0 {
        return Err(untrusted(path, &format!("others may write to {what}")));
    }
    // A second name of a file of ours that holds something else.
    if kind == FileType::RegularFile && status.st_nlink != 1 {
        return Err(untrusted(path, "it has another name"));
    }
    Ok(())
}

fn name(path: &Path) -> &Path {
    path.file_name().map_or(path, Path::new)
}

fn untrusted(path: &Path, why: &str) -> GuardError {
    GuardError::Untrusted { path: path.to_owned(), why: why.to_owned() }
}

pub(super) fn failed(what: &'static str, path: &Path) -> impl Fn(io::Error) -> GuardError {
    let path = path.to_owned();
    move |source| GuardError::Journal { what, path: path.clone(), source }
}
