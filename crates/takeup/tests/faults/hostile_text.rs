//! Foreign text in every command that prints it: no control sequence may reach a terminal.
//!
//! Allowed are line ends, tabs, and the bold heads of Takeup's own tables.

use std::path::Path;

use serde_json::Value;
use tempfile::tempdir;

use crate::captured_record::captured;
use crate::command::{Done, run, takeup};
use crate::watch_record;

/// Clears the screen, sets the title, goes back in the line, changes the direction; and an
/// introducer of sequences that is one character in UTF-8.
const HOSTILE: &str = "x\u{1b}[2J\u{1b}]0;evil\u{7}\r\u{8}\u{9b}2J\u{202e}y";

/// Where line ends are allowed, the text after one must not look like a line of Takeup.
const LINES: &str = "\nEVIL: all is well\nx";

fn with(arguments: &[&str]) -> Done {
    run(takeup().args(arguments))
}

#[track_caller]
fn harmless(done: &Done, what: &str) {
    for text in [&String::from_utf8_lossy(&done.output), &*done.errors] {
        let rest = text.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
        let obeyed = |it: char| (it.is_control() && it != '\n' && it != '\t') || it == '\u{202e}';
        let at = rest.char_indices().find(|(_, it)| obeyed(*it)).map(|(at, _)| at);
        assert!(
            at.is_none(),
            "{what}: {:?}",
            &rest[at.unwrap_or(0)..].chars().take(200).collect::<String>()
        );
        // A field of a table of raw numbers keeps its line ends, in quotation marks.
        let forged = text.lines().find(|line| line.starts_with("EVIL") && !what.contains("csv"));
        assert_eq!(forged, None, "{what}");
    }
}

/// Every string in a document, by its JSON pointer.
fn strings(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(at.to_owned()),
        Value::Array(values) => values
            .iter()
            .enumerate()
            .for_each(|(index, value)| strings(value, &format!("{at}/{index}"), found)),
        Value::Object(values) => values.iter().for_each(|(key, value)| {
            let key = key.replace('~', "~0").replace('/', "~1");
            strings(value, &format!("{at}/{key}"), found);
        }),
        _ => {}
    }
}

/// A file for each string of a record, with that one replaced.
fn each_replaced(record: &Path, check: impl Fn(&Path, &str)) {
    let text = std::fs::read_to_string(record).unwrap();
    let lines: Vec<Value> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    // One run is enough: all have the same fields.
    let lines = &lines[..lines.len().min(5)];
    let hostile = record.with_extension("hostile");
    let mut checked = 0;
    for number in 0..lines.len().min(3) {
        let mut found = Vec::new();
        strings(&lines[number], "", &mut found);
        checked += found.len();
        for pointer in found {
            let mut lines = lines.to_vec();
            for line in &mut lines {
                if let Some(Value::String(text)) = line.pointer_mut(&pointer) {
                    *text = format!("{text}{HOSTILE}{LINES}");
                }
            }
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            std::fs::write(&hostile, text).unwrap();
            check(&hostile, &pointer);
        }
    }
    assert!(checked > 0, "{} has no strings", record.display());
}

#[test]
fn records_of_experiments() {
    let folder = tempdir().unwrap();
    let record = folder.path().join("runs.ndjson");
    let path = record.to_str().unwrap();
    let command = ["--command", "a=:", "--command", "b=:", "--repeats", "2", "-q", "-o", path];
    let done = run(takeup().args(["bench", "run"]).args(command));
    assert_eq!(done.code, Some(0), "{}", done.errors);
    each_replaced(&record, |hostile, pointer| {
        let hostile = hostile.to_str().unwrap();
        for arguments in [
            &["report", hostile][..],
            &["report", hostile, "--csv", "-"],
            &["report", hostile, "--json"],
            &["compare", path, hostile],
            &[
                "bench",
                "run",
                "--command",
                "a=:",
                "--command",
                "b=:",
                "--repeats",
                "2",
                "-o",
                hostile,
            ],
        ] {
            harmless(&with(arguments), &format!("{pointer}: {arguments:?}"));
        }
    });
}

