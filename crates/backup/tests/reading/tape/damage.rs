//! The damage matrix of a tape: every block in turn cannot be read, the drive forgets where it is,
//! the medium is exchanged, and what the drive says makes no sense.

use std::path::Path;

use backup::read::ReadFailure;
use backup::read::tape::{SetChoice, TapeReadFailure};
use backup::restore::RestoreError;
use device::tape::OpenError;
use sim::tape::{AfterReadError, Faults, Object, Persistence};

use super::studio::Studio;

const COMPRESSIONS: [&str; 3] = ["none", "zstd:1", "gzip:1"];

/// A set of several segments on the cartridge in the drive, with as many blocks as a matrix can
/// bear.
fn small_set(compression: &str) -> (Studio, std::collections::BTreeMap<String, Vec<u8>>) {
    let studio = Studio::new(1, 64 << 20);
    let expected = studio.small_tree(16, 9_000);
    studio.write(&studio.bench.path("t"), compression, 40 << 10);
    (studio, expected)
}

#[test]
fn every_block_in_turn_cannot_be_read() {
    for compression in COMPRESSIONS {
        let (studio, expected) = small_set(compression);
        let cartridge = studio.library.cartridges()[0].clone();
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
            let (result, kept) = studio.try_restore(&into, &[]);
            let what = format!("{compression}, object {number} of {}", objects.len());
            result.unwrap_or_else(|error| panic!("{what}: {error:?}"));
            let (restored, warnings) = (studio.restored(&into), kept.warnings());
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
    let (studio, expected) = small_set("none");
    let cartridge = studio.library.cartridges()[0].clone();
    let unreadable = [3, 8, 9, 20].map(|number| (number, Persistence::Times(2)));
    cartridge.set_faults(Faults { unreadable: unreadable.into(), ..Faults::default() });
    let (report, kept) = studio.restore("out");
    assert_eq!(kept.warnings(), Vec::<String>::new());
    assert!(studio.restored("out") == expected);
    let tape = report.tape.unwrap();
    assert!(tape.lost_blocks == 0 && tape.retries >= 3, "{tape:?}");
}

#[test]
fn a_verification_names_what_is_lost() {
    for compression in COMPRESSIONS {
        let (studio, expected) = small_set(compression);
        studio.library.cartridges()[0].set_faults(Faults::unreadable([4]));
        let (report, kept) = studio.verify(None);
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
    let (studio, expected) = small_set("none");
    let cartridge = studio.library.cartridges()[0].clone();
    cartridge.set_faults(Faults { reset_before: Some(12), ..Faults::default() });
    let (_, kept) = studio.restore("out");
    assert_eq!(kept.warnings(), Vec::<String>::new());
    assert!(studio.restored("out") == expected);
}

#[test]
fn blocks_of_another_length_are_damage() {
    let (studio, expected) = small_set("none");
    let cartridge = studio.library.cartridges()[0].clone();
    cartridge.set_faults(Faults { shortened: [(5, 100)].into(), ..Faults::default() });
    let (_, kept) = studio.restore("out");
    kept.expect_warning("a block of 100 bytes, where all have 4096");
    let restored = studio.restored("out");
    let whole = expected.iter().filter(|(path, content)| restored.get(*path) == Some(content));
    assert!(whole.count() >= expected.len() - 4);
}

#[test]
fn a_drive_without_a_medium_is_told() {
    let studio = Studio::new(1, 1 << 20);
    studio.library.drive().eject();
    let (result, _) = studio.try_restore("out", &[]);
    match result {
        Err(RestoreError::Read(ReadFailure::Tape(TapeReadFailure::Open(
            OpenError::NoMedium { .. },
        )))) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_blank_tape_is_told() {
    let studio = Studio::new(1, 1 << 20);
    let (result, _) = studio.try_restore("out", &[]);
    match result {
        Err(RestoreError::Read(ReadFailure::Tape(TapeReadFailure::Blank { .. }))) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_set_that_is_not_there_is_told() {
    let (studio, _) = small_set("none");
    for set in [SetChoice::Number(2), SetChoice::Id("0123456789abcdef".into())] {
        let again = Studio { set, ..Studio::new(1, 1) };
        let again = Studio { library: studio.library.clone(), ..again };
        let (result, _) = again.try_restore("out", &[]);
        match result {
            Err(RestoreError::Read(ReadFailure::Tape(TapeReadFailure::NoSuchSet { .. }))) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn every_set_of_a_volume_is_found() {
    let studio = Studio::new(1, 64 << 20);
    let mut expected = Vec::new();
    for (number, compression) in COMPRESSIONS.iter().enumerate() {
        let files = studio.small_tree(5 + number, 5000);
        studio.write(&studio.bench.path("t"), compression, 10 << 10);
        expected.push(files);
    }
    let mut studio = studio;
    let origin = studio.origin();
    let sets = backup::read::tape::sets_on_volume(&origin, &studio.cancel).unwrap();
    assert_eq!(sets.iter().map(|set| set.number).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(sets.iter().all(|set| set.has_index && set.volume == 1), "{sets:?}");
    for (set, files) in sets.iter().zip(&expected) {
        let choices = [SetChoice::Number(set.number), SetChoice::Id(set.id[..10].to_owned())];
        for (number, choice) in choices.into_iter().enumerate() {
            studio.set = choice;
            let into = format!("out{}-{number}", set.number);
            let (_, kept) = studio.restore(&into);
            assert_eq!(kept.warnings(), Vec::<String>::new());
            assert!(studio.restored(&into) == *files, "set {}", set.number);
        }
    }
}

#[test]
fn one_file_is_gone_to() {
    for compression in COMPRESSIONS {
        let studio = Studio::new(1, 64 << 20);
        let expected = studio.small_tree(60, 60_000);
        studio.write(&studio.bench.path("t"), compression, 200 << 10);
        for number in [0, 17, 59] {
            let path = studio.in_archive(&format!("t/folder{}/file{number:03}", number % 3));
            let into = format!("out{number}");
            let (report, kept) = studio.try_restore(&into, &[&path]);
            let tape = report.unwrap().tape.unwrap();
            assert_eq!(kept.warnings(), Vec::<String>::new(), "{compression}");
            let restored = studio.restored(&into);
            assert_eq!(restored.len(), 1, "{compression}");
            assert!(restored[&path] == expected[&path], "{compression}, {path}");
            // Labels, index and what is around the file; the set has 450 blocks.
            let (blocks, of) = (tape.blocks, studio.library.cartridges()[0].len());
            assert!(blocks < 130 && of > 300, "{compression}: {blocks} blocks of {of}");
        }
    }
}

#[test]
fn against_the_live_tree_what_is_lost_is_no_change() {
    let (studio, _) = small_set("none");
    studio.library.cartridges()[0].set_faults(Faults::unreadable([4]));
    let (report, _) = studio.verify(Some(Path::new("/")));
    let report = report.unwrap();
    assert!(!report.is_sound());
    assert_eq!((report.changed.total, report.differs.total), (0, 0));
}
