//! Settings of a block queue as factors, on a loop device of the test: in effect during a run,
//! restored however it ends, and refused before anything runs.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::disks::{Loop, ONCE, runs};
use crate::{run, succeeds, takeup};

const READS: [&str; 6] = ["--engines", "psync", "--depth", "1", "--length", "16M"];

#[test]
fn queue_settings_are_in_force_during_their_runs_and_back_afterwards() {
    testkit::require!(Fio, MqDeadline, KernelSettings);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::tuned(directory.path());
    let before = device.settings();
    let command = ["bench", "disk", device.path(), "--runtime", "once", "--block-size", "64k"];
    let factors = ["--scheduler", "current,mq-deadline", "--nomerges", "current,2"];
    let limits = ["--max-sectors-kb", "current,256", "--read-ahead-kb", "64,1024"];
    succeeds(directory.path(), &[&command[..], &READS, &factors, &limits, &ONCE].concat());
    assert_eq!(device.settings(), before);
    assert!(!directory.path().join("run/settings.json").exists());
    let runs = runs(directory.path());
    assert_eq!(runs.len(), 16);
    for run in &runs {
        let (cell, kept) = (&run["cell"], &run["environment"]);
        let text = |name: &str| kept[name].as_str().unwrap();
        let is_deadline = cell["scheduler"] == "mq-deadline";
        assert_eq!(text("queue scheduler").contains("[mq-deadline]"), is_deadline, "{run}");
        let kib = |name: &str| (cell[name].as_u64().unwrap() / 1024).to_string();
        assert_eq!(text("queue max_sectors_kb"), kib("max_sectors_bytes"), "{run}");
        assert_eq!(text("queue read_ahead_kb"), kib("read_ahead_bytes"), "{run}");
        assert_eq!(text("queue nomerges"), cell["nomerges"].to_string(), "{run}");
        // The old scheduler's queue has its old length.
        assert_eq!(text("queue nr_requests") == "100", !is_deadline, "{run}");
    }
}

/// The kernel does not raise a read-ahead that is not a factor.
#[test]
fn what_is_no_factor_stays_as_it_is() {
    testkit::require!(Fio, LoopDevices, KernelSettings);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::tuned(directory.path());
    let before = device.settings();
    let command = ["bench", "disk", device.path(), "--runtime", "once", "--block-size", "64k"];
    let factors = ["--max-sectors-kb", "256,1024"];
    succeeds(directory.path(), &[&command[..], &READS, &factors, &ONCE].concat());
    for run in &runs(directory.path()) {
        assert_eq!(run["environment"]["queue read_ahead_kb"], "64", "{run}");
    }
    assert_eq!(device.settings(), before);
}

/// A child process that has changed the scheduler.
fn changing(directory: &Path, device: &Loop) -> Child {
    let command = ["bench", "disk", device.path(), "--runtime", "60s", "--budget", "10m"];
    let factors = ["--scheduler", "mq-deadline", "--max-sectors-kb", "256"];
    let all = [&command[..], &READS, &factors, &ONCE].concat();
    let child = takeup(directory).args(all).spawn().unwrap();
    let started = Instant::now();
    // The first change is a trial; after it the process runs on.
    while !directory.join("takeup-bench-disk.ndjson").exists()
        || !device.settings()["scheduler"].contains("[mq-deadline]")
    {
        assert!(started.elapsed() < Duration::from_secs(60), "it never set anything");
        std::thread::sleep(Duration::from_millis(2));
    }
    std::thread::sleep(Duration::from_millis(500));
    child
}

#[test]
fn a_killed_experiment_with_queues_is_cleared_up_after() {
    testkit::require!(Fio, MqDeadline, KernelSettings);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::tuned(directory.path());
    let before = device.settings();
    let mut child = changing(directory.path(), &device);
    assert!(directory.path().join("run/settings.json").exists());
    let busy = run(directory.path(), &["bench", "put-back"]);
    let error = String::from_utf8_lossy(&busy.stderr).into_owned();
    assert!(error.contains("runs an experiment that changes max_sectors_kb, nr_requests, "));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_ne!(device.settings(), before);
    // The next experiment restores the settings, whatever its subject, and so does the command for
    // it.
    let text = succeeds(directory.path(), &["bench", "put-back"]);
    // The two changed settings, two that the kernel resets, and a third where it exists.
    let throttled = fs::read_to_string(device.queue("wbt_lat_usec")).is_ok();
    let count = if throttled { 5 } else { 4 };
    assert_eq!(text, format!("{count} settings put back\n"));
    assert_eq!(device.settings(), before);
    assert_eq!(succeeds(directory.path(), &["bench", "put-back"]), "nothing to put back\n");
}

#[test]
fn a_stopped_experiment_puts_its_queues_back() {
    testkit::require!(Fio, MqDeadline, KernelSettings);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::tuned(directory.path());
    let before = device.settings();
    for signal in ["-TERM", "-INT"] {
        let mut child = changing(directory.path(), &device);
        let id = child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(1));
        assert_eq!(device.settings(), before);
        assert!(!directory.path().join("run/settings.json").exists());
    }
}

#[test]
fn what_a_device_does_not_take_is_refused_before_anything_runs() {
    testkit::require!(Fio, MqDeadline, KernelSettings);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::tuned(directory.path());
    let before = device.settings();
    for (option, values, expected) in [
        ("--scheduler", "none,nosuch", "scheduler nosuch is not what loop"),
        ("--max-sectors-kb", "512,999996", "max_sectors_kb 999996 is not what loop"),
        ("--max-sectors-kb", "10", "the kernel takes multiples of 4096 B"),
        ("--nr-requests", "64,99999999", "nr_requests 99999999 cannot be set"),
        ("--nr-requests", "2", ": the kernel set 4 instead of 2"),
        ("--nomerges", "3", "known are 0, 1 and 2"),
        ("--nomerges", "yes", "a number was expected"),
        ("--read-ahead-kb", "777", "the kernel takes multiples of 4096 B"),
        ("--write-cache", "off", "known are 'write back' and 'write through'"),
    ] {
        let command = ["bench", "disk", device.path(), option, values];
        let output = run(directory.path(), &[&command[..], &READS, &ONCE].concat());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{option} {values}: {error}");
        assert!(error.contains(expected), "{option} {values}: {error}");
        assert!(error.contains("hint: "), "{error}");
        assert_eq!(device.settings(), before, "{option} {values}");
        assert!(!directory.path().join("takeup-bench-disk.ndjson").exists(), "{option} {values}");
    }
    let folder = ["bench", "disk", "/proc/version", "--scheduler", "none"];
    let output = run(directory.path(), &folder);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("has no scheduler that could be set"), "{error}");
}

/// Without a scheduler a loop device has a queue of 128 at most.
#[test]
fn a_combination_that_a_device_does_not_take_is_left_out_and_named() {
    testkit::require!(Fio, MqDeadline, KernelSettings);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::tuned(directory.path());
    let command = ["bench", "disk", device.path(), "--runtime", "once", "--block-size", "64k"];
    let factors = ["--scheduler", "none,mq-deadline", "--nr-requests", "64,256"];
    let output = run(directory.path(), &[&command[..], &READS, &factors, &ONCE].concat());
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{told}");
    let left_out = "nr_requests 256, scheduler none is left out: ";
    assert!(told.contains(left_out), "{told}");
    assert_eq!(runs(directory.path()).len(), 3);
}
