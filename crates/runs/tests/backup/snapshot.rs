//! A tree on disk with all its metadata, as a value that can be compared.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use archive::member::Extent;

/// The compared properties of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub kind: Kind,
    pub mode: u32,
    pub owner: (u32, u32),
    pub modified_ns: i128,
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    /// All names of the same file, when it has several within the tree.
    pub names: Vec<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    File { size: u64, hash: blake3::Hash, has_holes: bool },
    Directory,
    Link(OsString),
    Fifo,
    Character(u64),
    Block(u64),
    Socket,
}

pub type Snapshot = BTreeMap<PathBuf, Object>;

/// Describes everything below `root`, and `root` itself as `.`.
pub fn snapshot(root: &Path) -> Snapshot {
    let mut found = Vec::new();
    visit(root, PathBuf::from("."), &mut found);
    let mut names: BTreeMap<(u64, u64), Vec<PathBuf>> = BTreeMap::new();
    for (path, metadata) in &found {
        if !metadata.is_dir() {
            names.entry((metadata.dev(), metadata.ino())).or_default().push(path.clone());
        }
    }
    let mut all = Snapshot::new();
    for (path, metadata) in found {
        let mut names = names.get(&(metadata.dev(), metadata.ino())).cloned().unwrap_or_default();
        names.sort();
        if names.len() == 1 {
            names.clear();
        }
        let object = describe(&root.join(&path), &metadata, names);
        all.insert(path, object);
    }
    all
}

/// Compares two trees, and names the first objects that differ.
pub fn assert_same(expected: &Snapshot, actual: &Snapshot, what: &str) {
    let mut differences = Vec::new();
    for path in expected.keys().chain(actual.keys()) {
        let (before, after) = (expected.get(path), actual.get(path));
        if before != after && differences.len() < 5 {
            differences.push(format!("{}:\n  {before:?}\n  {after:?}", path.display()));
        }
    }
    assert!(differences.is_empty(), "{what}:\n{}", differences.join("\n"));
}

fn visit(root: &Path, path: PathBuf, found: &mut Vec<(PathBuf, Metadata)>) {
    let metadata = root.join(&path).symlink_metadata().unwrap();
    let is_directory = metadata.is_dir();
    found.push((path.clone(), metadata));
    if is_directory {
        for entry in std::fs::read_dir(root.join(&path)).unwrap() {
            visit(root, path.join(entry.unwrap().file_name()), found);
        }
    }
}

fn describe(path: &Path, metadata: &Metadata, names: Vec<PathBuf>) -> Object {
    let kind = metadata.file_type();
    let kind = if kind.is_file() {
        Kind::File {
            size: metadata.len(),
            hash: hash(path, metadata.len()),
            has_holes: metadata.blocks() * 512 < metadata.len(),
        }
    } else if kind.is_dir() {
        Kind::Directory
    } else if kind.is_symlink() {
        Kind::Link(path.read_link().unwrap().into_os_string())
    } else if kind.is_fifo() {
        Kind::Fifo
    } else if kind.is_char_device() {
        Kind::Character(metadata.rdev())
    } else if kind.is_block_device() {
        Kind::Block(metadata.rdev())
    } else {
        Kind::Socket
    };
    Object {
        // The mode of a symbolic link has no meaning.
        mode: if matches!(kind, Kind::Link(_)) { 0 } else { metadata.mode() & 0o7777 },
        kind,
        owner: (metadata.uid(), metadata.gid()),
        modified_ns: i128::from(metadata.mtime()) * 1_000_000_000
            + i128::from(metadata.mtime_nsec()),
        xattrs: xattrs(path),
        names,
    }
}

/// Hashes the nonzero bytes with their places: a file of gigabytes may be all holes.
fn hash(path: &Path, size: u64) -> blake3::Hash {
    let file = std::fs::File::open(path).unwrap();
    let whole = vec![Extent { offset_bytes: 0, length_bytes: size }];
    let runs = tree::sparse_map(&file, size).unwrap().map_or(whole, |map| map.extents);
    let mut hasher = blake3::Hasher::new();
    let mut unit = [0; 4096];
    for run in runs {
        let end = run.offset_bytes + run.length_bytes;
        let mut at = run.offset_bytes / 4096 * 4096;
        while at < end {
            let bytes = file.read_at(&mut unit, at).unwrap();
            if unit[..bytes].iter().any(|&byte| byte != 0) {
                hasher.update(&at.to_le_bytes()).update(&unit[..bytes]);
            }
            at += 4096;
        }
    }
    hasher.finalize()
}

fn xattrs(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut list = vec![0; 64 << 10];
    let length = rustix::fs::llistxattr(path, &mut list).unwrap_or(0);
    let mut all: Vec<_> = list[..length]
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| {
            let mut value = vec![0; 64 << 10];
            let name = OsString::from_vec(name.to_vec());
            let length = rustix::fs::lgetxattr(path, &*name, &mut value).unwrap();
            (name.as_bytes().to_vec(), value[..length].to_vec())
        })
        .collect();
    all.sort();
    all
}
