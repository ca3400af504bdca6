//! The catalogue takes in what backups wrote, and what became of it, when it is asked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::{TICK, archive, takeup};
use testkit::mounted::Mounted;

/// A source, a folder of sets and a state of its own.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        fs::create_dir(place.at("tree")).unwrap();
        place.write("a", "first");
        fs::write(place.at("tree/same"), "same").unwrap();
        fs::hard_link(place.at("tree/same"), place.at("tree/same-too")).unwrap();
        std::thread::sleep(TICK);
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.at("tree").join(name), text).unwrap();
    }

    fn command(&self) -> Command {
        let mut command = takeup();
        command.current_dir(self.0.path()).env("XDG_STATE_HOME", self.at("state"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().unwrap()
    }

    /// What is on standard output, and on standard error.
    #[track_caller]
    fn text(&self, arguments: &[&str], code: i32) -> (String, String) {
        let output = self.run(arguments);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let (shown, said) = (text(output.stdout), text(output.stderr));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {shown}{said}");
        (shown, said)
    }

    #[track_caller]
    fn json(&self, arguments: &[&str], code: i32) -> Value {
        let (shown, _) = self.text(&[arguments, &["--json"]].concat(), code);
        serde_json::from_str(&shown).unwrap()
    }

    #[track_caller]
    fn backup(&self, to: &str, more: &[&str]) -> PathBuf {
        let made = self.json(&[&["backup", "tree", "--to", to], more].concat(), 0);
        std::thread::sleep(TICK);
        archive(self.0.path(), &made)
    }

    #[track_caller]
    fn find(&self, name: &str) -> Value {
        self.json(&["catalog", "find", name], 0)
    }

    fn catalogue(&self) -> PathBuf {
        self.at("state/takeup/catalog.sqlite")
    }
}

/// Added and left.
fn counts(answer: &Value) -> (u64, u64) {
    let of = |name: &str| answer["caught_up"][name].as_u64().unwrap();
    (of("added"), of("left"))
}

/// Sets of each version of the first path.
fn versions(answer: &Value) -> Vec<usize> {
    let versions = answer["files"][0]["versions"].as_array().unwrap();
    versions.iter().map(|version| version["sets"].as_array().unwrap().len()).collect()
}

fn move_to(from: &Path, to: &Path) {
    fs::rename(from, to).unwrap();
}

#[test]
fn what_a_backup_wrote_is_found_without_a_word_to_the_catalogue() {
    let place = Place::new();
    place.backup("sets/", &[]);
    assert!(!place.catalogue().exists(), "a backup only notes its folder");
    place.backup("sets/", &["-i"]);
    let list = place.at("state/takeup/catalog.sqlite.places");
    let sets = place.at("sets");
    assert_eq!(fs::read_to_string(list).unwrap(), format!("{}\n", sets.display()));
    let found = place.find("tree/a");
    assert_eq!((counts(&found), versions(&found)), ((2, 0), vec![2]));
    place.write("a", "second day");
    place.backup("sets/", &["-i"]);
    let found = place.find("tree/a");
    assert_eq!((counts(&found), versions(&found)), ((1, 0), vec![2, 1]));
    // A link of the first set and a file by the entries of the next are one version.
    for name in ["same", "same-too"] {
        let found = place.find(name);
        assert_eq!((counts(&found), versions(&found)), ((0, 0), vec![3]), "{name}");
    }
    let (_, said) = place.text(&["catalog", "find", "a"], 0);
    assert_eq!(said, "", "what took no time is not told");
    // The last set has the file, and its archive has not: the command names the chain.
    let (shown, _) = place.text(&["catalog", "find", "tree/same"], 0);
    let command = shown.lines().last().unwrap();
    let command = command.strip_prefix("restore the newest: takeup ").unwrap();
    let words = command.split(' ').map(|word| if word == "DIR" { "back" } else { word });
    place.text(&words.collect::<Vec<_>>(), 0);
    assert_eq!(fs::read(place.at("back/tree/same")).unwrap(), b"same");
}

/// A chain whose archives were copied without their times, and come in one after the other.
#[test]
fn sets_of_a_chain_come_in_any_order() {
    let place = Place::new();
    let full = place.backup("sets/", &[]);
    let first = place.backup("sets/", &["-i"]);
    place.write("a", "second day");
    let second = place.backup("sets/", &["-i"]);
    for path in [&full, &first] {
        move_to(path, &place.at(path.file_name().unwrap().to_str().unwrap()));
    }
    let found = place.find("tree/same");
    assert_eq!((counts(&found), versions(&found)), ((1, 0), vec![1]));
    let path = |set: &Path| place.at(set.file_name().unwrap().to_str().unwrap());
    move_to(&path(&full), &full);
    assert_eq!(versions(&place.find("tree/same")), [2]);
    move_to(&path(&first), &first);
    let found = place.find("tree/same");
    assert_eq!((counts(&found), versions(&found)), ((1, 0), vec![3]));
    let hash = &found["files"][0]["versions"][0]["hash"];
    assert_eq!(hash.as_str().unwrap(), &blake3::hash(b"same").to_hex()[..32]);
    assert_eq!(versions(&place.find("tree/a")), [2, 1]);
    // The middle one goes, and comes back.
    move_to(&first, &path(&first));
    let found = place.find("tree/a");
    assert_eq!((counts(&found), versions(&found)), ((0, 1), vec![1, 1]));
    move_to(&path(&first), &first);
    let found = place.find("tree/a");
    assert_eq!((counts(&found), versions(&found)), ((1, 0), vec![2, 1]));
    assert!(second.exists());
}

/// A pulled drive: its folder is gone, or is there as an empty mount point.
#[test]
fn a_folder_that_is_not_there_keeps_its_sets_and_the_answer_says_so() {
    let place = Place::new();
    place.backup("sets/", &[]);
    place.backup("other/", &[]);
    assert_eq!(counts(&place.find("tree/a")), (2, 0));
    move_to(&place.at("sets"), &place.at("pulled"));
    for is_mount_point in [false, true] {
        if is_mount_point {
            fs::create_dir(place.at("sets")).unwrap();
        }
        let found = place.find("tree/a");
        assert_eq!((counts(&found), found["total"].as_u64()), ((0, 0), Some(2)));
        let absent = &found["caught_up"]["absent"];
        assert_eq!(absent[0]["folder"], place.at("sets").to_str().unwrap());
        assert_eq!((&absent[0]["sets"], absent.as_array().unwrap().len()), (&1.into(), 1));
        let (_, said) = place.text(&["catalog", "sets"], 0);
        assert!(said.contains("/sets: its archives are not there now; its set is as"), "{said}");
    }
    fs::remove_dir(place.at("sets")).unwrap();
    move_to(&place.at("pulled"), &place.at("sets"));
    let found = place.find("tree/a");
    assert_eq!(counts(&found), (0, 0));
    assert_eq!(found["caught_up"]["absent"], serde_json::json!([]));
    // With its lock it is the folder, and it is empty.
    for entry in fs::read_dir(place.at("sets")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "tar") {
            fs::remove_file(path).unwrap();
        }
    }
    assert_eq!(counts(&place.find("tree/a")), (0, 1));
}

