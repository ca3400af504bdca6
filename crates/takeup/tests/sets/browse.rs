//! Folders of sets as of a day: printed, and on a terminal of its own (by `script` of util-linux).

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::{TICK, answer, run, takeup, text};

/// Far above any normal duration.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that ends with its test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two days: a file changes, another goes.
fn two_days(at: &Path) {
    let home = at.join("home/eva");
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("-a b.txt"), "one").unwrap();
    fs::write(home.join("gone"), "").unwrap();
    for day in ["one", "two"] {
        fs::write(home.join("-a b.txt"), day).unwrap();
        sleep(TICK);
        text(at, &["backup", "home", "--to", "sets/", "--incremental"], 0);
        fs::remove_file(home.join("gone")).ok();
    }
}

#[test]
fn a_folder_is_listed_as_it_was_on_a_day() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    two_days(at);
    let catalog = ["--catalog", "catalog"];
    text(at, &[&["catalog", "add", "sets"][..], &catalog].concat(), 0);
    let ls =
        |more: &[&str], code| text(at, &[&["catalog", "ls"][..], more, &catalog].concat(), code);
    let newest = ls(&["home/eva"], 0);
    assert!(newest.starts_with("home/eva: 1 object in set 2 of "), "{newest}");
    assert!(newest.contains(" -a b.txt\nrestore: takeup restore "), "{newest}");
    let first = ls(&["/home/eva/", "--set", "1"], 0);
    assert!(first.contains("2 objects in set 1") && first.contains(" gone\n"), "{first}");
    let tomorrow = ls(&["home/eva", "--at", "2999-01-01"], 0);
    assert_eq!(tomorrow, newest);
    let before = ls(&["home/eva", "--at", "1999-01-01"], 1);
    assert!(before.contains("no set up to 1999-01-01 has home/eva"), "{before}");
    let none = ls(&["home/none"], 1);
    assert!(none.contains("the newest sets of the catalogue do not have home/none"), "{none}");
    assert!(ls(&["--at", "soon"], 1).contains("is no day"));
    let arguments = [&["catalog", "ls", "home/eva"][..], &catalog].concat();
    let document = answer(at, &arguments);
    let entry = &document["folders"][0]["entries"][0];
    assert_eq!((&entry["name"], &entry["object"]["size_bytes"]), (&"-a b.txt".into(), &3.into()));
}

#[test]
fn without_a_terminal_nothing_is_browsed() {
    let place = tempfile::tempdir().unwrap();
    let output = run(place.path(), &["browse"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("no terminal") && said.contains("takeup catalog ls"), "{said}");
}

/// From the newest day to the one before, a mark, and the file is back as it was then.
#[test]
fn a_file_of_the_day_before_comes_back_from_the_screen() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    two_days(at);
    let browse = format!("{} browse sets --catalog catalog", env!("CARGO_BIN_EXE_takeup"));
    let line = format!("stty rows 24 cols 80; exec {browse}");
    let script = Command::new("script")
        .args(["--quiet", "--flush", "--return", "--command", &line, "log"])
        .current_dir(at)
        .envs([("TERM", "xterm"), ("SHELL", "/bin/sh"), ("LC_ALL", "C")])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut script = Ended(script.expect("script, of util-linux, is there"));
    let mut keys = script.0.stdin.take().unwrap();
    let log =
        || String::from_utf8_lossy(&fs::read(at.join("log")).unwrap_or_default()).into_owned();
    let begun = Instant::now();
    while !log().contains("q end") {
        assert!(begun.elapsed() < PATIENCE, "{}", log());
        sleep(Duration::from_millis(10));
    }
    // Into eva, the day before, restore into the folder that is proposed.
    keys.write_all(b"\r[r\r").unwrap();
    let code = loop {
        if let Some(status) = script.0.try_wait().unwrap() {
            break status.code();
        }
        assert!(begun.elapsed() < PATIENCE, "{}", log());
        sleep(Duration::from_millis(10));
    };
    assert_eq!(code, Some(0), "{}", log());
    assert_eq!(fs::read(at.join("restored/home/eva/-a b.txt")).unwrap(), b"one");
    assert!(!at.join("restored/home/eva/gone").exists(), "it was not marked");
    assert!(log().contains("--into restored 'home/eva/-a b.txt'"), "{}", log());
    // What is printed can be typed.
    let shown = log();
    let typed = shown.lines().find_map(|line| {
        let begin = line.find("takeup restore ")?;
        Some(line[begin + "takeup".len()..].replace("--into restored", "--into again"))
    });
    let typed = format!("exec \"$0\"{}", typed.unwrap().trim_end());
    let mut shell = Command::new("sh");
    shell.args(["-c", &typed, takeup().get_program().to_str().unwrap()]).current_dir(at);
    assert!(shell.output().unwrap().status.success(), "{typed}");
    assert_eq!(fs::read(at.join("again/home/eva/-a b.txt")).unwrap(), b"one");
}
