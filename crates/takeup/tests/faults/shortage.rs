//! A process that runs out of descriptors or memory fails as a whole. A file system that reports
//! such an error for one file does not stop a backup.

use std::path::Path;
use std::process::Command;

use crate::command::{Case, Done, names_in, run, takeup};
use crate::fuse_target::{Fault, mount};

/// A command under a limit that it cannot raise.
fn limited(limit: &str, command: &Command) -> Command {
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("ulimit {limit} && exec \"$@\""), "bash"]);
    shell.arg(command.get_program()).args(command.get_args());
    shell
}

/// Folders in each other, a file in each.
fn make_deep(tree: &Path, levels: usize) {
    let mut folder = tree.to_owned();
    for _ in 0..levels {
        folder.push("d");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("f"), "content").unwrap();
    }
}

fn members(archive: &Path) -> usize {
    let listed = Command::new("tar").arg("-tf").arg(archive).output().unwrap();
    assert!(listed.status.success());
    listed.stdout.iter().filter(|&&byte| byte == b'\n').count()
}

/// Checks for either the whole archive, or exit code 1 and no file. Returns whether it is whole.
#[track_caller]
fn all_or_nothing(case: &Case, done: &Done, expected: usize) -> bool {
    if done.code == Some(0) {
        assert_eq!((members(&case.target()), &*done.errors), (expected, ""));
        std::fs::remove_file(case.target()).unwrap();
        return true;
    }
    assert_eq!(done.code, Some(1), "{}", done.errors);
    assert_eq!(names_in(&case.targets()), [""; 0]);
    false
}

#[test]
fn too_few_descriptors_give_no_archive_that_lacks_files() {
    let case = Case::new(300, 3000);
    make_deep(&case.tree, 60);
    let members = 300 + 1 + 2 * 60;
    let mut whole = Vec::new();
    for limit in [8, 10, 12, 16, 20, 24, 32, 48, 64, 128] {
        let done = run(&mut limited(&format!("-n {limit}"), case.backup(&case.target()).arg("-q")));
        if all_or_nothing(&case, &done, members) {
            whole.push(limit);
        } else if done.errors.contains("its limit of open files is reached") {
            assert!(done.errors.contains("hint: raise the hard limit of open files"));
        }
    }
    assert!(whole.contains(&64) && whole.contains(&128), "{whole:?}");
    assert!(!whole.contains(&8), "{whole:?}");
}

/// Descriptors do not depend on the depth of a tree: enough for one level is enough for all.
#[test]
fn depth_costs_no_descriptors() {
    for limit in [48, 256] {
        let case = Case::new(0, 0);
        make_deep(&case.tree, 400);
        let done = run(&mut limited(&format!("-n {limit}"), case.backup(&case.target()).arg("-q")));
        assert!(all_or_nothing(&case, &done, 1 + 2 * 400), "{limit}: {}", done.errors);
    }
}

#[test]
fn a_restore_that_lacks_descriptors_fails() {
    let case = Case::new(20, 100);
    make_deep(&case.tree, 20);
    assert_eq!(run(&mut case.backup(&case.target())).code, Some(0));
    for limit in [8, 9, 10, 11, 12, 13, 14, 16, 20, 32] {
        let into = case.folder.path().join(format!("into-{limit}"));
        let mut restore = takeup();
        restore.arg("restore").arg(case.target()).arg("--into").arg(&into).arg("-q");
        let done = run(&mut limited(&format!("-n {limit}"), &restore));
        if done.code != Some(1) {
            assert_eq!((done.code, &*done.errors), (Some(0), ""), "{limit}");
            let tree = into.join(case.tree.strip_prefix("/").unwrap());
            let same = Command::new("diff").arg("-r").arg(&case.tree).arg(tree).status().unwrap();
            assert!(same.success(), "{limit}");
        }
    }
}

/// In steps from too little memory for the ring to enough for everything: no run ends by a signal.
#[test]
fn too_little_memory_ends_a_backup_with_exit_code_1() {
    let case = Case::new(300, 30_000);
    let mut failed = 0;
    for kib in (200..2000).step_by(60).map(|mib| mib * 1024) {
        let mut backup = case.backup(&case.target());
        backup.args(["-q", "--compress", "zstd"]);
        let done = run(&mut limited(&format!("-v {kib}"), &backup));
        if !all_or_nothing(&case, &done, 301) {
            failed += 1;
        }
    }
    assert!(failed > 0, "all of these limits are enough: the test says nothing");
}

/// Every error number that looks like a shortage of the process itself.
#[test]
fn what_a_file_system_says_of_a_file_stops_no_backup() {
    testkit::require!(Fuse);
    for code in [libc::EMFILE, libc::ENFILE, libc::ENOMEM] {
        let mounted = mount(Fault::OpenFails(code));
        mounted.place("sound", b"content");
        mounted.place("failing", b"content");
        let case = Case::new(0, 0);
        let mut command = takeup();
        command.arg("backup").arg(mounted.path()).arg("-q").arg("--to").arg(case.target());
        let done = run(&mut command);
        assert_eq!(done.code, Some(2), "{code}: {}", done.errors);
        assert!(done.errors.contains("failing: cannot open"), "{code}: {}", done.errors);
        assert_eq!(members(&case.target()), 2, "{code}");
    }
}

/// The limit is raised for the run, but programs of the user get the old one: see the shell line in
/// `crates/takeup/src/change.rs`.
#[test]
fn the_soft_limit_does_not_count() {
    let case = Case::new(100, 100);
    make_deep(&case.tree, 60);
    let done = run(&mut limited("-S -n 12", case.backup(&case.target()).arg("-q")));
    assert!(all_or_nothing(&case, &done, 1 + 100 + 120), "{}", done.errors);
}
