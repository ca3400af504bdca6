//! SIGINT and SIGTERM.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::takeup;

/// A run that waits for its standard input, with the partial file there already.
fn waiting_run(directory: &Path) -> Child {
    let child = takeup()
        .current_dir(directory)
        .args(["pipe", "--to", "x"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !directory.join(".x.takeup-partial").exists() {
        std::thread::yield_now();
    }
    child
}

#[test]
fn a_signal_ends_the_run_and_leaves_nothing() {
    for signal in [Signal::TERM, Signal::INT] {
        let directory = tempfile::tempdir().unwrap();
        let mut child = waiting_run(directory.path());
        kill_process(Pid::from_child(&child), signal).unwrap();
        let mut text = String::new();
        child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{text}");
        let expected = "takeup: stopping at the next block; interrupt again to stop at once\n\
                        takeup: cancelled after 0 bytes: nothing is left at x\n";
        assert_eq!(text, expected);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_killed_run_is_taken_over_by_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = waiting_run(directory.path());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!directory.path().join("x").exists());
    fs::write(directory.path().join("source"), "data").unwrap();
    let output = crate::run(directory.path(), &["pipe", "--from", "source", "--to", "x", "-q"]);
    assert!(output.status.success());
    assert_eq!(fs::read(directory.path().join("x")).unwrap(), b"data");
    assert!(!directory.path().join(".x.takeup-partial").exists());
}
