//! Reads archives of GNU tar and bsdtar, in every format they know, and compares them with the
//! tree.

use crate::read_all::{Item, expand, members, read, read_with};
use crate::tools::{Tool, disk_path, has_holes, modified, set_xattr, xattr};
use archive::acl::NameLookup;
use archive::decode::{DecodeLimits, Decoder, Note, Skipped};
use archive::member::{Extent, Member, MemberKind};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;
use tempfile::TempDir;

/// What a format can store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Names {
    /// Up to 99 bytes, no fifos.
    Short,
    /// Up to 256 bytes.
    Ustar,
    /// Any.
    Long,
}

fn tree(names: Names) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path();
    let write = |path: &[u8], content: &[u8]| {
        std::fs::write(disk_path(root, path), content).expect("space in the temporary folder");
    };
    std::fs::create_dir_all(root.join("folder/inner")).expect("a new folder");
    write(b"folder/file", &content(100_000));
    write(b"folder/empty", b"");
    write(b"folder/inner/unit", &content(512));
    write(b"folder/\xff\xfe-bytes", b"x");
    std::fs::hard_link(root.join("folder/file"), root.join("folder/link")).expect("hard links");
    std::os::unix::fs::symlink("folder/\u{e9}", root.join("symlink")).expect("symbolic links");
    let mode = std::fs::Permissions::from_mode(0o4750);
    std::fs::set_permissions(root.join("folder/empty"), mode).expect("our own file");
    if names >= Names::Ustar {
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.join("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o640),
            0,
        )
        .expect("fifos");
        let deep = [&[b'd'; 80][..], b"/", &[b'e'; 90]].concat();
        std::fs::create_dir(disk_path(root, &deep[..80])).expect("a new folder");
        write(&deep, b"in ustar's prefix");
    }
    if names >= Names::Long {
        write(&[b'n'; 200], b"long name");
        write(&[&[0xf1; 150][..], b"\xff"].concat(), b"long name of bytes");
        let target = OsStr::from_bytes(&[b't'; 300]);
        std::os::unix::fs::symlink(target, root.join("long-symlink")).expect("symbolic links");
        let link = disk_path(root, &[b'l'; 180]);
        std::fs::hard_link(disk_path(root, &[b'n'; 200]), link).expect("hard links");
    }
    folder
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 249) as u8).collect()
}

/// The accuracy of modification times in a format.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Times {
    Seconds,
    Nanoseconds,
}

/// Checks every member against its file, and that every file has its member.
fn compare(root: &Path, members: &[(Member, Vec<u8>)], times: Times) {
    let mut links = 0;
    for (member, content) in members {
        let file = disk_path(root, &member.path);
        let status = file.symlink_metadata().unwrap_or_else(|error| panic!("{file:?}: {error}"));
        let kind = status.file_type();
        match &member.kind {
            MemberKind::File => {
                assert_eq!(member.size_bytes, status.len(), "{file:?}");
                let on_disk = std::fs::read(&file).expect("our own file");
                assert!(expand(member, content) == on_disk, "{file:?}");
            }
            MemberKind::Directory => assert!(kind.is_dir(), "{file:?}"),
            MemberKind::Fifo => assert!(kind.is_fifo(), "{file:?}"),
            MemberKind::SymbolicLink { target } => {
                let link = std::fs::read_link(&file).expect("a symbolic link");
                assert_eq!(link.as_os_str().as_bytes(), target, "{file:?}");
            }
            MemberKind::HardLink { target } => {
                links += 1;
                let other = disk_path(root, target).symlink_metadata().expect("the first name");
                assert_eq!(other.ino(), status.ino(), "{file:?}");
                assert_eq!(content, b"");
            }
            other => panic!("{file:?} is no {other:?}"),
        }
        if !kind.is_symlink() {
            assert_eq!(member.mode, status.mode() & 0o7777, "{file:?}");
        }
        let owner = (u64::from(status.uid()), u64::from(status.gid()));
        assert_eq!((member.uid, member.gid), owner, "{file:?}");
        let mut expected = modified(&file);
        if times == Times::Seconds {
            expected.nanoseconds = 0;
        }
        assert_eq!(member.modified, expected, "{file:?}");
    }
    assert_eq!(members.len(), count(root), "every file has its member");
    assert!(links > 0);
}

fn count(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).expect("our own folder");
    let below = entries.map(|entry| {
        let entry = entry.expect("a readable folder");
        if entry.file_type().expect("a type").is_dir() { count(&entry.path()) } else { 1 }
    });
    1 + below.sum::<usize>()
}

