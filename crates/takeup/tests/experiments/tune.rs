//! Lasting changes of settings, on a loop device of the test and a real kernel, which raises a
//! lowered read-ahead whenever a limit is written. All settings take effect and all are restored,
//! also when the changing or reverting process is killed between any two steps.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use model::disk::{DiskChanges, DiskParameters};
use model::read_ahead::{Policy, Reader, sequential_bytes_per_second};
use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;
use serde_json::Value;
use service::Answer;
use service::tune::read_ahead_advice::TuneReadAheadAnswer;
use service::tune::revert::TuneRevertAnswer;
use service::tune::set::TuneSetAnswer;
use service::tune::show::TuneShowAnswer;
use testkit::stepper::{Call, CallVerdict, Stepped};

use crate::disks::Loop;
use crate::settings::Disk;
use crate::takeup;

pub fn tune(directory: &Path, arguments: &[&str]) -> std::process::Command {
    let mut command = takeup(directory);
    command.env("TAKEUP_STATE_DIR", directory.join("state")).arg("tune").args(arguments);
    command
}

pub fn done(directory: &Path, arguments: &[&str]) -> String {
    told(&tune(directory, arguments).output().unwrap(), 0)
}

/// Both outputs of a command that ended with this code.
pub fn told(output: &Output, code: i32) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(output.status.code(), Some(code), "{text}");
    text
}

/// Reads a document as an answer and writes it again: the schemas in `docs/schema/` describe it.
pub fn check<A: Answer + DeserializeOwned>(printed: &Value) -> A {
    let answer: A = serde_json::from_value(printed.clone())
        .unwrap_or_else(|error| panic!("no answer of {}: {error}: {printed:#}", A::COMMAND));
    assert_eq!(&service::document(&answer), printed);
    answer
}

/// The document of a command, which is its answer.
fn answer<A: Answer + DeserializeOwned>(directory: &Path, arguments: &[&str]) -> A {
    let text = done(directory, &[arguments, &["--json"]].concat());
    check(&serde_json::from_str(&text).unwrap())
}

/// All limits, in an order that the kernel refuses, and read-ahead as low as it is.
const EVERYTHING: [&str; 6] = [
    "read_ahead_kb=64",
    "nr_requests=200",
    "max_sectors_kb=256",
    "rotational=0",
    "write_cache=write through",
    "scheduler=mq-deadline",
];

#[test]
fn a_lowered_read_ahead_survives_every_limit_there_and_back() {
    testkit::require!(MqDeadline, KernelSettings);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::tuned(directory.path());
    let before = device.settings();
    let path = device.path();
    // Five seconds and `udevadm settle` are its usual time.
    let text = done(directory.path(), &[&["set", path][..], &EVERYTHING].concat());
    assert!(text.contains("max_sectors_kb: 512 KiB -> 256 KiB\n"), "{text}");
    assert!(text.contains("after 5.00 s: all as set\n"), "{text}");
    let shown = |file| fs::read_to_string(device.queue(file)).unwrap().trim().to_owned();
    assert!(shown("scheduler").contains("[mq-deadline]"));
    let held = ["write_cache", "rotational", "max_sectors_kb", "nr_requests", "read_ahead_kb"];
    assert_eq!(held.map(shown), ["write through", "0", "256", "200", "64"]);
    let text = done(directory.path(), &["show"]);
    assert!(text.contains("nr_requests: 100 -> 200, holds\n"), "{text}");
    // Another program writes a limit, and the kernel raises the lowered read-ahead.
    fs::write(device.queue("max_sectors_kb"), "256").unwrap();
    fs::write(device.queue("rotational"), "1").unwrap();
    assert_ne!(shown("read_ahead_kb"), "64", "this kernel resets nothing: the test says nothing");
    let text = done(directory.path(), &["show"]);
    assert!(text.contains("rotational: 1 -> 0, is 1 now"), "{text}");
    let text = done(directory.path(), &["revert"]);
    assert!(text.contains("scheduler: mq-deadline -> none\n"), "{text}");
    assert_eq!(device.settings(), before);
    assert_eq!(done(directory.path(), &["show"]), "Takeup has changed no setting\n");
    assert_eq!(done(directory.path(), &["revert"]), "nothing to revert\n");
}

#[test]
fn what_is_set_and_reverted_is_an_answer() {
    testkit::require!(LoopDevices, KernelSettings);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::tuned(directory.path());
    let set = ["set", device.path(), "read_ahead_kb=1024", "--settle", "10ms"];
    let set: TuneSetAnswer = answer(directory.path(), &set);
    assert!(set.settings[0].holds && set.commands.confirm.is_none(), "{set:?}");
    let shown: TuneShowAnswer = answer(directory.path(), &["show"]);
    assert!(shown.changes[0].settings[0].holds && shown.changes[0].trial.is_none(), "{shown:?}");
    let reverted: TuneRevertAnswer = answer(directory.path(), &["revert"]);
    assert_eq!(reverted.put_back[0].name, "read_ahead_kb");
}

