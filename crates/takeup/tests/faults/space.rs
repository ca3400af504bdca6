//! Targets that are full, or fail when they are written, synchronised or renamed.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::tempdir;

use crate::command::{Case, names_in, run};
use crate::fuse_target::{Fault, mount};

/// A small file system in memory, until it is dropped.
struct Tmpfs(PathBuf);

impl Tmpfs {
    fn mount(at: &Path, options: &str) -> Tmpfs {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at);
        assert!(mount.status().unwrap().success(), "{mount:?}");
        Tmpfs(at.to_path_buf())
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// All paths through the program that end in a different write.
const WAYS: [&[&str]; 4] =
    [&[], &["--engine", "pread"], &["--compress", "zstd"], &["--compress", "gzip", "-b", "64k"]];

#[test]
fn a_full_file_system() {
    testkit::require!(Mounts);
    let case = Case::new(60, 100_000);
    let place = tempdir().unwrap();
    let _mounted = Tmpfs::mount(place.path(), "size=3m");
    let target = place.path().join("set.tar");
    let line =
        format!("cannot write to {}: write at byte N: no space left on device", target.display());
    for way in WAYS {
        run(case.backup(&target).args(way)).assert_failed(&line);
        assert!(names_in(place.path()).is_empty(), "{way:?}");
    }
    std::fs::write(&target, "old").unwrap();
    run(case.backup(&target).arg("--overwrite")).assert_failed(&line);
    assert_eq!(std::fs::read(&target).unwrap(), b"old");
    assert_eq!(names_in(place.path()), ["set.tar"]);
}

#[test]
fn a_read_only_file_system() {
    testkit::require!(Mounts);
    let case = Case::new(1, 10);
    let place = tempdir().unwrap();
    let _mounted = Tmpfs::mount(place.path(), "ro");
    let target = place.path().join("set.tar");
    let line = format!("cannot open {}: read-only file system", target.display());
    run(&mut case.backup(&target)).assert_failed(&line);
}

#[test]
fn a_full_device() {
    let case = Case::new(30, 100_000);
    for way in WAYS {
        run(case.backup(Path::new("/dev/full")).args(way))
            .assert_failed("cannot write to /dev/full: write at byte N: no space left on device");
    }
}

#[test]
fn a_limit_on_the_size_of_files() {
    let case = Case::new(60, 100_000);
    let target = case.target();
    let line = format!("cannot write to {}: write at byte N: file too large", target.display());
    for way in WAYS {
        let limited = case.backup(&target);
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -f 2000; exec \"$@\"", "sh"]).arg(limited.get_program());
        run(shell.args(limited.get_args()).args(way)).assert_failed(&line);
        assert!(names_in(&case.targets()).is_empty(), "{way:?}");
    }
}

#[test]
fn few_open_files_are_enough() {
    let case = Case::new(3, 10);
    for number in 0..1000 {
        let folder = case.tree.join(format!("folder-{number}"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("file"), "x").unwrap();
    }
    let target = case.target();
    for limit in [192, 256, 1024] {
        let limited = case.backup(&target);
        let mut shell = Command::new("sh");
        let set = format!("ulimit -n {limit}; exec \"$@\"");
        shell.args(["-c", &set, "sh"]).arg(limited.get_program()).args(limited.get_args());
        let done = run(shell.arg("--json"));
        assert_eq!(done.code, Some(0), "{}", done.errors);
        let summary: serde_json::Value = serde_json::from_slice(&done.output).unwrap();
        assert_eq!((&summary["members"], &summary["files"]), (&2004.into(), &1003.into()));
        std::fs::remove_file(&target).unwrap();
    }
}

/// Runs against a file system that fails; the message is compared without the target.
fn check(fault: Fault, line: &str) {
    testkit::require!(Fuse);
    let case = Case::new(60, 100_000);
    for way in WAYS {
        let mounted = mount(fault.clone());
        let target = mounted.path().join("set.tar");
        let line = line.replace("TARGET", &target.display().to_string());
        run(case.backup(&target).args(way)).assert_failed(&line);
        assert!(names_in(mounted.path()).is_empty(), "{fault:?} {way:?}");
        // And with an existing file.
        mounted.place("set.tar", b"old");
        run(case.backup(&target).args(way).arg("--overwrite")).assert_failed(&line);
        assert_eq!(names_in(mounted.path()), ["set.tar"]);
        assert_eq!(mounted.content("set.tar"), b"old", "{fault:?} {way:?}");
    }
}

#[test]
fn a_write_fails() {
    let line = "cannot write to TARGET: write at byte N: input/output error";
    check(Fault::WriteFailsAt { offset: 0, code: libc::EIO }, line);
    check(Fault::WriteFailsAt { offset: 3 << 20, code: libc::EIO }, line);
    let line = "cannot write to TARGET: write at byte N: no space left on device";
    check(Fault::WriteFailsAt { offset: 2_000_000, code: libc::ENOSPC }, line);
}

#[test]
fn synchronising_fails() {
    check(Fault::FsyncFails, "cannot synchronise TARGET: input/output error");
}

#[test]
fn renaming_fails() {
    check(Fault::RenameFails, "cannot rename TARGET: input/output error");
}

#[test]
fn short_writes_and_unknown_calls_are_no_failures() {
    testkit::require!(Fuse);
    let case = Case::new(60, 100_000);
    for fault in [Fault::None, Fault::ShortWrites(70_001), Fault::FsyncFolderUnknown] {
        for way in WAYS {
            let mounted = mount(fault.clone());
            let done = run(case.backup(&mounted.path().join("set.tar")).args(way));
            assert_eq!(done.code, Some(0), "{fault:?} {way:?}: {}", done.errors);
            assert_eq!(names_in(mounted.path()), ["set.tar"]);
            let reference = case.reference(way);
            assert!(mounted.content("set.tar") == reference, "{fault:?} {way:?}");
        }
    }
}