#[test]
fn a_moved_or_copied_archive_is_the_same_set() {
    let place = Place::new();
    let archive = place.backup("sets/", &[]);
    assert_eq!(counts(&place.find("tree/a")), (1, 0));
    let copy = place.at("sets/copy.tar");
    fs::copy(&archive, &copy).unwrap();
    assert_eq!(counts(&place.find("tree/a")), (0, 0));
    fs::remove_file(&archive).unwrap();
    let found = place.find("tree/a");
    assert_eq!((counts(&found), &found["sets"][0]["place"]), ((0, 0), &path_of(&copy)));
    // Another archive in its place.
    place.write("a", "another");
    let other = place.backup("sets/", &[]);
    move_to(&other, &copy);
    let found = place.find("tree/a");
    assert_eq!((counts(&found), versions(&found)), ((1, 1), vec![1]));
    assert_eq!(found["files"][0]["versions"][0]["size_bytes"], 7);
}

fn path_of(path: &Path) -> Value {
    path.to_str().unwrap().into()
}

/// An archive that is cut off is told, and what is known of it stays.
#[test]
fn an_archive_that_loses_its_index_is_told_with_each_answer() {
    let place = Place::new();
    let archive = place.backup("sets/", &[]);
    place.find("tree/a");
    let bytes = fs::read(&archive).unwrap();
    fs::write(&archive, &bytes[..bytes.len() / 2]).unwrap();
    for _ in 0..2 {
        let found = place.json(&["catalog", "find", "tree/a"], 2);
        assert_eq!(counts(&found), (0, 0));
        let left_out = &found["caught_up"]["left_out"][0];
        assert_eq!(left_out["path"], path_of(&archive));
        assert!(left_out["why"].as_str().unwrap().contains("its index is lost"), "{left_out}");
    }
    fs::write(&archive, bytes).unwrap();
    assert_eq!(counts(&place.find("tree/a")), (0, 0));
}

