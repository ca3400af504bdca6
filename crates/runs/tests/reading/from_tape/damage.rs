//! The damage matrix of a tape: every block in turn is unreadable, the drive forgets its position,
//! the medium is exchanged, and the drive's answers make no sense.

use std::path::Path;
use std::sync::Arc;

use device::tape::raw::RawTape;
use device::tape::{Access, OpenError, Tape, TapeDrive};
use runs::origin::Origin;
use runs::read::ReadFailure;
use runs::restore::{RestoreError, RestoreOptions};
use sim::tape::{
    AfterReadError, Call, Cartridge, Faults, Object, OnClose, OpenDirection, OpenMode, Persistence,
    Readiness, VirtualDrive, WatchedTape,
};
use tapeset::{SetChoice, TapeOrigin, TapeReadFailure};

use super::harness::TapeHarness;
use crate::harness::Kept;

const COMPRESSIONS: [&str; 3] = ["none", "zstd:1", "gzip:1"];

/// A set of several segments on the cartridge in the drive, with as many blocks as a matrix can
/// bear.
fn small_set(compression: &str) -> (TapeHarness, std::collections::BTreeMap<String, Vec<u8>>) {
    let harness = TapeHarness::new(1, 64 << 20);
    let expected = harness.small_tree(16, 9_000);
    harness.write(&harness.plain.path("t"), compression, 40 << 10);
    (harness, expected)
}

#[test]
fn every_block_in_turn_cannot_be_read() {
    for compression in COMPRESSIONS {
        let (harness, expected) = small_set(compression);
        let cartridge = harness.library.cartridges()[0].clone();
        let objects = cartridge.objects().unwrap();
        for (number, object) in objects.iter().enumerate() {
            if *object == Object::Filemark {
                continue;
            }
            let mut faults = Faults::unreadable([number as u64]);
            if number % 2 == 1 {
                faults.after_read_error = AfterReadError::Before;
            }
            cartridge.set_faults(faults);
            let into = format!("out{number}");
            let (result, kept) = harness.try_restore(&into, &[]);
            let what = format!("{compression}, object {number} of {}", objects.len());
            result.unwrap_or_else(|error| panic!("{what}: {error:?}"));
            let (restored, warnings) = (harness.restored(&into), kept.warnings());
            let mut lost = 0;
            for (path, content) in &expected {
                if restored.get(path) == Some(content) {
                    continue;
                }
                lost += 1;
                let named = warnings.iter().any(|line| line.starts_with(path.as_str()));
                assert!(named, "{what}: {path} is lost and not named: {warnings:#?}");
            }
            // A tape block of 4 KiB touches few of the files, and a chunk is one segment.
            let most = if compression == "none" { 4 } else { 8 };
            assert!(lost <= most, "{what}: {lost} files are lost: {warnings:#?}");
        }
    }
}

#[test]
fn what_works_at_the_second_attempt_is_no_damage() {
    let (harness, expected) = small_set("none");
    let cartridge = harness.library.cartridges()[0].clone();
    let unreadable = [3, 8, 9, 20].map(|number| (number, Persistence::Times(2)));
    cartridge.set_faults(Faults { unreadable: unreadable.into(), ..Faults::default() });
    let (report, kept) = harness.restore("out");
    assert_eq!(kept.warnings(), Vec::<String>::new());
    assert!(harness.restored("out") == expected);
    let tape = report.tape.unwrap();
    assert!(tape.lost_blocks == 0 && tape.retries >= 3, "{tape:?}");
}

#[test]
fn a_verification_names_what_is_lost() {
    for compression in COMPRESSIONS {
        let (harness, expected) = small_set(compression);
        harness.library.cartridges()[0].set_faults(Faults::unreadable([4]));
        let (report, kept) = harness.verify(None);
        let report = report.unwrap();
        assert!(!report.is_sound(), "{compression}");
        let named =
            report.damaged.items.iter().filter(|it| {
                expected.contains_key(&String::from_utf8_lossy(&it.path).into_owned())
            });
        assert!(named.count() > 0, "{compression}: {:#?}", kept.warnings());
    }
}