#[test]
fn every_format_of_gnu_tar() {
    for (format, names, times) in [
        ("v7", Names::Short, Times::Seconds),
        ("ustar", Names::Ustar, Times::Seconds),
        ("oldgnu", Names::Long, Times::Seconds),
        ("gnu", Names::Long, Times::Seconds),
        ("posix", Names::Long, Times::Nanoseconds),
    ] {
        let tree = tree(names);
        let archive = Tool::GnuTar.create(tree.path(), &[&format!("--format={format}")]);
        compare(tree.path(), &members(&archive), times);
    }
}

#[test]
fn every_format_of_bsdtar() {
    for (format, names, times) in [
        ("v7", Names::Short, Times::Seconds),
        ("ustar", Names::Ustar, Times::Seconds),
        ("gnutar", Names::Long, Times::Seconds),
        ("pax", Names::Long, Times::Nanoseconds),
    ] {
        let tree = tree(names);
        let archive = Tool::Bsdtar.create(tree.path(), &[&format!("--format={format}")]);
        compare(tree.path(), &members(&archive), times);
    }
}

/// Sparse files of many shapes, all in one folder.
fn sparse_tree() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let shapes: [(&str, u64, Vec<u64>); 5] = [
        ("all-hole", 1 << 20, vec![]),
        ("hole-at-end", 1 << 20, vec![0]),
        ("data-at-end", (1 << 20) + 100, vec![1 << 20]),
        ("a-few", 1 << 22, vec![0, 65536, 1 << 21]),
        ("many", 1 << 23, (0..60).map(|index| index * (1 << 17)).collect()),
    ];
    for (name, size_bytes, pieces) in shapes {
        let file = std::fs::File::create(folder.path().join(name)).expect("a new file");
        file.set_len(size_bytes).expect("sparse files");
        for offset in pieces {
            let length = (size_bytes - offset).min(4096) as usize;
            file.write_all_at(&content(length), offset).expect("space");
        }
        assert!(has_holes(&folder.path().join(name)), "the file system keeps holes");
    }
    folder
}

#[test]
fn every_sparse_format() {
    let tree = sparse_tree();
    let check = |tool: Tool, options: &[&str]| {
        let mut sparse = 0;
        for (member, content) in members(&tool.create(tree.path(), options)) {
            let file = disk_path(tree.path(), &member.path);
            if member.kind == MemberKind::File {
                assert!(member.sparse.is_some(), "{options:?} {file:?}");
                assert!(expand(&member, &content) == std::fs::read(&file).expect("our own file"));
                sparse += 1;
            }
        }
        assert_eq!(sparse, 5, "{tool:?} {options:?}");
    };
    for format in ["--format=oldgnu", "--format=gnu", "--format=posix"] {
        check(Tool::GnuTar, &["--sparse", format]);
    }
    for version in ["0.0", "0.1", "1.0"] {
        let version = format!("--sparse-version={version}");
        check(Tool::GnuTar, &["--sparse", "--format=posix", &version]);
    }
    check(Tool::Bsdtar, &["--format=pax"]);
}

#[test]
fn sparse_files_over_8_gib() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = std::fs::File::create(folder.path().join("large")).expect("a new file");
    file.set_len(40 << 30).expect("sparse files");
    file.write_all_at(b"data", 30 << 30).expect("space");
    for options in [["--sparse", "--format=gnu"], ["--sparse", "--format=posix"]] {
        let archive = Tool::GnuTar.create(folder.path(), &options);
        let found = members(&archive);
        let large = found.iter().find(|(member, _)| member.path == b"./large").expect("large");
        assert_eq!(large.0.size_bytes, 40 << 30);
        let runs = large.0.sparse.as_deref().expect("sparse");
        assert!(runs.contains(&Extent { offset_bytes: 30 << 30, length_bytes: 4096 }), "{runs:?}");
    }
}

/// Knows the one user and group that the ACL test names.
struct Names1001;

impl NameLookup for Names1001 {
    fn user_id(&mut self, name: &[u8]) -> Option<u32> {
        (name == b"daemon").then_some(1)
    }

    fn group_id(&mut self, name: &[u8]) -> Option<u32> {
        (name == b"daemon").then_some(1)
    }
}

