//! What a job reads back after a backup: samples in rotation, and the new set against its source.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use serde_json::Value;

use crate::{Place, TICK, archive};

/// More than one block of data that do not repeat.
fn fill(place: &Place, name: &str, blocks: usize) {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut bytes = Vec::new();
    while bytes.len() < blocks << 20 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    fs::write(place.path(&format!("home/{name}")), bytes).unwrap();
}

/// Bytes of an archive that were read in a run.
fn parts(answer: &Value) -> Vec<(u64, u64)> {
    let verified = answer["verified"].as_array().unwrap();
    let part = |it: &Value| {
        let part = &it["part"];
        (part["from_bytes"].as_u64().unwrap(), part["to_bytes"].as_u64().unwrap())
    };
    verified.iter().map(part).collect()
}

/// Changes a byte of the archive at a place.
fn flip(path: &Path, at: u64) {
    let file = fs::File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

#[test]
fn samples_go_round_and_add_up() {
    let place = Place::new("verify = { after = 'sample', sample = '30 %' }\n");
    fill(&place, "large", 9);
    std::thread::sleep(TICK);
    let first = place.job(&[], 0);
    assert_eq!(first["result"], "done");
    let begins: Vec<u64> = parts(&first).iter().map(|part| part.0).collect();
    assert_eq!(begins, [0]);
    let mut read = first["verified"][0]["part"]["to_bytes"].as_u64().unwrap();
    let all = first["verified"][0]["part"]["of_bytes"].as_u64().unwrap();
    let mut runs = 1;
    while read < all {
        let status = place.status(0);
        assert!(status["last_verified_success_seconds"].is_null(), "{read} of {all}: {status}");
        assert!(place.json(&["list", "sets/"], 0)["sets"][0]["sound"].is_null());
        std::thread::sleep(std::time::Duration::from_millis(1100));
        let next = place.job(&[], 0);
        // Parts that were read earlier follow, where it has come round.
        let next = parts(&next);
        let follows = next.iter().find(|(from, _)| *from == read);
        read = follows.unwrap_or_else(|| panic!("{read} is not next: {next:?}")).1;
        runs += 1;
        assert!(runs <= 4, "a third each time");
    }
    // Every byte of the first set was read, of the others not.
    let status = place.status(0);
    assert!(!status["last_verified_success_seconds"].is_null(), "{status}");
    assert!(
        status["last_verified_success_seconds"].as_u64() < status["last_success_seconds"].as_u64()
    );
    let journal = fs::read_to_string(place.path("state/takeup/journal.jsonl")).unwrap();
    assert!(journal.matches("\"event\":\"sampled\"").count() >= runs, "{journal}");
}

#[test]
fn damage_of_an_old_part_is_found_in_its_turn() {
    for compress in ["", "compress = 'zstd'\n"] {
        let place =
            Place::new(&format!("{compress}verify = {{ after = 'sample', sample = '30 %' }}\n"));
        fill(&place, "large", 9);
        std::thread::sleep(TICK);
        let first = place.job(&[], 0);
        let old = archive(&first);
        // In the part that is read next.
        flip(&old, 5 << 20);
        let shown = first["verified"][0]["part"]["to_bytes"].as_u64().unwrap();
        assert!(shown < 4 << 20, "{first}");
        std::thread::sleep(std::time::Duration::from_millis(1100));
        let next = place.job(&[], 1);
        assert_eq!(next["result"], "failed");
        let said = next["warnings"].to_string();
        assert!(said.contains("DAMAGED"), "{said}");
        let status = place.status(2);
        assert!(status["problems"].to_string().contains("was found to be damaged"), "{status}");
        assert!(status["last_verified_success_seconds"].is_null(), "{status}");
        // Nothing counts on it any more.
        std::thread::sleep(TICK);
        let after = place.run(&["run", "homes", "--json", "--config", "takeup.toml"]);
        let after: Value = serde_json::from_slice(&after.stdout).unwrap();
        assert_eq!(after["backup"]["set"]["level"], 0, "{after}");
    }
}

#[test]
fn the_last_part_has_the_index_with_it() {
    let place = Place::new("verify = { after = 'sample', sample = '100 %' }\n");
    let sound = place.job(&[], 0);
    assert_eq!(sound["verified"][0]["sound"], true);
    assert!(!place.status(0)["last_verified_success_seconds"].is_null());
    // The first path behind the end of the archive is in the index.
    let path = archive(&sound);
    let end = sound["verified"][0]["part"]["of_bytes"].as_u64().unwrap() as usize;
    let bytes = fs::read(&path).unwrap();
    let at = bytes[end..].windows(5).position(|it| it == b"0.txt").unwrap();
    flip(&path, (end + at) as u64);
    let bad = place.job(&["--full"], 1);
    let said = bad["warnings"].to_string();
    assert!(said.contains("DAMAGED"), "{said}");
}

#[test]
fn a_set_that_is_as_its_source_passes() {
    let place = Place::new("verify.after = 'source'\nexclude = ['9.txt']\n");
    place.write(9, "left out");
    let full = place.job(&[], 0);
    assert_eq!(full["result"], "done");
    let source = &full["verified"][0]["source"];
    assert_eq!(
        (&source["changed"], &source["gone"], &source["differs"]),
        (&0.into(), &0.into(), &0.into())
    );
    place.write(1, "another");
    fs::remove_file(place.path("home/2.txt")).unwrap();
    std::thread::sleep(TICK);
    // What the full set has is not compared, and not missed.
    let next = place.job(&[], 0);
    assert_eq!(next["backup"]["set"]["level"], 1);
    let source = &next["verified"][0]["source"];
    assert!(source["compared"].as_u64().unwrap() < 5, "{source}");
    assert_eq!(
        (&source["changed"], &source["gone"], &source["differs"]),
        (&0.into(), &0.into(), &0.into())
    );
    let status = place.status(0);
    assert_eq!(status["last_verified_success_seconds"], status["last_success_seconds"]);
}

#[test]
fn what_changed_after_the_backup_is_told_apart_from_damage() {
    let hook = "echo other >home/1.txt; rm -f home/2.txt";
    let place = Place::new(&format!("verify.after = 'source'\nhooks.after-backup = '{hook}'\n"));
    let touched = place.job(&[], 0);
    assert_eq!(
        (&touched["result"], &touched["verified"][0]["sound"]),
        (&"done".into(), &true.into())
    );
    let source = &touched["verified"][0]["source"];
    assert_eq!((&source["gone"], &source["differs"]), (&1.into(), &0.into()));
    let named = source["first"].to_string();
    assert!(named.contains("home/1.txt") && named.contains("home/2.txt"), "{named}");
    let said = place.text(&["run", "homes", "--config", "takeup.toml"], 0);
    assert!(said.contains("changed since the backup"), "{said}");
}

#[test]
fn a_flipped_byte_on_the_medium_fails() {
    let hook = "for set in sets/*; do sed -i 's/file 3/file 4/' $set; done";
    let more = format!("verify.after = 'source'\nhooks.after-backup = \"{hook}\"\n");
    let place = Place::new(&more);
    let bad = place.job(&[], 1);
    assert_eq!((&bad["result"], &bad["verified"][0]["sound"]), (&"failed".into(), &false.into()));
    let status = place.status(2);
    assert!(status["problems"].to_string().contains("was found to be damaged"), "{status}");
}

#[test]
fn a_source_that_is_not_mounted_any_more_is_named() {
    let place = Place::new("verify.after = 'source'\nhooks.after-backup = 'mv home away'\n");
    let warned = place.job(&[], 2);
    assert!(warned["warnings"].to_string().contains("unmount it in `hooks.after`"), "{warned}");
}