#[test]
fn tables_that_are_imported() {
    let folder = tempdir().unwrap();
    let table = folder.path().join("table.csv");
    let rates = ["1", "2", "3", "4"].map(|rate| format!("a{HOSTILE},{rate}\nb,{rate}1\n"));
    std::fs::write(&table, format!("level{HOSTILE},rate\n{}", rates.concat())).unwrap();
    let out = folder.path().join("out.ndjson");
    let [table, out] = [&table, &out].map(|path| path.to_str().unwrap());
    harmless(&with(&["bench", "import", table, "-o", out]), "import");
    let value = ["bench", "import", table, "--value", "rate", "-o", out];
    harmless(&with(&value), "import");
    harmless(&with(&["report", out]), "report");
}

#[test]
fn members_of_archives_and_files_of_others() {
    let folder = tempdir().unwrap();
    let name = format!("{HOSTILE}{LINES}").replace('/', "");
    let tree = folder.path().join("tree");
    std::fs::create_dir(&tree).unwrap();
    std::fs::write(tree.join(&name), "content").unwrap();
    std::os::unix::fs::symlink(HOSTILE, tree.join("link")).unwrap();
    let archive = folder.path().join(format!("{name}.tar"));
    let into = folder.path().join(format!("{name} into"));
    let [tree, archive, into] = [&tree, &archive, &into].map(|path| path.to_str().unwrap());
    let nothing = folder.path().join(format!("{name} is not there"));
    let nothing = nothing.to_str().unwrap();
    for arguments in [
        &["backup", tree, "--to", archive, "-v"][..],
        &["backup", tree, "--to", archive],
        &["list", archive],
        &["list", archive, "--long"],
        &["list", archive, "--json"],
        &["verify", archive, "--against", "/"],
        &["verify", archive, "--json"],
        &["restore", archive, "--into", into],
        &["restore", archive, "--into", into, "--json"],
        &["restore", archive, "--into", into, HOSTILE],
        &["probe", archive],
        &["report", nothing],
        &["report", archive],
        &["compare", archive, tree],
        &["watch", "--from", archive],
        &["watch", nothing, "--count", "1"],
        &["capture", "--from", archive],
        &["capture", "--import", archive],
        &["bench", "read", nothing],
        &["bench", "disk", nothing],
        &["bench", "import", archive],
        &["bench", "power", "--plan", archive],
        &["sim", "status", nothing],
        &["tune", "set", nothing, "read_ahead_kb=8"],
        &["plan", nothing],
        &["pipe", nothing, "--to", nothing],
        &[HOSTILE],
        &["backup", "--compress", HOSTILE],
    ] {
        harmless(&with(arguments), &format!("{arguments:?}"));
    }
}

/// Every string of a record of a watch, and names of devices, which are keys as well.
#[test]
fn records_of_watches() {
    let folder = tempdir().unwrap();
    let record = folder.path().join("night.ndjson");
    let path = record.to_str().unwrap();
    let load = watch_record::Load { seconds: 12, idle: 5..6, ..watch_record::Load::default() };
    let text = watch_record::text(&load);
    std::fs::write(&record, &text).unwrap();
    let check = |hostile: &Path, what: &str| {
        let hostile = hostile.to_str().unwrap();
        for arguments in [
            &["watch", "--from", hostile, "--plain"][..],
            &["watch", "--from", hostile, "--json"],
            &["report", hostile],
            &["report", hostile, "--json"],
            &["compare", path, hostile],
            &["compare", path, hostile, "--json"],
            &["plan", path, "--source-from", hostile],
            &["sim", "disk", hostile, "--from", hostile],
        ] {
            harmless(&with(arguments), &format!("{what}: {arguments:?}"));
        }
    };
    each_replaced(&record, check);
    let name = serde_json::to_string(&format!("sda{}", HOSTILE.replace('\r', ""))).unwrap();
    let renamed = folder.path().join("renamed.ndjson");
    std::fs::write(&renamed, text.replace("sda", name.trim_matches('"'))).unwrap();
    // No kernel has such a device: its lines are left out, with a message.
    let done = with(&["watch", "--from", renamed.to_str().unwrap(), "--plain"]);
    assert!(done.errors.contains("no device has such a name"), "{}", done.errors);
    check(&renamed, "names of devices");
}

