//! The commands around a run.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Place;

/// Waits until something has happened.
fn until(has_happened: impl Fn() -> bool) {
    let begun = Instant::now();
    while !has_happened() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it has not happened");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn commands_come_in_their_order_and_get_the_result() {
    let place = Place::new(
        "hooks.before = 'echo before $TAKEUP_JOB >>log'
hooks.after-backup = 'ls sets | grep -c tar >>log'
hooks.after = 'cat >result; echo $TAKEUP_HOOK >>log'\n",
    );
    let answer = place.job(&[], 0);
    assert_eq!(fs::read_to_string(place.path("log")).unwrap(), "before homes\n1\nafter\n");
    let result: Value = serde_json::from_slice(&fs::read(place.path("result")).unwrap()).unwrap();
    assert_eq!(result, answer);
}

#[test]
fn what_comes_after_runs_also_after_a_failure() {
    let place = Place::new(
        "hooks.before = 'exit 7'\nhooks.after-backup = 'echo thawed >>log'
hooks.after = 'grep -o failed >>log'\n",
    );
    let failed = place.job(&[], 1);
    let why = "the command `before` ended with exit status: 7";
    assert_eq!(failed["error"], why);
    assert!(failed["backup"].is_null());
    assert_eq!(fs::read_to_string(place.path("log")).unwrap(), "thawed\nfailed\n");
    assert_eq!(place.archives().len(), 0);
    let said = place.text(&["run", "homes", "--config", "takeup.toml"], 1);
    assert!(said.contains(&format!("FAILED: there is no backup of homes: {why}")), "{said}");
}

#[test]
fn a_command_that_fails_behind_a_backup_is_told() {
    let place = Place::new("hooks.after = 'exit 3'\n");
    let warned = place.job(&[], 2);
    assert!(warned["warnings"].to_string().contains("`after` ended with exit status: 3"));
    assert_eq!(place.archives().len(), 1);
}

#[test]
fn a_command_without_an_end_is_ended() {
    let place = Place::new("hooks.before = 'sleep 600'\nhooks.timeout = '1 second'\n");
    let begun = Instant::now();
    let failed = place.job(&[], 1);
    assert_eq!(failed["error"], "the command `before` was ended after 1.00 s");
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_stopped_run_thaws() {
    let place = Place::new(
        "hooks.before = 'echo frozen >>log; sleep 600'\nhooks.after-backup = 'echo thawed >>log'\n",
    );
    let mut command = place.takeup();
    command.args(["run", "homes", "--config", "takeup.toml"]).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let log = || fs::read_to_string(place.path("log")).unwrap_or_default();
    until(|| log().contains("frozen"));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(1));
    assert_eq!(log(), "frozen\nthawed\n");
}

#[test]
fn of_two_runs_one_waits_for_nothing_and_thaws_nothing() {
    let place = Place::new(
        "hooks.before = 'echo frozen >>log; sleep 3'\nhooks.after-backup = 'echo thawed >>log'\n",
    );
    let mut command = place.takeup();
    command.args(["run", "homes", "--config", "takeup.toml"]).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let log = || fs::read_to_string(place.path("log")).unwrap_or_default();
    until(|| log().contains("frozen"));
    let said = place.text(&["run", "homes", "--config", "takeup.toml"], 1);
    assert!(said.contains("another backup writes into"), "{said}");
    assert!(child.wait().unwrap().success());
    assert_eq!(log(), "frozen\nthawed\n");
}
