//! Trees to back up: the same number gives the same tree, so that a failure can be repeated.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use tempfile::TempDir;
use testkit::samples::{Random, fingerprint};

/// A folder with `tree/` in it.
pub struct Tree {
    folder: TempDir,
}

impl Tree {
    /// The source of the backup. In an archive, its names start with the path below `/`.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    /// The folder above.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A name in the archive, `run/lab/tmp/.../tree/NAME`.
    pub fn member(&self, name: &str) -> String {
        let path = self.path().join(name);
        path.strip_prefix("/").unwrap().to_str().unwrap().to_owned()
    }

    /// The path of the tree in a folder into which it was restored.
    pub fn restored(&self, into: &Path) -> PathBuf {
        into.join(self.path().strip_prefix("/").unwrap())
    }
}

/// `count` files of about `bytes` each, a quarter of it compressible, some with odd names, in a few
/// folders, with an empty file and a symbolic link.
pub fn tree(number: u64, count: usize, bytes: usize) -> Tree {
    let tree = Tree { folder: tempfile::tempdir().unwrap() };
    let mut random = Random::numbered(number + 1);
    let root = tree.path();
    for index in 0..count {
        let folder = root.join(format!("folder{}", index % 7));
        fs::create_dir_all(&folder).unwrap();
        let length = bytes / 2 + random.index(bytes.max(1));
        write(&folder.join(format!("file {index:04}")), &content(&mut random, length), index);
    }
    write(&root.join("empty"), b"", count);
    write(&root.join("größe\n"), b"odd name", count + 1);
    std::os::unix::fs::symlink("folder0/file 0000", root.join("link")).unwrap();
    tree
}

/// Times have whole seconds: not every program's archives have fractions.
fn write(path: &Path, content: &[u8], number: usize) {
    fs::write(path, content).unwrap();
    let modified = UNIX_EPOCH + Duration::from_secs(1_700_000_000 + number as u64);
    fs::File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
}

/// Asserts that two trees have the same names, kinds, contents, modes and times.
#[track_caller]
pub fn assert_same(expected: &Path, found: &Path) {
    let (expected, found) = (described(expected), described(found));
    let missing: Vec<_> = expected.iter().filter(|line| !found.contains(*line)).take(5).collect();
    let strange: Vec<_> = found.iter().filter(|line| !expected.contains(*line)).take(5).collect();
    assert!(
        missing.is_empty() && strange.is_empty(),
        "{} entries expected, {} found; missing {missing:?}, not expected {strange:?}",
        expected.len(),
        found.len(),
    );
}

/// Names of the regular files below a folder whose content is the same.
pub fn intact_files(expected: &Path, found: &Path) -> Vec<String> {
    let found = described(found);
    let files = described(expected).into_iter().filter(|line| line.contains(" file "));
    files
        .filter(|line| found.contains(line))
        .map(|line| line.split(" file ").next().unwrap().to_owned())
        .collect()
}

/// One line per entry, sorted: name, kind, content (its hash), and for files mode and time.
fn described(root: &Path) -> std::collections::BTreeSet<String> {
    let mut lines = std::collections::BTreeSet::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            lines.insert(if metadata.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                format!("{name} link {:x}", fingerprint(target.as_os_str().as_bytes()))
            } else if metadata.is_dir() {
                folders.push(path.clone());
                format!("{name} folder {:?}", metadata.permissions())
            } else {
                let content = fingerprint(&fs::read(&path).unwrap());
                let modified = metadata.modified().unwrap();
                format!("{name} file {content:x} {:?} {modified:?}", metadata.permissions())
            });
        }
    }
    lines
}

/// Three parts noise, one part zeros, in runs of 4 KiB.
fn content(random: &mut Random, length: usize) -> Vec<u8> {
    let mut content = Vec::with_capacity(length + 8);
    while content.len() < length {
        if random.below(4) == 0 {
            content.resize(content.len() + 4096, 0);
        } else {
            content.extend(random.bytes(4096));
        }
    }
    content.truncate(length);
    content
}