#[test]
fn records_of_runs() {
    let folder = tempdir().unwrap();
    let [tree, archive, record] =
        ["tree", "archive.tar", "run.ndjson"].map(|name| folder.path().join(name));
    std::fs::create_dir(&tree).unwrap();
    std::fs::write(tree.join("file"), vec![1; 1 << 20]).unwrap();
    let [tree, archive, path] = [&tree, &archive, &record].map(|path| path.to_str().unwrap());
    let done = with(&["backup", tree, "--to", archive, "--record", path, "-q"]);
    assert_eq!(done.code, Some(0), "{}", done.errors);
    each_replaced(&record, |hostile, pointer| {
        let hostile = hostile.to_str().unwrap();
        for arguments in [&["report", hostile][..], &["report", hostile, "--json"]] {
            harmless(&with(arguments), &format!("{pointer}: {arguments:?}"));
        }
    });
}

#[test]
fn records_of_captures() {
    let folder = tempdir().unwrap();
    let record = folder.path().join("shop.ndjson");
    std::fs::write(&record, captured().to_lines()).unwrap();
    let path = record.to_str().unwrap();
    let job = folder.path().join("job.fio");
    let job = job.to_str().unwrap();
    each_replaced(&record, |hostile, pointer| {
        let hostile = hostile.to_str().unwrap();
        for arguments in [
            &["capture", "--from", hostile][..],
            &["capture", "--from", hostile, "--json"],
            &["capture", "--from", hostile, "--fio", job],
            &["report", hostile],
            &["report", hostile, "--json"],
            &["compare", path, hostile],
        ] {
            let _ = std::fs::remove_file(job);
            harmless(&with(arguments), &format!("{pointer}: {arguments:?}"));
        }
    });
}

/// A program with such a name and such arguments.
#[test]
fn programs_of_a_pipeline_and_recordings_of_others() {
    let folder = tempdir().unwrap();
    let name = folder.path().join("\u{1b}[2Jsleep");
    std::fs::copy("/bin/sleep", &name).unwrap();
    let quoted = format!("'{}'", name.display());
    let words = HOSTILE.replace('\'', "");
    for line in [
        format!("{quoted} 0.6 | cat"),
        format!("{quoted} 0.6; echo '{words}' >&2; false"),
        format!("echo '{words}' | {quoted} 0.5"),
        format!("'{words}'"),
    ] {
        for json in [&[][..], &["--json"]] {
            let done = run(takeup().arg("explain").args(json).arg(&line));
            harmless(&done, &line);
        }
    }
    let shown = with(&["explain", &format!("{quoted} 0.6 | cat")]);
    let shown = String::from_utf8_lossy(&shown.output).into_owned();
    assert!(shown.contains("\\033[2Jsleep"), "the program is not shown: {shown}");
    let strace = format!(
        "7 1795163581.500000 openat(AT_FDCWD, \"{HOSTILE}\", O_RDONLY) = 3</{HOSTILE}> <0.1>\n\
         7 1795163581.600000 read(3</{HOSTILE}>, \"\", 4096) = 4096 <0.000100>\n\
         7 1795163581.700000 {HOSTILE}(3) = 0 <0.000100>\n"
    );
    let job = format!("[{HOSTILE}]\nfilename={HOSTILE}\nrw=read\nsize=1m\n{HOSTILE}={HOSTILE}\n");
    let [recording, file] = ["strace", "job.fio"].map(|name| folder.path().join(name));
    std::fs::write(&recording, strace.replace("x\u{1b}", "\u{1b}")).unwrap();
    std::fs::write(&file, job).unwrap();
    let [recording, file] = [&recording, &file].map(|path| path.to_str().unwrap());
    for arguments in [
        &["capture", "--import", recording][..],
        &["capture", "--import", recording, "--json"],
        &["bench", "disk", "--job", file, "--print-plan"],
        &["bench", "disk", "--job", file, "--job-set", HOSTILE, "--json"],
    ] {
        harmless(&with(arguments), &format!("{arguments:?}"));
    }
}
