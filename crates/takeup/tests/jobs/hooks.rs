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
fn a_run_that_waits_too_long_freezes_and_thaws_nothing() {
    let place = Place::new(
        "wait-for-target = '1 second'\nhooks.before = 'echo frozen >>log; sleep 5'\n\
         hooks.after-backup = 'echo thawed >>log'\n",
    );
    let mut command = place.takeup();
    command.args(["run", "homes", "--config", "takeup.toml"]).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let log = || fs::read_to_string(place.path("log")).unwrap_or_default();
    until(|| log().contains("frozen"));
    let said = place.text(&["run", "homes", "--config", "takeup.toml"], 1);
    assert!(said.contains("another backup writes into"), "{said}");
    let holder = format!("(process {}: ", child.id());
    assert!(said.contains(&holder) && said.contains(" run homes --config takeup.toml)"), "{said}");
    assert!(said.contains(", for over 1"), "{said}");
    let refused = place.text(&["backup", "home", "--to", "sets/"], 1);
    assert!(refused.contains(&holder), "{refused}");
    assert!(child.wait().unwrap().success());
    assert_eq!(log(), "frozen\nthawed\n");
}

#[test]
fn a_job_waits_for_another_one_of_its_folder() {
    let place = Place::new("hooks.before = 'echo frozen >>log; sleep 2'\n");
    let text = fs::read_to_string(place.path("takeup.toml")).unwrap();
    let other = text.replace("[jobs.homes]", "[jobs.other]").replace("echo frozen", "true");
    fs::write(place.path("takeup.toml"), format!("{text}{other}")).unwrap();
    let mut command = place.takeup();
    command.args(["run", "homes", "--config", "takeup.toml"]).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let log = || fs::read_to_string(place.path("log")).unwrap_or_default();
    until(|| log().contains("frozen"));
    let said = place.text(&["run", "other", "--config", "takeup.toml"], 0);
    let waiting = format!("(process {}: ", child.id());
    assert!(said.contains("waiting for another backup, ") && said.contains(&waiting), "{said}");
    // It was waited for to its end.
    assert!(child.try_wait().unwrap().unwrap().success());
    assert_eq!(place.archives().len(), 2);
    place.text(&["check-config", "--config", "takeup.toml"], 0);
}
