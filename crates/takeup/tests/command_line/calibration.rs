//! `takeup plan --from RUNS`: a plan for a drive that is modelled from an experiment.

use std::fs;

use serde_json::{Value, json};

use crate::made_record::{made, text};
use crate::{document, run, shown};

const SOURCE: [&str; 7] =
    ["--source-rate", "60MB", "--size", "1TB", "--compression", "none", "--json"];

fn folder_with(lines: &[Value]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("runs.ndjson"), text(lines)).unwrap();
    directory
}

/// The output does not depend on the machine.
#[test]
fn a_plan_for_the_drive_of_an_experiment() {
    let directory = folder_with(&made(3));
    let plan = ["plan", "--from", "runs.ndjson", "--parameters"];
    let output = run(directory.path(), &[&plan[..], &SOURCE[..6]].concat());
    insta::assert_snapshot!("plan_from", shown(&output, directory.path()));
}

/// A record that rules out the buffer of the generation: the nearest possible value is assumed.
#[test]
fn nothing_is_assumed_that_the_runs_leave_no_room_for() {
    let mut lines = made(3);
    for line in &mut lines[1..] {
        let run = &mut line["run"];
        if run["cell"]["data"] == "random" {
            let seconds = [2.41, 2.6, 2.75][run["repeat"].as_u64().unwrap() as usize - 1];
            run["measures"]["filemark_seconds"] = json!(seconds);
        }
    }
    let directory = folder_with(&lines);
    let plan = [&["plan", "--from", "runs.ndjson"], &SOURCE[..6]].concat();
    let text = shown(&run(directory.path(), &plan), directory.path());
    let most = text.split("buffer_bytes: at most ").nth(1).unwrap_or_else(|| panic!("{text}"));
    let most = most.split(':').next().unwrap();
    assert!(text.contains(&format!("the drive's buffer holds {most} (")), "{text}");
    let taken =
        format!("buffer_bytes is not 102 MB, the value of LTO-4 by IBM; the model uses {most}");
    assert!(text.contains(&taken), "{text}");
    let found = document(directory.path(), &[&plan[..], &["--json"]].concat());
    let not_told = found["from"]["not_told"].as_array().unwrap();
    let buffer = not_told.iter().find(|one| one["parameters"] == json!(["buffer_bytes"])).unwrap();
    let rows = found["parameters"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == "buffer_bytes").unwrap();
    assert_eq!((&row["value"], &row["origin"]), (&buffer["at_most"], &json!("assumed")));
}

