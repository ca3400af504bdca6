//! What retention may not do: remove the only good copy of anything.

use std::fs;

use crate::{Place, archive, damage};

/// The names of the archives.
fn names(place: &Place) -> Vec<String> {
    let name = |path: &std::path::PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    place.archives().iter().map(name).collect()
}

#[test]
fn a_damaged_set_is_no_reason_to_remove_a_sound_one() {
    let place = Place::new("verify.after = 'checksums'\n");
    let sound = archive(&place.job(&[], 0));
    let damaged = archive(&place.job(&["--full"], 0));
    damage(&damaged);
    place.text(&["verify", "sets/"], 1);
    place.configure("verify.after = 'checksums'\nkeep.last = 1\n");
    place.write(9, "new");
    let run = place.run(&["run", "homes", "--json", "--config", "takeup.toml"]);
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(said.contains("was damaged when last read"), "{said}");
    let next: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(next["backup"]["set"]["level"], 0, "nothing counts on a damaged set");
    // The new full set is good, so the old sound one may go; the damaged one stays.
    assert!(!sound.exists() && damaged.exists());
    place.text(&["restore", "sets/", "--into", "back"], 0);
    // By hand it is the same.
    let place = Place::new("");
    let sound = archive(&place.job(&[], 0));
    damage(&archive(&place.job(&["--full"], 0)));
    place.text(&["verify", "sets/"], 1);
    let gone = place.json(&["catalog", "forget", "sets/", "--keep-last", "1", "--yes"], 0);
    assert!(sound.exists(), "{gone}");
}

#[test]
fn what_is_left_of_a_broken_chain_stays_until_the_rest_comes_back() {
    let place = Place::new("");
    place.job(&[], 0);
    place.write(1, "second");
    let middle = archive(&place.job(&[], 0));
    place.write(1, "third");
    place.job(&[], 0);
    let away = place.path("away.tar");
    fs::rename(&middle, &away).unwrap();
    place.job(&["--full"], 0);
    let told = place.json(&["catalog", "forget", "sets/", "--keep-last", "1", "--yes"], 0);
    assert!(
        told["sets"].as_array().unwrap().iter().all(|set| set["kept"] != serde_json::json!([]))
    );
    fs::rename(&away, &middle).unwrap();
    for set in ["1", "2", "3", "4"] {
        place.text(&["restore", "sets/", "--set", set, "--into", set], 0);
    }
}

#[test]
fn nothing_goes_beside_an_archive_that_cannot_be_read() {
    let place = Place::new("keep.last = 1\n");
    place.job(&[], 0);
    place.write(1, "second");
    let level = archive(&place.job(&[], 0));
    let whole = fs::read(&level).unwrap();
    fs::write(&level, &whole[..whole.len() / 2]).unwrap();
    let warned = place.job(&["--full"], 2);
    assert!(warned["warnings"].to_string().contains("nothing is removed: "), "{warned}");
    let forget = ["catalog", "forget", "sets/", "--keep-last", "1"];
    let said = place.text(&forget, 2);
    assert!(said.contains("cannot be read as a set, and may need it"), "{said}");
    place.text(&[&forget[..], &["--yes"]].concat(), 1);
    fs::write(&level, whole).unwrap();
    place.text(&["restore", "sets/", "--set", "2", "--into", "back"], 0);
}

#[test]
fn nothing_goes_after_a_command_that_failed() {
    let place = Place::new("keep.last = 1\nhooks.after-backup = 'exit 1'\n");
    place.job(&[], 2);
    let warned = place.job(&["--full"], 2);
    let said = warned["warnings"].to_string();
    assert!(said.contains("no set was removed: a command of the job failed"), "{said}");
    assert_eq!(place.archives().len(), 2);
    let status = place.status(2);
    assert!(status["problems"].to_string().contains("`after-backup` ended with"), "{status}");
}

#[test]
fn copies_are_read_and_go_with_their_set() {
    let place = Place::new("");
    let first = archive(&place.job(&[], 0));
    place.job(&["--full"], 0);
    let copy = place.path("sets/a-copy.tar");
    fs::copy(&first, &copy).unwrap();
    damage(&copy);
    let listed = place.text(&["list", "sets/"], 0);
    assert!(listed.contains("a-copy.tar is a copy of set 1"), "{listed}");
    let said = place.text(&["verify", "sets/"], 1);
    assert!(said.contains("DAMAGED: 1 of 3 archives") && said.contains("a-copy.tar: "), "{said}");
    // That of its own name counts, and it is sound.
    place.text(&["restore", "sets/", "--set", "1", "--into", "back"], 0);
    assert_eq!(place.json(&["list", "sets/"], 0)["sets"][0]["sound"], true);
    place.text(&["catalog", "forget", "sets/", "--set", "1", "--yes"], 0);
    assert!(!copy.exists() && !first.exists(), "{:?}", names(&place));
}

#[test]
fn other_contents_under_the_same_time_are_another_version() {
    let place = Place::new("");
    let long_ago = || {
        let file = fs::File::options().write(true).open(place.path("home/1.txt")).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1)).unwrap();
    };
    place.write(1, "aaaa");
    long_ago();
    std::os::unix::fs::symlink("here", place.path("home/link")).unwrap();
    place.job(&[], 0);
    place.write(1, "bbbb");
    long_ago();
    fs::remove_file(place.path("home/link")).unwrap();
    place.job(&["--full"], 0);
    let told = place.json(&["catalog", "forget", "sets/", "--keep-last", "1"], 0);
    assert_eq!(told["sets"][0]["lost_versions"], 2, "{told}");
}

#[test]
fn a_trial_that_failed_is_told() {
    let place = Place::new("");
    damage(&archive(&place.job(&[], 0)));
    let trial = ["run", "homes", "--trial", "--config", "takeup.toml"];
    let said = place.text(&trial, 1);
    assert!(said.starts_with("DAMAGED: 1 file is not what was backed up"), "{said}");
    let status = place.status(2);
    assert!(status["problems"].to_string().contains("the last trial restore failed"), "{status}");
}

/// A set that could not read a file lists it all the same, with the state that it saw.
#[test]
fn what_a_set_could_not_read_it_does_not_have() {
    testkit::require!(Root);
    let place = Place::new("");
    let allow = |name: &str, mode| {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(place.path(name), permissions).unwrap();
    };
    allow("home/2.txt", 0);
    place.text(&["backup", "home", "--to", "sets/"], 0);
    for (name, mode) in [("", 0o777), ("sets", 0o777), ("sets/.takeup-lock", 0o666)] {
        allow(name, mode);
    }
    // So that it is the second set for the other user, too.
    allow(place.archives()[0].to_str().unwrap(), 0o644);
    let mut copy = std::process::Command::new("cp");
    copy.arg(env!("CARGO_BIN_EXE_takeup")).arg(place.path("takeup"));
    assert!(copy.status().unwrap().success());
    let mut user = std::process::Command::new("setpriv");
    user.args(["--reuid=65534", "--regid=65534", "--clear-groups", "./takeup"]);
    user.args(["backup", "home", "--to", "sets/"]).current_dir(place.path(""));
    assert_eq!(user.output().unwrap().status.code(), Some(2));
    let told = place.json(&["catalog", "forget", "sets/", "--keep-last", "1"], 0);
    assert_eq!(told["sets"][0]["lost_versions"], 1, "{told}");
    assert!(told["sets"][0]["lost_names"][0].as_str().unwrap().ends_with("home/2.txt"));
}
