//! `takeup report` and `takeup compare` of records of a watch.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use service::compare::CompareAnswer;
use service::report::ReportAnswer;

use crate::answers::check;
use crate::watch_record::{Load, text};
use crate::{run, shown};

fn record(directory: &Path, name: &str, load: &Load) {
    fs::write(directory.join(name), text(load)).unwrap();
}

/// The JSON output of a command that succeeds without messages.
fn document(directory: &Path, arguments: &[&str]) -> Value {
    let output = run(directory, arguments);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let printed = serde_json::from_slice(&output.stdout).unwrap();
    match arguments[0] {
        "compare" => drop(check::<CompareAnswer>(&printed)),
        _ => drop(check::<ReportAnswer>(&printed)),
    }
    printed
}

fn device<'a>(document: &'a Value, name: &str) -> &'a Value {
    let devices = document["devices"].as_array().unwrap();
    devices.iter().find(|device| device["device"] == name).unwrap()
}

#[test]
fn a_report_has_what_devices_did_and_when_it_was_said() {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path(), "night", &Load::default());
    let output = run(directory.path(), &["report", "night", "-o", "page.html"]);
    insta::assert_snapshot!(shown(&output, directory.path()));
    let told = document(directory.path(), &["report", "night", "--json"]);
    assert_eq!(told["record"]["intervals"], 400);
    let disk = device(&told, "sda");
    assert_eq!((&disk["seconds"], &disk["busy_seconds"]), (&json!(400.0), &json!(380.0)));
    let column = |name: &str| {
        let columns = disk["columns"].as_array().unwrap();
        columns.iter().find(|column| column["column"] == name).unwrap().clone()
    };
    let rate = column("r/s")["median"].as_f64().unwrap();
    assert!((3800.0..4200.0).contains(&rate), "{rate}");
    assert_eq!(column("rareq-sz")["median"], 8.0);
    // The device was idle for twenty seconds, without findings.
    let said: Vec<(&Value, &Value, &Value)> = disk["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (&it["rule"], &it["began_seconds"], &it["ended_seconds"]))
        .collect();
    let rule = json!("device.not-merged");
    let times = [json!(0.0), json!(100.0), json!(120.0), json!(400.0)];
    assert_eq!(said, [(&rule, &times[0], &times[1]), (&rule, &times[2], &times[3])]);
    assert_eq!(disk["findings"][0]["began"], "2026-11-20 08:33:01");
    let series = disk["series"].as_array().unwrap();
    assert_eq!(series.len(), 240);
    let at = |seconds: f64| {
        let point = series.iter().min_by(|a, b| {
            let away = |it: &&Value| (it["at_seconds"].as_f64().unwrap() - seconds).abs();
            away(a).total_cmp(&away(b))
        });
        &point.unwrap()["read"]
    };
    assert_eq!(at(110.0)["await_ms"], Value::Null);
    assert_eq!(at(110.0)["bytes_per_second"], 0.0);
    let bytes = at(300.0)["bytes_per_second"].as_f64().unwrap();
    assert!((bytes / (4000.0 * 8192.0) - 1.0).abs() < 0.12, "{bytes}");
    assert_eq!(device(&told, "sdb")["busy_seconds"], 0.0);
}

#[test]
fn the_page_has_series_and_sentences_side_by_side() {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path(), "night", &Load::default());
    let output = run(directory.path(), &["report", "night", "-o", "page.html", "-q"]);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let page = fs::read_to_string(directory.path().join("page.html")).unwrap();
    // A device is drawn above its components.
    let [upper, lower] = ["<h2>dm-0</h2>", "<h2>sda</h2>"].map(|it| page.find(it).unwrap());
    assert!(upper < lower && !page.contains("<h2>sdb</h2>"));
    for part in ["sda: throughput, read", "sda: await, read", "sda: queue", "sda: %util"] {
        assert_eq!(page.matches(&format!("aria-label=\"{part}\"")).count(), 1, "{part}");
    }
    assert!(page.contains(">08:35</text>") && page.contains("device.not-merged"));
    assert!(page.contains("<td>08:33:01</td><td>08:34:41</td><td class=\"number\">100 of 100"));
    let output = run(directory.path(), &["report", "night", "--svg", "figures", "-q"]);
    assert!(output.status.success(), "{output:?}");
    let files = fs::read_dir(directory.path().join("figures")).unwrap().count();
    assert_eq!(files, page.matches("<svg class=\"fig\"").count());
}

