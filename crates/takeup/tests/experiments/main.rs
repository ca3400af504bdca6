//! Experiments with the program as its user sees it: a file of runs, its report, its page in a
//! browser, and settings that come back.
#![allow(clippy::unwrap_used)]

mod browser;
mod captured;
#[path = "../command_line/captured_record.rs"]
mod captured_record;
mod commands;
mod disks;
mod files;
mod jobs;
mod journals;
mod keeping;
mod queue_tuning;
mod queues;
mod settings;
mod trials;
mod tune;
#[path = "../command_line/watch_record.rs"]
mod watch_record;

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The program, with a separate place for its state.
pub fn takeup(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_takeup"));
    command.env_clear().env("LC_ALL", "C").env("TAKEUP_RUN_DIR", directory.join("run"));
    // fio is found there.
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.current_dir(directory).stdin(Stdio::null());
    command
}

/// Runs the program in a directory.
pub fn run<S: AsRef<OsStr>>(directory: &Path, arguments: &[S]) -> Output {
    takeup(directory).args(arguments).output().unwrap()
}

/// Runs it and wants success.
pub fn succeeds<S: AsRef<OsStr>>(directory: &Path, arguments: &[S]) -> String {
    let output = run(directory, arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A file of 8 MiB and the experiment that reads it in two block sizes, three times each.
pub fn small_experiment(directory: &Path) -> Vec<&'static str> {
    std::fs::write(directory.join("data"), vec![5u8; 8 << 20]).unwrap();
    vec![
        "bench",
        "read",
        "data",
        "--engines",
        "sync,psync",
        "--cache",
        "buffered",
        "--block-size",
        "64k,1M",
        "--length",
        "8M",
        "--repeats",
        "3",
        "--repeats-max",
        "3",
        "--seed",
        "7",
    ]
}
