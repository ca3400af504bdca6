//! Every target over its corpus, and over inputs that are made from it: the same ones each time.
//! libFuzzer searches further (`fuzz/run`).

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::fs;
use std::path::PathBuf;

use fuzzing::{TARGETS, Target, within_budget};
use statistics::random::Random;

/// Changed inputs for each target.
const CHANGED_INPUTS: usize = 2000;
/// Changes of one input, at most.
const CHANGES_MAX: usize = 4;
/// Longer inputs are cut off.
const INPUT_BYTES_MAX: usize = 16384;
/// The longest piece that is removed or repeated.
const PIECE_BYTES_MAX: usize = 600;
/// Bytes that mean something to many readers.
const TELLING: &[&[u8]] =
    &[b"\0", b"\xff", b"\x80", b"\n", b" ", b"-", b"=", b"9", b"\xff\xff\xff\xff", b"\0\0\0\x80"];

fn repository() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The inputs of a target that are in the tree, by name.
fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let folder = repository().join("fuzz/corpus").join(target.name);
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Shows the input if the check panics.
struct Shown<'a>(&'a [u8]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the input: b\"{}\"", self.0.escape_ascii());
        }
    }
}

fn check(target: &Target, input: &[u8]) {
    let _shown = Shown(input);
    within_budget(target.check, input);
}

/// One change: a bit, a byte, a telling word, a piece that is gone, doubled or another input's.
fn change(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(input.len() + 1);
    let end = (at + 1 + random.below(PIECE_BYTES_MAX)).min(input.len());
    match random.below(7) {
        0 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        1 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = (random.bits() >> 32) as u8;
            }
        }
        2 => {
            let word = TELLING[random.below(TELLING.len())];
            let end = (at + word.len()).min(input.len());
            input.splice(at..end, word.iter().copied());
        }
        3 => drop(input.drain(at..end)),
        4 => {
            let piece = input[at..end].to_vec();
            input.splice(at..at, piece);
        }
        5 => {
            let from = random.below(other.len() + 1);
            let to = (from + 1 + random.below(PIECE_BYTES_MAX)).min(other.len());
            input.splice(at..end, other[from..to].iter().copied());
        }
        _ => input.truncate(at),
    }
    input.truncate(INPUT_BYTES_MAX);
}

/// The corpus, then what is made of it. The seed is the name, so that targets get their own.
fn any_bytes(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let inputs = corpus(target);
    assert!(!inputs.is_empty());
    inputs.iter().for_each(|input| check(target, input));
    let seed = name.bytes().fold(0, |seed: u64, byte| seed.wrapping_mul(31) + u64::from(byte));
    let mut random = Random::new(seed);
    for _ in 0..CHANGED_INPUTS {
        let mut input = inputs[random.below(inputs.len())].clone();
        let other = &inputs[random.below(inputs.len())];
        for _ in 0..=random.below(CHANGES_MAX) {
            change(&mut input, other, &mut random);
        }
        check(target, &input);
    }
}

macro_rules! each {
    ($($name:ident)*) => {
        const TESTED: &[&str] = &[$(stringify!($name)),*];
        $(#[test]
        fn $name() {
            any_bytes(stringify!($name));
        })*
    };
}

each! {
    capture_imports chunk_reader drive_answers index_reader job_files label_reader measurements
    medium_file pasted_texts pax_records run_records sparse_map tar_reader trace_pages watch_records
}

/// libFuzzer's side is built by the long campaign alone: it must name the same targets.
#[test]
fn every_target_is_tested_and_fuzzed() {
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(TESTED, names);
    let manifest = fs::read_to_string(repository().join("fuzz/Cargo.toml")).unwrap();
    let script = fs::read_to_string(repository().join("fuzz/run")).unwrap();
    for name in &names {
        assert!(manifest.contains(&format!("name = \"{name}\"\npath = \"targets/{name}.rs\"\n")));
        assert!(script.split_ascii_whitespace().any(|word| word == *name), "{name} in fuzz/run");
        let program = fs::read_to_string(repository().join(format!("fuzz/targets/{name}.rs")));
        let call = format!("fuzzing::{name}::check");
        assert!(program.unwrap().contains(&call), "{name}");
    }
}
