//! All findings about a drive have the same form, and every rule is in the list.

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
    testkit::require!(Fuse);
    let drive = Drive::new();
    fs::write(drive.folder().join("data"), testkit::samples::noise(1, 1 << 20)).unwrap();
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

/// A run with a named drive has a verdict on that drive, and reports the time in which no data
/// pass.
#[test]
fn a_backup_is_judged_by_the_drive_that_was_set() {
    testkit::require!(Fuse);
    let set = ["--set", "speeds_bytes_per_second=20MB,40MB", "--speed-up", "4"];
    let drive = Drive::with(&[&set[..], &["--set", "buffer_bytes=1M"]].concat());
    let file = drive.folder().join("file");
    std::fs::write(&file, testkit::samples::noise(5, 8 << 20)).unwrap();
    let backup = |format: &[&str]| {
        let mut command = takeup();
        command.arg("backup").arg(&file).arg("--to").arg(drive.tape());
        let output = command.args(["--ring", "32M", "--overwrite"]).args(format).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let document: serde_json::Value = serde_json::from_str(&backup(&["--json"])).unwrap();
    // With --speed-up 4 the tape moves four times as fast in real time.
    let tape = &document["tape"];
    assert_eq!(tape["lowest_bytes_per_second"], 80_000_000, "{document}");
    assert_eq!(tape["lowest_certainty"], "as the virtual drive is set, its time 4 times as fast");
    let given = tape["streaming_bytes_per_second"].as_f64().unwrap();
    assert_eq!(tape["kept_streaming"], given >= 80e6, "{tape}");
    assert!(document["ready_seconds"].as_f64().unwrap() > 0.0, "{document}");
    let text = backup(&[]);
    assert!(text.contains("for winding, ") && text.contains("for reading its label"), "{text}");
    assert!(!text.contains("opening and closing took most of the time"), "{text}");
}

/// A backup to a drive that winds and flushes accounts for all of its time: for the run, and for
/// each stage. Sentence and table have the same total.
#[test]
fn no_time_of_a_backup_to_tape_is_lost() {
    testkit::require!(Fuse);
    for options in [["--drive", "lto1"], ["--drive", "lto5"]] {
        let drive =
            Drive::with(&[&options[..], &["--compression", "off", "--speed-up", "20"]].concat());
        let file = drive.folder().join("file");
        std::fs::write(&file, testkit::samples::noise(5, 16 << 20)).unwrap();
        let backup = |format: &[&str]| {
            let mut command = takeup();
            command.arg("backup").arg(&file).args(["--ring", "32M", "--to"]).arg(drive.tape());
            // What is known of the tape is forgotten each time.
            let state = tempfile::tempdir().unwrap();
            command.env("XDG_STATE_HOME", state.path());
            let output = command.args(format).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        backup(&[]);
        // The second set is after the first: the tape is rewound, read, and wound to its end.
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
            // Threads and the run use different clocks.
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
        // The share of flushing depends on the machine: the line of the tape has its time if it is
        // worth naming, the limit only where it matters.
        assert!(text.lines().nth(1).unwrap().contains("winding"), "{text}");
        let tape = text.lines().find(|line| line.starts_with("tape: ")).unwrap();
        assert_eq!(tape.contains("flushing until all was"), !tape.contains(", all on"), "{text}");
    }
}

/// Restore and verify report winding, too, and the times of each stage add up to the run's. The
/// tape goes to the end once, and from there to the file.
#[test]
fn winding_for_a_restore_is_told() {
    testkit::require!(Fuse);
    let set = ["--speed-up", "20", "--capacity", "64M", "--set", "wind_ns=20s"];
    // The drive need not wind over data that it has read ahead.
    let set = [&set[..], &["--set", "buffer_bytes=1000000"]].concat();
    let drive = Drive::with(&[&["--drive", "lto4", "--compression", "off"], &set[..]].concat());
    let tree = drive.folder().join("tree");
    std::fs::create_dir(&tree).unwrap();
    for number in 0..12_u64 {
        std::fs::write(
            tree.join(format!("file{number:02}")),
            testkit::samples::noise(number, 3 << 20),
        )
        .unwrap();
    }
    let takeup_on = |command: &str, more: &[&std::path::Path]| {
        // What is known of the tape is forgotten each time.
        let state = tempfile::tempdir().unwrap();
        let mut it = takeup();
        it.env("XDG_STATE_HOME", state.path());
        document(it.args([command, "--json", "-q"]).args(more).current_dir(drive.folder()))
    };
    let (tape, here) = (drive.tape(), std::path::Path::new("tree"));
    takeup_on("backup", &[here, std::path::Path::new("--to"), &tape]);
    drive.mt(&["rewind"]);
    let winds = || drive.status()["time"]["winds"].as_u64().unwrap();
    let (before, into) = (winds(), std::path::Path::new("--into=out"));
    let restored = takeup_on("restore", &[&tape, into, std::path::Path::new("tree/file02")]);
    // To the end, before its last filemark, after the one before the index, and to the file.
    assert!(winds() - before <= 4, "{} ways", winds() - before);
    let verified = takeup_on("verify", &[&tape]);
    for document in [&restored, &verified] {
        let seconds = |of: &Value, name: &str| of[name].as_f64().unwrap();
        let tape = &document["tape"];
        let wound = seconds(tape, "ready_seconds") - seconds(tape, "label_seconds");
        // On a half-written tape, winding covers at least half of its length.
        assert!(wound >= 10.0 / 20.0, "{document:#}");
        assert!(seconds(document, "moving_seconds") < seconds(document, "seconds") - 0.5);
        for stage in document["stages"].as_array().unwrap() {
            assert!(seconds(stage, "winding_seconds") >= wound - 1e-6, "{stage:#}");
            let kinds = ["working", "starved", "blocked", "winding", "label", "changing"];
            let all = kinds.into_iter().chain(["flushing", "idle"]);
            let sum: f64 = all.map(|kind| seconds(stage, &format!("{kind}_seconds"))).sum();
            let whole = seconds(document, "seconds");
            assert!((sum - whole).abs() < 0.05 * whole, "{sum} of {whole}: {stage:#}");
        }
    }
    let to_file = restored["winding_seconds"].as_f64().unwrap();
    assert!(to_file > 0.0, "{restored:#}");
}

/// A virtual drive is queried like a real one, and described as it was set.
#[test]
fn a_virtual_drive_answers_and_its_compression_can_be_switched() {
    testkit::require!(Fuse);
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
    fs::write(drive.folder().join("data"), testkit::samples::noise(1, 1 << 20)).unwrap();
    for (switch, expected) in [("off", false), ("on", true)] {
        let mut command = takeup();
        command.current_dir(drive.folder()).args(["backup", "data", "--json", "--overwrite"]);
        document(command.args(["--drive-compression", switch, "--to"]).arg(drive.tape()));
        assert_eq!(drive.status()["compression"], expected, "{switch}");
        assert_eq!(probe()["drive"]["compression"], switch);
    }
}
