//! Settings of the kernel in sysfs: read, set, read back.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Why a setting is not known, or not what it was to be.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// A setting cannot be read or written.
    #[error("{what} {}", path.display())]
    Setting {
        /// `read` or `write`.
        what: &'static str,
        /// The file in sysfs.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A path that is to be written as a read-ahead is something else.
    #[error("{} is no read-ahead of the kernel", path.display())]
    NoReadAhead {
        /// The path.
        path: PathBuf,
    },
    /// The kernel took another value than the one written.
    #[error("{} is {found} KiB after {written} KiB were written", path.display())]
    NotTaken {
        /// The file in sysfs.
        path: PathBuf,
        /// What was written.
        written: u64,
        /// What it holds.
        found: u64,
    },
}

/// The read-ahead in force, in bytes.
///
/// # Errors
/// When `path` is no read-ahead of the kernel, or cannot be read.
pub fn read_ahead_bytes(path: &Path) -> Result<u64, SettingError> {
    let failed = |source| SettingError::Setting { what: "read", path: path.to_owned(), source };
    let mut file = open_read_ahead(path, OFlags::RDONLY)?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(failed)?;
    let kib: u64 = text.trim().parse().map_err(|_| failed(io::ErrorKind::InvalidData.into()))?;
    Ok(kib * 1024)
}

/// Whether this process may set the read-ahead.
///
/// # Errors
/// When `path` is no read-ahead of the kernel, or may not be written.
pub fn check_read_ahead(path: &Path) -> Result<(), SettingError> {
    open_read_ahead(path, OFlags::WRONLY).map(|_| ())
}

/// Sets a read-ahead in sysfs and reads it back.
///
/// # Errors
/// When `path` is no read-ahead of the kernel, may not be written, or the kernel takes another
/// value.
pub fn set_read_ahead(path: &Path, bytes: u64) -> Result<(), SettingError> {
    let kib = bytes / 1024;
    let failed = |source| SettingError::Setting { what: "write", path: path.to_owned(), source };
    let mut file = open_read_ahead(path, OFlags::WRONLY)?;
    file.write_all(kib.to_string().as_bytes()).map_err(failed)?;
    let found = read_ahead_bytes(path)? / 1024;
    if found == kib {
        Ok(())
    } else {
        Err(SettingError::NotTaken { path: path.to_owned(), written: kib, found })
    }
}

/// `statfs(2)` of every file of sysfs (<linux/magic.h>).
const SYSFS_MAGIC: u64 = 0x6265_6572;

/// Opens `/sys/**/read_ahead_kb` and nothing else. Who sets a read-ahead is root as a rule, and the
/// path may come from a file.
fn open_read_ahead(path: &Path, access: OFlags) -> Result<File, SettingError> {
    let no_setting = || SettingError::NoReadAhead { path: path.to_owned() };
    let is_plain = path.components().all(|part| part != Component::ParentDir);
    if !is_plain || !path.starts_with("/sys") || !path.ends_with("read_ahead_kb") {
        return Err(no_setting());
    }
    let what = if access == OFlags::RDONLY { "read" } else { "write" };
    let failed =
        |error: Errno| SettingError::Setting { what, path: path.to_owned(), source: error.into() };
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = interruptible::open(path, flags, Mode::empty()).map_err(failed)?;
    // Its width and sign are the architecture's.
    let kind = rustix::fs::fstatfs(&file).map_err(failed)?.f_type as u64 & 0xffff_ffff;
    if kind == SYSFS_MAGIC { Ok(file.into()) } else { Err(no_setting()) }
}

/// The choice in brackets, of a setting that shows all of them: `none [mq-deadline]`.
pub fn chosen(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_mark_the_choice() {
        assert_eq!(chosen("mq-deadline kyber [none]"), "none");
        assert_eq!(chosen("none"), "none");
    }
}
