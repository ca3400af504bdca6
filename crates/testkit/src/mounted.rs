//! A file system that is mounted as long as a test uses it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Mounted until it is dropped.
#[derive(Debug)]
pub struct Mounted(PathBuf);

impl Mounted {
    /// `mount` with these arguments, at a folder that is made if it is not there.
    ///
    /// # Panics
    /// If `mount` fails.
    #[track_caller]
    pub fn new(arguments: &[&str], at: &Path) -> Mounted {
        std::fs::create_dir_all(at).expect("a folder");
        done("mount", &[arguments, &[text(at)]].concat());
        Mounted(at.to_owned())
    }

    /// Where it is mounted.
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
///
/// # Panics
/// If it fails, with what it said.
#[track_caller]
pub fn done(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().expect(program);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
}

/// An empty file system in a sparse file, by a program that makes one and its options.
///
/// # Panics
/// If it fails.
#[track_caller]
pub fn image(path: &Path, bytes: u64, make: &[&str]) {
    let file = std::fs::File::create(path).expect("a file");
    file.set_len(bytes).expect("a sparse file");
    done(make[0], &[&make[1..], &[text(path)]].concat());
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}
