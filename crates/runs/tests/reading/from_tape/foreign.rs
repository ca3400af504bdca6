//! Tapes that other programs wrote: blocks of any size, in variable and fixed mode, of tar, bsdtar
//! and dd, plain and compressed, one file of the tape or several.

use std::path::Path;

use device::tape::{Access, BlockMode, Filemark, TapeDrive};
use runs::read::ReadFailure;
use runs::restore::RestoreError;
use sim::tape::Faults;
use tapeset::TapeReadFailure;

use super::harness::TapeHarness;
use crate::harness::{Times, assert_same_tree, shell};

/// Writes bytes to the tape like dd with `bs=block_bytes`, and a filemark after them.
fn write_file(harness: &TapeHarness, bytes: &[u8], block_bytes: usize, mode: BlockMode) {
    let mut tape = harness.library.drive().open(Access::Write).unwrap();
    tape.set_block_mode(mode).unwrap();
    tape.to_end_of_data().unwrap();
    for block in bytes.chunks(block_bytes) {
        tape.write(block).unwrap();
    }
    tape.write_filemark(Filemark::Synchronising).unwrap();
    drop(tape);
}

fn rewind(harness: &TapeHarness) {
    harness.library.drive().open(Access::Read).unwrap().rewind().unwrap();
}

/// The bytes that a command writes to the file `a`.
fn made_by(harness: &TapeHarness, command: &str) -> Vec<u8> {
    // libarchive reads a negative time with a fraction in its own way.
    let command = format!("touch -cd 2001-01-01 tree/empty; {command}");
    shell(&command, harness.plain.folder.path());
    std::fs::read(harness.plain.path("a")).unwrap()
}

fn check(harness: &TapeHarness, tree: &Path, into: &str) {
    let (report, kept) = harness.restore(into);
    assert_eq!(kept.warnings(), Vec::<String>::new(), "{into}");
    assert!(report.tape.unwrap().set.is_none());
    assert_same_tree(tree, &harness.plain.path(into).join("tree"), Times::Seconds);
}

#[test]
fn any_block_size_of_gnu_tar() {
    for units in [1usize, 20, 63, 128, 512, 2048, 8000] {
        for mode in [BlockMode::Variable, BlockMode::Fixed(units as u32 * 512)] {
            let harness = TapeHarness::new(1, 64 << 20);
            let tree = harness.plain.tree("tree");
            let archive = made_by(&harness, &format!("tar -b {units} -cf a tree"));
            write_file(&harness, &archive, units * 512, mode);
            rewind(&harness);
            check(&harness, &tree, "out");
        }
    }
}

#[test]
fn compressed_and_from_other_programs() {
    let commands = [
        "tar -czf a tree",
        "tar -cf - tree | zstd -q -o a",
        "bsdtar -cf a tree",
        "bsdtar --format=gnutar -b 20 -cf a tree",
    ];
    for command in commands {
        let harness = TapeHarness::new(1, 64 << 20);
        let tree = harness.plain.tree("tree");
        let archive = made_by(&harness, command);
        // dd without conv=sync leaves the last block short; an odd block size is unusual.
        for block_bytes in [10_240, 65_536, 1001] {
            let drive = harness.library.drive();
            drive.open(Access::Write).unwrap().rewind().unwrap();
            let mut tape = drive.open(Access::Write).unwrap();
            tape.set_block_mode(BlockMode::Variable).unwrap();
            for block in archive.chunks(block_bytes) {
                tape.write(block).unwrap();
            }
            drop(tape);
            rewind(&harness);
            check(&harness, &tree, &format!("out{block_bytes}"));
        }
    }
}

#[test]
fn several_files_one_after_the_other() {
    let mut harness = TapeHarness::new(1, 64 << 20);
    for name in ["one", "two", "three"] {
        let folder = harness.plain.path("tree");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name), name).unwrap();
        let archive = made_by(&harness, "tar -cf a tree; rm -r tree");
        write_file(&harness, &archive, 10_240, BlockMode::Variable);
    }
    rewind(&harness);
    // From the tape's position: each reading leaves the tape at the next file.
    for (number, name) in ["one", "two", "three"].iter().enumerate() {
        let (paths, _, kept) = harness.list();
        assert_eq!(paths, ["tree", &format!("tree/{name}")]);
        let follows = kept.notes().iter().any(|note| note.contains("follows on the tape"));
        assert_eq!(follows, number < 2, "{:?}", kept.notes());
    }
    let (result, _) = harness.try_restore("out", &[]);
    match result {
        Err(RestoreError::Read(ReadFailure::Tape(TapeReadFailure::AtEndOfData { .. }))) => {}
        other => panic!("{other:?}"),
    }
    for (number, name) in [(2, "three"), (0, "one")] {
        harness.file_number = Some(number);
        let into = format!("out{number}");
        harness.restore(&into);
        assert!(harness.plain.path(&into).join("tree").join(name).exists());
    }
    harness.file_number = Some(3);
    let (result, _) = harness.try_restore("out", &[]);
    match result {
        Err(RestoreError::Read(ReadFailure::Tape(TapeReadFailure::NoSuchFile {
            number: 3,
            ..
        }))) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_segment_of_ours_is_a_file_like_any() {
    for compression in ["none", "zstd:1", "gzip:1"] {
        let mut harness = TapeHarness::new(1, 64 << 20);
        let expected = harness.small_tree(20, 9000);
        harness.write(&harness.plain.path("t"), compression, 40 << 10);
        harness.file_number = Some(1);
        let (_, kept) = harness.restore("out");
        assert_eq!(kept.warnings(), Vec::<String>::new(), "{compression}");
        let restored = harness.restored("out");
        assert!((1..20).contains(&restored.len()), "{}", restored.len());
        assert!(restored.iter().all(|(path, content)| expected[path] == *content));
    }
}

#[test]
fn a_bad_block_costs_what_is_in_it() {
    let harness = TapeHarness::new(1, 64 << 20);
    let expected = harness.small_tree(30, 5000);
    let archive = made_by(&harness, "tar -b 4 -cf a t");
    write_file(&harness, &archive, 2048, BlockMode::Variable);
    rewind(&harness);
    harness.library.cartridges()[0].set_faults(Faults::unreadable([9, 20]));
    let (_, kept) = harness.restore("out");
    kept.expect_warning("bytes are missing");
    let found = std::fs::read_dir(harness.plain.path("out/t")).unwrap().count();
    assert_eq!(found, 3);
    let whole = expected.iter().filter(|(path, content)| {
        let name = &path[path.find("/t/").unwrap() + 1..];
        std::fs::read(harness.plain.path("out").join(name)).is_ok_and(|found| found == **content)
    });
    assert!(whole.count() >= expected.len() - 6);
}
