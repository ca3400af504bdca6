//! What a restore does with existing objects.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use archive::member::MemberKind;
use tree::{Created, DestinationOptions, Overwrite, ResolveMethod, RestoreError, Worker};

use crate::fixture::{Archived, destination, file, hard_link, link, other, restore_one};
use crate::round_trip::exact;

struct Place {
    _home: tempfile::TempDir,
    into: PathBuf,
    worker: Worker,
}

fn place(overwrite: Overwrite, prepare: impl Fn(&Path)) -> Place {
    let home = tempfile::tempdir().unwrap();
    let into = home.path().join("into");
    fs::create_dir(&into).unwrap();
    prepare(&into);
    let options = DestinationOptions { overwrite, ..exact(ResolveMethod::Auto) };
    let worker = destination(&into, options).worker();
    Place { _home: home, into, worker }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn kinds() -> Vec<Archived> {
    vec![file("x", b"new"), link("x", "new"), other("x", MemberKind::Fifo), hard_link("x", "other")]
}

fn prepare_with(what: &str, into: &Path) {
    fs::write(into.join("other"), "other").unwrap();
    let x = into.join("x");
    match what {
        "file" => fs::write(x, "old").unwrap(),
        "link" => symlink("nowhere", x).unwrap(),
        "hard link" => fs::hard_link(into.join("other"), x).unwrap(),
        "directory" => fs::create_dir(x).unwrap(),
        _ => {
            fs::create_dir(&x).unwrap();
            fs::write(x.join("below"), "old").unwrap();
        }
    }
}

#[test]
fn refusing_leaves_everything() {
    for what in ["file", "link", "hard link", "directory", "full directory"] {
        for member in kinds() {
            let mut place = place(Overwrite::Refuse, |into| prepare_with(what, into));
            let before = crate::fixture::snapshot(&place.into);
            let error = restore_one(&mut place.worker, &member).unwrap_err();
            assert!(matches!(error, RestoreError::Exists { .. }), "{error:?}");
            assert_eq!(crate::fixture::snapshot(&place.into), before);
        }
    }
    let mut place = place(Overwrite::Refuse, |into| prepare_with("full directory", into));
    restore_one(&mut place.worker, &other("x", MemberKind::Directory)).unwrap();
    let error = restore_one(&mut place.worker, &other("other", MemberKind::Directory)).unwrap_err();
    assert!(matches!(error, RestoreError::Exists { .. }), "{error:?}");
}

#[test]
fn replacing_leaves_no_second_name() {
    for what in ["file", "link", "hard link", "directory"] {
        for member in kinds() {
            let mut place = place(Overwrite::Replace, |into| prepare_with(what, into));
            restore_one(&mut place.worker, &member).unwrap();
            assert_eq!(names(&place.into), ["other", "x"], "{what}");
            assert_eq!(fs::read(place.into.join("other")).unwrap(), b"other");
            let x = place.into.join("x");
            match member.member.kind {
                MemberKind::File => assert_eq!(fs::read(x).unwrap(), b"new"),
                MemberKind::SymbolicLink { .. } => {
                    assert_eq!(fs::read_link(x).unwrap(), Path::new("new"));
                }
                MemberKind::HardLink { .. } => assert_eq!(fs::read(x).unwrap(), b"other"),
                _ => assert!(!fs::symlink_metadata(x).unwrap().is_file()),
            }
        }
        let mut place = place(Overwrite::Replace, |into| prepare_with(what, into));
        restore_one(&mut place.worker, &other("x", MemberKind::Directory)).unwrap();
        assert!(fs::symlink_metadata(place.into.join("x")).unwrap().is_dir());
    }
}

#[test]
fn a_full_directory_is_not_replaced() {
    for overwrite in [Overwrite::Replace, Overwrite::KeepNewer] {
        for member in kinds() {
            let mut place = place(overwrite, |into| prepare_with("full directory", into));
            let error = restore_one(&mut place.worker, &member).unwrap_err();
            assert!(matches!(error, RestoreError::DirectoryInTheWay { .. }), "{error:?}");
            assert_eq!(fs::read(place.into.join("x/below")).unwrap(), b"old");
            assert_eq!(names(&place.into), ["other", "x"]);
        }
    }
}

/// While a file is being written, and after that was abandoned, the old one is there and complete.
#[test]
fn an_interrupted_file_is_not_seen() {
    let mut place = place(Overwrite::Replace, |into| prepare_with("file", into));
    let member = file("x", &[1; 5000]).member;
    let Created::File(mut started) = place.worker.create_file(&member).unwrap() else { panic!() };
    started.write_at(0, &[1; 2000]).unwrap();
    assert_eq!(fs::read(place.into.join("x")).unwrap(), b"old");
    drop(started);
    assert_eq!(fs::read(place.into.join("x")).unwrap(), b"old");
    assert_eq!(names(&place.into), ["other", "x"]);
    let fresh = file("y", &[1; 5000]).member;
    let Created::File(mut started) = place.worker.create_file(&fresh).unwrap() else { panic!() };
    started.write_at(0, &[1; 2000]).unwrap();
    // Not even while it is being written.
    assert_eq!(names(&place.into), ["other", "x"]);
    drop(started);
    assert_eq!(names(&place.into), ["other", "x"]);
}

#[test]
fn newer_files_stay() {
    let mut place = place(Overwrite::KeepNewer, |into| prepare_with("file", into));
    let mut member = file("x", b"new");
    assert!(matches!(place.worker.create_file(&member.member).unwrap(), Created::Kept));
    member.member.modified.seconds = 4_000_000_000;
    restore_one(&mut place.worker, &member).unwrap();
    assert_eq!(fs::read(place.into.join("x")).unwrap(), b"new");
    assert!(matches!(place.worker.create_file(&member.member).unwrap(), Created::Kept));
    // Same time but another size: not the same file.
    let mut longer = file("x", b"longer");
    longer.member.modified = member.member.modified;
    restore_one(&mut place.worker, &longer).unwrap();
    assert_eq!(fs::read(place.into.join("x")).unwrap(), b"longer");
    // Newer but shorter: it stays, and is reported.
    let mut older = file("x", b"longer still");
    older.member.modified.seconds = 1;
    assert!(matches!(place.worker.create_file(&older.member).unwrap(), Created::KeptShorter));
}

/// A directory that was removed since the worker opened it is made anew.
#[test]
fn a_removed_directory_is_made_again() {
    let mut place = place(Overwrite::Replace, |_| ());
    restore_one(&mut place.worker, &file("a/one", b"1")).unwrap();
    fs::remove_dir_all(place.into.join("a")).unwrap();
    restore_one(&mut place.worker, &file("a/two", b"2")).unwrap();
    assert_eq!(names(&place.into.join("a")), ["two"]);
}

/// Metadata of `.` are set on the destination only if it was empty, so that /tmp stays as it is.
#[test]
fn metadata_of_the_destination_itself() {
    for (prepared, expected) in [(false, 0o751), (true, 0o711)] {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), PermissionsExt::from_mode(0o711)).unwrap();
        if prepared {
            fs::write(home.path().join("something"), "").unwrap();
        }
        let destination = destination(home.path(), exact(ResolveMethod::Auto));
        let mut root = other(".", MemberKind::Directory);
        root.member.mode = 0o751;
        restore_one(&mut destination.worker(), &root).unwrap();
        restore_one(&mut destination.worker(), &file("a", b"")).unwrap();
        destination.finish(|problem| panic!("{problem}"));
        let metadata = fs::metadata(home.path()).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, expected);
        assert_eq!(metadata.mtime() == 1_000_000_000, !prepared);
    }
}