#[test]
fn what_was_put_in_comes_out_and_the_rest_is_that_of_the_generation() {
    let directory = folder_with(&made(3));
    let plan =
        |options: &[&str]| document(directory.path(), &[&["plan"], options, &SOURCE[..]].concat());
    let from = plan(&["--from", "runs.ndjson"]);
    let table = plan(&["--drive", "lto4"]);
    let value = |plan: &Value, name: &str| {
        let rows = plan["parameters"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        (row["value"].clone(), row["origin"].as_str().unwrap().to_owned())
    };
    let told = from["from"]["told"].as_array().unwrap();
    for (name, truth) in [
        ("speeds_bytes_per_second", 110e6),
        ("host_bytes_per_second", 230e6),
        ("command_overhead_ns", 120e3),
        ("synchronise_ns", 2.4e9),
        ("buffer_bytes", 90e6),
    ] {
        let one = told.iter().find(|told| told["parameter"] == name).unwrap();
        let [low, high] = ["low", "high"].map(|end| one[end].as_f64().unwrap());
        assert!(low <= truth && truth <= high, "{one:#}");
        let (found, origin) = value(&from, name);
        let found = found.as_array().map_or(&found, |all| all.last().unwrap()).as_f64().unwrap();
        assert!((found - one["value"].as_f64().unwrap()).abs() <= 1.0, "{found} of {one:#}");
        assert_eq!(origin, "fitted", "{name}");
    }
    for name in ["wind_ns", "back_hitch_ns", "wraps", "capacity_bytes"] {
        assert_eq!(value(&from, name), value(&table, name), "{name}");
    }
    assert_eq!(from["drive"], "LTO-4");
    // A value of --set goes before a fitted one.
    let set = plan(&["--from", "runs.ndjson", "--set", "synchronise_ns=7"]);
    assert_eq!(value(&set, "synchronise_ns"), (json!(7), "given".to_owned()));
}

#[test]
fn the_users_own_data_tell_their_ratio() {
    let mut lines = made(3);
    for line in &mut lines[1..] {
        let run = &mut line["run"];
        if run["cell"]["data"] == "random" {
            run["cell"]["data"] = json!("/srv/db.dump");
            run["measures"]["drive_compression_ratio"] = json!(1.75);
        }
    }
    let directory = folder_with(&lines);
    let plan = ["plan", "--from", "runs.ndjson", "--source-rate", "60MB", "--size", "1TB"];
    let found = document(directory.path(), &[&plan[..], &["--json"]].concat());
    let ratio = found["compression"]["ratio"].as_f64().unwrap();
    assert!((ratio - 1.75).abs() < 0.01, "{found:#}");
    assert_eq!(found["compression"]["is_ratio_assumed"], false);
    let given = document(directory.path(), &[&plan[..], &["--json", "--ratio", "3"]].concat());
    assert_eq!(given["compression"]["ratio"], 3.0);
}

#[test]
fn a_record_that_tells_nothing_ends_before_anything_is_done() {
    type Change = fn(&mut Vec<Value>);
    let cases: [(Change, &[&str], &str); 7] = [
        (|lines| lines[0]["experiment"]["kind"] = json!("disk"), &[], "of the kind \"disk\""),
        (|lines| lines.truncate(9), &[], "each combination in it ran once"),
        (|lines| lines.truncate(1), &[], "none of its 0 runs succeeded"),
        (
            |lines| lines[1]["run"]["environment"]["drive"] = json!("HP Ultrium 4-SCSI"),
            &[],
            "of several drives: HP Ultrium 4-SCSI at /dev/nst0, IBM ULT3580-TD4 at /dev/nst0",
        ),
        (
            |lines| {
                for line in &mut lines[1..] {
                    line["run"]["environment"] = json!({ "path": "/tmp/x" });
                }
            },
            &[],
            "its runs went to /tmp/x, which is not a tape drive",
        ),
        (
            |lines| {
                for line in &mut lines[1..] {
                    let environment = &mut line["run"]["environment"];
                    environment["drive"] = json!("ACME tape");
                    environment["medium generation"] = json!("of its own");
                }
            },
            &[],
            "unknown generation of ACME tape, in runs.ndjson",
        ),
        (|_| {}, &["--drive", "lto8"], "made on a drive with LTO-4 media, but --drive says LTO-8"),
    ];
    for (change, options, expected) in cases {
        let mut lines = made(3);
        change(&mut lines);
        let directory = folder_with(&lines);
        let plan = [&["plan", "--from", "runs.ndjson", "--chart", "plan.svg"], options].concat();
        let output = run(directory.path(), &[&plan[..], &SOURCE[..]].concat());
        let text = shown(&output, directory.path());
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(expected), "{text}");
        assert!(!directory.path().join("plan.svg").exists(), "{text}");
        let mount = run(directory.path(), &[&["sim", "tape", "."], options, &plan[1..3]].concat());
        assert!(shown(&mount, directory.path()).contains(expected), "{mount:?}");
    }
}

/// The record of docs/bench.md, whose drive has 120 MB/s; its commands take less than the noise.
#[test]
fn a_bound_of_microseconds_is_told_in_microseconds() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let from = ["plan", "--from", "benchmarks/transcripts/tape-lto4.ndjson"];
    let output = run(&root, &[&from[..], &SOURCE[..6]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("the highest speed      119 MB/s"), "{text}");
    let (_, bound) = text.split_once("command_overhead_ns: at most ").unwrap();
    let (number, rest) = bound.split_once(' ').unwrap();
    assert!(rest.starts_with("us: smaller blocks"), "{text}");
    assert!((50.0..500.0).contains(&number.parse::<f64>().unwrap()), "{text}");
}
