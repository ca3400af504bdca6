//! What a backup would store, told before it does: the same as it then stores.

use std::fs;
use std::os::unix::fs::FileExt as _;

use crate::{TICK, answer, backup, text};

fn tree() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::create_dir_all(here.join("tree/a/b")).unwrap();
    for number in 0..20u32 {
        let text = "x".repeat(number as usize * 100);
        fs::write(here.join(format!("tree/a/b/{number}")), text).unwrap();
    }
    fs::hard_link(here.join("tree/a/b/19"), here.join("tree/link")).unwrap();
    let sparse = fs::File::create(here.join("tree/a/sparse")).unwrap();
    sparse.set_len(64 << 20).unwrap();
    sparse.write_all_at(&[7; 4096], 32 << 20).unwrap();
    sparse.sync_all().unwrap();
    std::thread::sleep(TICK);
    folder
}

#[test]
fn what_is_told_is_what_is_stored() {
    let folder = tree();
    let here = folder.path();
    for more in [&[][..], &["--incremental"], &["--incremental"]] {
        let told = [&["backup", "tree", "--to", "sets/", "--dry-run"], more].concat();
        let told = answer(here, &told);
        let done = backup(here, more);
        for field in ["stored", "unchanged", "deleted", "level", "number"] {
            assert_eq!(told["set"][field], done["set"][field], "{field} {more:?}");
        }
        fs::write(here.join("tree/a/b/3"), "another content").unwrap();
        fs::remove_file(here.join("tree/a/b/4")).unwrap_or_default();
        std::thread::sleep(TICK);
    }
}

#[test]
fn links_and_holes_are_counted_right() {
    let folder = tree();
    let here = folder.path();
    let told = answer(here, &["backup", "tree", "--to", "archive.tar", "-n"]);
    assert_eq!((&told["files"], &told["links"]), (&21.into(), &1.into()));
    let done = answer(here, &["backup", "tree", "--to", "archive.tar"]);
    assert_eq!(told["bytes"], done["source_bytes"]);
    assert_eq!(told["hole_bytes"], (64 << 20) - 4096);
    let named = told["largest"].as_array().unwrap();
    assert_eq!((named[0]["path"].as_str(), named.len()), (Some("tree/a/sparse"), 10));
    let said = text(here, &["backup", "tree", "--to", "other.tar", "-n"], 0);
    assert!(said.starts_with("would store 21 files, "), "{said}");
}

#[test]
fn nothing_is_made() {
    let folder = tree();
    let here = folder.path();
    let said = text(here, &["backup", "tree", "--to", "sets/", "-n"], 0);
    assert!(said.contains("a full set, "), "{said}");
    assert!(!here.join("sets").exists());
    backup(here, &[]);
    fs::remove_file(here.join("sets/.takeup-lock")).unwrap();
    text(here, &["backup", "tree", "--to", "sets/", "-n", "--incremental"], 0);
    assert_eq!(fs::read_dir(here.join("sets")).unwrap().count(), 1);
    text(here, &["backup", "missing", "--to", "sets/", "-n"], 1);
}
