//! Sources that cannot be read completely, and runs by a user without permission.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use testkit::samples::noise;

use crate::command::{Case, Done, names_in, run, takeup};
use crate::fuse_target::{Fault, mount};

/// `nobody` on every Debian.
const NOBODY: u32 = 65534;

/// Runs a backup as an ordinary user; needs root to switch the user.
fn run_as_nobody(case: &Case, target: &Path, options: &[&str]) -> Done {
    for open in [case.folder.path(), &case.tree, &case.targets()] {
        std::fs::set_permissions(open, PermissionsExt::from_mode(0o755)).unwrap();
    }
    // Other users may not be able to reach the binary in its folder.
    let binary = case.folder.path().join("takeup");
    if !binary.exists() {
        // Another process copies the binary: a child that another test starts meanwhile would hold
        // the copy open for writing, and it could not be run ("text file busy").
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_takeup")).arg(&binary).status();
        assert!(copied.unwrap().success());
    }
    let command = case.backup(target);
    let mut user = Command::new("setpriv");
    user.args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")]);
    user.arg("--clear-groups").arg(&binary).args(command.get_args()).args(options);
    run(user.current_dir("/"))
}

#[test]
fn what_cannot_be_read_is_left_out_and_told() {
    testkit::require!(Root);
    let case = Case::new(5, 1000);
    let forbid = |name: &str| {
        std::fs::set_permissions(case.tree.join(name), PermissionsExt::from_mode(0o0)).unwrap();
    };
    forbid("3");
    let folder = case.tree.join("closed");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("inside"), "x").unwrap();
    forbid("closed");
    std::os::unix::fs::chown(case.targets(), Some(NOBODY), Some(NOBODY)).unwrap_or_default();
    let target = case.target();
    let done = run_as_nobody(&case, &target, &["--json"]);
    assert_eq!(done.code, Some(2), "{}", done.errors);
    let summary: serde_json::Value = serde_json::from_slice(&done.output).unwrap();
    let prefix = case.tree.strip_prefix("/").unwrap().display();
    let warnings = summary["warnings"].as_array().unwrap();
    let mut told: Vec<String> = warnings
        .iter()
        .map(|it| format!("{}: {}", it["object"].as_str().unwrap(), it["text"].as_str().unwrap()))
        .collect();
    told.sort();
    let expected = [
        format!("{prefix}/3: cannot open: permission denied"),
        format!("{prefix}/closed: cannot open directory: permission denied"),
    ];
    assert_eq!(told, expected);
    // The root, four files, and the closed folder itself.
    assert_eq!((&summary["members"], &summary["files"]), (&6.into(), &4.into()));
    let listed = Command::new("tar").arg("-tf").arg(&target).output().unwrap();
    assert!(listed.status.success() && listed.stderr.is_empty());
}

#[test]
fn a_folder_that_may_not_be_written_to() {
    testkit::require!(Root);
    let case = Case::new(1, 10);
    let target = case.target();
    let done = run_as_nobody(&case, &target, &[]);
    done.assert_failed(&format!("cannot open {}: permission denied", target.display()));
    assert!(names_in(&case.targets()).is_empty());
}

#[test]
fn a_disk_that_fails_is_told_and_the_rest_is_saved() {
    testkit::require!(Fuse);
    let case = Case::new(1, 1000);
    let target = case.target();
    for (size, text) in [
        (5000, "read error at byte 0, the rest is zeros: input/output error"),
        (9_000_000, "read error at byte 8388608, 611392 bytes are zeros: input/output error"),
    ] {
        let fault = match size {
            5000 => Fault::ReadFailsAt(0),
            _ => Fault::ReadFailsAt(8_388_608),
        };
        let mounted = mount(fault);
        mounted.place("bad", &noise(1, size));
        let mut command = takeup();
        command.arg("backup").args([mounted.path(), &case.tree]).arg("--to").arg(&target);
        let done = run(command.arg("-q"));
        assert_eq!(done.code, Some(2), "{}", done.errors);
        let prefix = mounted.path().strip_prefix("/").unwrap().display().to_string();
        let line = format!("takeup: warning: {prefix}/bad: {text}");
        assert!(done.errors.starts_with(&line), "{}", done.errors);
        let verdict =
            format!("takeup: INCOMPLETE: 1 file is not archived as it was ({prefix}/bad)");
        let lines: Vec<&str> = done.errors.lines().collect();
        assert_eq!((lines.len(), lines[1]), (2, &*verdict), "{}", done.errors);
        let listed = Command::new("tar").arg("-tf").arg(&target).output().unwrap();
        assert!(listed.status.success() && listed.stderr.is_empty());
        let names = String::from_utf8(listed.stdout).unwrap();
        assert_eq!(names.lines().count(), 4, "{names}");
        std::fs::remove_file(&target).unwrap();
    }
}
