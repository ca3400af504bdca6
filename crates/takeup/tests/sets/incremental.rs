//! What an incremental set stores, and why.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

use crate::snapshot::{assert_same, snapshot};
use crate::{TICK, answer, archive, backup, stored, stored_in_all, text};

/// A folder with a small tree that is no longer doubtful.
fn small() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    fs::create_dir_all(tree.join("a/deep")).unwrap();
    fs::create_dir(tree.join("b")).unwrap();
    for name in ["one", "two", "a/three", "a/deep/four", "b/five"] {
        fs::write(tree.join(name), format!("content of {name}")).unwrap();
    }
    fs::hard_link(tree.join("one"), tree.join("b/uno")).unwrap();
    std::thread::sleep(TICK);
    folder
}

/// Waits until links are not doubtful: they count from the second before the run began.
fn age() {
    std::thread::sleep(std::time::Duration::from_millis(1100));
}

#[test]
fn an_unchanged_tree_is_not_stored_again() {
    let folder = small();
    age();
    let here = folder.path();
    let first = backup(here, &[]);
    assert_eq!(first["set"]["level"], 0);
    assert_eq!(stored(&first, "full"), 10);
    let second = backup(here, &["--incremental"]);
    assert_eq!(second["set"]["level"], 1);
    assert_eq!(stored_in_all(&second), 0, "{second}");
    assert_eq!(second["set"]["unchanged"], 10);
    assert_eq!(second["set"]["chain"].as_array().unwrap().len(), 2);
    let text = text(here, &["backup", "tree", "--to", "sets/", "-i"], 0);
    assert!(text.contains("level 2, 0 objects stored, 10 unchanged, 0 deleted"), "{text}");
}

