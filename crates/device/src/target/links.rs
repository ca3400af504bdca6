//! The file that a target's name leads to, if the name is a symbolic link.
//!
//! The file that the link leads to is replaced. A link of another user would let that user choose
//! any of our files, so it is not followed. Each link is opened once, and checked and read by its
//! descriptor, so that exchanging it meanwhile has no effect.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

/// The kernel's own limit (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// Where the symbolic links at the end of a path lead.
#[derive(Debug)]
pub(super) struct Followed {
    /// The path behind the links. The file itself may not exist yet.
    pub(super) path: PathBuf,
    /// Device and inode number of the file. `None` if it does not exist, or if only the kernel can
    /// resolve the path, as with `/proc/self/fd/1`.
    pub(super) object: Option<(u64, u64)>,
}

/// Follows them.
pub(super) fn followed(path: &Path) -> io::Result<Followed> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match base::interruptible::open(&path, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(Followed { path, object: None }),
            opened => opened?,
        };
        let status = rustix::fs::fstat(&opened)?;
        if FileType::from_raw_mode(status.st_mode) != FileType::Symlink {
            return Ok(Followed { path, object: Some((status.st_dev, status.st_ino)) });
        }
        if ![0, rustix::process::geteuid().as_raw()].contains(&status.st_uid) {
            let why = format!("{} is a symbolic link of user {}", path.display(), status.st_uid);
            return Err(io::Error::other(why));
        }
        let target = rustix::fs::readlinkat(&opened, c"", Vec::new())?;
        path.pop();
        path.push(OsStr::from_bytes(target.as_bytes()));
    }
    Err(Errno::LOOP.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{lchown, symlink};

    use super::super::{Existing, FileMode, Target, TargetError};
    use super::*;

    #[test]
    fn links_are_followed_to_their_end_unless_another_user_made_one() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("inner")).unwrap();
        std::fs::write(at("inner/file"), "").unwrap();
        symlink("inner/file", at("relative")).unwrap();
        symlink(at("relative"), at("chain")).unwrap();
        symlink("loop", at("loop")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        let check = |name: &str, expected: &str| {
            assert_eq!(followed(&at(name)).unwrap().path, at(expected), "{name}");
        };
        check("inner/file", "inner/file");
        check("relative", "inner/file");
        check("chain", "inner/file");
        check("dangling", "nowhere");
        check("new", "new");
        assert_eq!(
            followed(&at("loop")).unwrap_err().raw_os_error(),
            Some(Errno::LOOP.raw_os_error())
        );
        testkit::require!(Root);
        lchown(at("relative"), Some(54_321), None).unwrap();
        for name in ["relative", "chain"] {
            let error = followed(&at(name)).unwrap_err().to_string();
            assert!(error.contains("is a symbolic link of user 54321"), "{name}: {error}");
        }
        // The same holds for links to a pipe or a device.
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("pipe"),
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        symlink("pipe", at("to a pipe")).unwrap();
        lchown(at("to a pipe"), Some(54_321), None).unwrap();
        let opened = Target::open(at("to a pipe").as_ref(), Existing::Replace, FileMode::Usual);
        let TargetError::Open { source, .. } = opened.map(drop).unwrap_err() else { panic!() };
        assert!(source.to_string().contains("is a symbolic link of user 54321"), "{source}");
    }
}
