//! `docs/first-backup.md` is true: each command on the page is typed, in its order, and prints what
//! the page says but for times, sizes and identities.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A command of the page and what it prints.
struct Step {
    command: String,
    printed: Vec<String>,
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut is_going_on = false;
    for line in page.lines() {
        let Some(line) = line.strip_prefix("    ") else {
            is_going_on = false;
            continue;
        };
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { command: command.to_owned(), printed: Vec::new() });
            is_going_on = true;
        } else if is_going_on && let Some(step) = steps.last_mut() {
            match line.strip_prefix("> ") {
                Some(more) => step.command.push_str(&format!("\n{more}")),
                None => step.printed.push(line.to_owned()),
            }
        }
    }
    steps
}

/// A line without what differs from run to run.
fn shape(line: &str) -> String {
    let mut words = Vec::new();
    for word in line.split_whitespace() {
        let is_unit = ["B", "kB", "MB", "GB", "B/s", "kB/s", "MB/s", "GB/s", "ms", "s", "min"]
            .contains(&word.trim_end_matches(','));
        let has_digit = word.chars().any(|letter| letter.is_ascii_digit());
        match (is_unit, has_digit) {
            (true, _) => {}
            // Names of archives and times keep what is no number.
            (false, true) => {
                let digits = |letter: char| letter.is_ascii_hexdigit() || ".:,".contains(letter);
                let kept: String = word.chars().filter(|letter| !digits(*letter)).collect();
                words.push(format!("#{kept}"));
            }
            (false, false) => words.push(word.to_owned()),
        }
    }
    words.join(" ")
}

#[test]
fn a_new_user_follows_the_page() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/first-backup.md");
    let steps = steps(&fs::read_to_string(page).unwrap());
    assert!(steps.len() >= 10, "the page has its commands");
    let home = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_takeup")).parent().unwrap().display();
    let config = home.path().join(".config");
    for Step { command, printed } in steps {
        // Nobody types faster than the clock of a file system moves on.
        std::thread::sleep(crate::TICK);
        let output = Command::new("/bin/bash")
            .args(["-c", &command])
            .env_clear()
            .env("PATH", format!("{program}:/usr/bin:/bin"))
            .envs([("LC_ALL", "C.UTF-8"), ("TZ", "UTC")])
            .env("HOME", home.path())
            .env("XDG_STATE_HOME", home.path().join(".local/state"))
            .env("XDG_CONFIG_HOME", &config)
            .env("TAKEUP_UNITS_DIR", config.join("systemd/user"))
            .current_dir(home.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success(), "{command}: {text}");
        let text = text.replace(&*home.path().to_string_lossy(), "/home/eva");
        // The page is an ordinary user's.
        let text = text.replace("systemctl ", "systemctl --user ");
        let text = text.replace("--user --user", "--user");
        let text = text.replace(&home.path().to_string_lossy()[1..], "home/eva");
        let shapes = |lines: &mut dyn Iterator<Item = &str>| lines.map(shape).collect::<Vec<_>>();
        let shown = shapes(&mut printed.iter().map(String::as_str));
        assert_eq!(shown, shapes(&mut text.lines()), "{command}\n{text}");
    }
}
