//! Media without the label that they should begin with: it was never written, is replaced by
//! another block of the set, or is lost with the following blocks. Such a medium is not foreign.

use std::collections::BTreeMap;
use std::fs;

use device::tape::{Access, BlockMode, Filemark, TapeDrive};
use sim::tape::{DriveSettings, Faults, Library, Object, Positioning, VirtualDrive};
use tapeset::{SetChoice, sets_on_volume};
use testkit::samples::noise;

use super::harness::{BLOCK_BYTES, Clerk, TapeHarness};
use crate::harness::shell;

/// The fate of a medium's objects.
type Change = (&'static str, fn(&mut Vec<Object>));
type Tree = BTreeMap<String, Vec<u8>>;

const COMPRESSIONS: [&str; 3] = ["none", "zstd:1", "gzip:1"];

/// A set of several segments on the cartridge in the drive.
fn small_set(compression: &str) -> (TapeHarness, Tree) {
    let harness = TapeHarness::new(1, 64 << 20);
    let expected = harness.small_tree(16, 9_000);
    harness.write(&harness.plain.path("t"), compression, 40 << 10);
    (harness, expected)
}

/// A drive that does not know the numbers of blocks.
fn without_numbers(harness: TapeHarness) -> TapeHarness {
    let settings = DriveSettings { positioning: Positioning::Unsupported, ..Default::default() };
    let drive = VirtualDrive::new("/dev/nst0", settings);
    let library = Library::new(drive, harness.library.cartridges().to_vec());
    library.load(0);
    TapeHarness { library, ..harness }
}

/// Puts the medium into the drive anew, with its objects changed.
fn damage(harness: &TapeHarness, slot: usize, change: impl FnOnce(&mut Vec<Object>)) {
    let cartridge = &harness.library.cartridges()[slot];
    let mut objects = cartridge.objects().unwrap();
    change(&mut objects);
    cartridge.record(&objects).unwrap();
    harness.library.load(slot);
}

fn first_filemark(objects: &[Object]) -> usize {
    objects.iter().position(|object| *object == Object::Filemark).unwrap()
}

/// The fate of a medium's first block, which is a label.
const LABELS: [Change; 4] = [
    ("zeros", |objects| objects[0] = Object::Block(vec![0; BLOCK_BYTES])),
    ("noise", |objects| objects[0] = Object::Block(noise(77, BLOCK_BYTES))),
    ("data of the set", |objects| objects[0] = objects[1].clone()),
    ("an index of the set", |objects| objects[0] = objects[objects.len() - 3].clone()),
];

/// The fate of a medium's first file.
const FILES: [Change; 4] = [
    ("no label", |objects| drop(objects.remove(0))),
    ("nothing but its filemark", |objects| drop(objects.drain(..first_filemark(objects)))),
    ("nothing", |objects| drop(objects.drain(..=first_filemark(objects)))),
    ("zeros", |objects| {
        let end = first_filemark(objects);
        objects[..end].fill(Object::Block(vec![0; BLOCK_BYTES]));
    }),
];

#[track_caller]
fn check_told(harness: &TapeHarness, what: &str) {
    let (report, kept) = harness.verify(None);
    let sound = report.is_ok_and(|report| report.is_sound());
    assert!(!sound, "{what}: verify finds no fault: {:?}", kept.warnings());
}

#[test]
fn without_its_first_label_a_set_is_whole() {
    for compression in COMPRESSIONS {
        for (name, change) in LABELS {
            let what = format!("{compression}, {name}");
            let (mut harness, expected) = small_set(compression);
            if compression == "zstd:1" {
                harness = without_numbers(harness);
            }
            damage(&harness, 0, change);
            check_told(&harness, &what);
            // From its beginning, and from where a run leaves it.
            for into in ["out", "again"] {
                let (report, kept) = harness.restore(into);
                assert!(report.tape.unwrap().set.is_some(), "{what}");
                kept.expect_warning("file 0 of the tape");
                assert!(harness.restored(into) == expected, "{what}: {:?}", kept.warnings());
            }
            // From elsewhere a list does not go there.
            harness.library.load(0);
            let (paths, _, kept) = harness.list();
            kept.expect_warning("file 0 of the tape");
            assert!(expected.keys().all(|path| paths.contains(path)), "{what}");
            let sets = sets_on_volume(&harness.origin(), &harness.cancel).unwrap();
            assert_eq!(sets.len(), 1, "{what}");
        }
    }
}

#[test]
fn without_its_first_file_the_rest_of_a_set_comes_back() {
    for compression in COMPRESSIONS {
        for (name, change) in FILES {
            let what = format!("{compression}, {name}");
            let (harness, expected) = small_set(compression);
            damage(&harness, 0, change);
            check_told(&harness, &what);
            harness.library.load(0);
            let (report, kept) = harness.try_restore("out", &[]);
            let restored = harness.restored("out");
            if report.is_ok() {
                assert!(!kept.warnings().is_empty(), "{what}");
            }
            if name == "nothing" {
                // The files have other numbers than the index knows.
                continue;
            }
            report.unwrap_or_else(|error| panic!("{what}: {error:?}"));
            let whole = expected.iter().filter(|(path, it)| restored.get(*path) == Some(it));
            // The first of two segments or more.
            assert!(whole.count() >= 3, "{what}: {:?}", kept.warnings());
        }
    }
}

/// The tape is in the middle, for example at the front of another file of the set.
#[test]
fn from_wherever_the_tape_stands() {
    for (file, blocks) in [(1, 0), (2, 0), (1, 3)] {
        let (harness, expected) = small_set("none");
        damage(&harness, 0, LABELS[0].1);
        for into in ["out", "verified"] {
            let mut tape = harness.library.drive().open(Access::Read).unwrap();
            tape.rewind().unwrap();
            tape.space_filemarks(file).unwrap();
            if blocks > 0 {
                tape.space_blocks(blocks).unwrap();
            }
            drop(tape);
            if into == "verified" {
                check_told(&harness, &format!("from block {blocks} of file {file}"));
                continue;
            }
            let (_, kept) = harness.restore(into);
            kept.expect_warning("file 0 of the tape");
            assert!(harness.restored(into) == expected);
        }
    }
}

/// No index is available before the data, and other volumes are asked for.
#[test]
fn on_several_volumes() {
    for compression in COMPRESSIONS {
        for slot in 0..2 {
            for (name, change) in [LABELS[0], LABELS[2]] {
                let what = format!("{compression}, {name} on volume {}", slot + 1);
                let mut harness = TapeHarness::new(6, 180 << 10);
                let expected = harness.small_tree(12, 60_000);
                let report = harness.write(&harness.plain.path("t"), compression, 50 << 10);
                let volumes = report.tape.unwrap().volumes as usize;
                assert!(volumes > 2);
                damage(&harness, slot, change);
                harness.clerk = Clerk::Brings;
                for first in [0, volumes - 1] {
                    harness.library.load(first);
                    check_told(&harness, &what);
                    harness.library.load(first);
                    let into = format!("out{first}");
                    let (_, kept) = harness.restore(&into);
                    kept.expect_warning("file 0 of the tape");
                    let (restored, warnings) = (harness.restored(&into), kept.warnings());
                    // Only the label, or an index that is available, says which bytes a compressed
                    // part repeats.
                    let guessed = compression != "none" && slot > 0 && first == 0;
                    assert!(guessed || restored == expected, "{what}: {warnings:?}");
                    let is_whole = |(path, it): &(&String, _)| restored.get(*path) == Some(*it);
                    let whole = expected.iter().filter(is_whole);
                    assert!(whole.count() > 3, "{what}: {warnings:?}");
                }
            }
        }
    }
}

#[test]
fn no_block_that_cannot_be_read_is_passed_over_in_silence() {
    for compression in COMPRESSIONS {
        let (harness, _) = small_set(compression);
        let cartridge = harness.library.cartridges()[0].clone();
        let objects = cartridge.objects().unwrap();
        let blocks = (0..objects.len()).filter(|number| objects[*number] != Object::Filemark);
        for number in blocks {
            cartridge.set_faults(Faults::unreadable([number as u64]));
            check_told(&harness, &format!("{compression}, object {number} of {}", objects.len()));
        }
    }
}

#[test]
fn labels_in_the_middle_are_told_and_done_without() {
    for compression in COMPRESSIONS {
        let (harness, expected) = small_set(compression);
        let objects = harness.library.cartridges()[0].objects().unwrap();
        let behind_filemark = |number: &usize| objects[number - 1] == Object::Filemark;
        for number in (1..objects.len() - 1).filter(behind_filemark) {
            let what = format!("{compression}, object {number} of {}", objects.len());
            damage(&harness, 0, |objects| objects[number] = Object::Block(vec![0; BLOCK_BYTES]));
            check_told(&harness, &what);
            let (_, kept) = harness.restore("out");
            assert!(!kept.warnings().is_empty(), "{what}");
            assert!(harness.restored("out") == expected, "{what}: {:?}", kept.warnings());
            fs::remove_dir_all(harness.plain.path("out")).unwrap();
            damage(&harness, 0, |all| all.clone_from(&objects));
        }
    }
}

/// Something that GNU tar wrote is at the front, and looks whole.
#[test]
fn what_follows_the_file_of_another_program_is_looked_at() {
    let (mut harness, expected) = small_set("none");
    fs::create_dir(harness.plain.path("tree")).unwrap();
    fs::write(harness.plain.path("tree/one"), "one").unwrap();
    for format in ["gnu", "posix"] {
        let command = format!("tar -b 8 --format={format} -cf a tree");
        shell(&command, harness.plain.folder.path());
        let archive = fs::read(harness.plain.path("a")).unwrap();
        damage(&harness, 0, |objects| {
            let end = first_filemark(objects);
            let blocks = archive.chunks(BLOCK_BYTES).map(|block| Object::Block(block.to_vec()));
            objects.splice(..end, blocks);
        });
        check_told(&harness, format);
        harness.library.load(0);
        let (_, kept) = harness.try_restore(format, &[]);
        assert!(!kept.warnings().is_empty(), "{format}");
        // A user who knows what should be there asks for it.
        harness.set = SetChoice::Number(1);
        let (result, _) = harness.try_restore("asked", &[]);
        result.unwrap();
        let restored = harness.restored("asked");
        let whole = expected.iter().filter(|(path, it)| restored.get(*path) == Some(it));
        assert!(whole.count() >= 3);
        fs::remove_dir_all(harness.plain.path("asked")).unwrap();
        harness.set = SetChoice::Last;
    }
}

/// A foreign tape is read with the commands that its bytes need. One more looks behind its first
/// file if it may be a Takeup medium; if there is such a file, the end is checked, too (and the
/// drive is asked for its position, to go back from there).
#[test]
fn tapes_of_others_are_not_searched() {
    let (gnu, posix) = ("tar -b 8 -cf a t", "tar --format=posix -b 8 -cf a t");
    for (command, files, more) in [(gnu, 1, 0), (gnu, 3, 0), (posix, 1, 4), (posix, 3, 18)] {
        let harness = TapeHarness::new(1, 64 << 20);
        harness.small_tree(12, 5000);
        shell(command, harness.plain.folder.path());
        let archive = fs::read(harness.plain.path("a")).unwrap();
        let mut tape = harness.library.drive().open(Access::Write).unwrap();
        tape.set_block_mode(BlockMode::Variable).unwrap();
        for _ in 0..files {
            for block in archive.chunks(4096) {
                tape.write(block).unwrap();
            }
            tape.write_filemark(Filemark::Synchronising).unwrap();
        }
        tape.rewind().unwrap();
        drop(tape);
        harness.library.drive().count_commands();
        let (_, _, kept) = harness.list();
        assert_eq!(kept.warnings(), Vec::<String>::new(), "{command}");
        let (commands, blocks) = (harness.library.drive().commands(), archive.len() / 4096);
        let most = blocks as u64 + 8 + more;
        let what = format!("{command}, {files} files, {blocks} blocks");
        assert!(commands <= most, "{what}: {commands} commands");
    }
}
