//! A tree as a user sees it: names, kinds, metadata, contents, and which names are one file.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// An object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    kind: Kind,
    mode: u32,
    owner: (u32, u32),
    modified: (i64, i64),
    /// The first of its names.
    same_as: PathBuf,
}

impl Object {
    pub fn is_folder(&self) -> bool {
        self.kind == Kind::Folder
    }
}

#[derive(Clone, PartialEq, Eq)]
enum Kind {
    File(Vec<u8>),
    Folder,
    Link(PathBuf),
    Fifo,
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Kind::File(content) => {
                let start = String::from_utf8_lossy(&content[..content.len().min(20)]).into_owned();
                write!(formatter, "File({} bytes: {start:?})", content.len())
            }
            Kind::Folder => formatter.write_str("Folder"),
            Kind::Link(target) => write!(formatter, "Link({target:?})"),
            Kind::Fifo => formatter.write_str("Fifo"),
        }
    }
}

pub type Snapshot = BTreeMap<PathBuf, Object>;

/// Everything at and below a path.
pub fn snapshot(root: &Path) -> Snapshot {
    let (mut found, mut names) = (Snapshot::new(), BTreeMap::new());
    let mut waiting = vec![PathBuf::new()];
    let mut paths = Vec::new();
    while let Some(path) = waiting.pop() {
        if fs::symlink_metadata(root.join(&path)).unwrap().is_dir() {
            let entries = fs::read_dir(root.join(&path)).unwrap();
            waiting.extend(entries.map(|entry| path.join(entry.unwrap().file_name())));
        }
        paths.push(path);
    }
    paths.sort();
    for path in paths {
        let whole = root.join(&path);
        let status = fs::symlink_metadata(&whole).unwrap();
        let kind = status.file_type();
        let kind = if kind.is_dir() {
            Kind::Folder
        } else if kind.is_symlink() {
            Kind::Link(fs::read_link(&whole).unwrap())
        } else if kind.is_fifo() {
            Kind::Fifo
        } else {
            Kind::File(fs::read(&whole).unwrap())
        };
        let first = names.entry((status.dev(), status.ino())).or_insert_with(|| path.clone());
        let object = Object {
            kind,
            mode: status.mode() & 0o7777,
            owner: (status.uid(), status.gid()),
            modified: (status.mtime(), status.mtime_nsec()),
            same_as: first.clone(),
        };
        found.insert(path, object);
    }
    found
}

#[track_caller]
pub fn assert_same(expected: &Snapshot, actual: &Snapshot, what: &str) {
    for (path, object) in expected {
        match actual.get(path) {
            None => panic!("{what}: {} is missing", path.display()),
            Some(found) => assert_eq!(object, found, "{what}: {}", path.display()),
        }
    }
    for path in actual.keys() {
        assert!(expected.contains_key(path), "{what}: {} is too much", path.display());
    }
}
