//! No archive can make a restore write outside: every kind of path against every way to resolve it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use archive::member::MemberKind;
use tree::{DestinationOptions, Overwrite, Refusal, ResolveMethod, RestoreError};

use crate::fixture::{Archived, destination, file, hard_link, link, other, restore_one, snapshot};
use crate::round_trip::exact;

const METHODS: [ResolveMethod; 3] =
    [ResolveMethod::Auto, ResolveMethod::Openat2, ResolveMethod::Componentwise];
const POLICIES: [Overwrite; 3] = [Overwrite::Refuse, Overwrite::Replace, Overwrite::KeepNewer];

/// Restores `archive` beside a directory `outside` and checks that `outside` is unchanged and that
/// the last member fails.
fn check(archive: &[Archived], expected: impl Fn(&RestoreError) -> bool) {
    for resolve in METHODS {
        for overwrite in POLICIES {
            let home = tempfile::tempdir().unwrap();
            let outside = home.path().join("outside");
            fs::create_dir(&outside).unwrap();
            fs::write(outside.join("file"), "precious").unwrap();
            fs::set_permissions(outside.join("file"), PermissionsExt::from_mode(0o600)).unwrap();
            let before = snapshot(&outside);
            let into = home.path().join("into");
            fs::create_dir(&into).unwrap();
            symlink("../outside", into.join("planted-before")).unwrap();
            let options = DestinationOptions { overwrite, ..exact(resolve) };
            let destination = destination(&into, options);
            let mut worker = destination.worker();
            let (last, first) = archive.split_last().unwrap();
            for member in first {
                restore_one(&mut worker, member).unwrap();
            }
            let error = restore_one(&mut worker, last).unwrap_err();
            assert!(expected(&error), "{resolve:?} {overwrite:?}: {error:?}");
            destination.finish(|problem| panic!("{problem}"));
            assert_eq!(snapshot(&outside), before);
            assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2);
        }
    }
}

fn refused(reason: Refusal) -> impl Fn(&RestoreError) -> bool {
    move |error| matches!(error, RestoreError::Refused { reason: was, .. } if *was == reason)
}

/// Members of every kind at one path.
fn all_kinds(path: &str) -> Vec<Archived> {
    vec![
        file(path, b"evil"),
        other(path, MemberKind::Directory),
        other(path, MemberKind::Fifo),
        link(path, "x"),
    ]
}

#[test]
fn paths_that_lead_out() {
    let paths = [
        ("/tmp/takeup-escape", Refusal::Absolute),
        ("//x", Refusal::Absolute),
        ("../outside/new", Refusal::ParentReference),
        ("a/../../outside/new", Refusal::ParentReference),
        ("..", Refusal::ParentReference),
        ("a/..", Refusal::ParentReference),
        ("a\0b", Refusal::Nul),
        ("", Refusal::Empty),
        ("planted-before/new", Refusal::SymbolicLink),
        ("planted-before/file", Refusal::SymbolicLink),
        ("planted-before/a/b", Refusal::SymbolicLink),
    ];
    for (path, reason) in paths {
        for member in all_kinds(path) {
            check(&[member], refused(reason));
        }
        check(&[file("plain", b"x"), hard_link(path, "plain")], refused(reason));
    }
}

#[test]
fn links_planted_by_the_archive() {
    let targets = ["../outside", "/tmp", ".", "..", "planted-before", "/proc/self/cwd"];
    for target in targets {
        for member in all_kinds("door/new") {
            check(&[link("door", target), member], refused(Refusal::SymbolicLink));
        }
        check(
            &[link("deep/er/door", target), file("deep/er/door/file", b"evil")],
            refused(Refusal::SymbolicLink),
        );
    }
    check(&[file("plain", b"x"), file("plain/below", b"x")], refused(Refusal::NotADirectory));
}

#[test]
fn hard_links_to_the_outside() {
    let targets = [
        ("/etc/passwd", Refusal::Absolute),
        ("../outside/file", Refusal::ParentReference),
        ("planted-before/file", Refusal::SymbolicLink),
        ("a\0", Refusal::Nul),
        ("", Refusal::Empty),
        (".", Refusal::Empty),
    ];
    for (target, reason) in targets {
        check(
            &[hard_link("stolen", target)],
            |error| matches!(error, RestoreError::LinkRefused { reason: r, .. } if *r == reason),
        );
    }
    check(&[hard_link("stolen", "missing")], |error| matches!(error, RestoreError::Link { .. }));
    check(&[hard_link("stolen", "a/missing")], |error| matches!(error, RestoreError::Link { .. }));
}

/// A hard link to a symbolic link is a link to the link, and writing its name does not follow it.
#[test]
fn a_hard_link_to_a_link_is_not_followed() {
    for resolve in METHODS {
        let home = tempfile::tempdir().unwrap();
        let outside = home.path().join("outside");
        fs::write(&outside, "precious").unwrap();
        let into = home.path().join("into");
        let options = DestinationOptions { overwrite: Overwrite::Replace, ..exact(resolve) };
        let destination = destination(&into, options);
        let mut worker = destination.worker();
        let members =
            [link("door", "../outside"), hard_link("stolen", "door"), file("stolen", b"evil")];
        for member in members {
            restore_one(&mut worker, &member).unwrap();
        }
        assert_eq!(fs::read(&outside).unwrap(), b"precious");
        assert_eq!(fs::read(into.join("stolen")).unwrap(), b"evil");
        assert!(fs::symlink_metadata(into.join("door")).unwrap().is_symlink());
    }
}

/// The worker's open directory stays the same even if its name is replaced by a link.
#[test]
fn an_open_directory_stays_the_directory() {
    for resolve in METHODS {
        let home = tempfile::tempdir().unwrap();
        let outside = home.path().join("outside");
        fs::create_dir(&outside).unwrap();
        let into = home.path().join("into");
        let destination = destination(&into, exact(resolve));
        let mut worker = destination.worker();
        restore_one(&mut worker, &other("a", MemberKind::Directory)).unwrap();
        restore_one(&mut worker, &file("a/one", b"1")).unwrap();
        fs::rename(into.join("a"), into.join("moved")).unwrap();
        symlink("../outside", into.join("a")).unwrap();
        restore_one(&mut worker, &file("a/two", b"2")).unwrap();
        let fresh = restore_one(&mut destination.worker(), &file("a/three", b"3"));
        assert!(refused(Refusal::SymbolicLink)(&fresh.unwrap_err()));
        assert!(is_empty(&outside));
        assert_eq!(fs::read(into.join("moved/two")).unwrap(), b"2");
        let mut problems = 0;
        destination.finish(|_| problems += 1);
        assert_eq!(problems, 1, "the metadata of `a` are not given to what the link points to");
    }
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}
