//! Entries of a live tree for paths of an archive.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::OFlags;

use crate::directory::Directory;
use crate::item::Entry;
use crate::listing::{Names, open_directory_ahead};
use crate::resolve::{Beneath, Missing, ResolveMethod, checked, split};

/// Most bytes of the names of a directory in which entries are found: of about a million names.
const NAMES_BYTES_MAX: usize = 64 << 20;

/// Finds the objects that paths of an archive stand for in a live tree, with what their directory
/// says of them: paths are resolved as [`crate::LiveTree`] does. Made for paths in the order of an
/// archive, in which those of a directory come together.
#[derive(Debug)]
pub struct LiveEntries {
    beneath: Beneath,
    /// The directory of the last path; without names if these cannot be had.
    last: Option<(Vec<u8>, Option<Arc<Directory>>)>,
}

impl LiveEntries {
    /// Opens the directory that the paths of the archive start in.
    ///
    /// # Errors
    /// Errors of open(2).
    pub fn open(root: &Path) -> io::Result<LiveEntries> {
        let beneath = Beneath::open(root, OFlags::empty(), ResolveMethod::Auto)?;
        Ok(LiveEntries { beneath, last: None })
    }

    /// The object at a path. `None` if there is none, if its directory cannot be read, or has so
    /// many names that looking for one in it would take too much memory.
    pub fn find(&mut self, path: &[u8]) -> Option<Entry> {
        let path = checked(path).ok()?;
        let (directory, name) = split(&path);
        let is_last = self.last.as_ref().is_some_and(|(last, _)| last == directory);
        if !is_last {
            self.last = Some((directory.to_vec(), self.list(directory)));
        }
        let (_, found) = self.last.as_ref()?;
        let found = found.as_ref()?;
        let index = found.names().find(name)?;
        Some(Entry::of(found, index))
    }

    fn list(&self, path: &[u8]) -> Option<Arc<Directory>> {
        let place = self.beneath.directory(path, Missing::Fail).ok()?;
        let descriptor = open_directory_ahead(&place, c".").ok()?;
        let names = Names::alone(&descriptor, path, NAMES_BYTES_MAX)?;
        Some(Directory::new(descriptor, names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EntryKind;
    use std::fs;

    #[test]
    fn a_path_of_an_archive_finds_its_object() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        for name in ["a/b/2", "a/b/10", "a/b/1", "top"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let mut entries = LiveEntries::open(folder.path()).unwrap();
        for path in ["a/b/1", "a/b/10", "a/b/2", "top", "./a/b/1"] {
            let found = entries.find(path.as_bytes()).unwrap();
            assert_eq!(found.kind(), EntryKind::File);
            let (_, status) = found.open_file().unwrap();
            assert_eq!(status.identity.inode, found.inode());
            assert_eq!(status.identity.device, found.directory_device());
            assert_eq!(found.path(), path.trim_start_matches("./").as_bytes());
        }
        assert_eq!(entries.find(b"a").unwrap().kind(), EntryKind::Directory);
        for path in ["a/b/3", "b/1", "top/1", "/top", "a/../top", ""] {
            assert!(entries.find(path.as_bytes()).is_none(), "{path}");
        }
    }

    #[test]
    fn no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("real")).unwrap();
        fs::write(folder.path().join("real/file"), "content").unwrap();
        std::os::unix::fs::symlink("real", folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink("real/file", folder.path().join("to_file")).unwrap();
        let mut entries = LiveEntries::open(folder.path()).unwrap();
        assert!(entries.find(b"link/file").is_none());
        assert!(entries.find(b"to_file").unwrap().open_file().is_err());
    }
}
