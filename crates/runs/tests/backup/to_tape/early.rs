//! A set that ends early: its medium is full, and there is no other. What fits is a whole set.

use archive::chunk::Compression;
use archive::label::LabelKind;
use runs::backup::{BackupOptions, backup};
use tapeset::TapeOptions;
use tempfile::tempdir;

use super::media::{check_set, parts, shell};
use super::operator::Operator;
use super::{library, on_tape, set_id, set_ids, tape_options, tree, write_well};
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
