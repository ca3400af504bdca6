//! `takeup bench power`: the differences that an experiment will find, from records in this
//! repository.

use std::path::Path;

use crate::{document, run};

fn record() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let name = "benchmarks/x86_64-2cpu-24gib-ext4/2026-11-20-large-cold/large-cold.ndjson";
    root.join(name).display().to_string()
}

#[test]
fn repeats_and_time_come_from_an_earlier_record() {
    let directory = tempfile::tempdir().unwrap();
    let record = record();
    let found = document(directory.path(), &["bench", "power", &record, "--json"]);
    let repeats = |document: &serde_json::Value| document["repeats"].as_u64().unwrap();
    assert_eq!(found["combinations"], 7);
    assert!(repeats(&found) > 2 && found["seconds"].as_f64().unwrap() > 0.0, "{found:#}");
    let arguments = ["bench", "power", &record, "--difference", "10", "--json"];
    assert!(repeats(&document(directory.path(), &arguments)) < repeats(&found));
    let output = run(directory.path(), &["bench", "power", &record]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("5 % among 7 combinations: "), "{text}");
    assert!(text.contains("in four of five experiments"), "{text}");
    assert!(!text.contains("the plan"), "{text}");
}

#[test]
fn without_a_record_nothing_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let output = run(directory.path(), &["bench", "power"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("the scatter of this machine is unknown"), "{text}");
    std::fs::copy(record(), directory.path().join("takeup-bench-read.ndjson")).unwrap();
    let found = document(directory.path(), &["bench", "power", "--json"]);
    assert_eq!(found["records"][0], "takeup-bench-read.ndjson");
}
