//! Sets of a chain in a folder: what each day was like comes back, by takeup and by GNU tar.
#![allow(clippy::unwrap_used)]
#![allow(clippy::print_stderr, reason = "a campaign prints its counts")]

mod browse;
mod btrfs;
mod by_list;
mod catalogue;
mod changes;
mod clock;
mod diff;
#[path = "../sim/drive.rs"]
#[allow(dead_code, reason = "shared with the tests of the drive")]
mod drive;
mod dry_run;
mod full;
mod golden;
mod history;
mod incremental;
mod interrupted;
mod losses;
mod moved;
mod on_tape;
mod renumbered;
mod settings;
mod snapshot;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

/// Longer than a clock of a file system stands still: what is older is not doubtful.
const TICK: Duration = Duration::from_millis(70);

/// The program, without settings of the caller's terminal.
fn takeup() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_takeup"));
    command.env_clear().env("LC_ALL", "C").env("TZ", "UTC").stdin(Stdio::null());
    // Not that of this machine: a backup notes its folder there.
    command.env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"));
    command
}

fn run<S: AsRef<OsStr>>(directory: &Path, arguments: &[S]) -> Output {
    takeup().current_dir(directory).args(arguments).output().unwrap()
}

/// What the program prints on both streams; it ends with this code.
#[track_caller]
fn text(directory: &Path, arguments: &[&str], code: i32) -> String {
    let output = run(directory, arguments);
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    text
}

/// The answer of a command that is done.
#[track_caller]
fn answer(directory: &Path, arguments: &[&str]) -> Value {
    let all = [arguments, &["--json"]].concat();
    let output = run(directory, &all);
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {shown}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Backs up `tree` into the folder `sets`; returns the answer.
#[track_caller]
fn backup(directory: &Path, more: &[&str]) -> Value {
    answer(directory, &[&["backup", "tree", "--to", "sets/"], more].concat())
}

/// Objects that were stored for a reason.
fn stored(answer: &Value, reason: &str) -> u64 {
    let counts = answer["set"]["stored"].as_array().unwrap();
    let count = counts.iter().find(|count| count["reason"] == reason);
    count.map_or(0, |count| count["objects"].as_u64().unwrap())
}

/// All objects that were stored.
fn stored_in_all(answer: &Value) -> u64 {
    let counts = answer["set"]["stored"].as_array().unwrap();
    counts.iter().map(|count| count["objects"].as_u64().unwrap()).sum()
}

/// The path of the archive that was written.
fn archive(directory: &Path, answer: &Value) -> PathBuf {
    directory.join(answer["archive"].as_str().unwrap())
}

/// Extracts archives one after the other, as GNU tar does with incremental dumps.
#[track_caller]
fn gnu_tar(archives: &[PathBuf], into: &Path) {
    std::fs::create_dir(into).unwrap();
    for archive in archives {
        let output = Command::new("tar")
            .args(["--listed-incremental=/dev/null", "--numeric-owner", "-xpf"])
            .arg(archive)
            .arg("-C")
            .arg(into)
            .env("LC_ALL", "C")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {text}", archive.display());
    }
}
