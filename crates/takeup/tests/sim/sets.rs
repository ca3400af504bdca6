//! The list of sets, the hint to the set that has a missing path, and the question for the next
//! tape on a terminal, which the live line must not overwrite.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::drive::{Drive, LIMIT, takeup};

fn run(drive: &Drive, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = takeup().current_dir(drive.folder()).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Two sets, of `letters` and of `numbers`.
fn two_sets() -> Drive {
    let drive = Drive::new();
    for (folder, files) in [("letters", ["a", "b"]), ("numbers", ["1", "2"])] {
        fs::create_dir(drive.folder().join(folder)).unwrap();
        for file in files {
            fs::write(drive.folder().join(folder).join(file), vec![b'x'; 50_000]).unwrap();
        }
        let tape = drive.tape();
        let output = run(&drive, &["backup", folder, "--to", tape.to_str().unwrap(), "--quiet"]);
        assert_eq!(output.0, Some(0), "{output:?}");
    }
    drive
}

#[test]
fn a_list_of_sets_says_what_is_in_them() {
    testkit::require!(Fuse);
    let drive = two_sets();
    let tape = drive.tape();
    let (code, text, errors) = run(&drive, &["list", tape.to_str().unwrap(), "--sets"]);
    assert_eq!(code, Some(0), "{errors}");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("medium medium ("), "the bar code of its file: {text}");
    for (line, set) in [
        (lines[1], "file 0, complete: 2 files, 100 kB: letters"),
        (lines[2], "file 2, complete: 2 files, 100 kB: numbers"),
    ] {
        assert!(line.ends_with(&format!(", segments 1-2 from {set}")), "{text}");
    }
    let (_, text, _) = run(&drive, &["list", tape.to_str().unwrap(), "--sets", "--json"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    let contents = &document["sets"][0]["contents"];
    assert_eq!(contents["sources"], serde_json::json!(["letters"]), "{document:#}");
    assert_eq!((&contents["files"], &contents["members"]), (&2.into(), &3.into()));
}

#[test]
fn what_another_set_has_is_told_with_its_number() {
    testkit::require!(Fuse);
    let drive = two_sets();
    let tape = drive.tape();
    let tape = tape.to_str().unwrap();
    let hint = "hint: set 1 of this volume has letters/a: add --set 1";
    let restore = ["restore", tape, "letters/a", "--into", "out"];
    for arguments in [&restore[..], &["list", tape, "letters/a"]] {
        let (code, _, errors) = run(&drive, arguments);
        assert_eq!(code, Some(1), "{errors}");
        assert!(errors.contains(hint), "{errors}");
    }
    let (code, _, errors) = run(&drive, &[&restore[..], &["--set", "1"]].concat());
    assert_eq!(code, Some(0), "{errors}");
    // A path that no set has gets the usual hint.
    let (code, _, errors) = run(&drive, &["restore", tape, "letters/c", "--into", "out"]);
    assert_eq!(code, Some(1));
    assert!(errors.contains("hint: ") && !errors.contains("--set"), "{errors}");
}

/// The last run broke off: whoever reads the tape learns that the set before it is whole.
#[test]
fn the_complete_set_before_one_without_an_end_is_named() {
    testkit::require!(Fuse);
    let drive = two_sets();
    let tape = drive.tape();
    let tape = tape.to_str().unwrap();
    fs::write(drive.folder().join("large"), vec![b'y'; 5_000_000]).unwrap();
    let mut broken = takeup();
    broken.current_dir(drive.folder()).args(["backup", "large", "--to", tape, "--quiet"]);
    let broken = broken.env("TAKEUP_TRAP", "write:6").output().unwrap();
    assert_eq!(broken.status.code(), Some(1), "{}", String::from_utf8_lossy(&broken.stderr));
    let note = "set 3, the last one, has no end on this tape: the run that wrote it did not \
                complete, or continued on another one. Set 2 has its end: add --set 2";
    let restore = ["restore", tape, "numbers/1", "--into", "out", "--quiet"];
    for arguments in [&restore[..], &["verify", tape, "--quiet"], &["list", tape]] {
        let (code, _, errors) = run(&drive, arguments);
        assert!(matches!(code, Some(1 | 2)), "{arguments:?}: {errors}");
        assert!(errors.contains(note), "{arguments:?}: {errors}");
    }
    for arguments in [&restore[..], &["verify", tape, "--quiet"]] {
        let (code, _, errors) = run(&drive, &[arguments, &["--set", "2"]].concat());
        assert_eq!((code, errors.contains("add --set")), (Some(0), false), "{errors}");
    }
}

/// A run that ends before its label leaves no set, and none is spoken of.
#[test]
fn what_ended_before_it_wrote_is_no_set() {
    testkit::require!(Fuse);
    let drive = two_sets();
    let mut broken = takeup();
    broken.current_dir(drive.folder()).args(["backup", "letters", "--to", "drive/nst0"]);
    let broken = broken.env("TAKEUP_TRAP", "read:1").output().unwrap();
    let errors = String::from_utf8(broken.stderr).unwrap();
    assert_eq!(broken.status.code(), Some(1), "{errors}");
    assert!(errors.contains("hint: nothing was written to the tape\n"), "{errors}");
    let (_, text, _) = run(&drive, &["list", "drive/nst0", "--sets"]);
    assert_eq!(text.matches("complete").count(), 2, "{text}");
}

/// A server of tmux with one window of 80 columns.
struct Window {
    socket: String,
}

impl Window {
    fn open(folder: &Path, command: &str) -> Window {
        let socket = folder.join("tmux").to_str().unwrap().to_owned();
        let size = ["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", command];
        let window = Window { socket };
        assert!(window.tmux(&size).status.success());
        window
    }

    fn tmux(&self, arguments: &[&str]) -> std::process::Output {
        Command::new("tmux").args(["-S", &self.socket]).args(arguments).output().unwrap()
    }

    fn shown(&self) -> String {
        String::from_utf8(self.tmux(&["capture-pane", "-p"]).stdout).unwrap()
    }

    fn wait_for(&self, words: &str) -> String {
        let end = Instant::now() + LIMIT;
        loop {
            let shown = self.shown();
            if shown.contains(words) {
                return shown;
            }
            assert!(Instant::now() < end, "no {words}: {shown}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn nothing_is_drawn_over_the_question_for_the_next_tape() {
    testkit::require!(Fuse, Tmux);
    let drive = Drive::with(&["--time", "none", "--capacity", "8M", "--compression", "off"]);
    let mut noise = vec![0; 12 << 20];
    let mut state = 1_u64;
    for byte in &mut noise {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *byte = (state >> 56) as u8;
    }
    fs::write(drive.folder().join("noise"), noise).unwrap();
    let program = env!("CARGO_BIN_EXE_takeup");
    let (folder, tape) = (drive.folder().display(), drive.tape());
    let backup = format!("{program} backup noise --to {} --ring 16M", tape.display());
    let window = Window::open(drive.folder(), &format!("cd {folder}; {backup}; sleep 60"));
    let question = "then press Enter (q gives up):";
    let joined = |shown: &str| shown.lines().map(str::trim_end).collect::<Vec<_>>().join("");
    let end = Instant::now() + LIMIT;
    while !joined(&window.shown()).contains("for volume 2 of set") {
        assert!(Instant::now() < end, "{}", window.shown());
        std::thread::sleep(Duration::from_millis(50));
    }
    // The live line is drawn five times a second.
    std::thread::sleep(Duration::from_secs(2));
    let shown = window.shown();
    let words: String = shown.split_whitespace().collect();
    let wanted: String = question.split_whitespace().collect();
    assert!(words.contains(&wanted), "{shown}");
    assert!(!shown.contains("changing the volume"), "{shown}");
    window.tmux(&["send-keys", "q", "Enter"]);
    window.wait_for("declined");
}
