//! Random trees, backed up and restored, are the same trees.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use archive::member::MemberKind;
use proptest::collection::vec;
use proptest::prelude::*;
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags, chownat, lsetxattr,
    makedev, mknodat, utimensat,
};
use tree::{
    Attributes, CompareOptions, CompareOwners, DestinationOptions, Difference, LiveTree, Modes,
    Owners, ResolveMethod,
};

use crate::fixture::{backup, restore, snapshot};

#[derive(Clone, Debug)]
struct Object {
    name: Vec<u8>,
    what: What,
    mode: u32,
    owner: (u32, u32),
    modified: (i64, i64),
    attribute: Option<Vec<u8>>,
    has_acl: bool,
}

#[derive(Clone, Debug)]
enum What {
    File(Vec<u8>),
    /// Runs of data (offset, length) and a size, all in units of 4 KiB.
    Sparse(Vec<(u64, u64)>, u64),
    Directory(Vec<Object>),
    SymbolicLink(Vec<u8>),
    Fifo,
    Device(u32, u32),
    /// Another name of a file that was made before, by number.
    HardLink(usize),
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![3 => b'a'..=b'c', 1 => 1..=255_u8];
    let usual = vec(byte, 1..6);
    let longest = vec(b'x'..=b'y', 250..=255_usize);
    prop_oneof![12 => usual, 1 => longest].prop_map(|mut name| {
        name.iter_mut().filter(|byte| **byte == b'/').for_each(|byte| *byte = b'_');
        if name == b"." || name == b".." { b"dots".to_vec() } else { name }
    })
}

fn target() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(1..=255_u8, 1..20), vec(b'a'..=b'z', 1000..4095_usize)]
}

fn sparse() -> impl Strategy<Value = What> {
    let runs = vec((0..40_u64, 1..4_u64), 0..5);
    (runs, 1..50_u64).prop_map(|(runs, size)| What::Sparse(runs, size))
}

fn object() -> impl Strategy<Value = Object> {
    let leaf = prop_oneof![
        4 => vec(any::<u8>(), 0..3000).prop_map(What::File),
        1 => sparse(),
        2 => target().prop_map(What::SymbolicLink),
        1 => Just(What::Fifo),
        1 => (1..200_u32, 0..100_000_u32).prop_map(|(major, minor)| What::Device(major, minor)),
        2 => any::<usize>().prop_map(What::HardLink),
    ];
    with_metadata(leaf)
        .prop_recursive(4, 40, 8, |inner| with_metadata(vec(inner, 0..8).prop_map(What::Directory)))
}

fn with_metadata(what: impl Strategy<Value = What>) -> impl Strategy<Value = Object> {
    let modified = (-2_000_000_000..4_000_000_000_i64, 0..1_000_000_000_i64);
    let attribute = proptest::option::weighted(0.2, vec(any::<u8>(), 0..300));
    let owner = (prop_oneof![Just(0_u32), 1..70_000_u32], prop_oneof![Just(0_u32), 1..70_000_u32]);
    let rest = (0..0o10000_u32, owner, modified, attribute, proptest::bool::weighted(0.2));
    (name(), what, rest).prop_map(|(name, what, (mode, owner, modified, attribute, has_acl))| {
        Object { name, what, mode, owner, modified, attribute, has_acl }
    })
}

/// Makes the objects, then gives them their metadata from the last to the first.
fn build(root: &Path, objects: &[Object]) {
    fs::create_dir(root).unwrap();
    let mut made = Vec::new();
    let mut files = Vec::new();
    build_in(root, objects, &mut made, &mut files);
    for (path, object) in made.iter().rev() {
        describe(path, object);
    }
}

fn build_in<'a>(
    directory: &Path,
    objects: &'a [Object],
    made: &mut Vec<(PathBuf, &'a Object)>,
    files: &mut Vec<PathBuf>,
) {
    for object in objects {
        let path = directory.join(OsStr::from_bytes(&object.name));
        if fs::symlink_metadata(&path).is_ok() {
            continue;
        }
        match &object.what {
            What::File(content) => {
                fs::write(&path, content).unwrap();
                files.push(path.clone());
            }
            What::Sparse(runs, size) => {
                let file = fs::File::create(&path).unwrap();
                file.set_len(size * 4096).unwrap();
                for (offset, length) in runs {
                    let data = vec![7; (length * 4096) as usize];
                    file.write_all_at(&data, offset * 4096).unwrap();
                }
                files.push(path.clone());
            }
            What::Directory(children) => {
                fs::create_dir(&path).unwrap();
                made.push((path.clone(), object));
                build_in(&path, children, made, files);
                continue;
            }
            What::SymbolicLink(target) => symlink(OsStr::from_bytes(target), &path).unwrap(),
            What::Fifo => {
                mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
            }
            What::Device(..) if !testkit::fully!(Root) => continue,
            What::Device(major, minor) => {
                let kind = match minor % 2 {
                    0 => FileType::CharacterDevice,
                    _ => FileType::BlockDevice,
                };
                let mode = Mode::from_raw_mode(0o600);
                mknodat(CWD, &path, kind, mode, makedev(*major, *minor)).unwrap();
            }
            What::HardLink(number) => {
                if !files.is_empty() {
                    fs::hard_link(&files[number % files.len()], &path).unwrap();
                }
                continue;
            }
        }
        made.push((path, object));
    }
}

