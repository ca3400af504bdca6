//! Files of runs: written run by run, continued, reported and compared.

use std::fs;

use serde_json::Value;

use crate::{run, small_experiment, succeeds};

const FILE: &str = "takeup-bench-read.ndjson";

#[test]
fn an_experiment_leaves_every_run_and_says_what_to_set() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = small_experiment(directory.path());
    let text = succeeds(directory.path(), &arguments);
    assert!(text.contains("\n\nengine  block size  runs"), "{text}");
    let end = "as many repeats as --repeats-max allows; 12 runs in takeup-bench-read.ndjson";
    assert!(text.contains(end), "{text}");
    let lines = fs::read_to_string(directory.path().join(FILE)).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 13);
    assert_eq!(lines[0]["experiment"]["seed"], 7);
    for run in &lines[1..] {
        let run = &run["run"];
        assert_eq!(run["bytes"], 8 << 20);
        assert!(run["environment"]["kernel"].is_string(), "{run}");
        assert!(run["series"]["bytes"].is_array() && run["latency"].is_array(), "{run}");
        assert_eq!(run["stages"][0]["bytes"], 8 << 20);
    }
    // The same command has nothing left to do, and reports the existing runs.
    let again = run(directory.path(), &arguments);
    assert!(String::from_utf8_lossy(&again.stderr).contains("holds 12 runs: continuing"));
    assert_eq!(again.stdout, text.as_bytes());
    // Another experiment is not mixed into it.
    let mut other = arguments.clone();
    other[2] = "other";
    fs::copy(directory.path().join("data"), directory.path().join("other")).unwrap();
    let refused = run(directory.path(), &other);
    assert_eq!(refused.status.code(), Some(1));
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains("holds another experiment\nhint: use --output NAME"), "{error}");
}

#[test]
fn a_stopped_experiment_goes_on_in_its_order() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = small_experiment(directory.path());
    succeeds(directory.path(), &arguments);
    let path = directory.path().join(FILE);
    let whole = fs::read_to_string(&path).unwrap();
    let cells = |text: &str| -> Vec<Value> {
        let runs = text.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).unwrap());
        runs.map(|run| run["run"]["cell"].clone()).collect()
    };
    // Killed while it writes its sixth run.
    let kept: Vec<&str> = whole.lines().take(6).collect();
    fs::write(&path, kept.join("\n") + "\n{\"run\":{\"cell\":{\"eng").unwrap();
    succeeds(directory.path(), &arguments);
    let after = fs::read_to_string(&path).unwrap();
    assert!(after.starts_with(&kept.join("\n")), "what was there stays as it is");
    assert_eq!(cells(&after), cells(&whole));
}

#[test]
fn a_plan_is_printed_and_run() {
    let directory = tempfile::tempdir().unwrap();
    let mut arguments = small_experiment(directory.path());
    arguments.push("--print-plan");
    let plan = succeeds(directory.path(), &arguments);
    assert!(!directory.path().join(FILE).exists());
    fs::write(directory.path().join("plan.toml"), plan.replace("65536", "\"128k\"")).unwrap();
    succeeds(directory.path(), &["bench", "read", "--plan", "plan.toml", "-o", "a.ndjson"]);
    let file = fs::read_to_string(directory.path().join("a.ndjson")).unwrap();
    assert!(file.contains("\"block_bytes\":131072"), "{file}");
    let refused = run(directory.path(), &["bench", "disk", "--plan", "plan.toml"]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains("is a plan for bench read, not for bench disk"), "{error}");
}

#[test]
fn reports_and_comparisons_come_from_the_files() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = small_experiment(directory.path());
    for output in ["a.ndjson", "b.ndjson"] {
        succeeds(directory.path(), &[&arguments[..], &["-o", output]].concat());
    }
    let files = ["--html", "a.html", "--csv", "a.csv", "--svg", "figures"];
    let printed = succeeds(directory.path(), &[&["report", "a.ndjson"], &files[..]].concat());
    assert!(printed.contains("block size"), "{printed}");
    let page = fs::read_to_string(directory.path().join("a.html")).unwrap();
    assert!(
        page.matches("<svg").count() >= 3 && !page.contains("http:") && !page.contains("https:")
    );
    // The head has where and when it was measured, and the plan.
    for fact in ["device", "host", "kernel", "date", "plan"] {
        assert!(page.contains(&format!("<dt>{fact}</dt>")), "{fact} in {page}");
    }
    let table = fs::read_to_string(directory.path().join("a.csv")).unwrap();
    assert_eq!(table.lines().count(), 13);
    let printed = succeeds(directory.path(), &["report", "a.ndjson", "--csv", "-"]);
    assert_eq!(printed, table);
    let lines = succeeds(directory.path(), &["report", "a.ndjson", "--ndjson", "-"]);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |name: &str| lines.iter().filter(|line| line.get(name).is_some()).count();
    assert_eq!((of("run"), of("cell")), (12, 4));
    assert!(of("effect") >= 2 && of("sentence") >= 1);
    let both = run(directory.path(), &["report", "a.ndjson", "--csv", "-", "--ndjson", "-"]);
    assert_eq!(both.status.code(), Some(1));
    let figures = fs::read_dir(directory.path().join("figures")).unwrap().count();
    assert_eq!(figures, page.matches("<svg").count());
    let document = succeeds(directory.path(), &["report", "a.ndjson", "--json"]);
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["judgement"]["cells"].as_array().unwrap().len(), 4);
    // An experiment and its copy: nothing differs, whatever the scatter.
    fs::copy(directory.path().join("a.ndjson"), directory.path().join("copy.ndjson")).unwrap();
    let same = succeeds(directory.path(), &["compare", "a.ndjson", "copy.ndjson", "--json"]);
    let same: Value = serde_json::from_str(&same).unwrap();
    for pair in same["comparison"]["pairs"].as_array().unwrap() {
        assert!(["same", "not_settled"].contains(&pair["verdict"].as_str().unwrap()), "{pair}");
        assert_eq!((pair["ratio"].as_f64(), pair["direction"].as_str()), (Some(1.0), None));
    }
    let two = succeeds(directory.path(), &["compare", "a.ndjson", "b.ndjson"]);
    assert!(two.starts_with("combination"), "{two}");
}

