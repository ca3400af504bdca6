//! What an operator does: tapes with names, the wrong tape, a set on three tapes without anybody
//! there, what the drive says of itself, and a tape that is ejected at the end.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::Value;
use testkit::samples::noise;

use crate::drive::{Drive, takeup};

/// A drive with the first of a row of small tapes, and a program that loads the others.
struct Room {
    drive: Drive,
    state: tempfile::TempDir,
}

impl Room {
    fn new(options: &[&str]) -> Room {
        Room::with("8M", options)
    }

    /// With tapes of this capacity.
    fn with(capacity: &str, options: &[&str]) -> Room {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("drive")).unwrap();
        let first = folder.path().join("000101L6");
        let usual = ["--time", "none", "--drive", "lto6", "--capacity", capacity];
        let drive = Drive::on(folder, &first, &[&usual, options].concat());
        let room = Room { drive, state: tempfile::tempdir().unwrap() };
        let script = room.script();
        let (folder, medium) = (room.drive.folder().display(), room.drive.path().join("medium"));
        // First a wrong tape, then the one that is asked for, or the next one.
        let text = format!(
            "#!/bin/sh -e\ncd {folder}\n\
             echo \"$TAKEUP_ACTION $TAKEUP_VOLUME $TAKEUP_MEDIUM_NAME: $TAKEUP_REASON\" >>asked\n\
             name=${{TAKEUP_MEDIUM_NAME:-00010${{TAKEUP_VOLUME}}L6}}\n\
             [ $TAKEUP_ATTEMPT != 1 ] || name=${{FIRST:-$name}}\n\
             echo \"$PWD/$name\" >{medium}\n",
            medium = medium.display()
        );
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        room
    }

    fn script(&self) -> PathBuf {
        self.drive.folder().join("next-tape")
    }

    fn asked(&self) -> String {
        let asked = self.drive.folder().join("asked");
        let text = fs::read_to_string(&asked).unwrap_or_default();
        let _ = fs::remove_file(asked);
        text
    }

    fn load(&self, name: &str) {
        let path = self.drive.folder().join(name);
        fs::write(self.drive.path().join("medium"), format!("{}\n", path.display())).unwrap();
    }

    /// Runs `takeup` in the folder of the drive; the exit code, what it says, and its complaints.
    fn run(&self, arguments: &[&str], first: &str) -> (Option<i32>, String, String) {
        let output = takeup()
            .current_dir(self.drive.folder())
            .env("XDG_STATE_HOME", self.state.path())
            .env("FIRST", first)
            .args(arguments)
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    /// A folder with a file of so many bytes.
    fn folder(&self, name: &str, bytes: usize) {
        let path = self.drive.folder().join(name);
        fs::create_dir(&path).unwrap();
        fs::write(path.join("file"), noise(7, bytes)).unwrap();
    }
}

const TO: [&str; 2] = ["--to", "drive/nst0"];

#[test]
fn a_set_on_three_tapes_comes_back_by_their_names() {
    testkit::require!(Fuse);
    let room = Room::new(&[]);
    room.folder("homes", 17 << 20);
    let backup = ["backup", "homes", "--change-command", "./next-tape", "--json"];
    let (code, text, errors) = room.run(&[&backup[..], &TO].concat(), "");
    assert_eq!(code, Some(0), "{errors}");
    let document: Value = serde_json::from_str(&text).unwrap();
    let media = document["tape"]["media"].as_array().unwrap();
    let names: Vec<&str> = media.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["000101L6", "000102L6", "000103L6"]);
    assert_eq!(room.asked(), "write 2 : \nwrite 3 : \n");

    // The first tape that comes is a wrong one, with a set of its own.
    room.load("000109L6");
    room.folder("other", 10_000);
    assert_eq!(room.run(&[&["backup", "other"][..], &TO].concat(), "").0, Some(0));
    room.load("000103L6");
    let restore = ["restore", "drive/nst0", "--into", "out", "--change-command", "./next-tape"];
    let (code, _, errors) = room.run(&restore[..4], "");
    assert_eq!(code, Some(1), "nobody is there who could change tapes");
    assert!(errors.contains(" is needed, on the medium 000101L6: "), "{errors}");
    let (code, _, errors) = room.run(&restore, "000109L6");
    assert_eq!(code, Some(0), "{errors}");
    let back = fs::read(room.drive.folder().join("out/homes/file")).unwrap();
    assert!(back == noise(7, 17 << 20));
    let asked = room.asked();
    let wrong = "the medium 000109L6 holds no volume of this set";
    assert!(asked.contains("read 1 000101L6: \n"), "{asked}");
    assert!(asked.contains(&format!("read 1 000101L6: {wrong}\n")), "{asked}");
}

#[test]
fn the_tape_that_is_named_is_the_one_that_is_written() {
    testkit::require!(Fuse);
    let room = Room::new(&[]);
    room.folder("homes", 10_000);
    let named =
        |name| room.run(&["backup", "homes", "--to", "drive/nst0", "--volume-name", name], "");
    assert_eq!(named("WEEK-3").0, Some(0));
    let before = fs::read(room.drive.folder().join("000101L6")).unwrap();
    let (code, _, errors) = named("WEEK-4");
    assert_eq!(code, Some(1));
    assert!(errors.contains("the medium is called WEEK-3, not WEEK-4"), "{errors}");
    assert!(fs::read(room.drive.folder().join("000101L6")).unwrap() == before);
    let (_, text, _) = room.run(&["list", "drive/nst0", "--sets"], "");
    assert!(text.starts_with("medium WEEK-3 ("), "{text}");
    let (code, _, errors) = named("WEEK 3");
    assert_eq!(code, Some(1));
    assert!(errors.contains("\"WEEK 3\" is no name of a medium"), "{errors}");
    // An option on whose effect somebody counts is not passed over.
    for option in [&["--volume-name", "WEEK-3"][..], &["--eject"]] {
        let to_file = [&["backup", "homes", "--to", "archive.tar"][..], option].concat();
        let (code, _, errors) = room.run(&to_file, "");
        assert_eq!(code, Some(1));
        assert!(errors.contains("archive.tar is no tape drive"), "{errors}");
        assert!(!room.drive.folder().join("archive.tar").exists());
        let to_sets = [&["backup", "homes", "--to", "sets/"][..], option].concat();
        let (code, _, errors) = room.run(&to_sets, "");
        assert_eq!(code, Some(1));
        assert!(errors.contains("sets/ is no tape drive"), "{errors}");
        assert!(!room.drive.folder().join("sets").exists(), "nothing is made before it is refused");
    }
}

