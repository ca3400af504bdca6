//! Restores by a user who is not root. This test binary runs a copy of itself, as user 65534 if
//! root runs it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use archive::member::MemberKind;
use tree::*;

use crate::fixture::{
    backup, capturer, destination, file, link, object, other, paths, restore, restore_one,
    snapshot, walk,
};

const CHILD: &str = "TAKEUP_TEST_UNPRIVILEGED_IN";

/// Runs `test` in a directory of its user, without privileges and in a process of its own.
fn without_privileges(name: &str, test: impl Fn(&Path)) {
    if let Some(own) = std::env::var_os(CHILD) {
        test(Path::new(&own));
        return;
    }
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), PermissionsExt::from_mode(0o755)).unwrap();
    // Another process makes the copy: a fork of another test would hold our copy open for writing,
    // and then it cannot be executed.
    let copy = home.path().join("tests");
    let this = std::env::current_exe().unwrap();
    assert!(Command::new("cp").arg(this).arg(&copy).status().unwrap().success());
    // A file of root's, if we are root.
    fs::write(home.path().join("roots"), "secret").unwrap();
    fs::set_permissions(home.path().join("roots"), PermissionsExt::from_mode(0o644)).unwrap();
    let own = home.path().join("own");
    fs::create_dir(&own).unwrap();
    let mut command = if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&own, Some(65534), Some(65534)).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]);
        command.arg("--").arg(&copy);
        command
    } else {
        Command::new(&copy)
    };
    command.args(["--exact", &format!("unprivileged::{name}"), "--nocapture"]);
    // A copy without privileges may not write the list of skipped tests, and does not need to.
    command.env_remove("CI").env_remove("TAKEUP_TESTS_LEFT_OUT");
    let output = command.env(CHILD, &own).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
fn what_may_not_be_read_is_a_problem() {
    without_privileges("what_may_not_be_read_is_a_problem", |home| {
        let closed = home.join("tree/closed");
        fs::create_dir_all(&closed).unwrap();
        fs::write(closed.join("inside"), "").unwrap();
        fs::write(home.join("tree/locked"), "x").unwrap();
        fs::write(home.join("tree/open"), "x").unwrap();
        let chmod = |path: &Path, mode| {
            fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        };
        chmod(&closed, 0);
        chmod(&home.join("tree/locked"), 0);
        let (entries, problems) = walk(&[home.join("tree")], ScanOptions::default());
        assert_eq!(paths(&entries).len(), 4);
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].what, ScanProblemKind::OpenDirectory);
        assert!(problems[0].path.ends_with(b"tree/closed"));
        let mut capturer = capturer();
        let directory = object(capturer.capture(&entries[1], None).unwrap());
        assert_eq!(directory.member.kind, MemberKind::Directory);
        assert_eq!(directory.member.mode, 0);
        let error = capturer.capture(&entries[2], None).unwrap_err();
        assert!(matches!(error, CaptureError::Open(_)), "{error:?}");
        assert!(object(capturer.capture(&entries[3], None).unwrap()).file.is_some());
        chmod(&closed, 0o700);
    });
}

/// O_NOATIME is refused for other users' files; they are read all the same.
#[test]
fn files_of_others_are_read() {
    without_privileges("files_of_others_are_read", |home| {
        let (entries, _) =
            walk(&[home.join("../roots"), home.join("../roots")], ScanOptions::default());
        let mut capturer = capturer();
        for entry in &entries {
            let captured = object(capturer.capture(entry, None).unwrap());
            assert_eq!(captured.member.size_bytes, 6);
        }
    });
}

#[test]
fn a_read_only_tree_comes_back() {
    without_privileges("a_read_only_tree_comes_back", |home| {
        let (from, into) = (home.join("from"), home.join("into"));
        fs::create_dir_all(from.join("shut/deeper")).unwrap();
        fs::write(from.join("shut/deeper/file"), "content").unwrap();
        let value = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(from.join("shut/deeper/file"), "user.note", b"x", value).unwrap();
        rustix::fs::setxattr(from.join("shut"), "user.note", b"y", value).unwrap();
        for (path, mode) in [("shut/deeper/file", 0o444), ("shut/deeper", 0o555), ("shut", 0o555)] {
            fs::set_permissions(from.join(path), PermissionsExt::from_mode(mode)).unwrap();
        }
        let options =
            DestinationOptions { modes: Modes::Exact, ..DestinationOptions::for_this_user() };
        restore(&backup(&from), &into, options);
        assert_eq!(snapshot(&into), snapshot(&from));
    });
}

