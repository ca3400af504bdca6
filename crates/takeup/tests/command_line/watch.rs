//! `takeup watch`: replayed records as text and as lines of JSON, and this machine for a moment.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::{run, shown, takeup};

/// A disk with this name: idle, with a number of small random reads, or hanging.
fn row(name: &str, reads: u64, in_flight: u32) -> String {
    let (sectors, time_ms, busy_ms) = (reads * 16, reads * 2 / 5, reads / 40);
    let minor = if name == "sda" { 0 } else { 16 };
    format!(
        "8 {minor} {name} {reads} 0 {sectors} {time_ms} 0 0 0 0 {in_flight} {busy_ms} {time_ms}"
    )
}

fn line(second: u64, rows: &[String]) -> String {
    let line =
        json!({ "at_seconds": second, "unix_seconds": 1_795_163_581 + second, "rows": rows });
    format!("{line}\n")
}

const HEAD: &str = "{\"takeup_watch\":1}\n";

fn queues(name: &str, device_depth: u64, iostats: u64) -> Value {
    let queue = json!({
        "scheduler": "mq-deadline", "max_sectors_kb": 1280, "read_ahead_kb": 128,
        "nr_requests": 64, "hardware_queues": 1, "device_depth": device_depth, "nomerges": 0,
        "rotational": 0, "iostats": iostats, "made_of": [],
    });
    json!({ name: queue })
}

/// A watch of five seconds: idle, busy, one disk added and one removed, a hang.
fn record(directory: &Path) {
    let sda = queues("sda", 32, 1);
    let first = json!({
        "at_seconds": 0, "unix_seconds": 1_795_163_581, "rows": [row("sda", 1000, 0)],
        "queues": sda,
    });
    let text = [
        format!("{HEAD}{first}\n"),
        line(1, &[]),
        line(2, &[row("sda", 21_000, 8)]),
        line(3, &[row("sda", 41_000, 3), row("sdb", 10, 0)]),
        format!("{}\n", json!({ "at_seconds": 4, "unix_seconds": 1_795_163_585, "gone": ["sdb"] })),
        line(5, &[]),
    ];
    fs::write(directory.join("record.ndjson"), text.concat()).unwrap();
}

#[test]
fn a_replay_in_words() {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path());
    let output = run(directory.path(), &["watch", "--from", "record.ndjson"]);
    let lines = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(lines.lines().all(|line| line.chars().count() <= 80), "{lines}");
    insta::assert_snapshot!(shown(&output, directory.path()));
}

#[test]
fn a_replay_as_lines_of_json() {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path());
    let arguments = ["watch", "--from", "record.ndjson", "--json", "--count", "4", "sda"];
    let output = run(directory.path(), &arguments);
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        let read: service::watch::WatchLine = serde_json::from_value(line.clone()).unwrap();
        assert_eq!(&serde_json::to_value(&read).unwrap(), line);
    }
    assert_eq!(lines.len(), 4);
    let idle = &lines[0];
    assert_eq!((&idle["seconds"], &idle["devices"][0]["findings"]), (&json!(1.0), &json!([])));
    let busy = &lines[1]["devices"][0];
    let mut iostat = json!({
        "disk_device": "sda", "r/s": 20000.0, "rkB/s": 160_000.0, "r_await": 0.4, "rareq-sz": 8.0,
        "aqu-sz": 8.0, "util": 50.0,
    });
    for key in ["w/s", "d/s", "f/s", "wkB/s", "dkB/s", "rrqm/s", "wrqm/s", "drqm/s", "rrqm"] {
        iostat[key] = json!(0.0);
    }
    for key in ["wrqm", "drqm", "w_await", "d_await", "f_await", "wareq-sz", "dareq-sz"] {
        iostat[key] = json!(0.0);
    }
    assert_eq!(busy["iostat"], iostat);
    assert_eq!(busy["findings"][0]["rule"], "device.not-merged");
    assert_eq!(busy["in_flight"], json!({ "now": 8, "mean": 8.0, "most": 8, "looks": 1 }));
    // The keys are the kernel's, in the order of iostat.
    assert!(text.contains("{\"disk_device\":\"sda\",\"r/s\":0.0,\"w/s\":0.0,\"d/s\":0.0,\"f/s\""));
    assert_eq!(lines[3]["devices"][0]["state"], "counted");
}

