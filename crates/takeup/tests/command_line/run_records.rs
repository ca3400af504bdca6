//! `--record` of backup, restore, verify and pipe, and `takeup report` of their records, alone and
//! with a capture of the same time.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::captured_record::{BEGAN, captured};
use crate::{document, run, small_tree, takeup};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn kept(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn sum(of: &Value) -> f64 {
    of.as_array().unwrap().iter().map(|it| it.as_f64().unwrap()).sum()
}

/// A stage's work over time adds up to its total, and the record has the printed numbers.
#[test]
fn what_stages_did_over_time_is_kept() {
    let directory = small_tree();
    let at = directory.path();
    let runs = [
        (vec!["backup", "tree", "--to", "a.tar", "--compress", "zstd:1"], "compress"),
        (vec!["verify", "a.tar"], "parse"),
        (vec!["restore", "--into", "new", "a.tar"], "create"),
        (vec!["pipe", "--from", "a.tar", "--to", "b.tar"], "write"),
    ];
    for (number, (mut arguments, stage)) in runs.into_iter().enumerate() {
        let name = format!("run{number}.json");
        arguments.extend(["--record", &name, "--json"]);
        let printed = document(at, &arguments);
        let record = kept(&at.join(&name));
        assert_eq!(record["summary"]["command"], printed["command"]);
        assert_eq!(record["summary"]["source_bytes"], printed["source_bytes"]);
        assert_eq!(record["summary"]["explanation"], printed["explanation"]);
        let stages = record["stages"].as_array().unwrap();
        assert!(stages.iter().any(|it| it["name"] == stage), "{record:#}");
        for stage in stages {
            let over_time = &stage["over_time"];
            let threads = stage["threads"].as_f64().unwrap();
            for state in ["working_seconds", "starved_seconds", "blocked_seconds"] {
                let (all, told) =
                    (stage[state].as_f64().unwrap() * threads, sum(&over_time[state]));
                assert!((all - told).abs() < 1e-6, "{all} and {told}: {stage:#}");
            }
            assert_eq!(sum(&over_time["bytes"]), stage["bytes"].as_f64().unwrap(), "{stage:#}");
        }
        let report = document(at, &["report", &name, "--json", "-o", "page.html"]);
        crate::answers::check::<service::report::ReportAnswer>(&report);
        assert_eq!(report["run"], record["summary"]);
        let page = fs::read_to_string(at.join("page.html")).unwrap();
        assert!(page.contains(&format!("time of {stage}")), "{page}");
    }
}

/// A record has the same first line as its run.
#[test]
fn a_record_has_the_verdict_that_was_printed() {
    let directory = small_tree();
    let at = directory.path();
    let same = |arguments: &[&str], name: &str, word: &str| {
        let output = run(at, &[arguments, &["--record", name]].concat());
        let said = text(&output.stdout) + &text(&output.stderr);
        let verdict = said.lines().find(|line| line.starts_with(word));
        let verdict = verdict.unwrap_or_else(|| panic!("no {word}: {said}")).to_owned();
        let told = text(&run(at, &["report", name]).stdout);
        assert!(told.lines().any(|line| line == verdict), "{verdict}\n{told}");
    };
    same(&["backup", "tree", "--to", "e.tar", "--exclude", "*"], "empty.json", "INCOMPLETE");
    assert!(run(at, &["backup", "tree", "--to", "a.tar"]).status.success());
    let mut archive = fs::read(at.join("a.tar")).unwrap();
    let middle = archive.len() / 2;
    archive[middle] ^= 0x55;
    fs::write(at.join("a.tar"), archive).unwrap();
    same(&["verify", "a.tar"], "damaged.json", "DAMAGED");
}

/// An existing file is not replaced; the error comes before the run.
#[test]
fn a_record_takes_no_others_place() {
    let directory = small_tree();
    let at = directory.path();
    fs::write(at.join("mine"), "mine").unwrap();
    let output = run(at, &["backup", "tree", "--to", "a.tar", "--record", "mine"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("mine"), "{}", text(&output.stderr));
    assert!(!at.join("a.tar").exists());
    assert_eq!(fs::read_to_string(at.join("mine")).unwrap(), "mine");
    let output = run(at, &["backup", "tree", "--to", "a.tar", "--record", "./a.tar"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("--record and the target have the same name: ./a.tar"), "{said}");
    assert!(!at.join("a.tar").exists());
}

/// If another program takes the name meanwhile, the record is lost, but not the data.
#[test]
fn a_record_that_cannot_be_kept_is_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let mut pipe = takeup()
        .current_dir(at)
        .args(["pipe", "--to", "data", "--record", "record", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = pipe.stdin.take().unwrap();
    input.write_all(b"all of it").unwrap();
    let is_open = || fs::read_dir(at).unwrap().count() >= 2;
    for _ in 0..1000 {
        if is_open() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(is_open());
    fs::write(at.join("record"), "somebody else's").unwrap();
    drop(input);
    let output = pipe.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["warnings_total"], 1);
    let said = printed["warnings"][0]["text"].as_str().unwrap();
    assert!(said.starts_with("cannot keep the record: ") && said.contains("record"), "{said}");
    assert_eq!(fs::read_to_string(at.join("data")).unwrap(), "all of it");
    assert_eq!(fs::read_to_string(at.join("record")).unwrap(), "somebody else's");
}

#[test]
fn a_run_stands_above_a_capture_of_its_time() {
    let directory = small_tree();
    let at = directory.path();
    assert!(run(at, &["backup", "tree", "--to", "a.tar", "--record", "run.json"]).status.success());
    let line = fs::read_to_string(at.join("run.json")).unwrap();
    let record = kept(&at.join("run.json"));
    let shift = |began: f64| {
        let old = format!("\"began_unix_seconds\":{}", record["began_unix_seconds"]);
        assert!(line.contains(&old), "{line}");
        line.replacen(&old, &format!("\"began_unix_seconds\":{began:.3}"), 1)
    };
    fs::write(at.join("capture"), captured().to_lines()).unwrap();
    fs::write(at.join("within"), shift(BEGAN + 3.25)).unwrap();
    fs::write(at.join("before"), shift(BEGAN - 60.0)).unwrap();
    let report = document(at, &["report", "capture", "within", "--json", "-o", "page.html"]);
    let placed = report["runs"][0]["at_seconds"].as_f64().unwrap();
    assert!((placed - 3.25).abs() < 1e-3, "{placed}");
    assert_eq!(report["runs"][0]["run"], record["summary"]);
    let page = fs::read_to_string(at.join("page.html")).unwrap();
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}: {page}"));
    let figure = |title: &str| place(&format!("aria-label=\"{title}"));
    assert!(figure("takeup backup: time of read") < figure("calls: bytes"));
    assert!(figure("calls: bytes") < figure("sda: requests"));
    let told = text(&run(at, &["report", "capture", "within"]).stdout);
    let headline = record["headline"].as_str().unwrap();
    assert!(told.contains("shop --fast") && told.contains(headline), "{told}");
    // Without the run, the report has no stages.
    assert_eq!(document(at, &["report", "capture", "--json"])["runs"], json!([]));

    let refused = |arguments: &[&str], said: &str| {
        let output = run(at, arguments);
        assert_eq!(output.status.code(), Some(1));
        let error = text(&output.stderr);
        assert!(error.contains(said), "{error}");
        assert_eq!(text(&output.stdout), "");
    };
    refused(&["report", "capture", "before"], "they have no time in common");
    refused(&["report", "within", "capture"], "within is not a record of a capture");
    refused(&["report", "capture", "a.tar"], "a.tar is not the record of a run");
    refused(&["report", "capture", "within", "-o", "within"], "within: it holds the runs");
    fs::write(at.join("cut"), &line[..line.len() - 40]).unwrap();
    refused(&["report", "capture", "cut"], "cut is damaged");
    refused(&["report", "cut"], "cut is damaged");
}

/// A capture of takeup's own backup has the same bytes in stages and in calls.
#[test]
fn stages_and_calls_of_one_run_agree() {
    testkit::require!(Tracefs);
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::create_dir(at.join("tree")).unwrap();
    fs::write(at.join("tree/large"), vec![7; 40 << 20]).unwrap();
    let takeup = env!("CARGO_BIN_EXE_takeup");
    let capture = ["capture", "--json", "--record", "capture", "--", takeup];
    let backup = ["backup", "tree", "--to", "a.tar", "--record", "run.json", "--quiet"];
    let engine = ["--engine", "pread"];
    document(at, &[&capture[..], &backup, &engine].concat());
    let report = document(at, &["report", "capture", "run.json", "--json"]);
    let run = &report["runs"][0];
    let placed = run["at_seconds"].as_f64().unwrap();
    assert!(placed >= 0.0, "{placed}");
    assert!(placed + run["seconds"].as_f64().unwrap() <= report["seconds"].as_f64().unwrap());
    let stages = run["run"]["stages"].as_array().unwrap();
    let write = stages.iter().find(|it| it["name"] == "write").unwrap();
    let files = report["files"].as_array().unwrap();
    let written: u64 = files.iter().filter_map(|it| it["written_bytes"].as_u64()).sum();
    let bytes = write["bytes"].as_u64().unwrap();
    // The record itself is a few kilobytes.
    assert!((bytes..bytes + (1 << 20)).contains(&written), "{bytes} and {written}: {files:#?}");
}
