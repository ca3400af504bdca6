//! `takeup diagnose --given`: the five accounts as people pasted them, in the transcripts of
//! `docs/diagnose.md`, and what becomes of a text that is not known or not whole.
//!
//! `TAKEUP_UPDATE=1` writes the transcripts anew. Each follows a comment that names its files:
//! `<!-- takeup diagnose job.fio ... -->`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::run;

const OPEN: &str = "<!-- takeup diagnose ";
const CLOSE: &str = " -->";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where the pasted texts are.
fn pasted() -> PathBuf {
    root().join("crates/given/tests/published")
}

#[test]
fn transcripts_are_what_diagnose_prints_of_the_five_accounts() {
    let path = root().join("docs/diagnose.md");
    let document = fs::read_to_string(&path).unwrap();
    let (mut renewed, mut count, mut is_inside) = (String::new(), 0, false);
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        renewed.push_str(&format!("{line}\n"));
        let names = line.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix(CLOSE));
        let Some(names) = names else { continue };
        assert_eq!(lines.next(), Some("```text"), "behind the comment on {names}");
        is_inside |= lines.by_ref().any(|line| line == "```");
        let arguments = [&["diagnose", "--given"], &names.split(' ').collect::<Vec<_>>()[..]];
        let output = run(&pasted(), &arguments.concat());
        assert_eq!(output.status.code(), Some(0), "{names}: {output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let typed = format!("$ takeup diagnose --given {names}");
        renewed.push_str(&format!("```text\n{typed}\n{text}```\n"));
        count += 1;
    }
    assert!(is_inside && count >= 5, "{count} transcripts");
    if std::env::var_os("TAKEUP_UPDATE").is_some() {
        fs::write(&path, &renewed).unwrap();
    }
    assert_eq!(renewed, fs::read_to_string(&path).unwrap());
}

#[test]
fn what_is_not_whole_is_named_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let whole = fs::read_to_string(pasted().join("rw-8k.iostat.txt")).unwrap();
    let rows: Vec<&str> = whole.lines().collect();
    let cut = [&rows[..5], &[&rows[5][..70]]].concat().join("\n") + "\n";
    fs::write(directory.path().join("first.txt"), "Hello,\n").unwrap();
    fs::write(directory.path().join("mail.txt"), cut).unwrap();
    let arguments = ["diagnose", "--given", "first.txt", "mail.txt"];
    let output = run(directory.path(), &arguments);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("not read: mail.txt:6: a row of iostat with "), "{text}");
    let output = run(directory.path(), &[&arguments[..], &["--json"]].concat());
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["refused"][0]["at"]["line"], 6);
    assert_eq!(answer["shown"][0]["from"]["file"], "mail.txt");
    assert_eq!(answer["shown"][0]["finding"]["rule"], "given.merged");
    assert_eq!(answer["passed_lines"], 2);
}

#[test]
fn a_text_without_anything_known_says_what_is() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("mail.txt"), "my backup is slow\n").unwrap();
    let output = run(directory.path(), &["diagnose", "--given", "mail.txt"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("nothing in the text is known") && text.contains("iostat -x"), "{text}");
    let output = run(directory.path(), &["diagnose", "--given", "no.txt"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("cannot read no.txt"));
    let output = run(directory.path(), &["diagnose", "--given", "-"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}