#[test]
fn a_tape_drive_of_a_record_in_words_and_as_json() {
    let directory = tempfile::tempdir().unwrap();
    let tape = |second: u64| {
        json!({
            "write_cnt": second * 400, "write_byte_cnt": second * 104_857_600,
            "write_ns": second * 800_000_000, "read_cnt": 0, "read_byte_cnt": 0, "read_ns": 0,
            "other_cnt": second, "io_ns": second * 850_000_000, "resid_cnt": 0, "in_flight": 1,
        })
    };
    let reading = |second: u64| {
        let tapes = json!({ "st0": tape(second) });
        format!("{}\n", json!({ "at_seconds": second, "unix_seconds": second, "tapes": tapes }))
    };
    let text = format!("{HEAD}{}{}{}", reading(0), reading(2), line(3, &[]));
    fs::write(directory.path().join("tape"), text).unwrap();
    let output = run(directory.path(), &["watch", "--from", "tape", "/dev/nst0"]);
    insta::assert_snapshot!(shown(&output, directory.path()));
    let output = run(directory.path(), &["watch", "--from", "tape", "--json", "--count", "1"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = json!([{
        "device": "st0", "is_new": false,
        "read": { "per_second": 0.0, "kib_per_second": 0.0, "await_ms": 0.0, "request_kib": 0.0 },
        "write": {
            "per_second": 400.0, "kib_per_second": 102_400.0, "await_ms": 2.0,
            "request_kib": 256.0
        },
        "others_per_second": 1.0, "residuals": 0, "busy_percent": 85.0, "in_flight": 1,
        "findings": [],
    }]);
    assert_eq!(document["tapes"], expected);
}

#[test]
fn an_idle_machine_is_silent_and_what_is_not_counted_is_told_once() {
    let directory = tempfile::tempdir().unwrap();
    let replayed = |iostats| {
        let first = json!({
            "at_seconds": 0, "unix_seconds": 0, "rows": [row("sda", 1000, 0)],
            "queues": queues("sda", 32, iostats),
        });
        let text = format!("{HEAD}{first}\n{}{}{}", line(1, &[]), line(2, &[]), line(3, &[]));
        fs::write(directory.path().join("idle"), text).unwrap();
        let output = run(directory.path(), &["watch", "--from", "idle"]);
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(replayed(1), "");
    // With a number of intervals, each is printed.
    let counted = ["watch", "--from", "idle", "--count", "2"];
    let text = String::from_utf8(run(directory.path(), &counted).stdout).unwrap();
    let idle = |second| format!("2026-11-20 08:33:0{second}  1.00 s\nsda did nothing\n\n");
    assert_eq!(text, idle(2) + &idle(3));
    let text = replayed(0);
    assert_eq!(text.matches("not counted: counting is switched off").count(), 1, "{text}");
}

#[test]
fn a_record_that_a_crash_cut_off_is_shown_as_far_as_it_goes() {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path());
    let path = directory.path().join("record.ndjson");
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 5]).unwrap();
    let output = run(directory.path(), &["watch", "--from", "record.ndjson", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 4);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(error, "takeup: record.ndjson: the last line is incomplete and was skipped\n");
}

#[test]
fn what_was_seen_here_is_shown_again_in_the_same_words() {
    let directory = tempfile::tempdir().unwrap();
    let live = ["watch", "--interval", "100ms", "--count", "3", "--json", "--record", "seen"];
    let live = run(directory.path(), &live);
    assert!(live.status.success() && live.stderr.is_empty(), "{live:?}");
    let replayed = run(directory.path(), &["watch", "--from", "seen", "--json"]);
    let lines = String::from_utf8(live.stdout).unwrap();
    assert_eq!(lines.lines().count(), 3);
    assert_eq!(String::from_utf8(replayed.stdout).unwrap(), lines);
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_watch() {
    let mut child = takeup()
        .args(["watch", "--interval", "100ms", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    output.read_line(&mut first).unwrap();
    drop(output);
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr), (Some(0), Vec::new()));
    let document: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(document["command"], "watch");
}

#[test]
fn misuse_is_told_before_anything_is_written() {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path());
    fs::write(directory.path().join("text"), "no record\n").unwrap();
    let cases: &[&[&str]] = &[
        &["nosuchdisk"],
        &[""],
        &["nowhere/data"],
        &["/dev/null"],
        &["/proc"],
        &["--record", "text", "--count", "1"],
        &["--record", "nowhere/record", "--count", "1"],
        &["--from", "missing"],
        &["--from", "text"],
        &["--from", "record.ndjson", "sdz"],
        &["--from", "record.ndjson", "sdz", "--count", "1"],
        &["--from", "missing", "--json"],
        &["--interval", "10ms"],
        &["--from", "record.ndjson", "--interval", "5s"],
        &["--count", "0"],
        &["--screen"],
        &["--screen", "--json"],
        &["--plain", "--json"],
        &["--from", "record.ndjson", "sdz", "--screen"],
    ];
    let mut text = String::new();
    for case in cases {
        let output = run(directory.path(), &[&["watch"], *case].concat());
        assert_eq!(output.status.code(), Some(1), "{case:?}");
        let told = String::from_utf8(output.stderr).unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let printed = if case.contains(&"sdz") { String::new() } else { printed };
        text.push_str(&format!("$ takeup watch {}\n{printed}{told}\n", case.join(" ")));
    }
    assert_eq!(fs::read_to_string(directory.path().join("text")).unwrap(), "no record\n");
    insta::assert_snapshot!(text);
}
