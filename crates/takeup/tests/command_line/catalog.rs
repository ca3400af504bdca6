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

/// Archives of other programs, and ours whose index was cut off, come in all the same.
#[test]
fn archives_without_an_index_are_read() {
    testkit::require!(GnuTar);
    let directory = two_days();
    let here = directory.path();
    let other = here.join("other");
    fs::create_dir(&other).unwrap();
    for (day, name, options) in [(3, "old.tar", "-cf"), (4, "old.tgz", "-czf")] {
        let archive = other.join(name);
        let made = std::process::Command::new("tar")
            .current_dir(here)
            .args([options, archive.to_str().unwrap(), "./tree"])
            .status()
            .unwrap();
        assert!(made.success());
        // What has the same members and the same time is a copy.
        let time = std::time::Duration::from_secs(1_790_000_000 + day * 86_400);
        let file = fs::File::options().write(true).open(&archive).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + time).unwrap();
    }
    fs::write(other.join("notes.gz"), "no archive").unwrap();
    let json = |arguments: &[&str], code: i32| -> Value {
        let all = [arguments, &["--json", "--catalog", "own.sqlite"]].concat();
        serde_json::from_slice(&{
            let output = run(here, &all);
            assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
            output.stdout
        })
        .unwrap()
    };
    let added = json(&["catalog", "rebuild", "other"], 0);
    assert_eq!((&added["added"], &added["read_through"]), (&2.into(), &2.into()));
    assert_eq!(added["without_index"], 1);
    // A question does not read them again, and finds all that they have.
    let found = json(&["catalog", "find", "tree/**"], 0);
    assert_eq!(found["caught_up"]["added"], 0);
    let paths = found["files"].as_array().unwrap().iter().map(|file| file["path"].as_str());
    let paths: Vec<&str> = paths.map(Option::unwrap).collect();
    assert_eq!(paths, ["tree/a", "tree/b", "tree/b/c", "tree/b/new", "tree/link"]);
    assert_eq!(found["files"][0]["versions"][0]["size_bytes"], 21);
    let compressions: Vec<&Value> =
        found["sets"].as_array().unwrap().iter().map(|set| &set["compression"]).collect();
    assert!(compressions.contains(&&"gzip".into()) && compressions.contains(&&"none".into()));
    let again = json(&["catalog", "add", "other"], 0);
    assert_eq!((&again["known"], &again["read_through"]), (&2.into(), &0.into()));

    // Ours, cut off where the index begins: what it has comes in, and the loss is told.
    let known = json(&["catalog", "add", "backups/monday.tar"], 0);
    assert_eq!((&known["added"], &known["read_through"]), (&1.into(), &0.into()));
    let sets = json(&["catalog", "sets"], 0);
    let is_monday = |set: &&Value| set["place"].as_str().unwrap().ends_with("monday.tar");
    let end = sets["sets"].as_array().unwrap().iter().find(is_monday).unwrap();
    let end = end["archive_bytes"].as_u64().unwrap() as usize;
    let bytes = fs::read(here.join("backups/monday.tar")).unwrap();
    fs::create_dir(here.join("cut")).unwrap();
    fs::write(here.join("cut/monday.tar"), &bytes[..end]).unwrap();
    let output = run(here, &["catalog", "rebuild", "cut", "--json", "--catalog", "own.sqlite"]);
    let cut: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&cut["added"], &cut["files"]), (&1.into(), &3.into()), "{cut}");
    let found = json(&["catalog", "find", "empty"], 0);
    assert_eq!(found["total"], 1);
}

#[test]
fn where_the_bytes_are_is_told_folder_by_folder() {
    let directory = two_days();
    let here = directory.path();
    text(here, &["catalog", "add", "backups"], 0);
    let told = text(here, &["catalog", "du"], 0);
    let lines: Vec<&str> = told.lines().map(str::trim_end).collect();
    assert!(lines[0].starts_with("tree: 2 sets from 2026-09-21 to 2026-09-22, in /"), "{told}");
    assert_eq!(lines[1], " newest set      change  all versions");
    assert_eq!(lines[2], "     100 kB        +3 B        100 kB  tree/b/");
    assert_eq!(lines[3], "       21 B        +8 B          34 B  tree/a");
    assert_eq!(lines[4], "     100 kB       +11 B        100 kB  all");
    assert!(lines[5].starts_with("set 2 of 2026-09-22 "), "{told}");
    assert!(lines[5].ends_with(": +11 B, most of it in tree/a (+8 B)"), "{told}");
    let one = text(here, &["catalog", "du", "--most", "1"], 0);
    assert!(one.contains("21 B        +8 B          34 B  1 other: --most lists more"), "{one}");
    let json: Value =
        serde_json::from_str(&text(here, &["catalog", "du", "tree/b", "--json"], 0)).unwrap();
    let below = &json["series"][0]["below"];
    assert_eq!(below[0]["path"], "tree/b/c");
    assert_eq!(below[1]["bytes"], serde_json::json!([0, 3]));
    assert_eq!(json["series"][0]["bytes"], serde_json::json!([100_000, 100_003]));
    let nothing = text(here, &["catalog", "du", "nowhere"], 1);
    assert!(nothing.contains("no set of the catalogue has a file with content at nowhere"));
}
