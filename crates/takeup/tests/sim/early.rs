//! An incremental set that ends early on a full tape, unattended; the next run begins with what is
//! missing.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use testkit::samples::noise;

use crate::drive::{Drive, takeup};

/// Longer than the clock of a file system stands still.
const TICK: Duration = Duration::from_millis(70);

struct Site {
    drive: Drive,
    state: tempfile::TempDir,
}

impl Site {
    fn run(&self, arguments: &[&str], code: i32) -> String {
        let output = takeup()
            .current_dir(self.drive.folder())
            .env("XDG_STATE_HOME", self.state.path())
            .args(arguments)
            .output()
            .unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        text
    }

    fn back_up(&self, code: i32) -> String {
        let how = ["--incremental", "--segment-size", "1M", "--block-size", "64k"];
        self.run(&[&["backup", "home", "--to", "drive/nst0"][..], &how].concat(), code)
    }

    fn load(&self, medium: &str) {
        let path = self.drive.folder().join(medium);
        let how: &[&str] = if path.exists() { &[] } else { &["--new"] };
        self.run(&[&["sim", "load", "drive", medium][..], how].concat(), 0);
    }

    /// A program that loads the other tape.
    fn changes_tapes(&self) {
        let (folder, script) = (self.drive.folder().display(), self.drive.folder().join("change"));
        let text = format!(
            "#!/bin/sh\ncd {folder}\ncase $(cat drive/medium) in\n*/second) next=medium ;;\n\
             *) next=second ;;\nesac\necho {folder}/$next >drive/medium\n"
        );
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn restored(&self, options: &[&str], code: i32) -> (BTreeMap<String, Vec<u8>>, String) {
        let out = tempfile::tempdir().unwrap();
        let into = out.path().to_str().unwrap();
        let change = self.drive.folder().join("change");
        let change = ["--change-command", change.to_str().unwrap()];
        let words = [&["restore", "drive/nst0", "--into", into][..], &change, options].concat();
        let text = self.run(&words, code);
        (contents(&out.path().join("home")), text)
    }
}

fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(folder).into_iter().flatten().map(Result::unwrap);
    let name = |file: &fs::DirEntry| file.file_name().into_string().unwrap();
    files.map(|file| (name(&file), fs::read(file.path()).unwrap())).collect()
}

#[test]
fn the_next_run_begins_with_what_a_full_tape_left_out() {
    testkit::require!(Fuse);
    let usual = ["--time", "none", "--capacity", "24M", "--compression", "off"];
    let site = Site { drive: Drive::with(&usual), state: tempfile::tempdir().unwrap() };
    let home = site.drive.folder().join("home");
    fs::create_dir(&home).unwrap();
    for file in 0..60 {
        fs::write(home.join(format!("{file:02}")), noise(file, 600_000)).unwrap();
    }
    std::thread::sleep(TICK);
    let said = site.back_up(2);
    assert!(said.starts_with("INCOMPLETE: drive/nst0: the set ended early"), "{said}");
    let listed = site.run(&["list", "drive/nst0", "--sets"], 0);
    assert!(listed.contains(", ended early: "), "{listed}");
    site.run(&["verify", "drive/nst0"], 0);
    let (first, said) = site.restored(&[], 0);
    assert!(said.contains("the run that wrote this says: the set ended early"), "{said}");
    assert!(first.len() > 10 && first.len() < 60, "{}", first.len());
    let left = 60 - first.len();
    // One more changes, one is deleted, and the tape is changed.
    fs::write(home.join("00"), "changed").unwrap();
    fs::remove_file(home.join("01")).unwrap();
    std::thread::sleep(TICK);
    site.load("second");
    let said = site.back_up(0);
    assert!(said.contains(&format!("again {left}")) && said.contains("1 deleted"), "{said}");
    // All of it comes back, from both tapes.
    site.changes_tapes();
    let (all, said) = site.restored(&[], 0);
    assert!(all == contents(&home), "{:?}", all.keys());
    assert!(!said.contains("ended early"), "{said}");
}

#[test]
fn that_a_tape_is_too_small_is_said_before_anything_is_written() {
    testkit::require!(Fuse);
    let usual = ["--time", "none", "--drive", "lto6", "--capacity", "24M"];
    let site = Site {
        drive: Drive::with(&[&usual[2..], &["--speed-up", "1000"]].concat()),
        state: tempfile::tempdir().unwrap(),
    };
    let file = site.drive.folder().join("large");
    fs::write(&file, noise(1, 30_000_000)).unwrap();
    let backup = ["backup", "large", "--to", "drive/nst0"];
    let said = site.run(&backup, 1);
    let warned = said.find("the medium has room for 25.2 MB").unwrap();
    assert!(warned < said.find("volume 1 (medium) is full").unwrap(), "{said}");
    // With somebody there, nothing is said.
    let said = site.run(&[&backup[..], &["--change-command", "false"]].concat(), 1);
    assert!(!said.contains("the medium has room"), "{said}");
}
