//! From a source as the user typed it to the directory that holds it and its path in the archive.
//!
//! The rule is GNU tar's, which users know: a leading `/` is removed, and so is everything up to
//! the last `..`. In addition `.` and doubled slashes are removed. If nothing is left (`.`, `/`,
//! `..`), the source is called `.` and its contents have no prefix. The rule is textual and only
//! decides the name in the archive. The kernel finds the object itself by the path exactly as
//! typed.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use base::interruptible::openat;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, Stat, statat};
use rustix::io::{Errno, retry_on_intr};

use crate::ScanError;
use crate::directory::Directory;
use crate::identity::Identity;
use crate::listing::{Names, SourceStart, open_directory};

/// The prefix removed from a source's path to make its path in the archive, reported once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stripped {
    /// The source as given.
    pub source: PathBuf,
    /// The removed part: `/`, `../`, `a/../` and the like.
    pub prefix: Vec<u8>,
}

/// Archive path of a source, and the removed prefix. The path is never absolute, never empty, and
/// has no `..`.
pub fn archive_path(source: &Path) -> (Vec<u8>, Vec<u8>) {
    let bytes = source.as_os_str().as_bytes();
    let mut rest_from = 0;
    let mut at = 0;
    for component in bytes.split(|&byte| byte == b'/') {
        let end = at + component.len();
        let is_leading_slash = at == 0 && component.is_empty() && end < bytes.len();
        if component == b".." || is_leading_slash {
            rest_from = (end + 1).min(bytes.len());
        }
        at = end + 1;
    }
    let mut path = Vec::with_capacity(bytes.len() - rest_from);
    for component in bytes[rest_from..].split(|&byte| byte == b'/') {
        if component.is_empty() || component == b"." {
            continue;
        }
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(component);
    }
    if path.is_empty() {
        path.push(b'.');
    }
    (path, bytes[..rest_from].to_vec())
}

/// Bytes to read the first names of a folder.
const FIRST_NAMES_BYTES: usize = 4096;

/// One checked source: a directory of one name, whose only entry is the source itself.
pub(crate) struct Source {
    pub(crate) holder: std::sync::Arc<Directory>,
    pub(crate) stripped: Option<Stripped>,
}

impl Source {
    /// Opens the directory that holds `source` and checks that the source exists. A symbolic link
    /// is itself the source; with a slash behind it, its target is.
    pub(crate) fn open(source: &Path, number: u32) -> Result<Source, ScanError> {
        let missing =
            |error: Errno| ScanError::Source { path: source.into(), source: error.into() };
        let bytes = source.as_os_str().as_bytes();
        let (parent, name) = split(bytes);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = openat(CWD, parent, flags, Mode::empty()).map_err(missing)?;
        let name = CString::new(name).map_err(|_| missing(Errno::INVAL))?;
        let stat =
            statat(&descriptor, name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW).map_err(missing)?;
        check_readable(&descriptor, &name, &stat)
            .map_err(|error| ScanError::OpenSource { path: source.into(), source: error.into() })?;
        let (path, prefix) = archive_path(source);
        let start = if !prefix.is_empty() && prefix.iter().all(|&byte| byte == b'/') {
            SourceStart::Root
        } else {
            SourceStart::Elsewhere
        };
        let names = Names::of_source(number, path, start, name.as_c_str(), &stat);
        let stripped = (!prefix.is_empty()).then(|| Stripped { source: source.into(), prefix });
        Ok(Source { holder: Directory::new(descriptor, names), stripped })
    }
}

/// Checks that the source can be read: a folder returns its first names, a file can be opened.
/// Sources of other kinds are not opened. Deeper problems give warnings later.
fn check_readable(parent: &OwnedFd, name: &CStr, stat: &Stat) -> Result<(), Errno> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => {
            let directory = open_directory(parent, name)?;
            let mut room = [MaybeUninit::uninit(); FIRST_NAMES_BYTES];
            retry_on_intr(|| RawDir::new(&directory, &mut room).next().transpose().map(|_| ()))
        }
        FileType::RegularFile => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            match openat(parent, name, flags, Mode::empty()) {
                // Another program holds a lease on it: the backup waits for it when its turn comes.
                Ok(_) | Err(Errno::WOULDBLOCK) => Ok(()),
                Err(error) => Err(error),
            }
        }
        _ => Ok(()),
    }
}

/// Identity of what a path names, symbolic links followed: for the output file and the like.
///
/// # Errors
/// Errors of stat(2).
pub fn identity_of_path(path: &Path) -> std::io::Result<Identity> {
    Ok(Identity::of(&rustix::fs::stat(path)?))
}

/// Splits a path into the directory to open and the name in it. A path that ends in `/`, `.` or
/// `..` is a directory to open as a whole, with `.` as the name in it.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let (parent, name) = match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => (&path[..=slash], &path[slash + 1..]),
        None => (&b"."[..], path),
    };
    match name {
        b"" if path.is_empty() => (path, b"."),
        b"" | b"." | b".." => (path, b"."),
        _ => (parent, name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    fn check(source: &str, path: &str, prefix: &str) {
        let (got_path, got_prefix) = archive_path(Path::new(OsStr::from_bytes(source.as_bytes())));
        assert_eq!(String::from_utf8(got_path).unwrap(), path, "{source}");
        assert_eq!(String::from_utf8(got_prefix).unwrap(), prefix, "{source}");
    }

    #[test]
    fn paths_of_sources() {
        check("/usr/share", "usr/share", "/");
        check("/usr//share/", "usr/share", "/");
        check("//usr", "usr", "/");
        check(".", ".", "");
        check("./", ".", "");
        check("./a/./b", "a/b", "");
        check("/", ".", "/");
        check("..", ".", "..");
        check("../", ".", "../");
        check("../../foo/bar", "foo/bar", "../../");
        check("a/../b", "b", "a/../");
        check("/a/../../b", "b", "/a/../../");
        check("..a/b", "..a/b", "");
        check("a/..b", "a/..b", "");
        check("", ".", "");
    }

    #[test]
    fn directory_and_name() {
        assert_eq!(split(b"/usr/share"), (&b"/usr/"[..], &b"share"[..]));
        assert_eq!(split(b"a"), (&b"."[..], &b"a"[..]));
        assert_eq!(split(b"link/"), (&b"link/"[..], &b"."[..]));
        assert_eq!(split(b"a/.."), (&b"a/.."[..], &b"."[..]));
        assert_eq!(split(b"/"), (&b"/"[..], &b"."[..]));
    }
}
