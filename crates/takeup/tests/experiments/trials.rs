//! Settings on trial, on a loop device of the test: restored automatically, confirmed, or restored
//! by the next command if the guard process is gone. The tests change the times in the list of
//! changes instead of waiting.

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use service::tune::show::TuneShowAnswer;

use crate::disks::Loop;
use crate::tune::{check, done, told, tune};

/// Waits for a state, as long as it takes.
fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(120), "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn read_ahead(device: &Loop) -> String {
    device.settings()["read_ahead_kb"].clone()
}

/// Sets read-ahead on trial; returns the guard process.
fn on_trial(directory: &Path, device: &Loop, time: &str) -> u32 {
    let set = ["set", device.path(), "read_ahead_kb=1024", "--settle", "10ms", "--for", time];
    let text = done(directory, &set);
    assert!(text.contains("undo: automatic in ") && text.contains("takeup tune confirm"), "{text}");
    shown(directory)["guard"].as_u64().unwrap().try_into().unwrap()
}

/// The state of the trial of the first change.
fn shown(directory: &Path) -> Value {
    let document: Value = serde_json::from_str(&done(directory, &["show", "--json"])).unwrap();
    check::<TuneShowAnswer>(&document);
    document["changes"][0]["trial"].clone()
}

fn runs(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat"));
    // A zombie does not run any more.
    status.is_ok_and(|text| !text.rsplit(')').next().unwrap().starts_with(" Z"))
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    until("the guard is gone", || !runs(pid));
}

/// Edits the list of changes.
fn edit(directory: &Path, change: impl Fn(&mut Value)) {
    let path = directory.join("state/changes.json");
    let mut list: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut list["changes"][0]);
    fs::write(&path, list.to_string()).unwrap();
}

fn let_it_be_overdue(directory: &Path) {
    edit(directory, |change| change["trial"]["until_uptime_ms"] = 1.into());
}

#[test]
fn what_is_set_for_a_while_goes_back_by_itself() {
    testkit::require!(LoopDevices, KernelSettings);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::tuned(directory.path());
    let before = device.settings();
    let set = [
        "set",
        device.path(),
        "read_ahead_kb=1024",
        "max_sectors_kb=256",
        "--settle",
        "1ms",
        "--for",
        "0.5s",
    ];
    // On a busy machine the trial is over before the value is read back; a warning reports it.
    let code = tune(directory.path(), &set).output().unwrap().status.code();
    assert!(matches!(code, Some(0 | 2)), "{code:?}");
    let list = directory.path().join("state/changes.json");
    until("it goes back", || device.settings() == before && !list.exists());
    assert_eq!(done(directory.path(), &["show"]), "Takeup has changed no setting\n");
}

/// The guard has its own session, no terminal, no open files of its caller, and no folder.
#[test]
fn who_puts_it_back_outlives_the_terminal_and_holds_nothing() {
    testkit::require!(LoopDevices, KernelSettings);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::tuned(directory.path());
    // A descriptor that the caller left open: `3>&1 | cat` waits until it is closed.
    let set = format!(
        "exec {} tune set {} read_ahead_kb=1024 --settle 10ms --for 1h 3>&1",
        env!("CARGO_BIN_EXE_takeup"),
        device.path()
    );
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &set]).env("TAKEUP_STATE_DIR", directory.path().join("state"));
    shell.env("TAKEUP_RUN_DIR", directory.path().join("run"));
    let mut child = shell.process_group(0).stdout(Stdio::piped()).spawn().unwrap();
    let mut text = String::new();
    // The end comes while the guard runs, or never.
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success(), "{text}");
    let guard = u32::try_from(shown(directory.path())["guard"].as_u64().unwrap()).unwrap();
    let status = fs::read_to_string(format!("/proc/{guard}/stat")).unwrap();
    let fields: Vec<&str> = status.rsplit(')').next().unwrap().split_whitespace().collect();
    // State, parent, group, session, terminal (proc_pid_stat(5)).
    assert_eq!((fields[3], fields[4]), (&*guard.to_string(), "0"), "{status}");
    assert_eq!(fs::read_link(format!("/proc/{guard}/cwd")).unwrap(), Path::new("/"));
    // The guard opens the list for a moment now and then.
    until("nothing but /dev/null is open", || {
        let open = fs::read_dir(format!("/proc/{guard}/fd")).unwrap().flatten();
        let mut places = open.filter_map(|it| fs::read_link(it.path()).ok());
        places.all(|it| it == Path::new("/dev/null"))
    });
    // A second request after the confirmation has nothing to do, and ends.
    let text = done(directory.path(), &["show"]);
    assert!(text.contains("on trial: restored in ") && text.contains(" unless `takeup"), "{text}");
    let text = done(directory.path(), &["confirm"]);
    assert_eq!(text, format!("{}: stays\nundo: takeup tune revert\n", device.path()));
    until("the guard ends", || !runs(guard));
    assert_eq!((read_ahead(&device).as_str(), shown(directory.path())), ("1024", Value::Null));
    assert_eq!(done(directory.path(), &["confirm"]), "nothing is on trial\n");
    done(directory.path(), &["revert"]);
    assert_eq!(read_ahead(&device), "64");
}

