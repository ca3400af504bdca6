//! A machine that has lost its state, and what the sets say of the journal that was in it.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::{Place, TICK};

/// Two sets, each read back after it was written, and the time of the first.
fn two_verified_sets() -> (Place, Value) {
    let place = Place::new("verify.after = 'checksums'\n");
    let first = place.job(&[], 0);
    assert_eq!(first["verified"][0]["sound"], true, "{first:#}");
    let begun = place.status(0)["last_verified_success_seconds"].clone();
    assert!(begun.is_u64(), "{begun}");
    place.write(1, "another day");
    std::thread::sleep(TICK);
    place.job(&[], 0);
    (place, begun)
}

fn lose_state(place: &Place) {
    fs::remove_dir_all(place.path("state")).unwrap();
}

/// What `catalog rebuild` takes into the journal.
#[track_caller]
fn rebuilt(place: &Place, from: &str) -> Value {
    place.json(&["catalog", "rebuild", from], 0)["journals"].clone()
}

#[test]
fn runs_and_verifications_come_back_with_the_catalogue() {
    let (place, begun) = two_verified_sets();
    let set = place.archives()[1].file_name().unwrap().to_str().unwrap().to_owned();
    lose_state(&place);
    assert_eq!(place.status(0)["last_verified_success_seconds"], Value::Null);
    // The second set was written before it was read back, so it knows the first.
    let told = place.text(&["catalog", "rebuild", "sets/"], 0);
    let line = format!("the journal of homes was lost: 2 lines of it are back from {set}\n");
    assert!(told.contains(&line), "{told}");
    assert!(!told.contains("passed over"), "the lock is no archive: {told}");
    assert_eq!(place.status(0)["last_verified_success_seconds"], begun);
    let runs = place.json(&["catalog", "jobs"], 0)["jobs"][0]["runs"].as_array().map(Vec::len);
    assert_eq!(runs, Some(1));
    // What is known stays as it is.
    assert_eq!(rebuilt(&place, "sets/"), serde_json::json!([]));
    let journal = fs::read_to_string(place.path("state/takeup/journal.jsonl")).unwrap();
    assert_eq!(journal.lines().count(), 2, "{journal}");
}

#[test]
fn a_set_that_was_damaged_is_known_to_be_so_again() {
    let (place, _) = two_verified_sets();
    crate::damage(&place.archives()[0]);
    place.text(&["verify", "sets/"], 1);
    // A full set, since nothing counts on what is damaged.
    std::thread::sleep(TICK);
    place.job(&[], 0);
    lose_state(&place);
    let told = place.json(&["catalog", "rebuild", "sets/"], 0);
    assert_eq!(told["journals"].as_array().map(Vec::len), Some(1), "{told}");
    let sets = place.json(&["list", "sets/"], 0)["sets"].clone();
    let sound: Vec<&Value> = sets.as_array().unwrap().iter().map(|set| &set["sound"]).collect();
    assert_eq!(sound, [&Value::Bool(false), &Value::Bool(true), &Value::Null], "{sets:#}");
}

#[test]
fn what_was_verified_elsewhere_is_not_taken_for_a_copy() {
    let (place, _) = two_verified_sets();
    let mut copy = Command::new("cp");
    let copied = copy.args(["-r", "sets", "copy"]).current_dir(place.path("")).status().unwrap();
    assert!(copied.success());
    lose_state(&place);
    assert_eq!(rebuilt(&place, "copy/"), serde_json::json!([]));
    assert!(!place.path("state/takeup/journal.jsonl").exists());
}

#[test]
fn what_another_machine_verified_is_not_taken() {
    testkit::require!(Root);
    let (place, _) = two_verified_sets();
    lose_state(&place);
    let program = env!("CARGO_BIN_EXE_takeup");
    let elsewhere = |line: &str| {
        let state = place.path("state");
        let mut command = Command::new("unshare");
        command.args(["--uts", "sh", "-c", line, program]);
        command.args(["catalog", "rebuild", "sets/", "--json"]);
        let command = command.current_dir(place.path("")).env("XDG_STATE_HOME", state);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{text}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["journals"].clone()
    };
    assert_eq!(elsewhere("hostname another && exec \"$0\" \"$@\""), serde_json::json!([]));
    // It is the name that makes the difference.
    assert_eq!(elsewhere("exec \"$0\" \"$@\"").as_array().map(Vec::len), Some(1));
    assert!(Path::new(&place.path("state/takeup/journal.jsonl")).exists());
}