#[test]
fn a_reset_in_the_middle_is_overcome() {
    let (harness, expected) = small_set("none");
    let cartridge = harness.library.cartridges()[0].clone();
    cartridge.set_faults(Faults { reset_before: Some(12), ..Faults::default() });
    let (_, kept) = harness.restore("out");
    assert_eq!(kept.warnings(), Vec::<String>::new());
    assert!(harness.restored("out") == expected);
}

#[test]
fn blocks_of_another_length_are_damage() {
    let (harness, expected) = small_set("none");
    let cartridge = harness.library.cartridges()[0].clone();
    cartridge.set_faults(Faults { shortened: [(5, 100)].into(), ..Faults::default() });
    let (_, kept) = harness.restore("out");
    kept.expect_warning("a block of 100 bytes, where all others have 4096");
    let restored = harness.restored("out");
    let whole = expected.iter().filter(|(path, content)| restored.get(*path) == Some(content));
    assert!(whole.count() >= expected.len() - 4);
}

#[test]
fn a_drive_without_a_medium_is_told() {
    let harness = TapeHarness::new(1, 1 << 20);
    harness.library.drive().eject();
    let (result, _) = harness.try_restore("out", &[]);
    match result {
        Err(RestoreError::Read(ReadFailure::Tape(TapeReadFailure::Open(
            OpenError::NoMedium { .. },
        )))) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_blank_tape_is_told() {
    let harness = TapeHarness::new(1, 1 << 20);
    let (result, _) = harness.try_restore("out", &[]);
    match result {
        Err(RestoreError::Read(ReadFailure::Tape(TapeReadFailure::Blank { .. }))) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_set_that_is_not_there_is_told() {
    let (harness, _) = small_set("none");
    for set in [SetChoice::Number(2), SetChoice::Id("0123456789abcdef".into())] {
        let again = TapeHarness { set, ..TapeHarness::new(1, 1) };
        let again = TapeHarness { library: harness.library.clone(), ..again };
        let (result, _) = again.try_restore("out", &[]);
        match result {
            Err(RestoreError::Read(ReadFailure::Tape(TapeReadFailure::NoSuchSet { .. }))) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn every_set_of_a_volume_is_found() {
    let harness = TapeHarness::new(1, 64 << 20);
    let mut expected = Vec::new();
    for (number, compression) in COMPRESSIONS.iter().enumerate() {
        let files = harness.small_tree(5 + number, 5000);
        harness.write(&harness.plain.path("t"), compression, 10 << 10);
        expected.push(files);
    }
    let mut harness = harness;
    let origin = harness.origin();
    let sets = tapeset::sets_on_volume(&origin, &harness.cancel).unwrap();
    assert_eq!(sets.iter().map(|set| set.number).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(sets.iter().all(|set| set.has_index && set.volume == 1), "{sets:?}");
    let here = archive::label::HostName::new(rustix::system::uname().nodename().to_bytes());
    let here = here.map(|name| name.as_str().to_owned());
    assert!(sets.iter().all(|set| set.host == here), "{sets:?}");
    for (set, files) in sets.iter().zip(&expected) {
        let contents = set.contents.as_ref().unwrap();
        let bytes: usize = files.values().map(Vec::len).sum();
        assert_eq!((contents.files, contents.source_bytes), (files.len() as u64, bytes as u64));
        assert!(contents.members > contents.files && contents.archive_bytes > bytes as u64);
        let roots: Vec<_> = contents.roots.iter().map(|it| String::from_utf8_lossy(it)).collect();
        assert_eq!(roots, [harness.in_archive("t")]);
        let choices = [SetChoice::Number(set.number), SetChoice::Id(set.id[..10].to_owned())];
        for (number, choice) in choices.into_iter().enumerate() {
            harness.set = choice;
            let into = format!("out{}-{number}", set.number);
            let (_, kept) = harness.restore(&into);
            assert_eq!(kept.warnings(), Vec::<String>::new());
            assert!(harness.restored(&into) == *files, "set {}", set.number);
        }
    }
}

#[test]
fn one_file_is_gone_to() {
    for compression in COMPRESSIONS {
        let harness = TapeHarness::new(1, 64 << 20);
        let expected = harness.small_tree(60, 60_000);
        harness.write(&harness.plain.path("t"), compression, 200 << 10);
        for number in [0, 17, 59] {
            let path = harness.in_archive(&format!("t/folder{}/file{number:03}", number % 3));
            let into = format!("out{number}");
            let (report, kept) = harness.try_restore(&into, &[&path]);
            let tape = report.unwrap().tape.unwrap();
            assert_eq!(kept.warnings(), Vec::<String>::new(), "{compression}");
            let restored = harness.restored(&into);
            assert_eq!(restored.len(), 1, "{compression}");
            assert!(restored[&path] == expected[&path], "{compression}, {path}");
            // Labels, index and the data around the file; the set has 450 blocks.
            let (blocks, of) = (tape.blocks, harness.library.cartridges()[0].len());
            assert!(blocks < 130 && of > 300, "{compression}: {blocks} blocks of {of}");
        }
    }
}

#[test]
fn against_the_live_tree_what_is_lost_is_no_change() {
    let (harness, _) = small_set("none");
    harness.library.cartridges()[0].set_faults(Faults::unreadable([4]));
    let (report, _) = harness.verify(Some(Path::new("/")));
    let report = report.unwrap();
    assert!(!report.is_sound());
    assert_eq!((report.changed.total, report.differs.total), (0, 0));
}

/// A drive whose cartridge is exchanged while it is read.
struct Exchanging {
    drive: VirtualDrive,
    other: Cartridge,
    reads: u32,
}

impl TapeDrive for Exchanging {
    fn name(&self) -> &str {
        "/dev/nst0"
    }

    fn open(&self, _: Access) -> Result<Tape, OpenError> {
        let mode = OpenMode {
            direction: OpenDirection::Read,
            readiness: Readiness::NotNeeded,
            on_close: OnClose::Stay,
        };
        let mut tape = self.drive.open_raw(mode).unwrap();
        tape.status().unwrap();
        let (drive, other, at) = (self.drive.clone(), self.other.clone(), self.reads);
        let mut reads = 0;
        let exchange = move |call| {
            reads += u32::from(call == Call::Read);
            if call == Call::Read && reads == at {
                drive.insert(other.clone());
            }
        };
        Ok(Tape::new(Box::new(WatchedTape::new(tape, exchange)), "/dev/nst0"))
    }
}

#[test]
fn a_medium_that_is_exchanged_behind_our_back_is_noticed() {
    let (harness, expected) = small_set("none");
    let other = TapeHarness::new(1, 64 << 20);
    other.small_tree(16, 8_000);
    other.write(&other.plain.path("t"), "none", 40 << 10);
    // In the data, after the labels and the index that were read before.
    for reads in [20, 26, 32, 38] {
        harness.library.load(0);
        let other = other.library.cartridges()[0].clone();
        let drive = Exchanging { drive: harness.library.drive().clone(), other, reads };
        let origin = TapeOrigin { drive: Arc::new(drive), ..harness.origin() };
        let options = RestoreOptions { from: Origin::Tape(origin), ..Default::default() };
        let into = format!("out{reads}");
        let result = harness.plain.try_restore(options, &into, &Kept::default());
        match result {
            Err(RestoreError::Read(ReadFailure::Tape(
                TapeReadFailure::Exchanged { .. } | TapeReadFailure::PlaceLost { .. },
            ))) => {}
            other => panic!("{reads}: {other:?}"),
        }
        // The restored data are the first medium's.
        let restored = harness.restored(&into);
        let whole = restored.iter().filter(|(path, _)| !path.ends_with(".incomplete"));
        for (path, content) in whole {
            assert!(expected[path] == *content, "{reads}: {path}");
        }
    }
}
