//! `takeup catalog`: from archives in a folder to the version of a file that somebody wants back.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::{small_tree, takeup};

/// Runs the program with a state folder in the directory.
fn run(directory: &Path, arguments: &[&str]) -> Output {
    let state = directory.join("state");
    takeup().current_dir(directory).env("XDG_STATE_HOME", state).args(arguments).output().unwrap()
}

#[track_caller]
fn text(directory: &Path, arguments: &[&str], code: i32) -> String {
    let output = run(directory, arguments);
    let all = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(all).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    text
}

/// Two archives of the tree: between them a file was changed, one deleted, one made. Their times
/// are two days.
fn two_days() -> tempfile::TempDir {
    let directory = small_tree();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("backups")).unwrap();
    for (day, name) in [(0, "monday.tar"), (1, "tuesday.tar.zst")] {
        if day == 1 {
            fs::write(at("tree/a"), "another content of a\n").unwrap();
            fs::remove_file(at("tree/empty")).unwrap();
            fs::write(at("tree/b/new"), "new").unwrap();
        }
        let path = format!("backups/{name}");
        text(directory.path(), &["backup", "tree", "--to", &path, "-q"], 0);
        let time =
            std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_790_000_000 + day * 86_400);
        fs::File::open(at(&path)).unwrap().set_modified(time).unwrap();
    }
    fs::write(at("backups/notes"), "no archive").unwrap();
    directory
}

#[test]
fn a_version_is_found_and_comes_back_by_the_command_that_is_printed() {
    let directory = two_days();
    let here = directory.path();
    let added = text(here, &["catalog", "add", "backups"], 0);
    assert!(added.starts_with("added 2 sets with 6 files to "), "{added}");
    assert!(added.contains("1 file has no index of takeup: passed over"), "{added}");
    let again = text(here, &["catalog", "add", "backups/monday.tar"], 0);
    assert!(again.contains("1 set was in it already"), "{again}");

    let found = text(here, &["catalog", "find", "a"], 0);
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines[0], "tree/a");
    assert!(lines[1].contains("21 B  in 1 set, last 2026-09-22 (the newest): /"), "{found}");
    assert!(lines[1].ends_with("/backups/tuesday.tar.zst"), "{found}");
    assert!(lines[2].contains("13 B  in 1 set, last 2026-09-21 (then replaced): /"), "{found}");
    let command = lines[3].strip_prefix("restore the newest: takeup ").unwrap();
    let words: Vec<&str> = command.split(' ').map(|word| word.trim_matches('\'')).collect();
    let words: Vec<&str> = words.iter().map(|&it| if it == "DIR" { "back" } else { it }).collect();
    text(here, &words, 0);
    assert_eq!(fs::read(here.join("back/tree/a")).unwrap(), b"another content of a\n");

    let deleted = text(here, &["catalog", "find", "tree/empty"], 0);
    assert!(deleted.contains("in 1 set, last 2026-09-21 (not in the next set): /"), "{deleted}");
    assert!(deleted.contains("/backups/monday.tar tree/empty --into DIR"), "{deleted}");
    let same = text(here, &["catalog", "find", "c"], 0);
    assert!(same.contains("100 kB  in 2 sets, last 2026-09-22 (the newest): /"), "{same}");

    let sets = text(here, &["catalog", "sets"], 0);
    assert_eq!(sets.lines().count(), 2, "{sets}");
    assert!(sets.contains(" 3 files, 100 kB: tree, in "), "{sets}");
}

#[test]
fn documents_of_the_catalogue() {
    let directory = two_days();
    let here = directory.path();
    let json = |arguments: &[&str]| -> Value {
        serde_json::from_str(&text(here, &[arguments, &["--json"]].concat(), 0)).unwrap()
    };
    let added = json(&["catalog", "rebuild", "backups"]);
    assert_eq!((&added["command"], &added["added"]), (&"catalog rebuild".into(), &2.into()));
    let found = json(&["catalog", "find", "tree/*"]);
    assert_eq!(found["total"], 4, "a, b, empty and link");
    let versions = &found["files"][0]["versions"];
    assert_eq!(versions[0]["size_bytes"], 13);
    assert_eq!((&versions[1]["is_newest"], &versions[1]["mode"]), (&true.into(), &"0644".into()));
    let hash = blake3::hash(b"another content of a\n").to_hex();
    assert_eq!(versions[1]["hash"], hash[..32]);
    let sets = json(&["catalog", "sets"]);
    assert_eq!(sets["sets"][0]["sources"], serde_json::json!(["tree"]));
    assert_eq!(sets["sets"][1]["compression"], "zstd:3");
}

#[test]
fn what_a_catalogue_cannot_do_is_said_with_what_to_type() {
    let directory = two_days();
    let here = directory.path();
    let none = text(here, &["catalog", "find", "a"], 1);
    assert!(none.contains("there is no catalogue at "), "{none}");
    assert!(none.contains("hint: run `takeup catalog add FROM...`"), "{none}");
    let left_out = text(here, &["catalog", "add", "backups", "backups/notes"], 2);
    assert!(left_out.contains("added 2 sets with 6 files"), "{left_out}");
    assert!(!left_out.contains("passed over"), "it is named: {left_out}");
    assert!(left_out.contains("/backups/notes: it has no whole index"), "{left_out}");
    let nothing = text(here, &["catalog", "find", "nowhere"], 1);
    assert!(nothing.contains("no set of the catalogue has nowhere"), "{nothing}");
    let glob = text(here, &["catalog", "find", "["], 1);
    assert!(glob.starts_with("takeup: [ is no glob: "), "{glob}");
    let missing = text(here, &["catalog", "add", "missing"], 1);
    assert!(missing.contains("cannot read missing: "), "{missing}");
    let other = text(here, &["catalog", "sets", "--catalog", "backups/monday.tar"], 1);
    assert!(other.contains("is not a catalogue of takeup"), "{other}");
    // An archive that is named by mistake stays an archive.
    let before = fs::read(here.join("backups/monday.tar")).unwrap();
    let replaced =
        text(here, &["catalog", "rebuild", "backups", "--catalog", "backups/monday.tar"], 1);
    assert!(replaced.contains("backups/monday.tar is not a catalogue of takeup"), "{replaced}");
    assert_eq!(fs::read(here.join("backups/monday.tar")).unwrap(), before);
    let device = text(here, &["catalog", "add", "/dev/null"], 2);
    assert!(device.contains("/dev/null: it is neither a file nor a folder"), "{device}");
    // A damaged one is said to be, and made again of the archives.
    let path = here.join("state/takeup/catalog.sqlite");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let damaged = text(here, &["catalog", "find", "a"], 1);
    assert!(damaged.contains("hint: run `takeup catalog rebuild`: "), "{damaged}");
    text(here, &["catalog", "rebuild", "backups"], 0);
    text(here, &["catalog", "find", "a"], 0);
}
