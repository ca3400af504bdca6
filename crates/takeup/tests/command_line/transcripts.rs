//! Transcripts of experiments in the documents are what `takeup report` prints today of the
//! recorded runs, which are in the repository: the text cannot become outdated. `TAKEUP_UPDATE=1
//! cargo test -p takeup --test command_line` updates them.
//!
//! A transcript follows a comment that names its record: `<!-- takeup report
//! benchmarks/transcripts/NAME.ndjson -->`. Its first lines are the commands as typed, which start
//! with `$ ` and continue after a backslash; they are kept.

use std::fs;
use std::path::{Path, PathBuf};

use crate::run;

const OPEN: &str = "<!-- takeup report ";
const CLOSE: &str = " -->";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn printed(record: &str) -> String {
    let output = run(&root(), &["report", record]);
    assert!(output.status.success(), "{record}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The document with updated transcripts, and the records that it names.
fn renewed(document: &str) -> (String, Vec<String>) {
    let mut lines = document.lines();
    let (mut text, mut records) = (String::new(), Vec::new());
    while let Some(line) = lines.next() {
        text.push_str(line);
        text.push('\n');
        let Some(record) = line.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix(CLOSE)) else {
            continue;
        };
        let fence = lines.next();
        assert_eq!(fence, Some("```text"), "behind the comment on {record}");
        text.push_str("```text\n");
        let mut is_command = true;
        for line in lines.by_ref().take_while(|line| *line != "```") {
            is_command = is_command && (line.starts_with("$ ") || text.ends_with("\\\n"));
            if is_command {
                text.push_str(line);
                text.push('\n');
            }
        }
        text.push_str(&printed(record));
        text.push_str("```\n");
        records.push(record.to_owned());
    }
    (text, records)
}

#[test]
fn transcripts_are_what_report_prints_of_their_records() {
    let mut records = Vec::new();
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let kept = fs::read_to_string(&path).unwrap();
        let (now, own) = renewed(&kept);
        records.extend(own);
        if kept != now && std::env::var_os("TAKEUP_UPDATE").is_some() {
            fs::write(&path, &now).unwrap();
        } else {
            assert!(kept == now, "{} is out of date: TAKEUP_UPDATE=1 writes it", path.display());
        }
    }
    records.sort();
    let mut files: Vec<String> = fs::read_dir(root().join("benchmarks/transcripts"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|name| format!("benchmarks/transcripts/{name}"))
        .collect();
    files.sort();
    assert_eq!(records, files, "records and transcripts belong together");
}
