//! A set that ends early: its medium is full, and there is no other. What fits is a whole set.

use archive::chunk::Compression;
use archive::label::LabelKind;
use device::tape::{Access, DriveCompression, Filemark, TapeDrive as _};
use runs::backup::{BackupOptions, backup};
use sim::tape::{Cartridge, CartridgeSettings, Mishap, Persistence, VirtualDrive};
use tapeset::TapeOptions;
use tempfile::tempdir;

use super::media::{check_set, parts, shell};
use super::operator::Operator;
use super::{library, on_tape, set_id, set_ids, tape_options, tree, write, write_well};
use crate::harness::Recorder;
use crate::snapshot::snapshot;

fn segments_of_a_mebibyte() -> TapeOptions {
    TapeOptions { segment_bytes: Some(1 << 20), ..TapeOptions::default() }
}

#[test]
fn what_fits_on_the_only_medium_is_a_whole_set() {
    let tree = tree(31, 900, 60_000);
    for compression in
        [Compression::None, Compression::Gzip { level: 1 }, Compression::Zstd { level: 3 }]
    {
        let rack = library(&[20 << 20], 100 << 10);
        // Chunks of zstd are long; without compression the writer is behind the readers.
        let ring_bytes = if compression == Compression::None { 4 << 20 } else { 128 << 20 };
        let options = tape_options(tree.path(), 64 << 10, compression);
        let options = BackupOptions { ring_bytes, ..options };
        let operator = Operator::of(&rack);
        let drive = rack.drive().clone();
        let options = on_tape(&options, &segments_of_a_mebibyte(), drive, operator);
        let recorder = Recorder::default();
        let report = backup(&options, &recorder, &Default::default()).unwrap();
        let told = recorder.texts();
        assert!(told.iter().any(|text| text.contains("the set ended early")), "{told:?}");
        assert_eq!(report.tape.as_ref().unwrap().media.len(), 1);
        let set = check_set(rack.cartridges(), set_id(&report), compression);
        // What is restored is what was there, and not all of it.
        let out = tempdir().unwrap();
        std::fs::write(out.path().join("archive"), &set.archive).unwrap();
        let into = out.path().join("into");
        std::fs::create_dir(&into).unwrap();
        shell("tar --ignore-zeros --xattrs -xpf ../archive", &into);
        let was = snapshot(tree.path());
        let is = snapshot(&into.join(tree.path().strip_prefix("/").unwrap()));
        assert!(is.len() > 100 && is.len() < was.len(), "{} of {}", is.len(), was.len());
        for (path, object) in &is {
            let expected = &was[path];
            assert_eq!((&object.kind, object.mode), (&expected.kind, expected.mode), "{path:?}");
        }
        assert_eq!(report.run.members, is.len() as u64, "what is counted is what is there");
    }
}

#[test]
fn the_last_of_several_media_gets_the_index() {
    let tree = tree(32, 900, 60_000);
    let rack = library(&[9 << 20, 14 << 20], 100 << 10);
    let options = tape_options(tree.path(), 64 << 10, Compression::None);
    let written = write_well(&options, &segments_of_a_mebibyte(), &rack);
    let set = check_set(rack.cartridges(), set_id(&written.report), Compression::None);
    let index = set.parts.iter().find(|part| part.label.kind == LabelKind::Index).unwrap();
    assert_eq!((index.cartridge, index.label.volume), (1, 2));
    assert_eq!(written.report.tape.unwrap().media.len(), 2);
}

#[test]
fn a_set_behind_another_ends_early_and_leaves_that_alone() {
    let (first, second) = (tree(33, 100, 40_000), tree(34, 900, 60_000));
    let rack = library(&[20 << 20], 100 << 10);
    let tape = segments_of_a_mebibyte();
    let options = tape_options(first.path(), 64 << 10, Compression::None);
    let before = write_well(&options, &tape, &rack);
    let was = parts(rack.cartridges());
    let options = tape_options(second.path(), 64 << 10, Compression::None);
    let after = write_well(&options, &tape, &rack);
    let ids = [set_id(&before.report), set_id(&after.report)];
    assert_eq!(set_ids(rack.cartridges()), ids);
    let is = parts(rack.cartridges());
    for (was, is) in was.iter().zip(&is) {
        assert!(was.bytes == is.bytes, "file {} has changed", was.file);
    }
    check_set(rack.cartridges(), ids[1], Compression::None);
}

/// The medium is exchanged for one with more files, before each command of the way back.
#[test]
fn a_medium_that_comes_in_between_is_left_alone() {
    let tree = tree(43, 110, 90_000);
    let options = tape_options(tree.path(), 32 << 10, Compression::None);
    let tape = TapeOptions {
        segment_bytes: Some(256 << 10),
        drive_compression: Some(DriveCompression::Off),
        ..TapeOptions::default()
    };
    let rack = || library(&[3600 << 10], 100 << 10);
    let counted = rack();
    counted.drive().count_commands();
    write_well(&options, &tape, &counted);
    let commands = counted.drive().commands();
    let index_blocks = parts(counted.cartridges()).last().unwrap().bytes.len() as u64 / (32 << 10);
    let (mut ended, mut refused) = (0, 0);
    for at in commands.saturating_sub(index_blocks + 40)..commands {
        let rack = rack();
        let other = many_files();
        let before = other.objects().unwrap();
        let mishap = Mishap::Exchanged(other.clone());
        rack.drive().order_mishap(at, Persistence::Times(1), mishap);
        match write(&options, &tape, &rack).0 {
            Ok(_) => ended += 1,
            Err(_) => refused += 1,
        }
        assert!(other.objects().unwrap() == before, "before command {at} of {commands}");
    }
    assert!(refused > 10, "{ended} ended early, {refused} were refused");
}

/// A cartridge of another program, with a file wherever a segment may be.
fn many_files() -> Cartridge {
    let cartridge = Cartridge::blank(CartridgeSettings::default());
    let drive = VirtualDrive::loaded(cartridge.clone());
    let mut tape = drive.open(Access::Write).unwrap();
    for number in 0..40_u8 {
        for _ in 0..20 {
            tape.write(&[number; 4096]).unwrap();
        }
        tape.write_filemark(Filemark::Synchronising).unwrap();
    }
    drop(tape);
    cartridge
}