/// `add` and `rebuild` say where to look from now on; another catalogue has a list of its own.
#[test]
fn each_catalogue_has_its_own_folders() {
    let place = Place::new();
    place.backup("sets/", &[]);
    place.backup("more/", &[]);
    let own = ["--catalog", "own.sqlite"];
    let json = |arguments: &[&str]| place.json(&[arguments, &own].concat(), 0);
    let (_, said) = place.text(&[&["catalog", "rebuild"], &own[..]].concat(), 1);
    assert!(said.contains("the catalogue has no folder to look at"), "{said}");
    assert_eq!(json(&["catalog", "add", "sets"])["added"], 1);
    place.backup("sets/", &[]);
    assert_eq!(counts(&json(&["catalog", "sets"])), (1, 0));
    assert_eq!(json(&["catalog", "rebuild", "more"])["added"], 1);
    let found = json(&["catalog", "sets"]);
    assert_eq!((counts(&found), found["sets"].as_array().unwrap().len()), ((0, 0), 1));
    assert_eq!(json(&["catalog", "rebuild"])["added"], 1);
    assert_eq!(counts(&place.json(&["catalog", "sets"], 0)), (3, 0));
}

/// The index of a set on tape lies in a file of its own.
#[test]
fn an_index_alone_comes_in() {
    let place = Place::new();
    let archive = place.backup("sets/", &[]);
    let known = place.json(&["catalog", "sets"], 0);
    let end = known["sets"][0]["archive_bytes"].as_u64().unwrap() as usize;
    fs::create_dir(place.at("indexes")).unwrap();
    let alone = place.at("indexes/4626c0ab.takeup-index");
    fs::write(&alone, &fs::read(&archive).unwrap()[end..]).unwrap();
    let own = ["--catalog", "own.sqlite"];
    place.json(&[&["catalog", "add", "indexes"], &own[..]].concat(), 0);
    let found = place.json(&[&["catalog", "find", "tree/a"], &own[..]].concat(), 0);
    assert_eq!((versions(&found), &found["sets"][0]["place"]), (vec![1], &path_of(&alone)));
    let (shown, _) = place.text(&[&["catalog", "find", "tree/a"], &own[..]].concat(), 0);
    assert!(!shown.contains("takeup restore"), "an index restores nothing: {shown}");
    fs::remove_file(&alone).unwrap();
    fs::write(place.at("indexes/notes.takeup-index"), "no index").unwrap();
    let found = place.json(&[&["catalog", "find", "tree/a"], &own[..]].concat(), 0);
    assert_eq!(found["caught_up"]["absent"][0]["sets"], 1);
}

