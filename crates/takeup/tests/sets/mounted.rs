//! A file system that is mounted as long as a test uses it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Mounted until it is dropped.
pub struct Mounted(PathBuf);

impl Mounted {
    /// `mount` with these arguments, at a folder that is made if it is not there.
    #[track_caller]
    pub fn new(arguments: &[&str], at: &Path) -> Mounted {
        std::fs::create_dir_all(at).unwrap();
        done("mount", &[arguments, &[at.to_str().unwrap()]].concat());
        Mounted(at.to_owned())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Runs another program to its end.
#[track_caller]
pub fn done(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
}

/// An empty file system in a file, sparse.
#[track_caller]
pub fn image(path: &Path, bytes: u64, make: &[&str]) {
    std::fs::File::create(path).unwrap().set_len(bytes).unwrap();
    done(make[0], &[&make[1..], &[path.to_str().unwrap()]].concat());
}