/// Deepest first: once a directory is closed, nothing below it can be reached.
#[test]
fn a_shut_directory_is_shut_last() {
    without_privileges("a_shut_directory_is_shut_last", |home| {
        let options =
            DestinationOptions { modes: Modes::Exact, ..DestinationOptions::for_this_user() };
        let destination = destination(&home.join("into"), options);
        let mut worker = destination.worker();
        for (path, mode) in [("a", 0), ("a/b", 0), ("a/b/c", 0o711)] {
            let mut directory = other(path, MemberKind::Directory);
            directory.member.mode = mode;
            restore_one(&mut worker, &directory).unwrap();
        }
        let count = destination.finish(|problem| panic!("{problem}: {}", problem.source));
        assert_eq!(count, 3);
        for path in ["a", "a/b", "a/b/c"] {
            let path = home.join("into").join(path);
            let metadata = fs::metadata(&path).unwrap();
            assert_eq!(metadata.mtime(), 1_000_000_000);
            fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
        }
    });
}

#[test]
fn owners_and_special_bits_are_not_claimed() {
    without_privileges("owners_and_special_bits_are_not_claimed", |home| {
        let into = home.join("into");
        let mut roots = file("roots", b"x");
        roots.member.uid = 0;
        roots.member.gid = 0;
        roots.member.mode = 0o6777;
        let mut own = file("own", b"x");
        own.member.mode = 0o4755;
        let usual = DestinationOptions::for_this_user();
        assert_eq!((usual.owners, usual.modes), (Owners::Ignore, Modes::Umask));
        let check = |options: DestinationOptions, directory: &str, expected: [u32; 2]| {
            let destination = destination(&into.join(directory), options);
            let mut worker = destination.worker();
            let modes = [("roots", &roots), ("own", &own)].map(|(name, archived)| {
                restore_one(&mut worker, archived).unwrap();
                let metadata = fs::metadata(into.join(directory).join(name)).unwrap();
                assert_eq!(metadata.uid(), rustix::process::geteuid().as_raw());
                metadata.mode() & 0o7777
            });
            assert_eq!(modes, expected, "{directory}");
        };
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o027));
        check(usual, "umask", [0o750, 0o750]);
        // Owners are not restored, so nobody's rights are given away, not even one's own.
        check(DestinationOptions { modes: Modes::Exact, ..usual }, "exact", [0o777, 0o755]);
        let keep = DestinationOptions { privileges: Privileges::Keep, ..usual };
        check(DestinationOptions { modes: Modes::Exact, ..keep }, "keep", [0o6777, 0o4755]);
        // The impossible was requested: it is reported, and no set-user-ID file of the wrong owner
        // is made.
        let numbers = DestinationOptions { owners: Owners::Numbers, modes: Modes::Exact, ..usual };
        let destination = destination(&into.join("numbers"), numbers);
        let mut worker = destination.worker();
        let Created::File(made) = worker.create_file(&roots.member).unwrap() else { panic!() };
        let problems = made.finish(b"roots").unwrap();
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].what, MetadataPart::Owner);
        let mode = fs::metadata(into.join("numbers/roots")).unwrap().mode() & 0o7777;
        assert_eq!(mode, 0o777);
    });
}

#[test]
fn devices_and_closed_places_are_errors() {
    without_privileges("devices_and_closed_places_are_errors", |home| {
        let into = home.join("into");
        let destination = destination(&into, DestinationOptions::for_this_user());
        let mut worker = destination.worker();
        let device = other("null", MemberKind::CharacterDevice { major: 1, minor: 3 });
        let error = restore_one(&mut worker, &device).unwrap_err();
        assert!(matches!(error, RestoreError::DeviceNeedsRoot { .. }), "{error:?}");
        fs::create_dir(into.join("closed")).unwrap();
        fs::set_permissions(into.join("closed"), PermissionsExt::from_mode(0o555)).unwrap();
        for member in [file("closed/x", b""), link("closed/x", "y")] {
            let error = restore_one(&mut worker, &member).unwrap_err();
            assert!(matches!(error, RestoreError::Create { .. }), "{error:?}");
        }
        let error = restore_one(&mut worker, &file("closed/a/b", b"")).unwrap_err();
        assert!(matches!(error, RestoreError::Parent { .. }), "{error:?}");
    });
}