/// Whatever the state of the catalogue, a backup is done as ever.
#[test]
fn a_backup_is_never_harmed_by_the_catalogue() {
    let place = Place::new();
    place.backup("sets/", &[]);
    place.find("tree/a");
    let path = place.catalogue();
    let bytes = fs::read(&path).unwrap();
    // The version of the tables in the head of the file (sqlite.org/fileformat.html).
    let mut later = bytes.clone();
    later[60..64].copy_from_slice(&99u32.to_be_bytes());
    let half = bytes[..bytes.len() / 2].to_vec();
    let states = [(later, 3, "a later version"), (half, 1, "is damaged"), (vec![7; 9000], 1, "no")];
    for (state, code, why) in states {
        fs::write(&path, state).unwrap();
        let (_, said) = place.text(&["backup", "tree", "--to", "sets/"], 0);
        assert_eq!(said, "");
        let (_, said) = place.text(&["catalog", "find", "tree/a"], code);
        assert!(said.contains(why) || said.contains("not a catalogue"), "{said}");
        assert_eq!(said.matches("takeup: ").count(), 1, "told once: {said}");
    }
    // Where the list cannot be written, there is a note.
    let list = place.at("state/takeup/catalog.sqlite.places");
    fs::remove_file(&list).unwrap();
    fs::create_dir(&list).unwrap();
    let (_, said) = place.text(&["backup", "tree", "--to", "sets/"], 0);
    assert!(said.contains("note: sets/: is not in the catalogue: "), "{said}");
}

/// A full disk: the question is answered with what is known, and says what is missing.
#[test]
fn a_question_on_a_full_disk_is_answered_with_what_is_known() {
    testkit::require!(Mounts);
    let place = Place::new();
    place.backup("sets/", &[]);
    place.find("tree/a");
    let mounted = Mounted::new(&["-t", "tmpfs", "-o", "size=4m", "tmpfs"], &place.at("small"));
    let state = mounted.path().join("takeup");
    fs::create_dir(&state).unwrap();
    for name in ["catalog.sqlite", "catalog.sqlite.places"] {
        fs::copy(place.at("state/takeup").join(name), state.join(name)).unwrap();
    }
    for number in 0..2000 {
        place.write(&format!("a-rather-long-name-of-a-file-{number}"), "");
    }
    std::thread::sleep(TICK);
    let run = |arguments: &[&str]| {
        place.command().env("XDG_STATE_HOME", mounted.path()).args(arguments).output().unwrap()
    };
    assert_eq!(run(&["backup", "tree", "--to", "sets/", "-q"]).status.code(), Some(0));
    let status = rustix::fs::statvfs(mounted.path()).unwrap();
    let free = status.f_bavail * status.f_frsize;
    fs::write(mounted.path().join("ballast"), vec![1; free as usize - 8192]).unwrap();
    let found = run(&["catalog", "find", "tree/a"]);
    let said = String::from_utf8(found.stderr).unwrap();
    let shown = String::from_utf8(found.stdout).unwrap();
    assert_eq!(found.status.code(), Some(2), "{said}");
    assert!(shown.contains("in 1 set,"), "{shown}");
    let why = "warning: the catalogue is not up to date: there is no space left for the catalogue";
    assert!(said.contains(why), "{said}");
    fs::remove_file(mounted.path().join("ballast")).unwrap();
    let found = run(&["catalog", "find", "tree/a"]);
    let shown = String::from_utf8(found.stdout).unwrap();
    assert!(shown.contains("in 2 sets,"), "{shown}");
}

/// Another process writes: the question waits for it, and then is answered with what is known.
#[test]
fn a_question_while_another_process_writes_is_answered_with_what_is_known() {
    testkit::require!(Python3);
    let place = Place::new();
    place.backup("sets/", &[]);
    place.find("tree/a");
    place.backup("sets/", &[]);
    let hold = "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
                c.execute('BEGIN IMMEDIATE')\nprint('held', flush=True)\nsys.stdin.read()\n";
    let path = place.catalogue();
    let mut other = Command::new("python3")
        .args(["-c", hold, path.to_str().unwrap()])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut held = [0; 5];
    std::io::Read::read_exact(other.stdout.as_mut().unwrap(), &mut held).unwrap();
    let found = place.json(&["catalog", "find", "tree/a"], 2);
    assert_eq!((counts(&found), versions(&found)), ((0, 0), vec![1]));
    let why = found["caught_up"]["not_done"].as_str().unwrap();
    assert!(why.contains("in use by another process"), "{why}");
    drop(other.stdin.take());
    assert!(other.wait().unwrap().success());
    let found = place.find("tree/a");
    assert_eq!((counts(&found), versions(&found)), ((1, 0), vec![2]));
}
