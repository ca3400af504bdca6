//! What is noted of media spares the way to it. Notes that are wrong cost time, and never give
//! wrong content without a word.

use std::sync::atomic::Ordering;

use tapeset::{KnownMedium, SetChoice};

use super::harness::TapeHarness;
use super::mishaps::{Run, Tree, list, restore, verify};
use super::motions::Ways;

const COMPRESSIONS: [&str; 2] = ["none", "zstd:3"];

/// Three sets of one tree that grows on one cartridge, and the tree at the end of each.
fn three_sets(compression: &str, is_noted: bool) -> (TapeHarness, Vec<Tree>) {
    let mut harness = TapeHarness::new(1, 64 << 20);
    if is_noted {
        harness.take_notes();
    }
    let mut trees = Vec::new();
    for files in [40, 60, 80] {
        trees.push(harness.small_tree(files, 60_000));
        harness.write(&harness.plain.path("t"), compression, 300 << 10);
    }
    (harness, trees)
}

#[test]
fn what_is_noted_is_not_looked_for() {
    for compression in COMPRESSIONS {
        let (mut harness, trees) = three_sets(compression, true);
        harness.library.load(0);
        let ways = Ways::watch(&harness);
        for (number, tree) in (1..).zip(&trees) {
            harness.set = SetChoice::Number(number);
            let (paths, _, kept) = harness.list();
            assert_eq!(kept.warnings(), Vec::<String>::new());
            assert!(tree.keys().all(|path| paths.contains(path)));
            assert_eq!(ways.take(), Vec::<i64>::new(), "{compression}: a list moves no tape");
            let path = tree.keys().nth(33).unwrap();
            let into = format!("out{number}");
            let (report, kept) = harness.try_restore(&into, &[path]);
            assert_eq!((report.unwrap().run.files, kept.warnings()), (1, Vec::new()));
            assert_eq!(harness.restored(&into).get(path), tree.get(path));
            let ways = ways.take();
            assert!(ways.len() <= 1, "{compression}, set {number}: straight there: {ways:?}");
        }
        // A cartridge that was written to since is looked at again.
        let medium = harness.library.cartridges()[0].clone();
        medium.cut(medium.len() - 1).unwrap();
        harness.library.load(0);
        harness.set = SetChoice::Number(1);
        let (report, _) = harness.try_restore("cut", &[trees[0].keys().next().unwrap()]);
        assert_eq!(report.unwrap().run.files, 1);
        assert!(ways.take().len() > 1, "the note is not of this cartridge as it is");
    }
}

/// Without notes, the label of the last index says where the others are.
#[test]
fn a_tape_knows_its_sets() {
    for compression in COMPRESSIONS {
        let (mut harness, trees) = three_sets(compression, false);
        harness.library.load(0);
        let ways = Ways::watch(&harness);
        for number in [3, 2, 1] {
            // From the last set, where a backup leaves the tape.
            harness.set = SetChoice::Last;
            let (_, _, kept) = harness.list();
            assert_eq!(kept.warnings(), Vec::<String>::new());
            ways.take();
            harness.set = SetChoice::Number(number);
            let (paths, _, _) = harness.list();
            assert!(trees[number as usize - 1].keys().all(|path| paths.contains(path)));
            let ways = ways.take();
            // To the end, back to the last label, to the index: the sets between are not visited.
            assert!(ways.len() <= 4, "{compression}, set {number}: {ways:?}");
        }
    }
}

