//! Endless files, and pipes without a writer, in place of files that are read as a whole: no
//! command waits for them or loads them into memory.

use std::path::Path;
use std::process::Command;

use rustix::fs::{CWD, FileType, Mode};
use tempfile::tempdir;

use crate::command::{Done, run, takeup};

/// A command that may have 2 GB of address space, most of which its ring and threads take.
fn limited(arguments: &[&str]) -> Done {
    let mut shell = Command::new("bash");
    shell.args(["-c", "ulimit -v 2000000 && exec \"$@\"", "bash"]);
    run(shell.arg(takeup().get_program()).args(arguments))
}

#[test]
fn a_plan_without_end_is_refused() {
    for kind in ["run", "disk", "read", "power"] {
        let done = limited(&["bench", kind, "--plan", "/dev/zero"]);
        done.assert_failed("read /dev/zero: it is larger than 16 MiB");
    }
}

#[test]
fn the_status_of_a_drive_is_a_file() {
    let folder = tempdir().unwrap();
    let status = folder.path().join("status");
    let path = folder.path().to_str().unwrap();
    let refused = |what: &str| {
        let done = limited(&["sim", "status", path]);
        assert_eq!(done.code, Some(1), "{what}: {}", done.errors);
        assert!(!done.errors.contains("memory"), "{what}: {}", done.errors);
    };
    rustix::fs::mknodat(CWD, &status, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
    refused("a pipe");
    // This file is read beside each target that may be the tape of a virtual drive.
    let target = folder.path().join("tape");
    let done = limited(&["backup", path, "--to", target.to_str().unwrap(), "-q"]);
    assert_eq!(done.code, Some(0), "{}", done.errors);
    // It is also read beside each path that an experiment watches.
    let (file, runs) = (folder.path().join("file"), folder.path().join("runs.ndjson"));
    std::fs::write(&file, "content").unwrap();
    let [file, runs] = [&file, &runs].map(|path| path.to_str().unwrap());
    let watched = ["bench", "run", "--watch", file, "--command", "a=:", "--command", "b=:"];
    let done = limited(&[&watched[..], &["--repeats", "2", "-q", "-o", runs]].concat());
    assert_eq!(done.code, Some(0), "{}", done.errors);
    std::fs::remove_file(&status).unwrap();
    std::os::unix::fs::symlink(Path::new("/dev/zero"), &status).unwrap();
    refused("a device");
}
