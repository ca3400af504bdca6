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

/// Bytes that cannot be compressed.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..bytes / 8).flat_map(|_| step().to_le_bytes()).collect()
}

/// Half of it compresses to next to nothing, the other half not at all.
fn half_and_half() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::create_dir(here.join("tree")).unwrap();
    fs::write(here.join("tree/noise"), noise(8 << 20)).unwrap();
    for number in 0..4 {
        fs::write(here.join(format!("tree/text{number}")), vec![b'x'; 2 << 20]).unwrap();
    }
    std::thread::sleep(TICK);
    folder
}

#[test]
fn a_sample_says_how_far_it_compresses() {
    let folder = half_and_half();
    let here = folder.path();
    let sample = ["backup", "tree", "--to", "a.tar.zst", "-n", "--sample"];
    let told = answer(here, &sample);
    let sampled = &told["sampled"];
    assert_eq!((&sampled["stretches"], &sampled["unread"]), (&2.into(), &0.into()));
    assert!(told["sampled"]["in_drive"].is_null() && told["tapes"].is_null(), "{told}");
    let compressed = &told["sampled"]["compressed"];
    let number = |name: &str| compressed[name].as_u64().unwrap();
    assert_eq!(&answer(here, &sample)["sampled"], &told["sampled"], "the same draws");
    assert!(!here.join("a.tar.zst").exists());
    let done = answer(here, &["backup", "tree", "--to", "a.tar.zst"]);
    let stored = done["target_bytes"].as_u64().unwrap();
    // All of it was read; the archive has its index besides.
    assert_eq!(number("low_bytes"), number("high_bytes"));
    assert!(number("bytes").abs_diff(stored) < stored / 50, "{stored}: {told}");
    let said = text(here, &sample, 0);
    assert!(said.contains(" compressed: ") && said.contains("by all of it, "), "{said}");
    // What does not compress is not sampled, and nothing is sampled that is not asked for.
    let said = text(here, &["backup", "tree", "--to", "a.tar", "-n", "--sample"], 1);
    assert!(said.contains("would not compress") && said.contains("--compress zstd"), "{said}");
    assert!(answer(here, &sample[..5])["sampled"].is_null());
}

#[test]
fn a_sample_is_of_what_would_be_stored() {
    let folder = half_and_half();
    let here = folder.path();
    backup(here, &[]);
    fs::write(here.join("tree/text1"), vec![b'y'; 1 << 20]).unwrap();
    std::thread::sleep(TICK);
    let sample = ["backup", "tree", "--to", "sets/", "--incremental", "-n", "--sample"];
    let told = answer(here, &[&sample[..], &["--compress", "zstd"]].concat());
    assert!(told["sampled"]["compressed"]["share"].as_f64().unwrap() < 0.01, "{told}");
    assert!(told["bytes"].as_u64().unwrap() <= 1 << 20, "{told}");
}

#[test]
fn tapes_and_time_are_those_of_the_drive() {
    testkit::require!(Fuse);
    let drive = crate::drive::Drive::with(&["--capacity", "9M", "--speed-up", "100"]);
    let folder = half_and_half();
    let tape = drive.tape();
    let told = ["backup", "tree", "--to", tape.to_str().unwrap(), "-n"];
    let plain = answer(folder.path(), &told);
    assert!(plain["tapes"]["tapes"].as_u64().unwrap() >= 2, "{plain}");
    assert!(plain["tapes"]["seconds"].as_f64().unwrap() > 0.0, "{plain}");
    assert!(plain["tapes"]["ratio"].is_null(), "{plain}");
    let sampled = answer(folder.path(), &[&told[..], &["--sample"]].concat());
    let ratio = sampled["tapes"]["ratio"].as_f64().unwrap();
    assert!((1.3..3.0).contains(&ratio), "{sampled}");
    let bytes = |it: &serde_json::Value| it["tapes"]["medium_bytes"].as_u64().unwrap();
    assert!(bytes(&sampled) < bytes(&plain));
    let said = text(folder.path(), &told, 0);
    assert!(said.contains("if nothing compresses; "), "{said}");
}
