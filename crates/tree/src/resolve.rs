//! Finds a directory beneath a root, safe against any path and any object on the way.
//!
//! A path from an archive is refused if it is absolute, has `..` or a NUL. Other paths are resolved
//! without following any symbolic link: by openat2(2) with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and
//! RESOLVE_NO_MAGICLINKS in one call. If the kernel or a sandbox refuses that call, the path is
//! resolved component by component with O_NOFOLLOW, which is equivalent since there is no `..`. A
//! link planted earlier by the same archive is treated like any other.

use std::borrow::Cow;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use base::interruptible::{openat, openat2};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat};
use rustix::io::Errno;

/// Which system calls find a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResolveMethod {
    /// openat2(2), or component by component after it was refused with ENOSYS or EPERM.
    #[default]
    Auto,
    /// openat2(2) alone (Linux 5.6).
    Openat2,
    /// openat(2) for every component.
    Componentwise,
}

/// Why a path is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("path is empty")]
    Empty,
    /// It starts with a slash.
    #[error("path is absolute")]
    Absolute,
    /// It has a component `..`.
    #[error("path has `..`")]
    ParentReference,
    /// It holds a NUL byte.
    #[error("path holds a NUL byte")]
    Nul,
    /// A component is a symbolic link.
    #[error("path leads through a symbolic link")]
    SymbolicLink,
    /// A component is neither a directory nor a symbolic link.
    #[error("a component of the path is not a directory")]
    NotADirectory,
    /// The kernel reported that it would leave the root.
    #[error("path leads out of the folder")]
    Outside,
    /// A directory of the path is not the one that this run made there, or could not be made.
    #[error("a directory of the path was not restored, or another program changed it")]
    Changed,
    /// It is longer than [`crate::PATH_BYTES_MAX`].
    #[error("path is too long")]
    TooLong,
}

/// A directory could not be found.
#[derive(Debug)]
pub(crate) enum ResolveError {
    Refused(Refusal),
    Io(Errno),
}

/// A checked path: relative, without `.`, `..`, doubled or trailing slashes; empty for the root.
pub(crate) fn checked(path: &[u8]) -> Result<Cow<'_, [u8]>, Refusal> {
    if path.is_empty() {
        return Err(Refusal::Empty);
    }
    if path[0] == b'/' {
        return Err(Refusal::Absolute);
    }
    if path.contains(&0) {
        return Err(Refusal::Nul);
    }
    if path.len() > crate::PATH_BYTES_MAX {
        return Err(Refusal::TooLong);
    }
    let mut is_clean = true;
    for component in path.split(|&byte| byte == b'/') {
        match component {
            b".." => return Err(Refusal::ParentReference),
            b"" | b"." => is_clean = false,
            _ => {}
        }
    }
    if is_clean {
        return Ok(Cow::Borrowed(path));
    }
    let components = path.split(|&byte| byte == b'/');
    let kept = components.filter(|component| !matches!(*component, b"" | b"."));
    Ok(Cow::Owned(kept.collect::<Vec<_>>().join(&b'/')))
}

/// The directory part and the last name of a checked path.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

/// A directory, and access to everything beneath it but nothing else.
#[derive(Debug)]
pub(crate) struct Beneath {
    root: OwnedFd,
    method: ResolveMethod,
    openat2_refused: AtomicBool,
}

/// What to do if a directory of the path is missing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// It is an error.
    Fail,
    /// It is made, with the permissions that the umask allows.
    Create,
}

/// The kernel refuses longer paths (PATH_MAX counts the NUL).
const PATH_MAX: usize = 4096;

