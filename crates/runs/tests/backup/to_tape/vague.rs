//! Drives that report little about where they stopped, like the lab's tgtd: behind a read that met
//! the end of data, the driver takes the first write for a trailer and refuses the second.

use std::path::Path;

use archive::chunk::Compression;
use archive::index::find_trailer;
use archive::label::LabelKind;
use flow::cancel::Cancel;
use runs::pipe::pipe;
use sim::tape::{Cartridge, DriveSettings, Ends, Library, Object, VirtualDrive};
use tapeset::TapeOptions;
use testkit::samples::noise;

use super::media::{Set, files, parts, stitch};
use super::streams::pipe_options;
use super::{assert_restores, set_id, tape_options, tree, write_well};
use crate::harness::{Recorder, Watchdog};

fn drives() -> [DriveSettings; 2] {
    let ends = Ends::Proper;
    [DriveSettings::like_tgtd(), DriveSettings { ends, ..DriveSettings::like_tgtd() }]
}

fn rack(settings: DriveSettings, cartridge: &Cartridge) -> Library {
    let library = Library::new(VirtualDrive::new("/dev/nst0", settings), vec![cartridge.clone()]);
    assert!(library.load(0));
    library
}

/// The set restores, on drives that do not know the numbers of its labels.
fn assert_set(library: &Library, set: [u8; 16], tree: &Path) {
    let mut parts = parts(library.cartridges());
    parts.retain(|part| part.label.set == set);
    let of_kind = |kind| stitch(parts.iter().filter(move |part| part.label.kind == kind));
    let (stored, index) = (of_kind(LabelKind::Data), of_kind(LabelKind::Index));
    let trailer = find_trailer(&index).unwrap().expect("the index ends in its trailer").trailer;
    assert_eq!(trailer.archive_bytes, stored.len() as u64);
    assert_restores(&Set { archive: stored.clone(), stored, trailer, index, parts }, tree);
}

/// There is no one command back to a label that was read, so a set is not cut there.
#[test]
fn a_set_does_not_end_early() {
    let tree = tree(63, 400, 60_000);
    let tape = TapeOptions { segment_bytes: Some(1 << 20), ..TapeOptions::default() };
    for settings in drives() {
        let library = rack(settings.clone(), &Cartridge::of_capacity(9 << 20));
        let options = tape_options(tree.path(), 64 << 10, Compression::None);
        let (error, safe) = super::fails(&options, &tape, &library);
        assert!(error.to_string().contains("the set needs volume 2"), "{settings:?}: {error}");
        let safe = safe.unwrap();
        let found = parts(library.cartridges());
        assert!(safe.segments > 5 && found.len() >= safe.segments as usize, "{settings:?}");
        assert!(found.iter().all(|part| part.label.kind == LabelKind::Data), "{settings:?}");
    }
}

#[test]
fn sets_are_appended() {
    let trees = [tree(60, 12, 30_000), tree(61, 14, 20_000), tree(62, 9, 40_000)];
    let tape = TapeOptions { segment_bytes: Some(64 << 10), ..TapeOptions::default() };
    for settings in drives() {
        let library = rack(settings.clone(), &Cartridge::of_capacity(64 << 20));
        let mut sets = Vec::new();
        for tree in &trees {
            let options = tape_options(tree.path(), 4096, Compression::None);
            let written = write_well(&options, &tape, &library);
            assert!(written.requests.is_empty(), "{settings:?}");
            sets.push((set_id(&written.report), tree));
        }
        for (id, tree) in sets {
            assert_set(&library, id, tree.path());
        }
    }
}

/// The machine died while a file was written: no filemark is at its end.
#[test]
fn a_set_is_appended_to_one_that_died() {
    let (first, second) = (tree(63, 12, 30_000), tree(64, 10, 30_000));
    let tape = TapeOptions { segment_bytes: Some(64 << 10), ..TapeOptions::default() };
    let options = |tree: &tempfile::TempDir| tape_options(tree.path(), 4096, Compression::None);
    for settings in drives() {
        let cartridge = Cartridge::of_capacity(64 << 20);
        let library = rack(settings.clone(), &cartridge);
        write_well(&options(&first), &tape, &library);
        let objects = cartridge.objects().unwrap();
        let last = objects.len() - 2;
        let is_filemark = |at: &usize| objects[*at] == Object::Filemark;
        let begin = (0..last).rev().find(is_filemark).unwrap() + 1;
        // In the last file, and with one block of it only.
        for end in [last, begin + 1] {
            cartridge.cut(end as u64).unwrap();
            let _watchdog = Watchdog::new(format!("an append to what died, {settings:?}"));
            let library = rack(settings.clone(), &cartridge.duplicate().unwrap());
            let written = write_well(&options(&second), &tape, &library);
            assert_set(&library, set_id(&written.report), second.path());
            let after = library.cartridges()[0].objects().unwrap();
            assert_eq!(after[..end], objects[..end], "{settings:?}");
            assert_eq!(after[end], Object::Filemark, "{settings:?}");
        }
    }
}

#[test]
fn streams_follow_one_another() {
    let source = tempfile::NamedTempFile::new().unwrap();
    let content = noise(1, 100_000);
    std::fs::write(source.path(), &content).unwrap();
    for settings in drives() {
        let library = rack(settings.clone(), &Cartridge::of_capacity(64 << 20));
        for number in 1..=3 {
            let options = pipe_options(source.path(), &library, 10_240);
            pipe(&options, &Recorder::default(), &Cancel::new())
                .unwrap_or_else(|error| panic!("stream {number}, {settings:?}: {error:?}"));
        }
        let found = files(&library.cartridges()[0]);
        assert_eq!(found.len(), 3);
        assert!(found.iter().all(|file| file.concat() == content), "{settings:?}");
    }
}