#[test]
fn what_the_drive_reports_is_told_and_changes_nothing_else() {
    testkit::require!(Fuse);
    let room = Room::new(&["--alert", "20"]);
    room.folder("homes", 10_000);
    let (code, _, errors) = room.run(&[&["backup", "homes", "--quiet"][..], &TO].concat(), "");
    assert_eq!(code, Some(0), "{errors}");
    let alert = "the drive reports: the drive must be cleaned now (TapeAlert 20)";
    assert_eq!(errors, format!("takeup: note: drive/nst0: {alert}\n"));
    // The flag is gone once it is read; the request stays.
    let (code, text, errors) = room.run(&["verify", "drive/nst0", "--json"], "");
    assert_eq!(code, Some(0), "{errors}");
    let document: Value = serde_json::from_str(&text).unwrap();
    let findings = document["findings"].as_array().unwrap();
    let cleaning = findings.iter().find(|finding| finding["rule"] == "drive.cleaning").unwrap();
    assert_eq!(cleaning["severity"], "warning");
    let (_, _, errors) = room.run(&["list", "drive/nst0", "--sets"], "");
    assert!(errors.contains("drive/nst0: the drive requests cleaning"), "{errors}");
}

#[test]
fn a_tape_is_ejected_where_that_is_wanted() {
    testkit::require!(Fuse);
    let room = Room::new(&[]);
    room.folder("homes", 10_000);
    let runs: [&[&str]; 5] = [
        &["backup", "homes", "--to", "drive/nst0"],
        &["restore", "drive/nst0", "--into", "out"],
        &["verify", "drive/nst0"],
        &["list", "drive/nst0"],
        &["list", "drive/nst0", "--sets"],
    ];
    for arguments in runs {
        room.load("000101L6");
        let (code, _, errors) = room.run(&[arguments, &["--eject"]].concat(), "");
        assert_eq!(code, Some(0), "{arguments:?}: {errors}");
        let (code, _, errors) = room.run(&["list", "drive/nst0", "--sets"], "");
        assert_eq!(code, Some(1), "{arguments:?}");
        assert!(errors.contains("no medium in the drive"), "{errors}");
    }
}

#[test]
fn all_sets_of_a_tape_are_verified_in_one_pass() {
    testkit::require!(Fuse);
    let room = Room::with("64M", &[]);
    for (name, bytes) in [("homes", 2 << 20), ("mail", 1 << 20), ("www", 10_000)] {
        room.folder(name, bytes);
        assert_eq!(room.run(&["backup", name, "--to", "drive/nst0"], "").0, Some(0));
    }
    let verify = ["verify", "drive/nst0", "--sets"];
    let (code, text, errors) = room.run(&verify, "");
    assert_eq!(code, Some(0), "{errors}");
    assert!(text.starts_with("all sound: 3 archives"), "{text}");
    assert!(text.contains("set 1 (") && text.contains("set 3 ("), "{text}");

    // Damage of one set is damage of that set.
    let path = room.drive.folder().join("000101L6");
    fs::write(room.drive.path().join("medium"), "\n").unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let content = noise(7, 1 << 20);
    let places: Vec<usize> =
        (0..bytes.len() - 64).filter(|at| bytes[*at..*at + 64] == content[..64]).collect();
    // Set 2 is the second that begins with these bytes.
    bytes[places[1] + 5000] ^= 1;
    fs::write(&path, &bytes).unwrap();
    room.load("000101L6");
    let (code, text, errors) = room.run(&[&verify[..], &["--json", "--eject"]].concat(), "");
    assert_eq!(code, Some(1), "{errors}");
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["sound"], false);
    let archives = document["archives"].as_array().unwrap();
    let sound: Vec<bool> = archives.iter().map(|it| it["sound"].as_bool().unwrap()).collect();
    assert_eq!(sound, [true, false, true], "{text}");
    let (_, _, errors) = room.run(&verify, "");
    assert!(errors.contains("no medium in the drive"), "{errors}");
}

#[test]
fn a_set_whose_run_did_not_end_is_not_sound() {
    testkit::require!(Fuse);
    let room = Room::new(&[]);
    room.folder("homes", 10_000);
    room.folder("mail", 17 << 20);
    let backup = |name| room.run(&["backup", name, "--to", "drive/nst0"], "").0;
    // The second does not fit, and nobody changes tapes.
    assert_eq!([backup("homes"), backup("mail")], [Some(0), Some(1)]);
    let (code, text, errors) = room.run(&["verify", "drive/nst0", "--sets", "--json"], "");
    assert_eq!(code, Some(1), "{errors}");
    let document: Value = serde_json::from_str(&text).unwrap();
    let archives = document["archives"].as_array().unwrap();
    let sound: Vec<bool> = archives.iter().map(|it| it["sound"].as_bool().unwrap()).collect();
    assert_eq!(sound, [true, false], "{text}");
}
