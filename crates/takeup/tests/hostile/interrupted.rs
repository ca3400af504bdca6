//! A restore that is ended before any of its calls, by `kill -9` or by two signals.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use testkit::stepper::{Call, CallVerdict, Stepped};

/// Larger than one piece of a transfer.
const LARGE_BYTES: usize = 1 << 20;
const NAMES: [&str; 4] = ["large", "old", "small", "old-large"];

fn content(name: &str) -> Vec<u8> {
    let bytes = if name.ends_with("large") { LARGE_BYTES } else { 3000 };
    vec![name.len() as u8; bytes]
}

fn archive(folder: &Path) -> std::path::PathBuf {
    let source = folder.join("source");
    fs::create_dir(&source).unwrap();
    for name in NAMES {
        fs::write(source.join(name), content(name)).unwrap();
        fs::set_permissions(source.join(name), PermissionsExt::from_mode(0o640)).unwrap();
    }
    let archive = folder.join("archive.tar");
    let mut tar = Command::new("tar");
    tar.args(["--format=pax", "--mtime=@1577836800", "-C"]).arg(&source).arg("-cf").arg(&archive);
    assert!(tar.args(NAMES).status().unwrap().success());
    archive
}

/// Restores, sends the signals before call number `at`, and returns the number of calls.
fn end_at(archive: &Path, at: usize, signals: &[Signal]) -> usize {
    let home = tempfile::tempdir().unwrap();
    let into = home.path().join("into");
    fs::create_dir(&into).unwrap();
    for name in ["old", "old-large"] {
        fs::write(into.join(name), "before").unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_takeup"));
    command.arg("restore").arg(archive).arg("--into").arg(&into);
    command.args(["--overwrite", "--threads", "1", "--quiet"]);
    let mut calls = 0;
    let mut step = |call: &Call| {
        if call.file().is_some_and(|path| path.starts_with(&into)) {
            if calls == at {
                for signal in signals {
                    kill_process(Pid::from_raw(call.thread).unwrap(), *signal).unwrap();
                }
            }
            calls += 1;
        }
        CallVerdict::Pass
    };
    let stepped = Stepped::new(&command, "/dev/null", Duration::from_secs(60));
    let ended = stepped.run(&mut step).unwrap();
    assert!(!ended.hung);
    let mut left: Vec<_> = fs::read_dir(&into).unwrap().map(|it| it.unwrap().path()).collect();
    left.retain(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        // Only where a file is about to replace another.
        !name.starts_with(".takeup-")
    });
    for path in left {
        let name = path.file_name().unwrap().to_str().unwrap();
        let found = fs::read(&path).unwrap();
        if name.starts_with("old") && found == b"before" {
            continue;
        }
        assert!(found == content(name), "{name} before call {at}: {} bytes", found.len());
        let status = fs::metadata(&path).unwrap();
        assert_eq!((status.mode() & 0o777, status.mtime()), (0o640, 1_577_836_800), "{name}");
    }
    if signals.is_empty() {
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
        assert!(NAMES.iter().all(|name| fs::read(into.join(name)).unwrap() == content(name)));
    }
    calls
}

fn campaign(signals: &[Signal], step: usize) {
    let folder = tempfile::tempdir().unwrap();
    let archive = archive(folder.path());
    let calls = end_at(&archive, usize::MAX, &[]);
    for at in (0..calls).step_by(step) {
        end_at(&archive, at, signals);
    }
    eprintln!("interrupted restore: {calls} calls, every {step}. with {signals:?}");
}

fn step() -> usize {
    if std::env::var_os("TAKEUP_LONG").is_some() { 1 } else { 3 }
}

#[test]
fn a_kill_leaves_no_half() {
    testkit::require!(GnuTar);
    campaign(&[Signal::KILL], step());
}

#[test]
fn the_second_signal_leaves_no_half() {
    testkit::require!(GnuTar);
    campaign(&[Signal::INT, Signal::TERM], step());
}
