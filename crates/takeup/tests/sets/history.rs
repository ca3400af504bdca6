//! Histories: days of random changes, each backed up, and each day restored in both ways.

use std::fs;
use std::path::PathBuf;

use crate::changes::World;
use crate::snapshot::{Snapshot, assert_same, snapshot};
use crate::{TICK, answer, archive, backup, gnu_tar, text};

/// What one history went through, for the message of a failure.
struct Day {
    was: Snapshot,
    archive: PathBuf,
    set: String,
    /// The archives that GNU tar extracts for it.
    chain: Vec<PathBuf>,
}

fn history(seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let mut world = World::new(here.join("tree"), seed);
    let mut days: Vec<Day> = Vec::new();
    let mut told = Vec::new();
    for day in 0..2 + world.random.index(4) {
        if day > 0 {
            for _ in 0..world.random.index(8) {
                told.push(format!("{day}: {}", world.change()));
            }
        }
        // Sometimes everything is doubtful, and sometimes only what was just written.
        if world.random.below(3) > 0 {
            std::thread::sleep(TICK);
        }
        let was = snapshot(&here.join("tree"));
        let full = day == 0 || world.random.below(8) == 0;
        let more: &[&str] = if full { &[] } else { &["--incremental"] };
        let done = backup(here, more);
        // As shortly after the read as a program can.
        if world.random.below(2) == 0 {
            world.edit();
        }
        let archive = archive(here, &done);
        let mut chain = if full { Vec::new() } else { days[day - 1].chain.clone() };
        chain.push(archive.clone());
        let set = done["set"]["set"].as_str().unwrap().to_owned();
        days.push(Day { was, archive, set, chain });
    }
    for (number, day) in days.iter().enumerate() {
        let what = format!("seed {seed}, day {number} of {} ({told:?})", days.len());
        let into = format!("takeup-{number}");
        let restored = answer(here, &["restore", "sets/", "--set", &day.set, "--into", &into]);
        let chain = restored["set"]["chain"].as_array().unwrap();
        assert_eq!(chain.len(), day.chain.len(), "{what}");
        assert_same(&day.was, &snapshot(&here.join(into).join("tree")), &format!("{what}, takeup"));
        let into = here.join(format!("tar-{number}"));
        gnu_tar(&day.chain, &into);
        assert_same(&day.was, &snapshot(&into.join("tree")), &format!("{what}, GNU tar"));
        fs::remove_dir_all(into).unwrap();
    }
    let last = days.last().unwrap();
    let verified = text(here, &["verify", last.archive.to_str().unwrap()], 0);
    assert!(verified.starts_with("the archive is sound"), "{verified}");
}

#[test]
fn every_day_of_a_history_comes_back() {
    let is_long = std::env::var_os("TAKEUP_LONG").is_some();
    for seed in 0..if is_long { 500 } else { 10 } {
        history(seed);
    }
}
