//! `takeup capture --record`, `--from` and `--watch`, and `takeup report` of their records.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use service::capture::CaptureAnswer;

use crate::answers::check;
use crate::captured_record::captured;
use crate::{document, run, shown};

/// A disk over a file, removed at the end of the test.
struct Loop(String);

impl Loop {
    fn over(file: &Path) -> Loop {
        fs::File::create(file).unwrap().set_len(32 << 20).unwrap();
        let output = Command::new("losetup").args(["--find", "--show"]).arg(file).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        Loop(String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }

    fn name(&self) -> &str {
        self.0.trim_start_matches("/dev/")
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

fn sum(intervals: &Value, name: &str) -> u64 {
    intervals.as_array().unwrap().iter().map(|it| it[name].as_u64().unwrap()).sum()
}

fn without(mut document: Value, names: &[&str]) -> Value {
    for name in names {
        document.as_object_mut().unwrap().remove(*name).unwrap();
    }
    document
}

/// A record has what fio did to a disk twice, as calls and as work of the disk, on one clock. It
/// can be printed again and drawn.
#[test]
fn a_capture_with_its_disk_is_kept_and_drawn() {
    testkit::require!(Tracefs, Fio, LoopDevices);
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let disk = Loop::over(&at.join("disk"));
    let file = format!("--filename={}", disk.0);
    let job = ["--name=job", &file, "--rw=randwrite", "--bs=8k", "--direct=1", "--ioengine=psync"];
    let rate = ["--number_ios=400", "--rate_iops=150", "--output=said", "--output-format=json"];
    let capture = ["capture", "--json", "--record", "kept", "--watch", disk.name(), "--", "fio"];
    let told = document(at, &[&capture[..], &job, &rate].concat());
    let said: Value = serde_json::from_slice(&fs::read(at.join("said")).unwrap()).unwrap();
    assert_eq!(said["jobs"][0]["write"]["total_ios"], 400);
    // The calls, and the same number over time.
    let files = told["files"].as_array().unwrap();
    let own = files.iter().find(|it| it["path"] == json!(disk.0)).unwrap();
    assert_eq!((&own["writes"], &own["written_bytes"]), (&json!(400), &json!(400 * 8192)));
    let classes = told["timeline"]["classes"].as_array().unwrap();
    let writes: u64 = classes.iter().map(|it| sum(&it["intervals"], "writes")).sum();
    assert_eq!(writes, files.iter().filter(is_place).map(count_writes).sum::<u64>());
    // The disk did the requested work, and no other disk was watched.
    let devices = told["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 1, "{devices:#?}");
    assert_eq!(devices[0]["device"], disk.name());
    let kept = fs::read_to_string(at.join("kept")).unwrap();
    let looks = looks(&kept);
    let done = looks.last().unwrap().1 - looks[0].1;
    assert_eq!(done, 400 * 8192);
    check_clock(&told, &looks);
    // Printing it again gives the same text, and a report has the same numbers.
    assert_eq!(document(at, &["capture", "--from", "kept", "--json"]), told);
    let answer: CaptureAnswer = check(&told);
    assert!(matches!(answer, CaptureAnswer::Recorded(_)), "{answer:?}");
    let report = document(at, &["report", "kept", "--json", "-o", "page.html"]);
    let others = ["command", "schema_version", "fio", "validation"];
    assert_eq!(without(report, &others[..2]), without(told.clone(), &others));
    let page = fs::read_to_string(at.join("page.html")).unwrap();
    let row = format!("<td>{}</td><td>device</td><td>psync</td>", disk.0);
    let numbers = ["0", "400", "0 B", "3.28 MB", "8 KiB"];
    let cells = numbers.map(|it| format!("<td class=\"number\">{it}</td>")).concat();
    assert!(page.contains(&(row + &cells)), "{page}");
    for finding in told["findings"].as_array().unwrap() {
        let sentence = finding["sentence"].as_str().unwrap();
        assert!(page.contains(sentence), "{sentence}");
    }
    for title in ["calls: bytes", "calls: reads and writes", &format!("{}: requests", disk.name())]
    {
        assert_eq!(page.matches(&format!("aria-label=\"{title}")).count(), 1, "{title}");
    }
}

fn is_place(file: &&Value) -> bool {
    let is_anonymous = file["path"].as_str().is_some_and(|path| path.starts_with("anon_inode:"));
    match file["kind"].as_str().unwrap() {
        "regular" | "block_device" => true,
        kind => kind == "other" && !is_anonymous,
    }
}

fn count_writes(file: &Value) -> u64 {
    file["writes"].as_u64().unwrap()
}

/// The times of a record's disk samples, in seconds after the start, and the bytes written by then.
fn looks(record: &str) -> Vec<(f64, u64)> {
    let mut looks = Vec::new();
    let mut sectors = 0;
    for line in record.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let Some(reading) = line.get("reading") else { continue };
        for row in reading["rows"].as_array().into_iter().flatten() {
            let field = row.as_str().unwrap().split_whitespace().nth(9).unwrap();
            sectors = field.parse::<u64>().unwrap();
        }
        looks.push((reading["at_seconds"].as_f64().unwrap(), sectors * 512));
    }
    looks
}

/// The disk's work at a sample lies between the requests shortly before and shortly after it. This
/// holds for most samples, since any sample may be delayed on a busy machine. With clocks a quarter
/// of a second apart it would hold for hardly any.
fn check_clock(told: &Value, looks: &[(f64, u64)]) {
    let width = told["timeline"]["interval_seconds"].as_f64().unwrap();
    let classes = told["timeline"]["classes"].as_array().unwrap();
    let device = classes.iter().find(|it| it["class"] == "device").unwrap();
    let intervals = device["intervals"].as_array().unwrap();
    let asked = |until: f64| -> u64 {
        let begun = |(number, _): &(usize, &Value)| (*number as f64) * width < until;
        let bytes = |(_, it): (usize, &Value)| it["written_bytes"].as_u64().unwrap();
        intervals.iter().enumerate().take_while(begun).map(bytes).sum()
    };
    let first = looks[0].1;
    // Samples at rest show nothing.
    let moving: Vec<_> = looks.windows(2).filter(|it| it[1].1 > it[0].1).map(|it| it[1]).collect();
    let is_near = |(at, done): &&(f64, u64)| {
        let least = asked(at - 2.0 * width - 0.02);
        (least..=asked(at + width + 0.02)).contains(&(done - first))
    };
    let near = moving.iter().filter(is_near).count();
    assert!(moving.len() >= 4 && near * 2 > moving.len(), "{near} of {moving:?}\n{device:#}");
}

/// Without names, the devices are those below the captured files.
#[test]
fn devices_below_the_files_are_found() {
    testkit::require!(Tracefs, LoopDevices);
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let (disk, other) = (Loop::over(&at.join("disk")), Loop::over(&at.join("other")));
    let of = format!("of={}", disk.0);
    let load = ["dd", "if=/dev/zero", &of, "bs=1M", "count=16", "oflag=direct", "status=none"];
    let told = document(at, &[&["capture", "--json", "--watch", "--"], &load[..]].concat());
    let devices = told["devices"].as_array().unwrap();
    let names: Vec<&str> = devices.iter().map(|it| it["device"].as_str().unwrap()).collect();
    assert!(names.contains(&disk.name()) && !names.contains(&other.name()), "{names:?}");
    let words = run(at, &[&["capture", "--watch", "--"], &load[..]].concat());
    let text = shown(&words, at);
    assert!(text.contains(" meanwhile, ") && text.contains("exit code 0"), "{text}");
}

/// A record never replaces an existing file.
#[test]
fn what_cannot_be_kept_or_watched_is_told_before_anything_runs() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::write(at.join("there"), "").unwrap();
    let check = |arguments: &[&str], expected: &str| {
        let output = run(at, arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(expected), "{said}");
    };
    let touch = ["--", "touch", "ran"];
    let with = |options: &[&'static str]| [&["capture"], options, &touch[..]].concat();
    check(&with(&["--record", "there"]), "there exists already");
    check(&with(&["--record", "no/where"]), "no/where");
    check(&with(&["--watch", "nosuchdisk"]), "there is no block device nosuchdisk");
    check(&with(&["--from", "there"]), "cannot be used with");
    check(&["capture", "--from", "there", "--record", "kept"], "cannot be used with");
    check(&["capture", "--from", "there"], "there is not a `takeup capture` record");
    assert!(!at.join("ran").exists());
}

#[test]
fn a_record_is_told_and_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::write(at.join("shop"), captured().to_lines()).unwrap();
    let output = run(at, &["report", "shop", "-o", "page.html", "--svg", "figures"]);
    insta::assert_snapshot!(shown(&output, at));
    let page = fs::read_to_string(at.join("page.html")).unwrap();
    let files = fs::read_dir(at.join("figures")).unwrap().count();
    assert_eq!(files, page.matches("<svg class=\"fig\"").count());
    // Calls are drawn above the disk, both on one axis, which starts half a second before either.
    let places: Vec<usize> = ["calls: bytes", "sda: throughput", "sizes of reads and writes"]
        .map(|title| page.find(&format!("aria-label=\"{title}")).unwrap())
        .to_vec();
    assert!(places.is_sorted(), "{places:?}");
    let told = document(at, &["report", "shop", "--json"]);
    assert_eq!(told["began_unix_seconds"], crate::captured_record::BEGAN);
    assert_eq!(told["devices_at_seconds"], -0.25);
    let classes = told["timeline"]["classes"].as_array().unwrap();
    let counts = |class: &str, name: &str| {
        sum(&classes.iter().find(|it| it["class"] == class).unwrap()["intervals"], name)
    };
    assert_eq!(
        (counts("write_ahead_log", "writes"), counts("write_ahead_log", "syncs")),
        (1000, 1000)
    );
    assert_eq!((counts("data", "reads"), counts("data", "read_bytes")), (500, 500 * 16_384));
    let answer: CaptureAnswer = check(&document(at, &["capture", "--from", "shop", "--json"]));
    assert!(matches!(answer, CaptureAnswer::Recorded(_)), "{answer:?}");
    let again = run(at, &["capture", "--from", "shop"]);
    assert_eq!(again.status.code(), Some(0), "{}", shown(&again, at));
    assert!(String::from_utf8_lossy(&again.stdout).contains("pg_wal/000000010000000000000001"));
    let job = run(at, &["capture", "--from", "shop", "--fio", "job.fio"]);
    assert_eq!(job.status.code(), Some(0), "{}", shown(&job, at));
    assert!(fs::read_to_string(at.join("job.fio")).unwrap().contains("fdatasync=1"));
}

/// A truncated record is shown as far as it goes; a wrong line is reported with its number.
#[test]
fn damaged_records_of_captures_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let whole = captured().to_lines();
    fs::write(at.join("cut"), &whole[..whole.len() - 30]).unwrap();
    let output = run(at, &["report", "cut", "--json"]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&told["is_cut"], told["files"].as_array().unwrap().len()), (&json!(true), 2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(error, "takeup: cut: the last line is incomplete and was skipped\n");
    let write = |name: &str, text: String| fs::write(at.join(name), text).unwrap();
    write("empty", whole.lines().next().unwrap().to_owned() + "\n");
    write("newer", whole.replacen("\"takeup_capture\":1", "\"takeup_capture\":2", 1));
    write("word", whole.replacen("\"reads\":0", "\"reads\":\"none\"", 1));
    write("much", whole.replacen("\"reads\":0", "\"reads\":9000000000000000000", 1));
    write("row", whole.replacen("8 0 sda", "8 zero sda", 1));
    write(
        "one",
        whole
            .lines()
            .filter(|it| !it.contains("\"timeline\""))
            .fold(String::new(), |text, line| text + line + "\n"),
    );
    write("shop", whole);
    let cases: &[&[&str]] = &[
        &["report", "empty", "-o", "page.html"],
        &["report", "newer"],
        &["report", "word", "-o", "page.html"],
        &["report", "much"],
        &["capture", "--from", "row"],
        &["report", "one"],
        &["report", "shop", "--csv", "runs.csv"],
        &["report", "shop", "-o", "shop"],
        &["compare", "shop", "shop"],
        &["watch", "--from", "shop"],
    ];
    let mut told = String::new();
    for case in cases {
        let output = run(at, case);
        // A record of a later version has its own exit code.
        let code = if case.contains(&"newer") { 3 } else { 1 };
        assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{case:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        told.push_str(&format!("$ takeup {}\n{error}\n", case.join(" ")));
    }
    assert!(!at.join("page.html").exists() && !at.join("runs.csv").exists());
    insta::assert_snapshot!(told);
}
