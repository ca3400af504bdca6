//! Block devices as targets and sources, with loop devices over files.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::tempdir;

use crate::command::{Case, is_root, run, takeup};

/// A loop device over a file of its own, until it is dropped.
struct LoopDevice {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl LoopDevice {
    fn new(bytes: u64) -> Option<LoopDevice> {
        if !is_root() {
            eprintln!("not tested: a loop device needs root");
            return None;
        }
        let folder = tempdir().unwrap();
        let file = folder.path().join("disk");
        std::fs::File::create(&file).unwrap().set_len(bytes).unwrap();
        let made = Command::new("losetup").args(["--find", "--show"]).arg(&file).output().unwrap();
        if !made.status.success() {
            eprintln!("not tested: {}", String::from_utf8_lossy(&made.stderr).trim());
            return None;
        }
        let path = String::from_utf8(made.stdout).unwrap().trim().into();
        Some(LoopDevice { path, _folder: folder })
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.path).status();
    }
}

#[track_caller]
fn restore_and_compare(case: &Case, device: &Path) {
    let out = tempdir().unwrap();
    let verified = run(takeup().arg("verify").arg(device).arg("-q"));
    assert_eq!((verified.code, &*verified.errors), (Some(0), ""));
    let restored = run(takeup().arg("restore").arg(device).arg("--into").arg(out.path()).arg("-q"));
    assert_eq!((restored.code, &*restored.errors), (Some(0), ""));
    let tree = out.path().join(case.tree.strip_prefix("/").unwrap());
    let same = Command::new("diff").arg("-r").arg(&case.tree).arg(tree).status().unwrap();
    assert!(same.success());
}

#[test]
fn a_device_takes_an_archive_and_gives_it_back() {
    let (large, small) = (Case::new(50, 100_000), Case::new(7, 3000));
    for options in [&[][..], &["--compress", "zstd"], &["--compress", "gzip"], &["-b", "4k"]] {
        let Some(device) = LoopDevice::new(16 << 20) else { return };
        let done = run(large.backup(&device.path).args(options));
        assert_eq!(done.code, Some(0), "{options:?}: {}", done.errors);
        restore_and_compare(&large, &device.path);
        // What is there stays, unless it is told to go. Then none of it comes back.
        let line = format!("{} holds data", device.path.display());
        run(&mut small.backup(&device.path)).assert_failed(&line);
        restore_and_compare(&large, &device.path);
        let done = run(small.backup(&device.path).args(options).arg("--overwrite"));
        assert_eq!(done.code, Some(0), "{options:?}: {}", done.errors);
        restore_and_compare(&small, &device.path);
    }
}

#[test]
fn a_device_that_is_too_small() {
    let case = Case::new(50, 100_000);
    for options in [&[][..], &["--engine", "pread"], &["--compress", "zstd"], &["-b", "64k"]] {
        let Some(device) = LoopDevice::new(3 << 20) else { return };
        let at = device.path.display();
        let line = format!("cannot write to {at}: write at byte N: no space left on device");
        run(case.backup(&device.path).args(options)).assert_failed(&line);
    }
}