/// Runs a command that is killed before the `at`-th call that changes anything. Returns whether it
/// got there.
fn killed_at(directory: &Path, arguments: &[&str], at: usize) -> bool {
    const CHANGING: [&str; 5] = ["write", "renameat2", "unlinkat", "fsync", "mkdirat"];
    let mut calls = 0;
    let mut step = |call: &Call| {
        if call.name().is_some_and(|name| CHANGING.contains(&name)) {
            if calls == at {
                kill_process(Pid::from_raw(call.thread).unwrap(), Signal::KILL).unwrap();
            }
            calls += 1;
        }
        CallVerdict::Pass
    };
    let command = tune(directory, arguments);
    let stepped = Stepped::new(&command, "/dev/null", Duration::from_secs(60));
    let ended = stepped.run(&mut step).unwrap();
    assert!(!ended.hung && (ended.code == Some(0)) == (calls <= at), "{at}: {ended:?}");
    calls > at
}

#[test]
fn whoever_is_killed_at_any_step_leaves_what_can_be_put_back() {
    testkit::require!(MqDeadline, KernelSettings);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::tuned(directory.path());
    let before = device.settings();
    let settle = ["--settle", "10ms"];
    let set = [&["set", device.path()][..], &EVERYTHING, &settle].concat();
    let mut steps = 0;
    while killed_at(directory.path(), &set, steps) {
        done(directory.path(), &["revert"]);
        assert_eq!(device.settings(), before, "set was killed before step {steps}");
        steps += 1;
    }
    // Five values, and the list before them.
    assert!(steps > 8, "{steps}");
    done(directory.path(), &["revert"]);
    let mut steps = 0;
    loop {
        done(directory.path(), &set);
        let was_killed = killed_at(directory.path(), &["revert"], steps);
        done(directory.path(), &["revert"]);
        assert_eq!(device.settings(), before, "revert was killed before step {steps}");
        if !was_killed {
            break;
        }
        steps += 1;
    }
    assert!(steps > 6, "{steps}");
}

#[test]
fn what_would_not_stay_or_does_nothing_is_refused_before_anything_is_written() {
    testkit::require!(LoopDevices, KernelSettings);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::tuned(directory.path());
    let before = device.settings();
    for (setting, expected, hint) in [
        ("max_sectors_kb=99999", "max_sectors_kb 99999 would become ", "max_sectors_kb="),
        ("read_ahead_kb=777", "read-ahead 777 would become 776", "use read_ahead_kb=776"),
        ("nr_requests=2", "nr_requests 2 would become 4", "use nr_requests=4"),
        ("nr_requests=99999999", "the kernel refused \"99999999\"; nothing was changed", ""),
        ("scheduler=nosuch", "scheduler nosuch is not valid: use none", ""),
        ("read_ahead=64", "unknown setting", "use one of scheduler, "),
        ("read_ahead_kb", "expected NAME=VALUE", "use one of "),
    ] {
        let output =
            tune(directory.path(), &["set", device.path(), "nomerges=2", setting]).output();
        let text = told(&output.unwrap(), 1);
        assert!(text.contains(expected) && text.contains(hint), "{text}");
        assert_eq!(device.settings(), before, "{setting}");
        assert!(!directory.path().join("state/changes.json").exists(), "{setting}");
    }
    let output = tune(directory.path(), &["set", "/proc/version", "scheduler=none"]).output();
    assert!(told(&output.unwrap(), 1).contains("has no scheduler that could be set"));
}

/// Detaches a device and waits: another program may have it open for a moment.
fn detach(device: Loop) {
    let file = device.queue("../loop/backing_file");
    drop(device);
    let begun = Instant::now();
    while file.exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{} stays", file.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_device_that_is_gone_is_told_and_not_lost() {
    testkit::require!(LoopDevices, KernelSettings);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::tuned(directory.path());
    done(directory.path(), &["set", device.path(), "read_ahead_kb=1024", "--settle", "10ms"]);
    detach(device);
    let text = done(directory.path(), &["show"]);
    assert!(text.contains("64 KiB -> 1024 KiB, the device is gone"), "{text}");
    let text = told(&tune(directory.path(), &["revert"]).output().unwrap(), 2);
    assert!(text.contains("the device is gone; restore 64 KiB when it is back"), "{text}");
    // The device is back under another name, with a value that takeup did not set: it is left
    // alone.
    let again = Loop::over(directory.path(), 64 << 20);
    fs::write(again.queue("read_ahead_kb"), "96").unwrap();
    let text = done(directory.path(), &["revert"]);
    assert!(text.contains("since the device or the machine restarted, not changed"), "{text}");
    assert_eq!(fs::read_to_string(again.queue("read_ahead_kb")).unwrap(), "96\n");
    done(directory.path(), &["set", again.path(), "read_ahead_kb=32", "--settle", "10ms"]);
    detach(again);
    let text = done(directory.path(), &["revert", "--forget"]);
    assert!(text.contains("the device is gone; removed from the list"), "{text}");
    assert_eq!(done(directory.path(), &["show"]), "Takeup has changed no setting\n");
}