fn verdicts(document: &Value, device: &str) -> Vec<(String, String, Option<String>)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    document["comparison"]["pairs"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|pair| pair["device"] == device)
        .map(|pair| {
            let [column, verdict] = ["column", "verdict"].map(|key| text(&pair[key]).unwrap());
            (column, verdict, text(&pair["direction"]))
        })
        .collect()
}

#[test]
fn two_records_whose_difference_is_known() {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path(), "a", &Load::default());
    let slower = Load { await_ms: 2.0, reads: 3000.0, kib: 128, seed: 2, ..Load::default() };
    record(directory.path(), "b", &Load { idle_disk: "sdc", ..slower });
    let told = document(directory.path(), &["compare", "a", "b", "--json"]);
    let expected = [
        ("r/s", "differs", Some("lower")),
        ("rkB/s", "differs", Some("higher")),
        ("r_await", "differs", Some("higher")),
        ("rareq-sz", "differs", Some("higher")),
        ("aqu-sz", "differs", Some("higher")),
        ("util", "differs", Some("higher")),
    ];
    let expected = expected
        .map(|(column, verdict, way)| (column.into(), verdict.into(), way.map(str::to_owned)));
    assert_eq!(verdicts(&told, "sda"), expected);
    let rate = &told["comparison"]["pairs"][0];
    let end = |name: &str| rate["interval"][name].as_f64().unwrap();
    assert!(end("low") < 0.75 && end("high") > 0.75, "{rate}");
    assert_eq!(told["comparison"]["only_in_a"], json!(["sdb"]));
    assert_eq!(told["comparison"]["only_in_b"], json!(["sdc"]));
    let said = told["comparison"]["said"].as_array().unwrap();
    let change = |rule: &str| {
        let own = said.iter().find(|it| it["device"] == "sda" && it["rule"] == rule);
        own.map(|it| it["change"].as_str().unwrap().to_owned())
    };
    assert_eq!(change("device.read-ahead-window").as_deref(), Some("new"));
    assert_eq!(change("device.not-merged").as_deref(), Some("gone"));
    let output = run(directory.path(), &["compare", "a", "b", "-o", "page.html"]);
    insta::assert_snapshot!(shown(&output, directory.path()));
    let page = fs::read_to_string(directory.path().join("page.html")).unwrap();
    assert!(page.contains("differs: lower") && page.contains("differs: higher"));
    assert!(!page.contains("faster"));
}

#[test]
fn the_same_load_twice_is_no_difference() {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path(), "a", &Load::default());
    record(directory.path(), "b", &Load { seed: 99, ..Load::default() });
    let told = document(directory.path(), &["compare", "a", "b", "--json"]);
    let verdicts = verdicts(&told, "sda");
    assert!(verdicts.iter().all(|(_, verdict, _)| verdict != "differs"), "{verdicts:?}");
    let same = |column: &str| verdicts.iter().any(|it| it.0 == column && it.1 == "same");
    assert!(same("r_await") && same("rareq-sz"), "{verdicts:?}");
    let said = told["comparison"]["said"].as_array().unwrap();
    assert!(said.iter().all(|it| it["change"] == "kept"), "{said:?}");
}

#[test]
fn intervals_of_two_lengths_are_made_one_length() {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path(), "a", &Load::default());
    let seldom = Load { interval: 5, seconds: 1000, seed: 3, ..Load::default() };
    record(directory.path(), "b", &seldom);
    let told = document(directory.path(), &["compare", "a", "b", "--json"]);
    assert_eq!((&told["a"]["joined"], &told["b"]["joined"]), (&json!(5), &json!(1)));
    assert_eq!((&told["a"]["intervals"], &told["b"]["intervals"]), (&json!(80), &json!(200)));
}

