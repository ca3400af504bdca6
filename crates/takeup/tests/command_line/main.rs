//! Tests of the program as users see it: standard output, standard error and exit code.
#![allow(clippy::unwrap_used)]

mod answers;
mod calibration;
mod capture;
mod capture_records;
mod capture_sampled;
mod captured_record;
mod catalog;
mod completions;
mod compression_names;
mod diagnose;
mod exit_codes;
mod explain;
mod explanation;
mod failures;
#[path = "../../../runs/tests/backup/fuse.rs"]
#[allow(dead_code, clippy::print_stderr)]
mod fuse;
mod import;
mod made_record;
mod plan;
mod power;
mod probe;
mod progress;
mod promises;
mod recorded;
mod reference;
mod run_records;
mod runs;
mod signals;
mod standard_output;
mod telling;
mod transcripts;
mod verdicts;
mod watch;
mod watch_record;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The program, without settings of the caller's terminal.
pub fn takeup() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_takeup"));
    command.env_clear().env("LC_ALL", "C").stdin(Stdio::null());
    command
}

/// Runs the program in a directory.
pub fn run<S: AsRef<OsStr>>(directory: &Path, arguments: &[S]) -> Output {
    takeup().current_dir(directory).args(arguments).output().unwrap()
}

/// A directory with a small tree in it: `tree/a`, `tree/b/c`, a link, an empty file.
pub fn small_tree() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let tree = directory.path().join("tree");
    fs::create_dir_all(tree.join("b")).unwrap();
    fs::write(tree.join("a"), "content of a\n").unwrap();
    fs::write(tree.join("b/c"), vec![b'c'; 100_000]).unwrap();
    fs::write(tree.join("empty"), "").unwrap();
    std::os::unix::fs::symlink("a", tree.join("link")).unwrap();
    directory
}

/// The JSON document of a run that succeeds without messages.
#[track_caller]
pub fn document(directory: &Path, arguments: &[&str]) -> Value {
    let output = run(directory, arguments);
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output, directory));
    assert!(output.stderr.is_empty(), "{}", shown(&output, directory));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Exit code, standard output and standard error as one text, without the directory's name.
pub fn shown(output: &Output, directory: &Path) -> String {
    let text = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        without_page_sizes(&text.replace(directory.to_str().unwrap(), "[DIR]"))
    };
    format!(
        "exit code {}\n--- standard output\n{}--- standard error\n{}",
        output.status.code().map_or("none".to_owned(), |code| code.to_string()),
        text(&output.stdout),
        text(&output.stderr)
    )
}

/// The text without the sizes of pages, which change with their style: `wrote page.html: [SIZE]`.
fn without_page_sizes(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix("wrote ").and_then(|it| it.split_once(": ")) {
        Some((name, size)) if size.split(' ').count() == 2 => format!("wrote {name}: [SIZE]\n"),
        _ => line.to_owned(),
    };
    text.split_inclusive('\n').map(line).collect()
}

/// A document with placeholders for all numbers, and for texts with numbers.
pub fn redacted(mut document: Value) -> String {
    redact(&mut document, "");
    format!("{document:#}")
}

fn redact(value: &mut Value, key: &str) {
    const EXACT: [&str; 5] = ["source_bytes", "files", "members", "warnings_total", "total"];
    match value {
        Value::Number(_) if !EXACT.contains(&key) => *value = Value::from("[number]"),
        Value::String(text) if key == "explanation" => "[sentence]".clone_into(text),
        Value::String(text) if key == "bottleneck" => "[stage]".clone_into(text),
        Value::String(text) if key == "limit" => "[kind]".clone_into(text),
        Value::String(text) if key == "engine" => "[engine]".clone_into(text),
        Value::Array(items) if key == "findings" => {
            assert!(items.iter().all(|finding| finding["rule"].is_string()), "{items:?}");
            items.fill(Value::from("[finding]"));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact(item, key)),
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                redact(value, key);
            }
        }
        _ => {}
    }
}

/// A path as an argument.
pub fn argument(path: PathBuf) -> String {
    path.into_os_string().into_string().unwrap()
}
