//! Block devices as targets and sources, with loop devices over files.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::tempdir;

use crate::command::{Case, run, takeup};

/// A loop device over a file of its own, until it is dropped.
pub struct LoopDevice {
    pub path: PathBuf,
    _folder: tempfile::TempDir,
}

impl LoopDevice {
    pub fn new(bytes: u64) -> LoopDevice {
        let folder = tempdir().unwrap();
        let file = folder.path().join("disk");
        std::fs::File::create(&file).unwrap().set_len(bytes).unwrap();
        let made = Command::new("losetup").args(["--find", "--show"]).arg(&file).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        let path = String::from_utf8(made.stdout).unwrap().trim().into();
        LoopDevice { path, _folder: folder }
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
    testkit::require!(LoopDevices);
    let (large, small) = (Case::new(50, 100_000), Case::new(7, 3000));
    for options in [&[][..], &["--compress", "zstd"], &["--compress", "gzip"], &["-b", "4k"]] {
        let device = LoopDevice::new(16 << 20);
        let done = run(large.backup(&device.path).args(options));
        assert_eq!(done.code, Some(0), "{options:?}: {}", done.errors);
        restore_and_compare(&large, &device.path);
        // The data stay without --overwrite; with it, none of them come back.
        let line = format!("{} holds data", device.path.display());
        run(&mut small.backup(&device.path)).assert_failed(&line);
        restore_and_compare(&large, &device.path);
        let done = run(small.backup(&device.path).args(options).arg("--overwrite"));
        assert_eq!(done.code, Some(0), "{options:?}: {}", done.errors);
        restore_and_compare(&small, &device.path);
    }
}

/// Not even with `--overwrite`: a mounted device must not change below its file system.
#[test]
fn a_device_that_is_mounted() {
    testkit::require!(LoopDevices, Ext4);
    let case = Case::new(2, 1000);
    let device = LoopDevice::new(8 << 20);
    let made = Command::new("mkfs.ext4").arg("-q").arg(&device.path).status().unwrap();
    assert!(made.success());
    let at = tempdir().unwrap();
    // Read-only, so that the file system does not change the device either.
    let mut mount = Command::new("mount");
    mount.args(["-o", "ro"]).args([&*device.path, at.path()]);
    assert!(mount.status().unwrap().success());
    let before = std::fs::read(&device.path).unwrap();
    let line = format!("cannot open {}: device or resource busy", device.path.display());
    let backup = run(case.backup(&device.path).arg("--overwrite"));
    let mut pipe = takeup();
    pipe.arg("pipe").arg("--from").arg(case.tree.join("0"));
    let pipe = run(pipe.arg("--overwrite").arg("--to").arg(&device.path));
    let mut bench = takeup();
    bench.current_dir(case.folder.path()).args(["bench", "disk"]).arg(&device.path);
    let bench = run(bench.args(["--load", "write", "--destructive"]));
    let after = std::fs::read(&device.path).unwrap();
    assert!(Command::new("umount").arg(at.path()).status().unwrap().success());
    backup.assert_failed(&line);
    pipe.assert_failed(&line);
    assert_eq!(bench.code, Some(1));
    assert!(bench.errors.contains("is mounted or in use"), "{}", bench.errors);
    assert!(before == after);
}

#[test]
fn a_device_that_is_too_small() {
    testkit::require!(LoopDevices);
    let case = Case::new(50, 100_000);
    for options in [&[][..], &["--engine", "pread"], &["--compress", "zstd"], &["-b", "64k"]] {
        let device = LoopDevice::new(3 << 20);
        let at = device.path.display();
        let line = format!("cannot write to {at}: write at byte N: no space left on device");
        run(case.backup(&device.path).args(options)).assert_failed(&line);
    }
}