/// What a note or a copy may be, instead of what it should be.
fn wrong_notes(harness: &TapeHarness, other: &TapeHarness) -> Vec<(String, Wrong)> {
    let notes = harness.notes.as_ref().unwrap();
    let indexes = notes.indexes.lock().unwrap().clone();
    let media = notes.media.lock().unwrap().clone();
    let others = other.notes.as_ref().unwrap();
    let foreign: Vec<Vec<u8>> = others.indexes.lock().unwrap().values().cloned().collect();
    let foreign_medium = others.media.lock().unwrap().values().next().unwrap().clone();
    let mut wrong = Vec::new();
    let mut with_indexes = |what: String, change: &dyn Fn(&[u8]) -> Vec<u8>| {
        let changed = indexes.iter().map(|(set, bytes)| (*set, change(bytes))).collect();
        wrong.push((what, Wrong { indexes: changed, media: media.clone() }));
    };
    for (number, bytes) in foreign.iter().enumerate() {
        with_indexes(format!("another tape's index {number}"), &|_| bytes.clone());
    }
    for part in [0, 1, 3, 7] {
        with_indexes(format!("cut to {part} eighths"), &|it| it[..it.len() * part / 8].to_vec());
    }
    for place in 0..40 {
        with_indexes(format!("forged at {place} fortieths"), &|it| {
            let mut it = it.to_vec();
            let at = it.len() * place / 40;
            it[at] ^= 0x11;
            it
        });
    }
    // The index of an older set in the place of the last one's, and the other way round.
    let by_age: Vec<_> = indexes.keys().copied().collect();
    for shift in 1..by_age.len() {
        let stale = (0..by_age.len())
            .map(|at| (by_age[at], indexes[&by_age[(at + shift) % by_age.len()]].clone()));
        wrong.push((
            format!("the index of another set, {shift} further"),
            Wrong { indexes: stale.collect(), media: media.clone() },
        ));
    }
    // Chips that are taken for those of other media.
    let (serial, own) = media.iter().next().map(|(serial, it)| (serial.clone(), it)).unwrap();
    let lies = [
        ("another medium", foreign_medium.sets.clone(), foreign_medium.medium),
        ("another medium's sets", foreign_medium.sets.clone(), own.medium),
    ];
    for (what, sets, medium) in lies {
        let lie = KnownMedium { medium, memory: own.memory.clone(), sets };
        let media = [(serial.clone(), lie)].into_iter().collect();
        wrong.push((what.to_owned(), Wrong { indexes: indexes.clone(), media }));
    }
    wrong
}

struct Wrong {
    indexes: std::collections::BTreeMap<[u8; 16], Vec<u8>>,
    media: std::collections::BTreeMap<String, KnownMedium>,
}

#[test]
fn wrong_notes_never_give_wrong_content() {
    for compression in COMPRESSIONS {
        let (harness, trees) = three_sets(compression, true);
        let mut other = TapeHarness::new(1, 64 << 20);
        other.take_notes();
        other.small_tree(70, 50_000);
        other.write(&other.plain.path("t"), compression, 300 << 10);
        let notes = harness.notes.as_ref().unwrap();
        notes.is_closed.store(true, Ordering::Relaxed);
        let mut told = 0;
        let wrong = wrong_notes(&harness, &other);
        let count = wrong.len();
        for (what, Wrong { indexes, media }) in wrong {
            *notes.indexes.lock().unwrap() = indexes;
            *notes.media.lock().unwrap() = media;
            let expected: Vec<&Tree> = trees.iter().rev().collect();
            let runs: [(&str, Run); 3] = [("restore", restore), ("list", list), ("verify", verify)];
            for (name, run) in runs {
                harness.library.load(0);
                let said = run(&harness, &expected, &format!("{name}, {compression}, {what}"));
                told += u32::from(!said.is_silent());
            }
            for path in [trees[0].keys().next().unwrap(), trees[2].keys().last().unwrap()] {
                harness.library.load(0);
                let into = "one";
                let _ = std::fs::remove_dir_all(harness.plain.path(into));
                let (report, kept) = harness.try_restore(into, &[path]);
                let mut restored = harness.restored(into);
                restored.retain(|path, _| !path.ends_with(".incomplete"));
                let is_right = restored.iter().all(|(path, it)| trees[2].get(path) == Some(it));
                assert!(is_right, "{compression}, {what}: wrong content");
                let is_silent = report.is_ok() && kept.warnings().is_empty();
                assert!(!is_silent || restored.len() == 1, "{compression}, {what}: not a word");
            }
        }
        // Most of them are found out before they do harm, and then the tape is read as if there
        // were none.
        assert!(told < 3 * count as u32, "{told} of {count}");
    }
}
