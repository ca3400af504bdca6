//! What media are called: names in labels, and media that are called otherwise.

use archive::chunk::Compression;
use archive::label::MediumName;
use device::target::Existing;
use runs::backup::{BackupError, BackupOptions};
use sim::tape::Library;
use tapeset::{Refused, TapeOptions, TapeSetError};

use super::media::parts;
use super::{library, small_set, tape_options, tree, write, write_well};

fn name(text: &str) -> MediumName {
    MediumName::new(text).unwrap()
}

/// The names in the labels of a cartridge, in the order of its files.
fn labelled(library: &Library, cartridge: usize) -> Vec<Option<MediumName>> {
    let parts = parts(library.cartridges());
    let of_it = parts.iter().filter(|part| part.cartridge == cartridge);
    of_it.map(|part| part.label.medium_name).collect()
}

#[test]
fn a_medium_is_named_once_and_another_one_is_refused() {
    let tree = tree(21, 10, 20_000);
    let (options, tape) = small_set(tree.path());
    let rack = library(&[64 << 20], 1 << 20);
    let third_week = TapeOptions { medium_name: Some(name("week-3")), ..tape };
    let written = write_well(&options, &third_week, &rack);
    assert_eq!(written.report.tape.unwrap().media[0].name, Some(name("week-3")));
    // It keeps its name whether or not it is given again.
    for tape in [tape, third_week] {
        write_well(&options, &tape, &rack);
    }
    let names = labelled(&rack, 0);
    assert!(names.len() > 5 && names.iter().all(|found| *found == Some(name("week-3"))));

    let before = rack.cartridges()[0].objects().unwrap();
    let fourth_week = TapeOptions { medium_name: Some(name("week-4")), ..tape };
    let (refused, _) = write(&options, &fourth_week, &rack);
    let Err(BackupError::Tape(TapeSetError::Refused { refused, .. })) = refused else {
        panic!("{refused:?}");
    };
    let (found, wanted) = (name("week-3"), name("week-4"));
    assert_eq!(refused, Refused::OtherName { found, wanted });
    assert_eq!(rack.cartridges()[0].objects().unwrap(), before);

    // Written over, it keeps the name that is written on it, unless it gets another.
    let over = BackupOptions { existing: Existing::Replace, ..options };
    for (tape, expected) in [(tape, "week-3"), (fourth_week, "week-4")] {
        write_well(&over, &tape, &rack);
        assert!(labelled(&rack, 0).iter().all(|found| *found == Some(name(expected))));
    }
}

#[test]
fn a_medium_with_older_sets_gets_its_name_with_the_next() {
    let tree = tree(22, 10, 20_000);
    let (options, tape) = small_set(tree.path());
    let rack = library(&[64 << 20], 1 << 20);
    write_well(&options, &tape, &rack);
    let nameless = labelled(&rack, 0).len();
    let named = TapeOptions { medium_name: Some(name("week-3")), ..tape };
    write_well(&options, &named, &rack);
    write_well(&options, &tape, &rack);
    let names = labelled(&rack, 0);
    assert!(names[..nameless].iter().all(Option::is_none));
    assert!(names[nameless..].iter().all(|found| *found == Some(name("week-3"))));
    let other = TapeOptions { medium_name: Some(name("week-4")), ..tape };
    assert!(write(&options, &other, &rack).0.is_err());
}

#[test]
fn later_volumes_are_numbered() {
    let tree = tree(23, 30, 60_000);
    let rack = library(&[600 << 10; 8], 100 << 10);
    let options = tape_options(tree.path(), 64 << 10, Compression::None);
    let tape = TapeOptions { medium_name: Some(name("week-3")), ..TapeOptions::default() };
    let written = write_well(&options, &tape, &rack);
    let media = written.report.tape.unwrap().media;
    assert!(media.len() > 2);
    for (place, medium) in media.iter().enumerate() {
        let expected = match place {
            0 => name("week-3"),
            later => name(&format!("week-3-{}", later + 1)),
        };
        assert_eq!(medium.name, Some(expected));
        assert!(labelled(&rack, place).iter().all(|found| *found == Some(expected)));
    }
}
