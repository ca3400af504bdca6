//! The file to read for a measurement: the file or device itself, or the largest file in a folder.

use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use storage::layers::Storage;

use super::apply::storage;
use crate::failure::Failure;

/// Maximum number of folder entries to check for a large file.
const ENTRIES_MAX: usize = 100_000;
/// Maximum number of folders in the queue, each with an open descriptor.
const FOLDERS_MAX: usize = 200;
/// A smaller file cannot distinguish windows.
const BYTES_MIN: u64 = 4 << 20;

/// The file to read.
#[derive(Debug)]
pub struct TuneSubject {
    /// The file or device.
    pub file: PathBuf,
    /// Its bytes.
    pub length_bytes: u64,
    /// The storage below it.
    pub storage: Storage,
}

impl TuneSubject {
    /// The file to read for a path.
    ///
    /// # Errors
    /// When there is no file that is large enough, or it cannot be opened.
    pub fn find(path: &Path) -> Result<TuneSubject, Failure> {
        let failed = |error: rustix::io::Errno| {
            let error = std::io::Error::from(error);
            Failure::of(
                format!("{}: {}", path.display(), crate::failure::with_causes(&error)),
                None,
            )
        };
        let status = rustix::fs::stat(path).map_err(failed)?;
        let too_small = || {
            Failure::of(
                format!("{}: no file or device of at least 4 MiB to read", path.display()),
                Some("name a large file on the same file system: the read-ahead is the same"),
            )
        };
        let file = if FileType::from_raw_mode(status.st_mode) == FileType::Directory {
            largest_below(path).map_err(failed)?.ok_or_else(too_small)?
        } else {
            path.to_owned()
        };
        let file = std::path::absolute(&file).unwrap_or(file);
        // Report a missing permission first, not a file that is too small.
        let source = device::source::Source::open(file.as_os_str())
            .map_err(|error| Failure::new(&error, None))?;
        let length_bytes = source.length_bytes.unwrap_or(0);
        if length_bytes < BYTES_MIN {
            return Err(too_small());
        }
        Ok(TuneSubject { storage: storage(&file)?, file, length_bytes })
    }
}

/// The file with the most bytes on the disk, on the file system of the folder, within the limits of
/// the search.
fn largest_below(folder: &Path) -> Result<Option<PathBuf>, rustix::io::Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let top = base::interruptible::open(folder, flags, Mode::empty())?;
    let device = rustix::fs::fstat(&top)?.st_dev;
    let mut waiting: Vec<(OwnedFd, PathBuf)> = vec![(top, folder.to_owned())];
    let mut largest: Option<(u64, PathBuf)> = None;
    let mut seen = 0;
    while let Some((folder, path)) = waiting.pop() {
        // Skip folders that cannot be listed.
        let Ok(entries) = Dir::read_from(&folder) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            seen += 1;
            if seen > ENTRIES_MAX {
                return Ok(largest.map(|(_, path)| path));
            }
            let Ok(status) = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            let below = || path.join(std::ffi::OsStr::new(&*name.to_string_lossy()));
            if name == c"." || name == c".." || status.st_dev != device {
                continue;
            }
            match FileType::from_raw_mode(status.st_mode) {
                FileType::RegularFile => {
                    // Holes are not read from the disk.
                    let bytes = (status.st_blocks as u64 * 512).min(status.st_size as u64);
                    if largest.as_ref().is_none_or(|(most, _)| bytes > *most) {
                        largest = Some((bytes, below()));
                    }
                }
                FileType::Directory if waiting.len() < FOLDERS_MAX => {
                    let flags = flags | OFlags::NOFOLLOW;
                    let opened = base::interruptible::openat(&folder, name, flags, Mode::empty());
                    waiting.extend(opened.ok().map(|opened| (opened, below())));
                }
                _ => {}
            }
        }
    }
    Ok(largest.map(|(_, path)| path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_largest_file_that_is_really_there_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        fs::write(folder.path().join("small"), vec![1; 8192]).unwrap();
        fs::write(below.join("large"), vec![1; 1 << 20]).unwrap();
        fs::File::create(folder.path().join("holes")).unwrap().set_len(1 << 30).unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.path().join("link")).unwrap();
        assert_eq!(largest_below(folder.path()).unwrap(), Some(below.join("large")));
        let nothing = tempfile::tempdir().unwrap();
        assert_eq!(largest_below(nothing.path()).unwrap(), None);
        assert!(TuneSubject::find(nothing.path()).is_err(), "a folder is nothing to be read");
        assert!(TuneSubject::find(&folder.path().join("small")).is_err());
    }

    /// For a file that cannot be opened, the error must not be that it is too small.
    #[test]
    fn what_cannot_be_opened_is_told_as_that() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let told = TuneSubject::find(&path).err().unwrap().to_text();
        assert!(told.contains("socket") && !told.contains("4 MiB"), "{told}");
        let told = TuneSubject::find(folder.path()).err().unwrap().to_text();
        assert!(told.contains("no file or device of at least 4 MiB"), "{told}");
    }
}
