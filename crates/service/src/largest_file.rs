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

/// A file that stands for its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LargestFile {
    pub path: PathBuf,
    /// Whether all of the folder was searched: else there may be a larger one.
    pub is_of_all: bool,
}

/// The file with the most bytes on the disk, on the file system of the folder, within the limits of
/// the search.
pub(crate) fn largest_below(folder: &Path) -> Result<Option<LargestFile>, rustix::io::Errno> {
    largest_of(folder, ENTRIES_MAX)
}

fn largest_of(folder: &Path, entries: usize) -> Result<Option<LargestFile>, rustix::io::Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let top = base::interruptible::open(folder, flags, Mode::empty())?;
    let device = rustix::fs::fstat(&top)?.st_dev;
    let mut waiting: Vec<(OwnedFd, PathBuf)> = vec![(top, folder.to_owned())];
    let mut largest: Option<(u64, PathBuf)> = None;
    let mut is_of_all = true;
    let mut seen = 0;
    'search: while let Some((folder, path)) = waiting.pop() {
        // Skip folders that cannot be listed.
        let Ok(listed) = Dir::read_from(&folder) else {
            is_of_all = false;
            continue;
        };
        for entry in listed.flatten() {
            let name = entry.file_name();
            seen += 1;
            if seen > entries {
                is_of_all = false;
                break 'search;
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
                    match base::interruptible::openat(&folder, name, flags, Mode::empty()) {
                        Ok(opened) => waiting.push((opened, below())),
                        Err(_) => is_of_all = false,
                    }
                }
                FileType::Directory => is_of_all = false,
                _ => {}
            }
        }
    }
    Ok(largest.map(|(_, path)| LargestFile { path, is_of_all }))
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
        let all = LargestFile { path: large, is_of_all: true };
        assert_eq!(largest_below(folder.path()).unwrap(), Some(all));
        let part = largest_of(folder.path(), 4).unwrap();
        assert!(part.is_none_or(|part| !part.is_of_all), "there are more than 4 entries");
        let nothing = tempfile::tempdir().unwrap();
        assert_eq!(largest_below(nothing.path()).unwrap(), None);
    }
}
