//! The same on tape: blocks that are zeros, of another set of the same tree, exchanged, or missing.

use std::collections::BTreeMap;
use std::fs;

use sim::tape::Object;

use super::{fingerprint, is_long, is_restored, tree};
use crate::from_tape::harness::TapeHarness;

#[derive(Clone, Copy, Debug)]
enum Damage {
    Zeroed,
    Stale,
    Swapped(usize),
    Cut,
}

/// The objects of two sets of one tree, and the tree of the first.
fn sample(
    compression: &str,
) -> (TapeHarness, Vec<Object>, Vec<Object>, BTreeMap<String, super::Object>) {
    let mut sets = Vec::new();
    let first = TapeHarness::new(1, 64 << 20);
    let root = first.plain.path("t");
    let mut expected = BTreeMap::new();
    for generation in [1, 2] {
        let other = TapeHarness::new(1, 64 << 20);
        tree(&root, generation, 9000);
        if generation == 1 {
            expected = fingerprint(&root);
        }
        other.write(&root, compression, 8 << 10);
        sets.push(other.library.cartridges()[0].objects().unwrap());
        fs::remove_dir_all(&root).unwrap();
    }
    let [set, stale] = sets.try_into().unwrap();
    (first, set, stale, expected)
}

fn damaged(set: &[Object], stale: &[Object], at: usize, length: usize, how: Damage) -> Vec<Object> {
    let mut objects = set.to_vec();
    let end = (at + length).min(objects.len());
    if let Damage::Cut = how {
        objects.drain(at..end);
        return objects;
    }
    for place in at..end {
        let replacement = match (&objects[place], how) {
            (Object::Block(block), Damage::Zeroed) => Object::Block(vec![0; block.len()]),
            (Object::Block(_), Damage::Stale) => stale.get(place).unwrap_or(&set[place]).clone(),
            (Object::Block(_), Damage::Swapped(with)) => set[(place + with) % set.len()].clone(),
            (other, _) => other.clone(),
        };
        // A drive counts filemarks by themselves: they are not confused with blocks.
        if let (Object::Block(_), Object::Block(_)) = (&objects[place], &replacement) {
            objects[place] = replacement;
        }
    }
    objects
}

#[test]
fn every_block_of_a_small_tape() {
    let (mut all, mut told_wrongly) = (0, Vec::new());
    for compression in ["none", "zstd", "gzip"] {
        let (harness, set, stale, expected) = sample(compression);
        let cartridge = harness.library.cartridges()[0].clone();
        let (mut done, mut wrong) = (0, Vec::new());
        let step = if is_long() { 1 } else { 11 };
        let mut number = 0;
        for at in 0..set.len() {
            for length in [1, 2, 7, set.len()] {
                let half = Damage::Swapped(set.len() / 2);
                let swapped = [Damage::Swapped(1), Damage::Swapped(2), half];
                for how in [Damage::Zeroed, Damage::Stale, Damage::Cut].into_iter().chain(swapped) {
                    number += 1;
                    let objects = damaged(&set, &stale, at, length, how);
                    // The filemark after the index adds nothing to the index's trailer.
                    let is_whole =
                        objects == set || set.strip_suffix(&[Object::Filemark]) == Some(&objects);
                    if number % step != 0 || is_whole || objects == stale {
                        continue;
                    }
                    cartridge.record(&objects).unwrap();
                    harness.library.load(0);
                    done += 1;
                    let case = format!("{how:?} {length} from {at} of {}", set.len());
                    let (report, kept) = harness.verify(None);
                    if report.is_ok_and(|report| report.is_sound()) && kept.warnings().is_empty() {
                        wrong.push(format!("{case}: verify finds no fault"));
                    }
                    // Half of them from its beginning, half from where the verification left it.
                    if number % 2 == 0 {
                        harness.library.load(0);
                    }
                    let (report, kept) = harness.try_restore("out", &[]);
                    let silent = report.is_ok() && kept.warnings().is_empty();
                    if silent && !is_restored(&harness.plain.path("out"), &expected) {
                        wrong.push(format!("{case}: restore says that all is done"));
                    }
                    let _ = fs::remove_dir_all(harness.plain.path("out"));
                }
            }
        }
        eprintln!("lying tape, {compression}: {done} cases, {} told wrongly", wrong.len());
        all += done;
        told_wrongly.extend(wrong.into_iter().map(|wrong| format!("{compression}: {wrong}")));
    }
    let wrong = told_wrongly.len();
    assert!(wrong == 0, "{wrong} of {all}:\n{}", told_wrongly.join("\n"));
}
