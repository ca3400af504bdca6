//! Media: what is on them stays there unless it may go, and the right one is asked for.

use std::collections::BTreeMap;
use std::error::Error;

use experiment::run::Executor;
use flow::cancel::Cancel;
use loads::tape::{Begin, MediumChanger, Occupied, TapeBenchError, TapeOptions};
use sim::tape::{Cartridge, Faults, VirtualDrive};

use crate::{MIB, cell, executor, files, objects, runs, write_foreign};

fn drive() -> VirtualDrive {
    VirtualDrive::loaded(Cartridge::of_capacity(64 * MIB))
}

#[test]
fn data_are_left_alone() {
    let drive = drive();
    write_foreign(&drive, 3);
    let before = objects(&drive.cartridge().unwrap());
    match executor(&drive, &[], TapeOptions::default()) {
        Err(TapeBenchError::HoldsData { device }) => assert_eq!(device, "virtual tape"),
        other => panic!("{:?}", other.err()),
    }
    assert_eq!(objects(&drive.cartridge().unwrap()), before);
    let overwrite = || TapeOptions { occupied: Occupied::Overwrite, ..TapeOptions::default() };
    let mut on_it = executor(&drive, &[], overwrite()).unwrap();
    runs(&mut on_it, &[], 1).remove(0).unwrap();
    assert_eq!(files(&drive.cartridge().unwrap()), [1, 48, 0]);
    drop(on_it);
    // What an experiment has left is no data.
    let mut on_it = executor(&drive, &[], TapeOptions::default()).unwrap();
    runs(&mut on_it, &[], 1).remove(0).unwrap();
    assert_eq!(files(&drive.cartridge().unwrap()), [1, 48, 0]);
}

#[test]
fn runs_can_be_written_behind_data() {
    let behind = || TapeOptions { begin: Begin::BehindData, ..TapeOptions::default() };
    let drive = drive();
    write_foreign(&drive, 3);
    let mut on_it = executor(&drive, &[], behind()).unwrap();
    runs(&mut on_it, &[], 2).into_iter().for_each(|run| drop(run.unwrap()));
    assert_eq!(files(&drive.cartridge().unwrap()), [3, 1, 48, 48, 0]);
    drop(on_it);
    let mut on_it = executor(&drive, &[], behind()).unwrap();
    runs(&mut on_it, &[], 1).remove(0).unwrap();
    assert_eq!(files(&drive.cartridge().unwrap()), [3, 1, 48, 48, 1, 48, 0]);
    // Until the end of the medium: the first files stay.
    runs(&mut on_it, &[], 30).into_iter().for_each(|run| drop(run.unwrap()));
    let files = files(&drive.cartridge().unwrap());
    assert_eq!((&files[..6], files.last()), (&[3, 1, 48, 48, 1, 48][..], Some(&0)));
}

#[test]
fn behind_a_file_without_an_end() {
    let drive = drive();
    write_foreign(&drive, 3);
    let cartridge = drive.cartridge().unwrap();
    // The machine was switched off before the filemark.
    cartridge.cut(3).unwrap();
    assert_eq!(files(&cartridge), [3]);
    let options = TapeOptions { begin: Begin::BehindData, ..TapeOptions::default() };
    let mut on_it = executor(&drive, &[], options).unwrap();
    runs(&mut on_it, &[], 1).remove(0).unwrap();
    assert_eq!(files(&cartridge), [3, 1, 48, 0]);
    // And on a blank medium.
    let blank = VirtualDrive::loaded(Cartridge::of_capacity(64 * MIB));
    let options = TapeOptions { begin: Begin::BehindData, ..TapeOptions::default() };
    drop(executor(&blank, &[], options).unwrap());
    assert_eq!(files(&blank.cartridge().unwrap()), [1, 0]);
}

#[test]
fn a_medium_that_was_exchanged_after_an_error_is_left_alone() {
    let drive = drive();
    let mut on_it = executor(&drive, &[], TapeOptions::default()).unwrap();
    runs(&mut on_it, &[], 1).remove(0).unwrap();
    let cartridge = drive.cartridge().unwrap();
    cartridge.set_faults(Faults { reset_before: Some(60), ..Faults::default() });
    runs(&mut on_it, &[], 1).remove(0).unwrap_err();
    let other = {
        let bench = VirtualDrive::loaded(Cartridge::of_capacity(64 * MIB));
        write_foreign(&bench, 9);
        bench.eject().unwrap()
    };
    drive.insert(other);
    for result in runs(&mut on_it, &[], 2) {
        assert!(matches!(result, Err(TapeBenchError::MediumChanged { .. })), "{result:?}");
    }
    let _ = on_it.finish();
    drop(on_it);
    assert_eq!(files(&drive.cartridge().unwrap()), [9, 0]);
}