const WINDOWS: [u64; 6] = [64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20];

/// The smallest window with which the model of that disk reaches full speed.
fn knee_of_the_model(disk: &DiskParameters) -> u64 {
    let reader = Reader { read_bytes: 128 << 10, copy_bytes_per_second: 2_000_000_000 };
    let rate = |&window_bytes: &u64| {
        sequential_bytes_per_second(disk, Policy::Linux { window_bytes }, reader) as f64
    };
    let best = WINDOWS.iter().map(rate).fold(0.0, f64::max);
    WINDOWS.into_iter().find(|window| rate(window) >= 0.98 * best).unwrap()
}

/// A disk with 5.5 ms, slow enough that the machine's speed does not matter: two windows of 256 KiB
/// are enough, two of 128 KiB far too little.
#[test]
fn the_read_ahead_that_a_disk_needs_is_found_set_and_taken_back() {
    testkit::require!(Fuse, KernelSettings);
    let changes = DiskChanges {
        service_ns: Some(5_500_000),
        servers: Some(64),
        bytes_per_second: Some(80_000_000),
        ..DiskChanges::default()
    };
    let parameters = DiskParameters::sas15k().with(&changes);
    let knee = knee_of_the_model(&parameters) as f64;
    assert_eq!(knee, 262_144.0);
    let disk = Disk::with(parameters);
    let directory = tempfile::tempdir().unwrap();
    fs::write(&disk.setting, "64").unwrap();
    let path = disk.cached();
    let levels = ["--levels", "65k,128k,256k,512k,1M,2M,16M"];
    let quick = ["--length", "8M", "--difference", "30", "--budget", "20s"];
    let command = ["readahead", path.to_str().unwrap(), "--json", "--apply", "--settle", "10ms"];
    let measured = || {
        let arguments = [&command[..], &levels, &quick].concat();
        let output = tune(directory.path(), &arguments).output().unwrap();
        let foretold = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{foretold}");
        assert!(foretold.contains(" repeats of 6 settings take about "), "{foretold}");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        check::<TuneReadAheadAnswer>(&document);
        document
    };
    let ratio = |found: &Value| found["recommended"].as_f64().unwrap() / knee;
    // On a busy machine a larger window can appear faster; then the test tries again.
    let mut document = measured();
    for _ in 0..2 {
        if (0.5..=2.0).contains(&ratio(&document)) {
            break;
        }
        done(directory.path(), &["revert"]);
        document = measured();
    }
    let recommended = document["recommended"].as_f64().unwrap();
    assert!((0.5..=2.0).contains(&ratio(&document)), "{recommended}, {knee}: {document:#}");
    assert_eq!(document["present"], 64 << 10);
    // A requested value that was not measured is reported as such.
    let left_out = document["left_out"].as_array().unwrap();
    let bytes: Vec<&Value> = left_out.iter().map(|it| &it["read_ahead_bytes"]).collect();
    assert_eq!(bytes, [65 << 10, 16 << 20]);
    assert_eq!(left_out[0]["why"], "not a multiple of the page size: 64 KiB was tried");
    assert_eq!(document["gain"]["verdict"], "differs");
    assert!(document["gain"]["low"].as_f64().unwrap() > 1.0, "{document:#}");
    let answer = document["explanation"]["answer_seconds"].as_f64().unwrap();
    assert!(answer >= 5.4e-3, "the disk takes 5.5 ms: {document:#}");
    assert_eq!(document["commands"]["undo"], "takeup tune revert");
    let kib = (recommended as u64 / 1024).to_string();
    let apply = format!("takeup tune set {} read_ahead_kb={kib}", path.display());
    assert_eq!(document["commands"]["apply"], apply);
    assert_eq!(document["applied"][0]["holds"], true);
    assert_eq!(fs::read_to_string(&disk.setting).unwrap().trim(), kib);
    // The runs left nothing behind, and the change is reverted.
    assert!(!directory.path().join("run/settings.json").exists());
    done(directory.path(), &["revert"]);
    assert_eq!(fs::read_to_string(&disk.setting).unwrap().trim(), "64");
}

/// Settings made with sudo are in root's list: another user gets a message that there are two
/// lists.
#[test]
fn an_ordinary_user_is_told_that_root_has_another_list() {
    testkit::require!(Root);
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // Other users may not be able to reach the binary in its folder.
    let binary = directory.path().join("takeup");
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_takeup")).arg(&binary).status();
    assert!(copied.unwrap().success());
    for (command, nothing) in [
        ("show", "Takeup has changed no setting"),
        ("revert", "nothing to revert"),
        ("persist", "Takeup has changed no setting"),
        ("confirm", "nothing is on trial"),
    ] {
        let mut user = Command::new("setpriv");
        user.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&binary);
        user.env("TAKEUP_STATE_DIR", directory.path().join("state"));
        user.env("TAKEUP_RUN_DIR", directory.path().join("run")).current_dir("/");
        let text = told(&user.args(["tune", command]).output().unwrap(), 0);
        assert_eq!(text, format!("{nothing} in your list; root has a separate list\n"));
    }
}
