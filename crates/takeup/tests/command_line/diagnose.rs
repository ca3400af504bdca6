//! `takeup diagnose`: a folder of this machine, and what it cannot do. With `--given`: the five
//! accounts as people pasted them, in the transcripts of `docs/diagnose.md`, and what becomes of a
//! text that is not known or not whole.
//!
//! `TAKEUP_UPDATE=1` writes the transcripts anew. Each follows a comment that names its files:
//! `<!-- takeup diagnose job.fio ... -->`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{run, takeup};

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

fn said(output: &std::process::Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8(output.stderr.clone()).unwrap())
}

#[test]
fn a_folder_is_read_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("large"), testkit::samples::noise(1, 12 << 20)).unwrap();
    (0..40).for_each(|at| fs::write(source.join(format!("{at}")), vec![at; 3000]).unwrap());
    let arguments = ["diagnose", "source", "--budget", "3s"];
    let output = run(directory.path(), &[&arguments[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let shape = &answer["source"];
    assert_eq!((&shape["large_files"], &shape["small_files"]), (&1.into(), &40.into()));
    assert_eq!(shape["small_bytes"], 120_000);
    assert!(answer["bytes_per_second"]["value"].as_f64().unwrap() > 0.0);
    assert_eq!(answer["steps"], Value::Array(Vec::new()), "there is no line to change");
    let output = run(directory.path(), &[&arguments[..], &["--all", "--chart", "c.svg"]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("source: about ") && text.contains("source (large files)"), "{text}");
    assert!(fs::read_to_string(directory.path().join("c.svg")).unwrap().contains("</svg>"));
    assert_eq!(fs::read_dir(&source).unwrap().count(), 41);
}

/// Both lines run with their output thrown away.
#[test]
fn a_change_of_a_line_is_tried_and_nothing_is_written() {
    testkit::require!(Pv, GnuTar);
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("large"), testkit::samples::noise(5, 64 << 20)).unwrap();
    let line = "tar cf - source | gzip -9 | pv -qL 300k > out.tar.gz";
    let output = run(directory.path(), &["diagnose", "--try", "--json", "--budget", "4s", line]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["steps"][0]["rule"], "diagnose.pace", "{answer:#}");
    let tried = &answer["tried"];
    assert_eq!(tried["not_tried"], Value::Null, "{tried:#}");
    let lines = &tried["lines"];
    let open = "tar cf - source | gzip -9 | pv -qL 300k > /dev/stdout | cat > /dev/null";
    assert_eq!(lines[0], open);
    assert_eq!(lines[1], open.replacen("-qL 300k", "-q", 1));
    assert!(tried["before"]["value"].as_f64().unwrap() > 0.0, "{tried:#}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "the source alone");
    // A line that might write something else does not run.
    let line = "tar cvf - source 2> log | gzip -9 | pv -qL 300k > out.tar.gz";
    let output = run(directory.path(), &["diagnose", "--try", "--budget", "1s", line]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("tried: nothing, because it is not certain"), "{text}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "no log");
}

#[test]
fn what_cannot_be_diagnosed_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let check = |arguments: &[&str], code: i32, words: &[&str]| {
        let output = run(directory.path(), &[&["diagnose"], arguments].concat());
        let (found, text) = said(&output);
        assert_eq!(found, Some(code), "{arguments:?}: {text}");
        words.iter().for_each(|word| assert!(text.contains(word), "{arguments:?}: {text}"));
    };
    check(&["/no/such/folder"], 1, &["cannot read /no/such/folder"]);
    check(&["tar cf - a; rm -r a"], 1, &["is not one pipeline", "in quotes"]);
    check(&["pg_dump shop | gzip > x"], 1, &["does not say which files it reads", "explain"]);
    check(&["tar cf $(date +%F).tar a"], 1, &["write a name in the place of $(...)"]);
    check(&["--run", "."], 1, &["no line to run"]);
    check(&["."], 1, &["no file with data"]);
    check(&["--pid", "4000000"], 1, &["there is no process 4000000"]);
    check(&[], 1, &["PATH|LINE"]);
    check(&["--given", "x", "--host"], 1, &["cannot be used with"]);
}

/// A server that is started once more on the files of the one that runs may damage them.
#[test]
fn what_runs_is_never_proposed_to_run_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = server.id().to_string();
    let (code, text) = said(&run(directory.path(), &["diagnose", "--budget", "1s", "--pid", &pid]));
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(&format!("takeup capture --pid {pid}")), "{text}");
    assert!(!text.contains("explain"), "{text}");
}

/// The time of `tar cf /dev/null` was forecast as if tar read its files. And what appends to a file
/// must not be replaced by what writes over it.
#[test]
fn lines_that_read_nothing_or_append_are_told_apart() {
    let folder = tempfile::tempdir_in(".").unwrap();
    fs::create_dir(folder.path().join("srv")).unwrap();
    let letters: Vec<u8> = (0..4_u64 << 20).map(|at| b'a' + (at * at % 19) as u8).collect();
    fs::write(folder.path().join("srv/file"), letters).unwrap();
    fs::write(folder.path().join("all.tgz"), "earlier archives").unwrap();
    let diagnosed = |line: &str| {
        let output = run(folder.path(), &["diagnose", "--json", "--budget", "2s", line]);
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let answer = diagnosed("tar cf /dev/null srv");
    assert_eq!(answer["findings"][0]["rule"], "diagnose.not-read", "{answer}");
    assert_eq!(answer["findings"][0]["command"], "tar cf /dev/stdout srv | cat > /dev/null");
    let output = run(folder.path(), &["diagnose", "--budget", "2s", "tar cf /dev/null srv"]);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(text.contains(" if it were read, "), "{output:?}");
    let answer = diagnosed("tar cf - srv | gzip -9 >> all.tgz");
    assert_ne!(answer["findings"][0]["rule"], "diagnose.not-read", "{answer}");
    assert!(!answer.to_string().contains("--overwrite"), "{answer}");
}

/// The shell has taken the rest of the line: it gets the answer in the place of the archive.
#[test]
fn a_line_that_the_shell_has_cut_is_told() {
    testkit::require!(GnuTar);
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("source");
    fs::write(&source, vec![7; 1 << 20]).unwrap();
    let warned = |arguments: &[&str]| {
        let mut command = takeup();
        command.current_dir(directory.path()).args(["diagnose", "--budget", "1s"]);
        // Words are a line where the first one is a program.
        let output = command.args(arguments).env("PATH", "/usr/bin:/bin").output().unwrap();
        said(&output).1.contains("the shell cuts a line")
    };
    assert!(warned(&["tar", "cf", "-", "source"]));
    assert!(!warned(&["tar", "cf", "/dev/null", "source"]));
    assert!(!warned(&["tar cf - source | gzip > x"]));
    assert!(!warned(&["tar", "cf", "x", "source"]));
    assert!(!warned(&["0 3 * * * tar cf x source"]));
}

#[test]
fn a_machine_is_looked_at_as_a_whole() {
    let directory = tempfile::tempdir().unwrap();
    let output = run(directory.path(), &["diagnose", "--host"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("looked at: "), "{text}");
    let output = run(directory.path(), &["diagnose", "--host", "--json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["command"], "diagnose host");
}
