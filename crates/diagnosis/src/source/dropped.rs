//! The source's data out of memory, so that a line reads them from the disk, as at night.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flow::cancel::Cancel;
use rustix::fs::{Mode, OFlags};

/// More is not dropped.
const FILES_MAX: u64 = 100_000;
const LIMIT: Duration = Duration::from_secs(5);

/// How much of a source is out of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    All,
    /// There are too many files, or it took too long.
    Part,
}

/// Drops what the page cache holds of the files below some paths: clean pages that no program has
/// mapped. Names and attributes stay.
pub fn drop_source(paths: &[PathBuf], cancel: &Cancel) -> Dropped {
    let begun = Instant::now();
    let mut files = 0;
    let mut folders: Vec<PathBuf> = Vec::new();
    for path in paths {
        match fs::metadata(path) {
            Ok(it) if it.is_dir() => folders.push(path.clone()),
            Ok(it) if it.is_file() || it.file_type().is_block_device() => {
                drop_file(path, OFlags::empty());
            }
            _ => {}
        }
    }
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            files += 1;
            if files > FILES_MAX || begun.elapsed() > LIMIT || cancel.check().is_err() {
                return Dropped::Part;
            }
            match entry.file_type() {
                Ok(it) if it.is_dir() => folders.push(entry.path()),
                Ok(it) if it.is_file() => drop_file(&entry.path(), OFlags::NOFOLLOW),
                _ => {}
            }
        }
    }
    Dropped::All
}

/// What is named may be a link to the source; below it, links are not followed.
fn drop_file(path: &Path, follow: OFlags) {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | follow;
    if let Ok(file) = base::interruptible::open(path, flags, Mode::empty()) {
        device::file::drop_cached(&file, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_all_folders_leave_memory_and_stay_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        let file = folder.path().join("a/b/c");
        fs::write(&file, vec![3; 1 << 20]).unwrap();
        let open = fs::File::open(&file).unwrap();
        open.sync_all().unwrap();
        let paths = [folder.path().to_owned()];
        assert_eq!(drop_source(&paths, &Cancel::new()), Dropped::All);
        assert_eq!(fs::read(&file).unwrap(), vec![3; 1 << 20]);
        let cancelled = Cancel::new();
        cancelled.cancel();
        assert_eq!(drop_source(&paths, &cancelled), Dropped::Part);
        assert_eq!(drop_source(&["/no/such".into()], &Cancel::new()), Dropped::All);
    }
}