#[test]
fn a_record_that_is_cut_off_is_reported_as_far_as_it_goes() {
    let directory = tempfile::tempdir().unwrap();
    let whole = text(&Load::default());
    fs::write(directory.path().join("cut"), &whole[..whole.len() - 5]).unwrap();
    let output = run(directory.path(), &["report", "cut", "--json"]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&told["record"]["is_cut"], &told["record"]["intervals"]),
        (&json!(true), &json!(399))
    );
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(error, "takeup: cut: the last line is incomplete and was skipped\n");
}

#[test]
fn what_is_no_pair_of_records_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    record(here, "a", &Load { seconds: 20, ..Load::default() });
    let head = "{\"takeup_watch\":1}\n";
    let whole = text(&Load { seconds: 20, ..Load::default() });
    fs::write(
        here.join("one"),
        whole.lines().take(2).map(|it| format!("{it}\n")).collect::<String>(),
    )
    .unwrap();
    fs::write(here.join("empty"), head).unwrap();
    fs::write(here.join("wrong"), whole.replacen("\"at_seconds\":7", "\"at_seconds\":\"x\"", 1))
        .unwrap();
    fs::write(here.join("newer"), "{\"takeup_watch\":2}\n").unwrap();
    let experiment = json!({ "experiment": {
        "format": 1, "kind": "read", "title": "made", "factors": [], "plan": null, "seed": 1,
        "started_unix_seconds": 0,
    } });
    fs::write(here.join("experiment"), format!("{experiment}\n")).unwrap();
    let cases: &[&[&str]] = &[
        &["compare", "a", "experiment"],
        &["compare", "experiment", "a"],
        &["compare", "a", "missing"],
        &["compare", "a", "one"],
        &["compare", "a", "a", "-o", "a"],
        &["report", "one", "-o", "page.html"],
        &["report", "empty"],
        &["report", "wrong", "-o", "page.html"],
        &["report", "newer"],
        &["report", "a", "--csv", "runs.csv"],
        &["report", "a", "--limit", "array=1200MB"],
        &["report", "a", "-o", "a"],
    ];
    let mut told = String::new();
    for case in cases {
        let output = run(here, case);
        // A record of a later version has its own exit code.
        let code = if case.contains(&"newer") { 3 } else { 1 };
        assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{case:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        told.push_str(&format!("$ takeup {}\n{error}\n", case.join(" ")));
    }
    assert_eq!(fs::read_to_string(here.join("a")).unwrap(), whole);
    assert!(!here.join("page.html").exists() && !here.join("runs.csv").exists());
    insta::assert_snapshot!(told);
}

/// A row with an impossible number, and a time that goes back: all three commands report it.
#[test]
fn a_damaged_row_is_left_out_and_told() {
    let directory = tempfile::tempdir().unwrap();
    let whole = text(&Load::default());
    let mut lines: Vec<String> = whole.lines().map(str::to_owned).collect();
    let number = lines.iter().rposition(|line| line.contains(" sda ")).unwrap();
    let at = lines[number].find(" sda ").unwrap() + 5;
    lines[number].insert_str(at, "7777777777");
    let time = number - 3;
    let begin = "{\"at_seconds\":";
    assert!(lines[time].starts_with(begin), "{}", lines[time]);
    let end = lines[time].find(',').unwrap();
    lines[time].replace_range(begin.len()..end, "0.0");
    fs::write(directory.path().join("damaged"), lines.join("\n") + "\n").unwrap();
    fs::write(directory.path().join("whole"), whole).unwrap();
    for arguments in [
        &["watch", "--from", "damaged", "--plain"][..],
        &["report", "damaged", "--json"],
        &["compare", "whole", "damaged"],
    ] {
        let output = run(directory.path(), arguments);
        let told = String::from_utf8(output.stderr).unwrap();
        for (line, why) in [(time + 1, "its time is "), (number + 1, "sda: ")] {
            let said = format!("takeup: damaged, line {line}: skipped: {why}");
            assert!(told.contains(&said), "{arguments:?}: {told}");
        }
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {told}");
        if arguments[0] == "report" {
            let document: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(document["record"]["left_out"][1]["line"], number + 1);
            assert_eq!(document["record"]["left_out_count"], 2);
        }
    }
}
