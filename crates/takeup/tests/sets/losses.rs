//! What happens after a loss: a set, a source, a run that is killed.

use std::fs;
use std::time::Duration;

use crate::snapshot::{assert_same, snapshot};
use crate::{TICK, archive, backup, takeup, text};

fn tree() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("tree/a")).unwrap();
    for number in 0..20 {
        fs::write(folder.path().join(format!("tree/a/{number}")), format!("{number}")).unwrap();
    }
    std::thread::sleep(TICK);
    folder
}

#[test]
fn a_lost_set_is_named_and_the_next_run_is_a_full_one() {
    let folder = tree();
    let here = folder.path();
    backup(here, &[]);
    let was = snapshot(&here.join("tree"));
    fs::write(here.join("tree/a/1"), "second day").unwrap();
    let middle = archive(here, &backup(here, &["-i"]));
    fs::write(here.join("tree/a/2"), "third day").unwrap();
    let last = backup(here, &["-i"]);
    fs::remove_file(&middle).unwrap();
    let name = middle.file_name().unwrap().to_str().unwrap();
    let lost = text(here, &["restore", "sets/", "--into", "back"], 1);
    assert!(lost.contains(&format!("needs the set {name}, which is not in the folder")), "{lost}");
    assert!(!here.join("back").exists(), "nothing that looks like a day");
    text(here, &["restore", "sets/", "--set", "1", "--into", "first"], 0);
    assert_same(&was, &snapshot(&here.join("first/tree")), "the full set");
    let next = text(here, &["backup", "tree", "--to", "sets/", "-i"], 0);
    assert!(next.contains("a full set is written"), "{next}");
    assert!(next.contains(name), "{next}");
    assert!(archive(here, &last).exists());
    text(here, &["restore", "sets/", "--into", "now"], 0);
    assert_same(&snapshot(&here.join("tree")), &snapshot(&here.join("now/tree")), "the new one");
}

#[test]
fn a_source_that_became_empty_is_refused() {
    let folder = tree();
    let here = folder.path();
    backup(here, &[]);
    fs::remove_dir_all(here.join("tree/a")).unwrap();
    for more in [&[][..], &["-i"]] {
        let arguments = [&["backup", "tree", "--to", "sets/"], more].concat();
        let refused = text(here, &arguments, 1);
        assert!(refused.contains("is empty, and was not in the last set"), "{refused}");
        assert!(refused.contains("--source-may-change"), "{refused}");
    }
    assert_eq!(fs::read_dir(here.join("sets")).unwrap().count(), 2, "one set and the lock");
    text(here, &["backup", "tree", "--to", "sets/", "-i", "--source-may-change"], 0);
}

#[test]
fn a_damaged_set_is_named() {
    let folder = tree();
    let here = folder.path();
    let path = archive(here, &backup(here, &[]));
    let mut bytes = fs::read(&path).unwrap();
    let about = bytes.windows(4).rposition(|it| it == b"job=").unwrap();
    bytes[about] ^= 1;
    fs::write(&path, bytes).unwrap();
    let lost = text(here, &["restore", "sets/", "--into", "back"], 1);
    assert!(lost.contains("there is no set of backups in it"), "{lost}");
    assert!(lost.contains("cannot be read as a set"), "{lost}");
    let next = text(here, &["backup", "tree", "--to", "sets/", "-i"], 0);
    assert!(next.contains("is passed over, since it cannot be read as a set"), "{next}");
    assert!(next.contains("a full set is written"), "{next}");
}

/// A killed run leaves no set, and the next one goes on from the last whole one.
#[test]
fn a_killed_run_is_no_set() {
    let folder = tree();
    let here = folder.path();
    for number in 0..400 {
        fs::write(here.join(format!("tree/a/more{number}")), vec![7; 20_000]).unwrap();
    }
    backup(here, &[]);
    let is_long = std::env::var_os("TAKEUP_LONG").is_some();
    for kill in 0..if is_long { 200 } else { 8u64 } {
        for number in 0..200 {
            fs::write(here.join(format!("tree/a/more{number}")), kill.to_string()).unwrap();
        }
        let mut run = takeup()
            .current_dir(here)
            .args(["backup", "tree", "--to", "sets/", "-i", "-q"])
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(kill * 7 % 60));
        let _ = run.kill();
        run.wait().unwrap();
    }
    let was = snapshot(&here.join("tree"));
    backup(here, &["-i"]);
    text(here, &["restore", "sets/", "--into", "back"], 0);
    assert_same(&was, &snapshot(&here.join("back/tree")), "after the kills");
}

#[test]
fn two_runs_do_not_meet_in_a_folder() {
    let folder = tree();
    let here = folder.path();
    fs::create_dir(here.join("sets")).unwrap();
    let lock = fs::File::create(here.join("sets/.takeup-lock")).unwrap();
    base::interruptible::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let refused = text(here, &["backup", "tree", "--to", "sets/"], 1);
    assert!(refused.contains("another backup writes into sets"), "{refused}");
    drop(lock);
    text(here, &["backup", "tree", "--to", "sets/"], 0);
}

/// The newest day must not be another one in silence.
#[test]
fn a_set_without_its_end_is_named_by_a_restore() {
    let folder = tree();
    let here = folder.path();
    backup(here, &[]);
    fs::write(here.join("tree/a/1"), "second day").unwrap();
    for compression in ["none", "zstd", "gzip"] {
        let path = archive(here, &backup(here, &["-i", "--compress", compression]));
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_len(file.metadata().unwrap().len() - 1600).unwrap();
        let into = format!("back-{compression}");
        let restored = text(here, &["restore", "sets/", "--into", &into], 0);
        let name = path.file_name().unwrap().to_str().unwrap();
        let told = format!("sets/{name}: is passed over, since it cannot be read as a set");
        assert!(restored.contains(&told), "{restored}");
        assert!(restored.contains("set 1 of backup"), "{restored}");
        fs::remove_file(path).unwrap();
    }
}

/// An index of a later version is not damaged: every tar reads the archive, and takeup says so.
#[test]
fn an_index_of_a_later_version_is_told_as_one() {
    let folder = tree();
    let here = folder.path();
    let path = archive(here, &backup(here, &[]));
    let good = fs::read(&path).unwrap();
    let trailer = good.windows(16).rposition(|it| it == b"takeup trailer\0\0").unwrap();
    // The version, and a bit that must be understood.
    for (at, value) in [(16, 4), (280, 1)] {
        let mut bytes = good.clone();
        bytes[trailer + at] = value;
        let checksum = archive::index::block_checksum(&bytes[trailer..trailer + 496]);
        bytes[trailer + 496..trailer + 504].copy_from_slice(&checksum.to_le_bytes());
        fs::write(&path, bytes).unwrap();
        let path = path.to_str().unwrap();
        let verified = text(here, &["verify", path], 3);
        assert!(verified.contains("LATER VERSION"), "{verified}");
        assert!(!verified.contains("damaged"), "{verified}");
        let into = format!("back-{at}");
        let restored = text(here, &["restore", path, "--into", &into], 3);
        assert!(restored.contains("a later version of takeup wrote the index"), "{restored}");
        assert_same(&snapshot(&here.join("tree")), &snapshot(&here.join(into).join("tree")), "it");
        let passed = text(here, &["restore", "sets/", "--into", "none"], 1);
        assert!(passed.contains("of a later version"), "{passed}");
    }
}
