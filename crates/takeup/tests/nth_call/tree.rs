//! A small tree with one object of each kind, and the differences of two trees.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{FileType, Mode, XattrFlags};
use testkit::samples::noise;

/// Files of all sizes that are handled differently, and one object of each other kind.
pub fn make(tree: &Path) {
    fs::create_dir(tree).unwrap();
    for (number, (name, bytes)) in
        [("empty", 0), ("tiny", 10), ("small", 5_000), ("medium", 200_000), ("large", 2_500_000)]
            .into_iter()
            .enumerate()
    {
        fs::write(tree.join(name), noise(number as u64, bytes)).unwrap();
    }
    let sparse = File::create(tree.join("sparse")).unwrap();
    sparse.set_len(1 << 20).unwrap();
    sparse.write_all_at(&noise(7, 4096), 512 << 10).unwrap();
    drop(sparse);
    symlink("tiny", tree.join("symlink")).unwrap();
    fs::hard_link(tree.join("small"), tree.join("second-name")).unwrap();
    let mode = Mode::from_raw_mode(0o640);
    rustix::fs::mknodat(rustix::fs::CWD, tree.join("fifo"), FileType::Fifo, mode, 0).unwrap();
    fs::create_dir(tree.join("folder")).unwrap();
    fs::write(tree.join("folder/inner"), noise(9, 700)).unwrap();
    let value = b"a value";
    rustix::fs::setxattr(tree.join("tiny"), "user.name", value, XattrFlags::empty()).unwrap();
    fs::set_permissions(tree.join("tiny"), Permissions::from_mode(0o604)).unwrap();
    fs::set_permissions(tree.join("folder"), Permissions::from_mode(0o705)).unwrap();
    for path in ["folder/inner", "folder", "large", "medium", "sparse", "small", "tiny", "empty"] {
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_007);
        File::open(tree.join(path)).unwrap().set_modified(time).unwrap();
    }
}

/// What is compared of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub kind: &'static str,
    /// The whole content; the trees are small, so hashes are not needed.
    pub content: Vec<u8>,
    pub mode: u32,
    pub modified: Option<(i64, i64)>,
    pub attributes: Vec<(String, Vec<u8>)>,
    pub links: u64,
}

/// All objects beneath `tree`, by path relative to it.
pub fn survey(tree: &Path) -> BTreeMap<String, Object> {
    let mut found = BTreeMap::new();
    walk(tree, "", &mut found);
    found
}

fn walk(tree: &Path, below: &str, found: &mut BTreeMap<String, Object>) {
    for entry in fs::read_dir(tree.join(below)).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        let full = tree.join(&path);
        let status = fs::symlink_metadata(&full).unwrap();
        let kind = status.file_type();
        let (kind, content) = match () {
            () if kind.is_dir() => ("folder", Vec::new()),
            () if kind.is_symlink() => {
                ("symlink", fs::read_link(&full).unwrap().as_os_str().as_bytes().to_vec())
            }
            () if kind.is_fifo() => ("fifo", Vec::new()),
            () => ("file", fs::read(&full).unwrap()),
        };
        // The tree sets only the times of these kinds.
        let modified = matches!(kind, "folder" | "file")
            .then(|| (status.mtime(), status.mtime_nsec()))
            .filter(|_| path != "folder/..");
        let links = if kind == "folder" { 1 } else { status.nlink() };
        let attributes = if kind == "file" { attributes(&full) } else { Vec::new() };
        let mode = status.mode() & 0o7777;
        let object = Object { kind, content, mode, modified, attributes, links };
        found.insert(path.clone(), object);
        if kind == "folder" {
            walk(tree, &path, found);
        }
    }
}

fn attributes(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut names = vec![0u8; 4096];
    let length = rustix::fs::llistxattr(path, &mut names[..]).unwrap_or(0);
    names[..length]
        .split(|&byte| byte == 0)
        .filter(|name| name.starts_with(b"user."))
        .map(|name| {
            let mut value = vec![0u8; 4096];
            let length = rustix::fs::lgetxattr(path, name, &mut value[..]).unwrap();
            value.truncate(length);
            (String::from_utf8_lossy(name).into_owned(), value)
        })
        .collect()
}

/// Paths that are missing or differ.
pub fn differing(
    expected: &BTreeMap<String, Object>,
    there: &BTreeMap<String, Object>,
) -> Vec<String> {
    let missing = expected.iter().filter(|(path, object)| there.get(*path) != Some(*object));
    let foreign = there.keys().filter(|path| !expected.contains_key(*path));
    missing.map(|(path, _)| path).chain(foreign).cloned().collect()
}