#[test]
fn each_change_has_its_reason() {
    let folder = small();
    age();
    let here = folder.path();
    let tree = here.join("tree");
    backup(here, &[]);
    fs::write(tree.join("two"), "other content").unwrap();
    let before = fs::metadata(tree.join("a/three")).unwrap();
    fs::write(tree.join("a/three"), "CONTENT of a/three").unwrap();
    let file = fs::File::options().write(true).open(tree.join("a/three")).unwrap();
    file.set_modified(before.modified().unwrap()).unwrap();
    fs::set_permissions(tree.join("b/five"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(tree.join("a/deep/new"), "new").unwrap();
    std::thread::sleep(TICK);
    let done = backup(here, &["--incremental"]);
    for (reason, count) in [("size", 1), ("ctime", 1), ("owner", 1), ("new", 1), ("mtime", 1)] {
        assert_eq!(stored(&done, reason), count, "{reason}: {done}");
    }
    // The folders of what was stored: the root, `a` and `b`; `a/deep` has another time itself.
    assert_eq!(stored(&done, "content"), 3, "{done}");
    fs::remove_file(tree.join("a/deep/new")).unwrap();
    std::thread::sleep(TICK);
    let done = backup(here, &["--incremental"]);
    assert_eq!(done["set"]["deleted"], 1);
    assert_eq!((stored(&done, "mtime"), stored_in_all(&done)), (1, 1), "{done}");
}

#[test]
fn a_new_name_of_a_file_stores_all_of_its_names() {
    let folder = small();
    age();
    let here = folder.path();
    backup(here, &[]);
    fs::hard_link(here.join("tree/one"), here.join("tree/a/eins")).unwrap();
    std::thread::sleep(TICK);
    let done = backup(here, &["--incremental"]);
    assert_eq!((stored(&done, "new"), stored(&done, "ctime")), (1, 2), "{done}");
    let was = snapshot(&here.join("tree"));
    text(here, &["restore", "sets/", "--into", "back"], 0);
    assert_same(&was, &snapshot(&here.join("back/tree")), "links");
}

/// A folder that is renamed brings new names of files whose other names are where they were, and
/// neither their times nor their numbers change.
#[test]
fn a_moved_folder_keeps_its_links() {
    let folder = small();
    let here = folder.path();
    let tree = here.join("tree");
    for (from, to) in [("a/three", "z"), ("a/three", "0"), ("a/deep/four", "b/four")] {
        fs::hard_link(tree.join(from), tree.join(to)).unwrap();
    }
    age();
    let first = archive(here, &backup(here, &[]));
    fs::rename(tree.join("a"), tree.join("m")).unwrap();
    std::thread::sleep(TICK);
    let was = snapshot(&tree);
    let second = backup(here, &["-i"]);
    let archives = [first, archive(here, &second)];
    text(here, &["restore", "sets/", "--into", "back"], 0);
    assert_same(&was, &snapshot(&here.join("back/tree")), "takeup");
    crate::gnu_tar(&archives, &here.join("tar"));
    assert_same(&was, &snapshot(&here.join("tar/tree")), "GNU tar");
    // A name alone, whose content is behind another name of another archive.
    text(here, &["restore", "sets/", "--into", "part", "tree/0"], 0);
    assert_eq!(fs::read(here.join("part/tree/0")).unwrap(), b"content of a/three");
    std::thread::sleep(TICK);
    let third = backup(here, &["-i"]);
    assert_eq!(stored_in_all(&third), 0, "{third}");
    text(here, &["restore", "sets/", "--into", "third"], 0);
    assert_same(&was, &snapshot(&here.join("third/tree")), "the day after");
    text(here, &["verify", archive(here, &second).to_str().unwrap()], 0);
}

#[test]
fn a_part_of_a_day_comes_back_and_what_is_not_in_it_is_named() {
    let folder = small();
    let here = folder.path();
    backup(here, &[]);
    fs::write(here.join("tree/a/three"), "changed").unwrap();
    backup(here, &["--incremental", "--compress", "zstd"]);
    text(here, &["restore", "sets/", "--into", "back", "tree/a"], 0);
    assert_eq!(fs::read(here.join("back/tree/a/three")).unwrap(), b"changed");
    assert!(here.join("back/tree/a/deep/four").exists());
    assert!(!here.join("back/tree/one").exists());
    text(here, &["restore", "sets/", "--set", "1", "--into", "first", "tree/a/three"], 0);
    assert_eq!(fs::read(here.join("first/tree/a/three")).unwrap(), b"content of a/three");
    let none = text(here, &["restore", "sets/", "--into", "none", "tree/c"], 1);
    assert!(none.contains("nothing was restored"), "{none}");
    assert!(!here.join("none").exists());
    // A link alone, whose content is under the other name.
    text(here, &["restore", "sets/", "--into", "link", "tree/b/uno"], 0);
    assert_eq!(fs::read(here.join("link/tree/b/uno")).unwrap(), b"content of one");
}

#[test]
fn a_full_set_is_written_and_says_why_where_an_incremental_one_cannot_be() {
    let folder = small();
    let here = folder.path();
    let none = text(here, &["backup", "tree", "--to", "sets/", "-i"], 0);
    assert!(none.contains("a full set is written: there is none of the job backup"), "{none}");
    let excludes = text(here, &["backup", "tree", "--to", "sets/", "-i", "--exclude", "*.o"], 0);
    assert!(excludes.contains("a full set is written: backup-"), "{excludes}");
    assert!(excludes.contains("has other excludes"), "{excludes}");
    let sources = text(here, &["backup", "tree/a", "--to", "sets/", "-i"], 0);
    assert!(sources.contains("has other sources"), "{sources}");
    let options = text(here, &["backup", "tree/a", "--to", "sets/", "-i", "--no-xattrs"], 0);
    assert!(options.contains("was made with other options"), "{options}");
}

#[test]
fn levels_are_those_of_dump() {
    let folder = small();
    age();
    let here = folder.path();
    let tree = here.join("tree");
    let chain = |done: &serde_json::Value| done["set"]["chain"].as_array().unwrap().len();
    backup(here, &["--level", "0"]);
    fs::write(tree.join("two"), "second").unwrap();
    std::thread::sleep(TICK);
    let one = backup(here, &["--level", "1"]);
    assert_eq!((chain(&one), stored(&one, "size")), (2, 1));
    fs::write(tree.join("b/five"), "fifth").unwrap();
    std::thread::sleep(TICK);
    let two = backup(here, &["--level", "2"]);
    assert_eq!((chain(&two), stored(&two, "size")), (3, 1));
    // Since the full set, both have changed.
    let again = backup(here, &["--level", "1"]);
    assert_eq!((chain(&again), stored(&again, "size")), (2, 2), "{again}");
}

#[test]
fn jobs_share_a_folder() {
    let folder = small();
    let here = folder.path();
    for job in ["homes", "mail"] {
        backup(here, &["--job", job]);
    }
    let several = text(here, &["restore", "sets/", "--into", "back"], 1);
    assert!(several.contains("it has sets of several jobs: homes, mail"), "{several}");
    assert!(several.contains("hint: name one with --job"), "{several}");
    let restored = answer(here, &["restore", "sets/", "--job", "mail", "--into", "back"]);
    assert_eq!(restored["set"]["job"], "mail");
    let other = text(here, &["restore", "sets/", "--job", "post", "--into", "other"], 1);
    assert!(other.contains("no set of the job post; the jobs are homes, mail"), "{other}");
    let bad = text(here, &["backup", "tree", "--to", "sets/", "--job", "a/b"], 1);
    assert!(bad.contains("cannot be the name of a job"), "{bad}");
}

#[test]
fn a_day_is_the_last_set_that_began_before_its_end() {
    let folder = small();
    let here = folder.path();
    let done = backup(here, &[]);
    fs::write(here.join("tree/two"), "later").unwrap();
    backup(here, &["-i"]);
    let name = archive(here, &done).file_name().unwrap().to_str().unwrap().to_owned();
    let day = &name["backup-".len()..][..10];
    let restored = answer(here, &["restore", "sets/", "--at", day, "--into", "back"]);
    assert_eq!(restored["set"]["level"], 1);
    let none = text(here, &["restore", "sets/", "--at", "2020-02-29", "--into", "none"], 1);
    assert!(none.contains("there is no set of 2020-02-29 or before"), "{none}");
    let bad = text(here, &["restore", "sets/", "--at", "someday", "--into", "none"], 1);
    assert!(bad.contains("write it as 2026-11-27"), "{bad}");
}

/// A command of an ordinary user, from a copy of the program that such a user can reach.
fn as_nobody(here: &Path, arguments: &[&str], code: i32) {
    let binary = here.join("takeup");
    if !binary.exists() {
        // Another process copies it: a child that another test starts meanwhile would hold the copy
        // open for writing, and it could not be run.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_takeup")).arg(&binary).status();
        assert!(copied.unwrap().success());
    }
    let mut user = Command::new("setpriv");
    user.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(binary).args(arguments);
    let output = user.current_dir(here).env("LC_ALL", "C").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
}

/// What could not be read is taken again, and until then the last version counts; what lies in a
/// folder that could not be listed is not gone.
#[test]
fn what_cannot_be_read_keeps_its_last_version() {
    testkit::require!(Root);
    let folder = small();
    let here = folder.path();
    for open in [here.to_owned(), here.join("tree"), here.join("tree/a"), here.join("sets")] {
        fs::create_dir_all(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    }
    age();
    let file = here.join("tree/two");
    as_nobody(here, &["backup", "tree", "--to", "sets/"], 0);
    let forbid = |path: &str, mode| {
        fs::set_permissions(here.join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    fs::write(&file, "secret").unwrap();
    forbid("tree/two", 0);
    forbid("tree/b", 0);
    std::thread::sleep(TICK);
    as_nobody(here, &["backup", "tree", "--to", "sets/", "-i"], 2);
    as_nobody(here, &["backup", "tree", "--to", "sets/", "-i"], 2);
    text(here, &["restore", "sets/", "--into", "back"], 0);
    assert_eq!(fs::read(here.join("back/tree/two")).unwrap(), b"content of two");
    assert_eq!(fs::read(here.join("back/tree/b/five")).unwrap(), b"content of b/five");
    assert_eq!(fs::metadata(here.join("back/tree/b")).unwrap().mode() & 0o777, 0);
    // GNU tar keeps them, too.
    let mut archives: Vec<_> =
        fs::read_dir(here.join("sets")).unwrap().map(|entry| entry.unwrap().path()).collect();
    archives.retain(|path| path.extension().is_some());
    archives.sort_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
    crate::gnu_tar(&archives, &here.join("tar"));
    assert_eq!(fs::read(here.join("tar/tree/two")).unwrap(), b"content of two");
    assert_eq!(fs::read(here.join("tar/tree/b/five")).unwrap(), b"content of b/five");
    forbid("tree/two", 0o644);
    forbid("tree/b", 0o755);
    as_nobody(here, &["backup", "tree", "--to", "sets/", "-i"], 0);
    text(here, &["restore", "sets/", "--into", "then"], 0);
    assert_eq!(fs::read(here.join("then/tree/two")).unwrap(), b"secret");
    assert_same(&snapshot(&here.join("tree")), &snapshot(&here.join("then/tree")), "all again");
}

/// Excluded names are in the listing of their folder, so that GNU tar does not remove them.
#[test]
fn gnu_tar_keeps_what_was_excluded() {
    let folder = small();
    let here = folder.path();
    fs::write(here.join("tree/a/core.tmp"), "x").unwrap();
    let done = backup(here, &["--exclude", "*.tmp"]);
    let into = here.join("into");
    crate::gnu_tar(&[archive(here, &done)], &into);
    fs::write(into.join("tree/a/core.tmp"), "here").unwrap();
    fs::write(into.join("tree/a/stray"), "not in the set").unwrap();
    let output = Command::new("tar")
        .args(["--listed-incremental=/dev/null", "-xf"])
        .arg(archive(here, &done))
        .arg("-C")
        .arg(&into)
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(into.join("tree/a/core.tmp").exists());
    assert!(!into.join("tree/a/stray").exists());
}

/// The catalogue knows of a set of a chain what the sets before it have.
#[test]
fn the_catalogue_and_why_know_chains() {
    let folder = small();
    age();
    let here = folder.path();
    backup(here, &[]);
    fs::write(here.join("tree/two"), "another content").unwrap();
    fs::remove_file(here.join("tree/a/three")).unwrap();
    std::thread::sleep(TICK);
    let second = backup(here, &["-i"]);
    let added = text(here, &["catalog", "add", "sets", "--catalog", "catalogue"], 0);
    assert!(added.contains("added 2 sets"), "{added}");
    let find = |name: &str| text(here, &["catalog", "find", name, "--catalog", "catalogue"], 0);
    let unchanged = find("five");
    assert!(unchanged.contains("in 2 sets") && unchanged.contains("(the newest)"), "{unchanged}");
    let changed = find("two");
    assert_eq!(changed.matches("in 1 set").count(), 2, "{changed}");
    let gone = find("three");
    assert!(gone.contains("(not in the next set)"), "{gone}");

    let name = archive(here, &second).file_name().unwrap().to_str().unwrap().to_owned();
    let alone = text(here, &["catalog", "rebuild", &format!("sets/{name}"), "--catalog", "b"], 0);
    assert!(alone.contains("in sets that are not in the catalogue"), "{alone}");

    let why = text(here, &["catalog", "why", "sets/", "tree/two"], 0);
    let lines: Vec<&str> = why.lines().collect();
    assert_eq!(lines[0], "tree/two");
    assert!(lines[1].contains("level 1, stored: the size is another"), "{why}");
    assert!(lines[2].contains("full, stored: the set is a full one"), "{why}");
    let why = text(here, &["catalog", "why", "sets/", "tree/a/three"], 0);
    assert!(why.contains("level 1, not there"), "{why}");
    let none = text(here, &["catalog", "why", "sets/", "three"], 1);
    assert!(none.contains("no set of the chain has three"), "{none}");
}

/// A single archive of a chain is no day.
#[test]
fn an_archive_of_a_chain_says_what_it_lacks() {
    let folder = small();
    age();
    let here = folder.path();
    backup(here, &[]);
    fs::write(here.join("tree/two"), "another content").unwrap();
    let name = archive(here, &backup(here, &["-i"]));
    let path = name.to_str().unwrap();
    let said = text(here, &["restore", path, "--into", "part"], 0);
    assert!(said.contains("holds only what changed since backup-"), "{said}");
    assert!(here.join("part/tree/two").exists() && !here.join("part/tree/one").exists());
    text(here, &["restore", path, "--into", "x", "--at", "2026-11-27"], 1);
    text(here, &["backup", "tree", "--to", "file.tar", "--incremental"], 1);
}