#[test]
fn xattrs_and_acls_of_others() {
    let tree = tempfile::tempdir().expect("a temporary folder");
    let file = tree.path().join("file");
    std::fs::write(&file, b"x").expect("space");
    let mut acl = 2u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in [
        (0x01u16, 6u16, u32::MAX),
        (0x02, 5, 1),
        (0x02, 4, 123_456),
        (0x04, 4, u32::MAX),
        (0x08, 7, 1),
        (0x10, 7, u32::MAX),
        (0x20, 0, u32::MAX),
    ] {
        acl.extend([tag.to_le_bytes(), permissions.to_le_bytes()].concat());
        acl.extend(id.to_le_bytes());
    }
    let xattrs: [(&[u8], &[u8]); 3] =
        [(b"user.a", b"plain"), (b"user.binary", b"\0\n=\xff"), (b"user.z", &[7; 3000])];
    xattrs.iter().for_each(|(name, value)| set_xattr(&file, name, value));
    set_xattr(&file, b"system.posix_acl_access", &acl);
    let check = |tool: Tool, options: &[&str]| {
        // GNU tar's --xattrs stores the ACL a second time, as an attribute in the kernel's form.
        let archive = tool.create(tree.path(), options);
        let decoder = Decoder::with_names(DecodeLimits::default(), Box::new(Names1001));
        let items = read_with(decoder, &archive);
        let member = items.iter().find_map(|item| match item {
            Item::Member { member, notes, .. } if member.path == b"./file" => {
                assert_eq!(notes, &[], "{tool:?}");
                Some(member)
            }
            _ => None,
        });
        let member = member.expect("the file is in the archive");
        let expected: Vec<_> =
            xattrs.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        assert!(member.xattrs == expected, "{tool:?} {options:?}");
        let on_disk = xattr(&file, b"system.posix_acl_access");
        assert_eq!(member.acl_access, on_disk, "{tool:?} {options:?}");
    };
    check(Tool::GnuTar, &["--format=posix", "--xattrs", "--acls"]);
    check(Tool::GnuTar, &["--format=posix", "--xattrs", "--acls", "--numeric-owner"]);
    check(Tool::Bsdtar, &["--format=pax", "--xattrs", "--acls"]);
}

#[test]
fn acl_names_that_nobody_knows_are_noted() {
    let tree = tempfile::tempdir().expect("a temporary folder");
    let file = tree.path().join("file");
    std::fs::write(&file, b"x").expect("space");
    let mut acl = 2u32.to_le_bytes().to_vec();
    for (tag, id) in [(1u16, u32::MAX), (2, 1), (4, u32::MAX), (16, u32::MAX), (32, u32::MAX)] {
        acl.extend([&tag.to_le_bytes()[..], &[4, 0], &id.to_le_bytes()].concat());
    }
    set_xattr(&file, b"system.posix_acl_access", &acl);
    let archive = Tool::GnuTar.create(tree.path(), &["--format=posix", "--acls", "--xattrs"]);
    let kept = read(&archive).into_iter().any(|item| match item {
        Item::Member { member, notes, .. } => {
            notes.is_empty() && member.acl_access == Some(acl.clone())
        }
        _ => false,
    });
    assert!(kept, "the attribute in the kernel's form needs no names");
    let archive = Tool::GnuTar.create(tree.path(), &["--format=posix", "--acls"]);
    let noted = read(&archive).into_iter().any(|item| match item {
        Item::Member { notes, .. } => {
            notes.contains(&Note::UnknownAclName { name: b"daemon".to_vec() })
        }
        _ => false,
    });
    assert!(noted);
}

#[test]
fn incremental_dumps_yield_their_directories() {
    for format in ["--format=gnu", "--format=posix"] {
        let tree = tree(Names::Long);
        let elsewhere = tempfile::tempdir().expect("a temporary folder");
        let snapshot = format!("--listed-incremental={}/snapshot", elsewhere.path().display());
        let archive = Tool::GnuTar.create(tree.path(), &[format, &snapshot]);
        let members = members(&archive);
        let dumps = members.iter().filter(|(member, content)| {
            member.kind == MemberKind::Directory && !content.is_empty()
        });
        // The posix format keeps the dump in a record.
        assert_eq!(dumps.count() > 0, format == "--format=gnu");
        let times = if format == "--format=gnu" { Times::Seconds } else { Times::Nanoseconds };
        compare(tree.path(), &members, times);
    }
}

#[test]
fn volume_labels_are_passed_over() {
    let tree = tree(Names::Long);
    let archive = Tool::GnuTar.create(tree.path(), &["--format=gnu", "--label=tape 7"]);
    let items = read(&archive);
    let label = Skipped::VolumeLabel(b"tape 7".to_vec());
    assert_eq!(items[0], Item::Skip { why: label, content: Vec::new() });
    let archive = Tool::GnuTar.create(tree.path(), &["--format=posix", "--label=tape 7"]);
    let label = (b"GNU.volume.label".to_vec(), b"tape 7".to_vec());
    assert_eq!(read(&archive)[0], Item::Global(vec![label]));
}

