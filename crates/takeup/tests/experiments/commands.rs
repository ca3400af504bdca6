//! `takeup bench run` with real programs: GNU tar, dd, and programs that fail, hang or are killed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::{run, succeeds, takeup};

const FILE: &str = "takeup-bench-run.ndjson";

fn runs(directory: &Path) -> Vec<Value> {
    let text = fs::read_to_string(directory.join(FILE)).unwrap_or_default();
    let lines = text.lines().skip(1).filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.map(|line| line["run"].clone()).collect()
}

const TWICE: [&str; 6] = ["--repeats", "2", "--repeats-max", "2", "--shell", "bash"];

fn bench<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["bench", "run"], arguments, &TWICE].concat()
}

fn nothing_runs(pattern: &str) {
    let left = Command::new("pgrep").args(["-f", pattern]).output().unwrap();
    assert!(left.stdout.is_empty(), "{left:?}");
}

#[test]
fn commands_and_block_sizes_are_compared_by_their_rate() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("tree")).unwrap();
    fs::write(directory.path().join("tree/data"), vec![5u8; 48 << 20]).unwrap();
    let tar = "tar=tar -b {block/512} -cf - tree | cat >out-{command}";
    let dd = "dd=dd if=tree/data bs={block} status=none | dd of=out-{command} bs={block}";
    let arguments = bench(&[
        "--command",
        tar,
        "--command",
        dd,
        "--vary",
        "block=10k,64k",
        "--bytes-of",
        "tree",
        "--before",
        "rm -f out-*",
        "--after",
        "test -s out-{command}",
        "--watch",
        "tree",
    ]);
    let text = succeeds(directory.path(), &arguments);
    assert!(text.contains("\n\ncommand  block size  runs"), "{text}");
    assert!(text.contains("programs of") && text.contains("8 runs in"), "{text}");
    for run in runs(directory.path()) {
        assert_eq!(run["bytes"], 48 << 20, "{run}");
        assert!(run["measures"]["processor_ns_per_byte"].as_f64().unwrap() > 0.0, "{run}");
        assert!(run["environment"]["start of the shell"].is_string(), "{run}");
    }
    // It can be reported, drawn and continued, as every experiment.
    let page = succeeds(directory.path(), &["report", FILE, "--html", "page.html"]);
    assert!(page.contains("block size"), "{page}");
    assert!(fs::read_to_string(directory.path().join("page.html")).unwrap().contains("<svg"));
    let again = run(directory.path(), &arguments);
    assert!(String::from_utf8_lossy(&again.stderr).contains("holds 8 runs: continuing"));
    let plan = succeeds(directory.path(), &[&arguments[..], &["--print-plan"]].concat());
    fs::write(directory.path().join("plan.toml"), plan).unwrap();
    let planned = ["bench", "run", "--plan", "plan.toml", "-o", "planned.ndjson", "--json"];
    let document: Value = serde_json::from_str(&succeeds(directory.path(), &planned)).unwrap();
    assert_eq!(document["runs"], 8, "{document}");
    let mut other = arguments.clone();
    other[5] = "dd=cat tree/data {block}";
    let refused = run(directory.path(), &other);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("holds another experiment"));
}

#[test]
fn without_bytes_times_are_compared_and_the_shorter_one_is_better() {
    let directory = tempfile::tempdir().unwrap();
    let commands = ["--command", "long=sleep 0.6", "--command", "short=sleep 0.1"];
    let repeats = ["--repeats", "4", "--repeats-max", "4", "--shell", "bash"];
    let text = succeeds(directory.path(), &[&["bench", "run"], &commands[..], &repeats].concat());
    assert!(!text.contains("MB/s"), "{text}");
    assert!(text.contains("times as fast as command long"), "{text}");
    assert!(text.contains("command: short ("), "{text}");
    let report = succeeds(directory.path(), &["report", FILE, "--json"]);
    assert!(!report.contains("bytes_per_second"), "{report}");
    let report: Value = serde_json::from_str(&report).unwrap();
    let cells = report["judgement"]["cells"].as_array().unwrap();
    assert!(cells[0]["seconds"].as_f64().unwrap() >= 0.6, "{cells:?}");
    succeeds(directory.path(), &["report", FILE, "--html", "page.html", "--csv", "runs.csv"]);
    let page = fs::read_to_string(directory.path().join("page.html")).unwrap();
    assert!(page.contains("Time by command") && !page.contains("MB/s"), "{page}");
    fs::copy(directory.path().join(FILE), directory.path().join("copy.ndjson")).unwrap();
    let same = succeeds(directory.path(), &["compare", FILE, "copy.ndjson"]);
    assert!(!same.contains("MB/s"), "{same}");
}