#[test]
fn a_medium_that_is_exchanged_between_two_runs_is_left_alone() {
    let drive = drive();
    let mut on_it = executor(&drive, &[], TapeOptions::default()).unwrap();
    runs(&mut on_it, &[], 1).remove(0).unwrap();
    let foreign = {
        let bench = VirtualDrive::loaded(Cartridge::of_capacity(64 * MIB));
        write_foreign(&bench, 9);
        bench.eject().unwrap()
    };
    let own = drive.insert(foreign.clone()).unwrap();
    for result in runs(&mut on_it, &[], 2) {
        result.unwrap_err();
    }
    assert_eq!(files(&foreign), [9, 0]);
    // Back again, it goes on.
    drive.insert(own.clone());
    let results = runs(&mut on_it, &[], 2);
    assert!(results.iter().any(Result::is_ok), "{results:?}");
    assert_eq!(files(&own).first(), Some(&1));
}

/// A shelf of cartridges by name.
struct Shelf {
    drive: VirtualDrive,
    cartridges: BTreeMap<String, Cartridge>,
    asked: std::sync::mpsc::Sender<(String, bool)>,
    /// Brings this one first, whatever is asked for.
    wrong: Option<String>,
}

impl MediumChanger for Shelf {
    fn bring(
        &mut self,
        device: &str,
        medium: &str,
        why: Option<&TapeBenchError>,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        assert_eq!(device, "virtual tape");
        self.asked.send((medium.to_owned(), why.is_some())).unwrap();
        let name = self.wrong.take().unwrap_or_else(|| medium.to_owned());
        let cartridge = self.cartridges.get(&name).ok_or("there is none")?;
        self.drive.insert(cartridge.clone());
        Ok(())
    }
}

#[test]
fn a_medium_with_another_name_is_not_renamed() {
    let drive = drive();
    let named = |name| [("medium", [name])];
    let open = |name: &'static str, occupied| {
        let names = named(name);
        let factors: Vec<(&str, &[&str])> = names.iter().map(|(f, l)| (*f, &l[..])).collect();
        executor(&drive, &factors, TapeOptions { occupied, ..TapeOptions::default() })
    };
    drop(open("LTO-3", Occupied::Keep).unwrap());
    drop(open("LTO-3", Occupied::Keep).unwrap());
    match open("LTO-4", Occupied::Keep) {
        Err(TapeBenchError::OtherMedium { found, .. }) => assert_eq!(found, "LTO-3"),
        other => panic!("{:?}", other.err()),
    }
    drop(open("LTO-4", Occupied::Overwrite).unwrap());
    drop(open("LTO-4", Occupied::Keep).unwrap());
}

#[test]
fn media_are_asked_for_by_name() {
    let drive = drive();
    let cartridge = || Cartridge::of_capacity(64 * MIB);
    let foreign = {
        let bench = VirtualDrive::loaded(cartridge());
        write_foreign(&bench, 9);
        bench.eject().unwrap()
    };
    let (old, new) = (cartridge(), cartridge());
    let (asked, was_asked) = std::sync::mpsc::channel();
    let cartridges = [("LTO-3", &old), ("LTO-4", &new), ("mine", &foreign)]
        .map(|(n, c)| (n.to_owned(), c.clone()));
    let shelf = Shelf {
        drive: drive.clone(),
        cartridges: cartridges.into(),
        asked,
        wrong: Some("mine".to_owned()),
    };
    let factors: &[(&str, &[&str])] = &[("medium", &["LTO-3", "LTO-4"])];
    assert!(matches!(
        executor(&drive, factors, TapeOptions::default()),
        Err(TapeBenchError::NobodyChanges)
    ));
    let options = TapeOptions { changer: Some(Box::new(shelf)), ..TapeOptions::default() };
    let mut on_it = executor(&drive, factors, options).unwrap();
    let mut run = |medium: &str| {
        let cell = cell(&[("block_bytes", "65536"), ("medium", medium)]);
        on_it.execute(&cell, &Cancel::new()).unwrap()
    };
    for medium in ["LTO-3", "LTO-3", "LTO-4", "LTO-3"] {
        assert_eq!(run(medium).environment["medium"], medium);
    }
    let asked: Vec<(String, bool)> = was_asked.try_iter().collect();
    let expected = [("LTO-3", false), ("LTO-3", true), ("LTO-4", false), ("LTO-3", false)];
    assert_eq!(asked, expected.map(|(medium, again)| (medium.to_owned(), again)));
    assert_eq!(files(&foreign), [9, 0], "what somebody brought by mistake is whole");
    assert_eq!((files(&old), files(&new)), (vec![1, 48, 0], vec![1, 48, 0]));
}