#[test]
fn what_a_killed_guard_leaves_the_next_command_puts_back() {
    testkit::require!(LoopDevices, KernelSettings);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::tuned(directory.path());
    let before = device.settings();
    let settle = ["--settle", "10ms"];
    let other = [&["set", device.path(), "nomerges=2"][..], &settle].concat();
    for (next, code) in [(&["revert"][..], 0), (&["confirm"], 2), (&other, 0)] {
        kill(on_trial(directory.path(), &device, "1h"));
        let text = done(directory.path(), &["show"]);
        assert!(text.contains(") has died"), "{text}");
        assert!(!text.contains("overdue"), "{text}");
        let_it_be_overdue(directory.path());
        let text = done(directory.path(), &["show"]);
        assert!(text.contains("on trial, and overdue: "), "{text}");
        assert_eq!(read_ahead(&device), "1024", "who only looks changes nothing");
        let text = told(&tune(directory.path(), next).output().unwrap(), code);
        assert!(text.contains("read-ahead: 1024 KiB -> 64 KiB\n"), "{text}");
        assert_eq!(read_ahead(&device), "64");
        done(directory.path(), &["revert"]);
        assert_eq!(device.settings(), before);
    }
    // A trial that is not overdue can be confirmed without the guard.
    kill(on_trial(directory.path(), &device, "1h"));
    done(directory.path(), &["confirm"]);
    assert_eq!((read_ahead(&device).as_str(), shown(directory.path())), ("1024", Value::Null));
    done(directory.path(), &["revert"]);
}

/// As at the end of a session, which ends all of its processes.
#[test]
fn a_guard_that_is_asked_to_end_ends_the_trial() {
    testkit::require!(LoopDevices, KernelSettings);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::tuned(directory.path());
    let before = device.settings();
    let guard = on_trial(directory.path(), &device, "1h");
    kill_process(Pid::from_raw(guard.cast_signed()).unwrap(), Signal::TERM).unwrap();
    until("the guard is gone", || !runs(guard));
    assert_eq!(device.settings(), before);
    assert_eq!(done(directory.path(), &["show"]), "Takeup has changed no setting\n");
}

/// This change was not meant as a trial.
#[test]
fn what_was_set_by_hand_meanwhile_outlives_the_trial() {
    testkit::require!(LoopDevices, KernelSettings);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::tuned(directory.path());
    kill(on_trial(directory.path(), &device, "1h"));
    fs::write(device.queue("read_ahead_kb"), "4096").unwrap();
    let_it_be_overdue(directory.path());
    let text = told(&tune(directory.path(), &["confirm"]).output().unwrap(), 2);
    let expected = "read-ahead: 4096 KiB, set by another program during the trial, not changed\n";
    assert!(text.contains(expected), "{text}");
    assert_eq!((read_ahead(&device).as_str(), shown(directory.path())), ("4096", Value::Null));
}

/// The kernel turns -1 into its default; no other program set that value.
#[test]
fn the_kernels_default_latency_is_what_was_asked_for() {
    testkit::require!(LoopDevices, KernelSettings);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::tuned(directory.path());
    let set = ["set", device.path(), "wbt_lat_usec=-1", "--settle", "10ms"];
    let text = told(&tune(directory.path(), &set).output().unwrap(), 0);
    assert!(!text.contains("another program"), "{text}");
    done(directory.path(), &["revert"]);
}

/// After a restart of the machine nothing is pending.
#[test]
fn a_restart_ends_a_trial() {
    testkit::require!(LoopDevices, KernelSettings);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::tuned(directory.path());
    kill(on_trial(directory.path(), &device, "1h"));
    edit(directory.path(), |change| change["boot"] = "another".into());
    assert_eq!(shown(directory.path())["overdue"], true);
    let text = told(&tune(directory.path(), &["confirm"]).output().unwrap(), 2);
    assert!(text.contains("read-ahead: 1024 KiB -> 64 KiB"), "{text}");
    assert_eq!(read_ahead(&device), "64");
}

#[test]
fn a_trial_that_cannot_be_meant_is_refused() {
    testkit::require!(LoopDevices, KernelSettings);
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::tuned(directory.path());
    let path = device.path();
    for (arguments, expected) in [
        (&["set", path, "read_ahead_kb=1024", "--for", "4s"][..], "--for 4.00 s ends before"),
        (&["set", path, "read_ahead_kb=1024", "--for", "1000h"], "--for: at most 30 days"),
        (&["readahead", path, "--for", "10m"], "--for needs --apply"),
    ] {
        let text = told(&tune(directory.path(), arguments).output().unwrap(), 1);
        assert!(text.contains(expected) && text.contains("hint: "), "{text}");
    }
    assert_eq!(read_ahead(&device), "64");
}
