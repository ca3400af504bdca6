//! What is found on the way to a drive has one shape, and each rule is in the list.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::drive::{Drive, takeup};

#[track_caller]
fn document(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn findings_of_a_backup_and_of_probe_are_of_listed_rules() {
    needs::require!(Fuse);
    let drive = Drive::new();
    fs::write(drive.folder().join("data"), samples::noise(1, 1 << 20)).unwrap();
    let mut command = takeup();
    command.current_dir(drive.folder()).args(["backup", "data", "--json", "--to"]);
    let run = document(command.arg(drive.tape()));
    let probe = document(takeup().args(["probe", "--json"]).arg(drive.tape()));
    let list = document(takeup().args(["rules", "--json"]));
    let rooms = list["rooms"].as_array().unwrap().iter();
    let listed: Vec<&Value> =
        rooms.flat_map(|room| room["rules"].as_array().unwrap()).map(|rule| &rule["id"]).collect();
    let [of_run, of_probe] = [&run, &probe].map(|document| document["findings"].as_array());
    let (of_run, of_probe) = (of_run.unwrap(), of_probe.unwrap());
    for finding in of_run.iter().chain(of_probe) {
        assert!(listed.contains(&&finding["rule"]), "{finding:#}");
        assert_eq!(finding.as_object().unwrap().len(), 11, "{finding:#}");
    }
    let [limit, streaming] = &of_run[..] else { panic!("{of_run:#?}") };
    let explanation = run["explanation"].as_str().unwrap();
    assert!(explanation.starts_with(limit["sentence"].as_str().unwrap()), "{limit:#}");
    assert_eq!(streaming["sentence"], run["tape"]["verdict"]);
    let mut rules = of_probe.iter().map(|finding| &finding["rule"]);
    assert!(rules.any(|rule| rule == "drive.lowest-speed"), "{of_probe:#?}");
}

/// Whoever says what a drive is gets a verdict on that drive, and the time in which nothing passes
/// has a word.
#[test]
fn a_backup_is_judged_by_the_drive_that_was_set() {
    needs::require!(Fuse);
    let set = ["--set", "speeds_bytes_per_second=20MB,40MB", "--speed-up", "4"];
    let drive = Drive::with(&set);
    let file = drive.folder().join("file");
    std::fs::write(&file, samples::noise(5, 8 << 20)).unwrap();
    let backup = |format: &[&str]| {
        let mut command = takeup();
        command.arg("backup").arg(&file).arg("--to").arg(drive.tape());
        let output = command.args(["--ring", "32M", "--overwrite"]).args(format).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let document: serde_json::Value = serde_json::from_str(&backup(&["--json"])).unwrap();
    assert_eq!(document["tape"]["lowest_bytes_per_second"], 20_000_000, "{document}");
    assert!(document["ready_seconds"].as_f64().unwrap() > 0.0, "{document}");
    let text = backup(&[]);
    assert!(text.contains("for winding and reading its label"), "{text}");
    assert!(!text.contains("opening and closing took the time"), "{text}");
}