#[test]
fn what_cannot_be_measured_is_said_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("empty"), "").unwrap();
    fs::write(directory.path().join("full"), vec![1; 1 << 16]).unwrap();
    let check = |arguments: &[&str], expected: &str| {
        let output = run(directory.path(), arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains(expected), "{error}");
    };
    check(&["bench", "read", "empty"], "empty is empty");
    check(&["bench", "read", "missing"], "missing");
    check(&["bench", "read", "full", "--depth", "0"], "depth 0: must be 1 to 1024");
    check(&["bench", "read", "full", "--budget", "soon"], "a time is a number");
    check(&["report", "full"], "line 1: not a line of an experiment");
    check(&["bench", "disk", "full", "--load", "randwrite"], "--destructive");
    let left = fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(left, 2, "no file of runs is left");
}

#[test]
fn a_report_replaces_nothing_that_it_reads_and_nothing_in_part() {
    let directory = tempfile::tempdir().unwrap();
    succeeds(directory.path(), &small_experiment(directory.path()));
    let runs = fs::read(directory.path().join(FILE)).unwrap();
    fs::write(directory.path().join("page"), "precious").unwrap();
    std::os::unix::fs::symlink(FILE, directory.path().join("link")).unwrap();
    let check = |options: &[&str], expected: &str| {
        let output = run(directory.path(), &[&["report", FILE], options].concat());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains(expected), "{error}");
        assert_eq!(fs::read(directory.path().join(FILE)).unwrap(), runs, "{options:?}");
        assert_eq!(fs::read(directory.path().join("page")).unwrap(), b"precious", "{options:?}");
    };
    for option in ["--html", "--csv", "--ndjson"] {
        check(&[option, FILE], "it holds the runs");
        check(&[option, "link"], "it holds the runs");
    }
    check(&["--html", "page", "--csv", "nowhere/runs.csv"], "nowhere/runs.csv");
    check(&["--html", "page", "--svg", "page/figures"], "page/figures");
    check(&["--html", "page", "--csv", "page"], "page is named twice");
}

#[test]
fn an_experiment_without_a_number_stands_in_nobodys_way() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = small_experiment(directory.path());
    let failed = run(directory.path(), &["bench", "tape", "/dev/full", "--length", "1M"]);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let error = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(error.contains("no run succeeded"), "{error}");
    assert!(!directory.path().join("takeup-bench-tape.ndjson").exists(), "{error}");
    // A file without any run, as left by a kill before the first, is refused too.
    succeeds(directory.path(), &arguments);
    let whole = fs::read_to_string(directory.path().join(FILE)).unwrap();
    let header = whole.lines().next().unwrap();
    let header = header.replace("\"length_bytes\":8388608", "\"length_bytes\":1");
    fs::write(directory.path().join(FILE), header + "\n").unwrap();
    let begun = run(directory.path(), &arguments);
    assert!(begun.status.success(), "{begun:?}");
}

#[test]
fn what_was_asked_for_and_did_not_run_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = small_experiment(directory.path());
    succeeds(directory.path(), &arguments);
    let path = directory.path().join(FILE);
    let whole = fs::read_to_string(&path).unwrap();
    // Stopped after its first run, with no time for another.
    let first: Vec<&str> = whole.lines().take(2).collect();
    fs::write(&path, first.join("\n") + "\n").unwrap();
    let arguments = [&arguments[..], &["--budget", "1us"]].concat();
    let output = run(directory.path(), &arguments);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text.matches(" run  engine ").count(), 3, "{text}");
    assert!(text.contains("the time budget is used up"), "{text}");
    let output = run(directory.path(), &[&arguments[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["not_run"].as_array().unwrap().len(), 3, "{document}");
}