fn describe(path: &Path, object: &Object) {
    let is_link = matches!(object.what, What::SymbolicLink(_));
    if testkit::fully!(Root) {
        let (uid, gid) = (Uid::from_raw(object.owner.0), Gid::from_raw(object.owner.1));
        chownat(CWD, path, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }
    if let Some(value) = &object.attribute {
        let takes_user =
            matches!(object.what, What::File(_) | What::Sparse(..) | What::Directory(_));
        if takes_user {
            lsetxattr(path, "user.test", value, XattrFlags::empty()).unwrap();
        }
        if testkit::fully!(Root) {
            lsetxattr(path, "trusted.test", value, XattrFlags::empty()).unwrap();
        }
    }
    if !is_link {
        let own = if testkit::fully!(Root) { object.mode } else { object.mode | 0o700 };
        let mode = Mode::from_raw_mode(own);
        rustix::fs::chmodat(CWD, path, mode, AtFlags::empty()).unwrap();
        if object.has_acl {
            let access = acl(object.mode >> 6 & 7 | if testkit::fully!(Root) { 0 } else { 7 });
            let flags = XattrFlags::empty();
            lsetxattr(path, "system.posix_acl_access", &access, flags).unwrap();
            if matches!(object.what, What::Directory(_)) {
                lsetxattr(path, "system.posix_acl_default", &access, flags).unwrap();
            }
        }
    }
    let time = Timespec { tv_sec: object.modified.0, tv_nsec: object.modified.1 };
    let times = Timestamps { last_access: time, last_modification: time };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// An ACL with a named user and a mask, in the form of <linux/posix_acl_xattr.h>.
fn acl(owner: u32) -> Vec<u8> {
    let none = u32::MAX;
    let entries = [(1, owner, none), (2, 5, 1234), (4, 4, none), (0x10, 5, none), (0x20, 1, none)];
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        bytes.extend((tag as u16).to_le_bytes());
        bytes.extend((permissions as u16).to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

/// Everything as archived, whichever user runs it.
pub fn exact(resolve: ResolveMethod) -> DestinationOptions {
    DestinationOptions {
        owners: if testkit::fully!(Root) { Owners::Numbers } else { Owners::Ignore },
        modes: Modes::Exact,
        resolve,
        ..DestinationOptions::for_this_user()
    }
}

fn check(objects: &[Object], resolve: ResolveMethod) {
    let home = tempfile::tempdir().unwrap();
    let (from, into) = (home.path().join("from"), home.path().join("into"));
    build(&from, objects);
    let archived = backup(&from);
    let before = snapshot(&from);
    restore(&archived, &into, exact(resolve));
    let after = snapshot(&into);
    for (path, look) in &before {
        assert_eq!(after.get(path), Some(look), "{}", String::from_utf8_lossy(path));
    }
    assert_eq!(before.len(), after.len());
    check_compared(&into, &archived);
    for one in archived.iter().filter(|one| one.member.sparse.is_some()) {
        let path = OsStr::from_bytes(&one.member.path);
        let blocks = |root: &Path| fs::symlink_metadata(root.join(path)).unwrap().blocks();
        assert!(blocks(&into) <= blocks(&from), "{path:?} lost its holes");
    }
}

/// The restored tree has no differences, and a changed member only that change.
fn check_compared(into: &Path, archived: &[crate::fixture::Archived]) {
    let options = CompareOptions { attributes: Attributes::Read, owners: CompareOwners::Compare };
    let mut live = LiveTree::open(into, options, Default::default()).unwrap();
    for one in archived {
        let comparison = live.compare(&one.member).unwrap();
        assert_eq!(comparison.differences, [], "{:?}", one.member);
        assert_eq!(comparison.file.is_some(), one.member.kind == MemberKind::File);
        let mut changed = one.member.clone();
        changed.modified.seconds += 1;
        let differences = live.compare(&changed).unwrap().differences;
        let is_link = matches!(one.member.kind, MemberKind::HardLink { .. });
        assert_eq!(differences.is_empty(), is_link, "{differences:?}");
        assert!(differences.iter().all(|one| matches!(one, Difference::Modified { .. })));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_restored_tree_is_the_tree(objects in vec(object(), 0..12)) {
        check(&objects, ResolveMethod::Openat2);
    }

    #[test]
    fn and_so_it_is_component_by_component(objects in vec(object(), 0..6)) {
        check(&objects, ResolveMethod::Componentwise);
    }
}