#[test]
fn what_fails_is_no_fast_run() {
    let directory = tempfile::tempdir().unwrap();
    let commands = ["--command", "good=sleep 0.2", "--command", "bad=cat missing | sleep 0"];
    let output = run(directory.path(), &bench(&commands));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("status 1: cat: missing: No such file"), "{text}");
    assert!(!text.contains("command: bad"), "{text}");
    fs::remove_file(directory.path().join(FILE)).unwrap();
    let checked = ["--command", "a=echo 1 >out", "--after", "echo not 2 >&2; grep -q 2 out"];
    let output = run(directory.path(), &bench(&checked));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("the check after the run,") && error.contains("not 2"), "{error}");
}

#[test]
fn a_run_that_hangs_is_a_bound_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let commands = ["--command", "good=sleep 0.1", "--command", "hangs=sleep 86421 | cat"];
    let arguments = [&bench(&commands)[..], &["--run-limit", "2s"]].concat();
    let output = run(directory.path(), &arguments);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("command hangs: longer than 2."), "{text}");
    nothing_runs("sleep 86421");
    let cut: Vec<Value> =
        runs(directory.path()).into_iter().filter(|run| !run["error"].is_null()).collect();
    assert_eq!(cut.len(), 1);
    assert!(cut[0]["longer_than_seconds"].as_f64().unwrap() >= 1.9, "{cut:?}");
}

/// Takeup is killed without a chance to clean up. Its command ends with it, and the same command
/// line continues the experiment.
#[test]
fn a_killed_experiment_leaves_no_program_and_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let commands = ["--command", "a=sleep 0.2; test ! -e slow || sleep 97531"];
    let arguments = bench(&commands);
    let mut child =
        takeup(directory.path()).args(&arguments).stderr(Stdio::null()).spawn().unwrap();
    let until = |what: &dyn Fn() -> bool| {
        let pause = || {
            std::thread::sleep(Duration::from_millis(50));
            false
        };
        assert!((0..600).any(|_| what() || pause()), "it never came");
    };
    until(&|| !runs(directory.path()).is_empty() || directory.path().join(FILE).exists());
    fs::write(directory.path().join("slow"), "").unwrap();
    let is_there = || {
        let found = Command::new("pgrep").args(["-f", "^sleep 97531$"]).output().unwrap();
        !found.stdout.is_empty()
    };
    until(&is_there);
    child.kill().unwrap();
    child.wait().unwrap();
    until(&|| !is_there());
    let before = runs(directory.path()).len();
    fs::remove_file(directory.path().join("slow")).unwrap();
    succeeds(directory.path(), &arguments);
    assert!(before < 2 && runs(directory.path()).len() == 2);
}

#[test]
fn typing_errors_are_found_before_anything_runs() {
    let directory = tempfile::tempdir().unwrap();
    let check = |arguments: &[&str], expected: &str| {
        let all = [&["--command", "a=touch made"], arguments].concat();
        let output = run(directory.path(), &bench(&all));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains(expected), "{error}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "{arguments:?}");
    };
    check(&["--command", "b= "], "command b is empty");
    check(&["--command", "b=dd bs={block}"], "unknown placeholder {block}");
    check(&["--vary", "block=1,2"], "neither it nor the lines before it use {block}");
    check(&["--command", "b=tarr -cf x"], "no program tarr");
    check(&["--each-before", "b=true"], "no such command");
    check(&["--bytes-of", "nothing"], "--bytes-of nothing: No such file");
    check(&["--watch", "/no/such"], "/no/such");
    check(&["--after", "if"], "syntax error");
    let output = run(directory.path(), &["bench", "run", "--command", "a=true", "--shell", "/x"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("shell /x: No such file"));
}
