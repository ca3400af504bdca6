//! A file without a name, for data that a run keeps until its end. It disappears with the process,
//! however the process ends.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Mode, OFlags};

/// Makes one in the folder for temporary files (`TMPDIR`, else `/var/tmp`, which is on a disk even
/// where `/tmp` is in memory).
///
/// # Errors
/// Errors of openat(2).
pub fn unnamed_file() -> io::Result<File> {
    let folder =
        std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from);
    unnamed_file_in(&folder)
}

/// Makes one in this folder, and so on its file system.
///
/// # Errors
/// Errors of openat(2).
pub fn unnamed_file_in(folder: &Path) -> io::Result<File> {
    let mode = Mode::RUSR | Mode::WUSR;
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    match base::interruptible::open(folder, flags | OFlags::TMPFILE, mode) {
        Ok(file) => Ok(file.into()),
        // Not every file system can make files without a name.
        Err(_) => {
            static NUMBER: AtomicU64 = AtomicU64::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let process = std::process::id();
            let name = folder.join(format!(".takeup-{process}-{number}"));
            let file =
                base::interruptible::open(&name, flags | OFlags::CREATE | OFlags::EXCL, mode)?;
            rustix::fs::unlink(&name)?;
            Ok(file.into())
        }
    }
}