/// A default ACL of the destination must not be inherited by objects archived without one.
#[test]
fn inherited_acls_are_taken_away() {
    let mut acl = 2_u32.to_le_bytes().to_vec();
    let none = u32::MAX;
    for (tag, permissions, id) in
        [(1_u16, 7_u16, none), (2, 7, 1234), (4, 7, none), (0x10, 7, none), (0x20, 7, none)]
    {
        acl.extend(tag.to_le_bytes());
        acl.extend(permissions.to_le_bytes());
        acl.extend(id.to_le_bytes());
    }
    let home = tempfile::tempdir().unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(home.path(), "system.posix_acl_default", &acl, flags).unwrap();
    let destination = destination(home.path(), exact(ResolveMethod::Auto));
    let mut worker = destination.worker();
    let mut secret = file("secret", b"x");
    secret.member.mode = 0o640;
    restore_one(&mut worker, &secret).unwrap();
    restore_one(&mut worker, &other("directory", MemberKind::Directory)).unwrap();
    let mut below = file("directory/below", b"x");
    below.member.mode = 0o640;
    restore_one(&mut worker, &below).unwrap();
    destination.finish(|problem| panic!("{problem}"));
    let after = crate::fixture::snapshot(home.path());
    for path in ["secret", "directory", "directory/below"] {
        let look = &after[path.as_bytes()];
        assert_eq!(look.attributes, [], "{path}");
        assert_eq!(look.mode, if look.kind == 'd' { 0o755 } else { 0o640 }, "{path}");
    }
}
