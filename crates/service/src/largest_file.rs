//! The largest file in a folder: what a command reads that needs one file and is given a folder.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

/// Maximum number of folder entries to check for a large file.
const ENTRIES_MAX: usize = 100_000;
/// Maximum number of folders in the queue, each with an open descriptor.
const FOLDERS_MAX: usize = 200;

/// The file with the most bytes on the disk, on the file system of the folder, within the limits of
/// the search.
pub(crate) fn largest_below(folder: &Path) -> Result<Option<PathBuf>, rustix::io::Errno> {
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
            let below = || path.join(OsStr::from_bytes(name.to_bytes()));
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
    fn the_largest_file_that_is_really_there_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        fs::write(folder.path().join("small"), vec![1; 8192]).unwrap();
        let large = below.join(OsStr::from_bytes(b"large \xff"));
        fs::write(&large, vec![1; 1 << 20]).unwrap();
        fs::File::create(folder.path().join("holes")).unwrap().set_len(1 << 30).unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.path().join("link")).unwrap();
        assert_eq!(largest_below(folder.path()).unwrap(), Some(large));
        let nothing = tempfile::tempdir().unwrap();
        assert_eq!(largest_below(nothing.path()).unwrap(), None);
    }
}