impl Beneath {
    /// Opens the root itself, by a path that the user gave. Symbolic links in it are followed,
    /// except for the last name if `follow` is `NOFOLLOW`.
    pub(crate) fn open(root: &Path, follow: OFlags, method: ResolveMethod) -> io::Result<Beneath> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | follow;
        let root = match openat(CWD, root, flags | OFlags::RDONLY, Mode::empty()) {
            Err(Errno::ACCESS) => openat(CWD, root, flags | OFlags::PATH, Mode::empty()),
            result => result,
        }?;
        Ok(Beneath { root, method, openat2_refused: AtomicBool::new(false) })
    }

    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Opens the directory at a checked path with O_PATH.
    pub(crate) fn directory(&self, path: &[u8], missing: Missing) -> Result<OwnedFd, ResolveError> {
        match self.try_directory(path) {
            Err(Errno::NOENT) if missing == Missing::Create => self.walk(path, missing),
            Err(Errno::NOTDIR) => Err(ResolveError::Refused(self.not_a_directory(path))),
            result => result.map_err(ResolveError::of),
        }
    }

    fn try_directory(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let path: &[u8] = if path.is_empty() { b"." } else { path };
        let try_openat2 = match self.method {
            ResolveMethod::Auto => !self.openat2_refused.load(Ordering::Relaxed),
            ResolveMethod::Openat2 => true,
            ResolveMethod::Componentwise => false,
        };
        if try_openat2 && path.len() < PATH_MAX {
            let resolve =
                ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            match retried(|| openat2(&self.root, path, DIRECTORY, Mode::empty(), resolve)) {
                Err(Errno::NOSYS | Errno::PERM) if self.method == ResolveMethod::Auto => {
                    self.openat2_refused.store(true, Ordering::Relaxed);
                }
                result => return result,
            }
        }
        match self.walk(path, Missing::Fail) {
            Ok(descriptor) => Ok(descriptor),
            Err(ResolveError::Io(error)) => Err(error),
            Err(ResolveError::Refused(Refusal::SymbolicLink)) => Err(Errno::LOOP),
            Err(ResolveError::Refused(_)) => Err(Errno::NOTDIR),
        }
    }

    /// Descends component by component.
    fn walk(&self, path: &[u8], missing: Missing) -> Result<OwnedFd, ResolveError> {
        let mut here = openat(&self.root, c".", DIRECTORY, Mode::empty())?;
        for name in path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
            let open = |here: &OwnedFd| openat(here, name, DIRECTORY, Mode::empty());
            here = match open(&here) {
                Err(Errno::NOENT) if missing == Missing::Create => {
                    match mkdirat(&here, name, Mode::from_raw_mode(0o777)) {
                        // Another worker was faster.
                        Ok(()) | Err(Errno::EXIST) => open(&here),
                        Err(error) => Err(error),
                    }
                }
                result => result,
            }
            .map_err(|error| match error {
                Errno::NOTDIR | Errno::LOOP => ResolveError::Refused(what_is(&here, name)),
                error => ResolveError::Io(error),
            })?;
        }
        Ok(here)
    }

    /// The object in the way on a path where a directory was expected.
    fn not_a_directory(&self, path: &[u8]) -> Refusal {
        match self.walk(path, Missing::Fail) {
            Err(ResolveError::Refused(refusal)) => refusal,
            _ => Refusal::NotADirectory,
        }
    }
}

const DIRECTORY: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// EAGAIN of openat2(2) means that something was renamed meanwhile, so it is worth another attempt.
fn retried(open: impl Fn() -> Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
    for _ in 0..16 {
        match open() {
            Err(Errno::AGAIN | Errno::INTR) => {}
            result => return result,
        }
    }
    open()
}

/// O_DIRECTORY with O_NOFOLLOW returns ENOTDIR for a symbolic link as for a file.
fn what_is(directory: &OwnedFd, name: &[u8]) -> Refusal {
    use rustix::fs::{AtFlags, FileType, statat};
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {
            Refusal::SymbolicLink
        }
        _ => Refusal::NotADirectory,
    }
}

impl ResolveError {
    fn of(error: Errno) -> ResolveError {
        match error {
            Errno::LOOP => ResolveError::Refused(Refusal::SymbolicLink),
            Errno::XDEV => ResolveError::Refused(Refusal::Outside),
            error => ResolveError::Io(error),
        }
    }
}

impl From<Errno> for ResolveError {
    fn from(error: Errno) -> ResolveError {
        ResolveError::of(error)
    }
}

/// Opens an object with O_PATH, never through a symbolic link.
pub(crate) fn open_path(directory: impl AsFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(&directory, name, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &[u8], expected: Result<&[u8], Refusal>) {
        assert_eq!(checked(path).as_deref(), expected.as_deref(), "{path:?}");
    }

    #[test]
    fn paths_from_archives() {
        check(b"a/b", Ok(b"a/b"));
        check(b"./a//b/.", Ok(b"a/b"));
        check(b".", Ok(b""));
        check(b"./", Ok(b""));
        check(b"..a/b..", Ok(b"..a/b.."));
        check(b"", Err(Refusal::Empty));
        check(b"/etc", Err(Refusal::Absolute));
        check(b"a/../b", Err(Refusal::ParentReference));
        check(b"..", Err(Refusal::ParentReference));
        check(b"a/..", Err(Refusal::ParentReference));
        check(b"a\0b", Err(Refusal::Nul));
    }
}