#[test]
fn files_across_volumes_can_be_joined() {
    for format in ["--format=gnu", "--format=oldgnu", "--format=posix"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let written = content(150_000);
        std::fs::write(folder.path().join("file"), &written).expect("space");
        let arguments = [format, "-M", "-L", "60", "-c"].into_iter();
        let volumes = ["-f", "1.tar", "-f", "2.tar", "-f", "3.tar", "file"];
        let arguments: Vec<&OsStr> = arguments.chain(volumes).map(OsStr::new).collect();
        Tool::GnuTar.run(folder.path(), "C.UTF-8", &arguments);
        let mut joined = Vec::new();
        let mut total = 0;
        for volume in ["1.tar", "2.tar", "3.tar"] {
            let archive = std::fs::read(folder.path().join(volume)).expect("a volume");
            for item in read(&archive) {
                match item {
                    Item::Member { member, content, .. } => {
                        assert_eq!(member.path, b"file");
                        assert_eq!(member.size_bytes, written.len() as u64);
                        joined.extend(content);
                    }
                    Item::Skip { why, content } => {
                        let Skipped::Continuation { member, offset_bytes, total_bytes } = why
                        else {
                            panic!("{why:?}");
                        };
                        assert_eq!(member.path, b"file", "{format}");
                        assert_eq!(offset_bytes, joined.len() as u64, "{format}");
                        joined.extend(content);
                        total = total_bytes;
                    }
                    Item::Global(_) | Item::End => {}
                    other => panic!("{format}: {other:?}"),
                }
            }
        }
        assert!(joined == written, "{format}");
        assert_eq!(total, written.len() as u64, "{format}");
    }
}

#[test]
fn concatenated_archives_are_read_through() {
    let tree = tree(Names::Long);
    let one = Tool::GnuTar.create(tree.path(), &["--format=gnu", "-b1"]);
    let two = Tool::Bsdtar.create(tree.path(), &["--format=pax"]);
    let items = read(&[one, two].concat());
    let ends = items.iter().filter(|item| **item == Item::End).count();
    assert!(ends >= 2, "{ends}");
    let members = items.iter().filter(|item| matches!(item, Item::Member { .. })).count();
    assert_eq!(members, 2 * count(tree.path()));
}

/// bsdtar writes each attribute twice, both times with a percent-encoded name. Only the file's own
/// attributes must be read, even if it has the most that a file may have.
#[test]
fn attributes_of_bsdtar_come_back_under_their_own_names() {
    testkit::require!(Bsdtar, Attributes);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("file");
    std::fs::write(&file, b"").expect("space in the temporary folder");
    let names = ["user.a=b", "user.p%q", "user.pl+%41", "user.x y", "user.\u{e9}"];
    for name in names {
        set_xattr(&file, name.as_bytes(), name.as_bytes());
    }
    for form in [&[][..], &["--options", "pax:xattrheader=LIBARCHIVE"]] {
        let options = [&["--format", "pax", "--xattrs"][..], form].concat();
        let archive = Tool::Bsdtar.create(folder.path(), &options);
        let members = members(&archive);
        let (member, _) =
            members.iter().find(|(it, _)| it.kind == MemberKind::File).expect("the file");
        let found: Vec<_> = member.xattrs.iter().map(|(name, value)| (&**name, &**value)).collect();
        let expected = names.map(|name| (name.as_bytes(), name.as_bytes()));
        assert_eq!(found, expected, "{form:?}");
    }
}

/// libarchive writes a negative time with a fraction as if the sign were only that of the seconds.
/// The archive does not show its writer, so it is read as in POSIX, like GNU tar does.
#[test]
fn a_negative_time_with_a_fraction_counts_away_from_zero() {
    testkit::require!(Bsdtar, GnuTar);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("file");
    std::fs::write(&file, b"").expect("space in the temporary folder");
    let time =
        |seconds, nanoseconds| rustix::fs::Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let (access, written) = (time(0, 0), time(-10, 250_000_000));
    let times = rustix::fs::Timestamps { last_access: access, last_modification: written };
    rustix::fs::utimensat(rustix::fs::CWD, &file, &times, rustix::fs::AtFlags::empty())
        .expect("our own file");
    let read = |tool: Tool| {
        let members = members(&tool.create(folder.path(), &["--format", "pax"]));
        let (member, _) =
            members.iter().find(|(it, _)| it.kind == MemberKind::File).expect("the file");
        (member.modified.seconds, member.modified.nanoseconds)
    };
    assert_eq!(read(Tool::GnuTar), (-10, 250_000_000));
    // The record says -10.25.
    assert_eq!(read(Tool::Bsdtar), (-11, 750_000_000));
    let archive = folder.path().join("archive");
    std::fs::write(&archive, Tool::Bsdtar.create(folder.path(), &["--format", "pax"]))
        .expect("space in the temporary folder");
    let into = tempfile::tempdir().expect("a temporary folder");
    Tool::GnuTar.extract(&archive, into.path(), "C.UTF-8");
    let theirs = modified(&into.path().join("file"));
    assert_eq!((theirs.seconds, theirs.nanoseconds), (-11, 750_000_000));
}
