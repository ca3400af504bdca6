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
    let drive = Drive::with(&[&set[..], &["--set", "buffer_bytes=1M"]].concat());
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
    // In four times the time of the clock its tape moves four times as fast.
    let tape = &document["tape"];
    assert_eq!(tape["lowest_bytes_per_second"], 80_000_000, "{document}");
    assert_eq!(tape["lowest_certainty"], "as the virtual drive is set, its time 4 times as fast");
    let given = tape["streaming_bytes_per_second"].as_f64().unwrap();
    assert_eq!(tape["kept_streaming"], given >= 80e6, "{tape}");
    assert!(document["ready_seconds"].as_f64().unwrap() > 0.0, "{document}");
    let text = backup(&[]);
    assert!(text.contains("for winding, ") && text.contains("for reading its label"), "{text}");
    assert!(!text.contains("opening and closing took the time"), "{text}");
}

/// All of the time of a backup to a drive that winds and flushes has a word: of the run, and of
/// each stage. The sentence speaks of the same whole as the table.
#[test]
fn no_time_of_a_backup_to_tape_is_lost() {
    needs::require!(Fuse);
    for options in [["--drive", "lto1"], ["--drive", "lto5"]] {
        let drive =
            Drive::with(&[&options[..], &["--compression", "off", "--speed-up", "20"]].concat());
        let file = drive.folder().join("file");
        std::fs::write(&file, samples::noise(5, 16 << 20)).unwrap();
        let backup = |format: &[&str]| {
            let mut command = takeup();
            command.arg("backup").arg(&file).args(["--ring", "32M", "--to"]).arg(drive.tape());
            let output = command.args(format).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        backup(&[]);
        // The second set is behind the first: the tape is rewound, read, and wound to its end.
        let document: Value = serde_json::from_str(&backup(&["--json"])).unwrap();
        let seconds =
            |value: &Value, kind: &str| value[format!("{kind}_seconds")].as_f64().unwrap();
        let whole = document["seconds"].as_f64().unwrap();
        let kinds = ["ready", "moving", "change", "synchronise"];
        let sum: f64 = kinds.iter().map(|kind| seconds(&document, kind)).sum();
        assert!((sum - whole).abs() < 1e-6, "{sum} of {whole}: {document:#}");
        assert!(seconds(&document, "ready") > 0.1, "{document:#}");
        for stage in document["stages"].as_array().unwrap() {
            let kinds = "winding label working starved blocked changing flushing idle".split(' ');
            let sum: f64 = kinds.map(|kind| seconds(stage, kind)).sum();
            // What a thread counts and what the run counts are two clocks that are read apart.
            assert!((sum / whole - 1.0).abs() < 0.02, "{sum} of {whole}: {stage:#}");
        }
        let limit = &document["findings"][0];
        let number = |name: &str| {
            let numbers = limit["numbers"].as_array().unwrap();
            numbers.iter().find(|one| one["name"] == name).unwrap()["value"].as_f64().unwrap()
        };
        assert!((number("run") - whole).abs() < 1e-6, "{limit:#}");
        let write = document["stages"].as_array().unwrap().last().unwrap();
        if document["bottleneck"] == "write" && document["limit"] == "stage" {
            let busy = (seconds(write, "working") + seconds(write, "flushing")) / whole;
            assert!((number("busy") - busy).abs() < 0.01, "{busy}: {limit:#}");
        }
        let text = backup(&[]);
        let head = text.lines().nth(1).unwrap();
        assert!(head.contains("winding") && head.contains("flushing"), "{text}");
    }
}

/// A virtual drive is asked as a real one is, and told of as it was set.
#[test]
fn a_virtual_drive_answers_and_its_compression_can_be_switched() {
    needs::require!(Fuse);
    let set = ["--drive", "lto6", "--set", "speeds_bytes_per_second=20MB,40MB"];
    let drive = Drive::with(&[&set[..], &["--speed-up", "100"]].concat());
    let probe = || document(takeup().args(["probe", "--json"]).arg(drive.tape()));
    let first = probe();
    assert_eq!(first["drive"]["generation"]["name"], "LTO-6", "{first:#}");
    assert_eq!(first["drive"]["compression"], "on", "{first:#}");
    assert_eq!(first["drive"]["as_set"]["lowest_bytes_per_second"], 2_000_000_000, "{first:#}");
    assert_eq!(first["drive"]["as_set"]["speed_up"], 100, "{first:#}");
    assert_eq!(first["blocks"]["drive_limits_found"], "asked", "{first:#}");
    let found = first["findings"].as_array().unwrap();
    let speed = found.iter().find(|one| one["rule"] == "drive.lowest-speed").unwrap();
    assert_eq!(speed["numbers"][0]["value"], 2e9, "{speed:#}");
    assert!(drive.status()["compression"].as_bool().unwrap());
    fs::write(drive.folder().join("data"), samples::noise(1, 1 << 20)).unwrap();
    for (switch, expected) in [("off", false), ("on", true)] {
        let mut command = takeup();
        command.current_dir(drive.folder()).args(["backup", "data", "--json", "--overwrite"]);
        document(command.args(["--drive-compression", switch, "--to"]).arg(drive.tape()));
        assert_eq!(drive.status()["compression"], expected, "{switch}");
        assert_eq!(probe()["drive"]["compression"], switch);
    }
}
