//! Changes of volume: which cartridge is loaded, and how their time is counted.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use archive::chunk::Compression;
use device::tape::{Access, BlockMode, Filemark, TapeDrive};
use device::target::Existing;
use flow::cancel::Cancel;
use flow::run::StageKind;
use runs::backup::{BackupError, BackupOptions, backup};
use sim::tape::{Cartridge, Library, VirtualDrive};
use tapeset::{
    ChangeError, Refused, TapeOptions, TapeSetError, VolumeChanger, VolumePurpose, VolumeRequest,
};

use super::media::check_set;
use super::{
    Operator, assert_restores, library, on_tape, set_id, tape_options, tree, write, write_well,
};
use crate::harness::{Recorder, Watchdog};

/// A change of volume may take hours: the writer does not work meanwhile.
#[test]
fn the_time_of_a_change_is_no_work_of_the_writer() {
    struct Slow(Operator);
    impl VolumeChanger for Slow {
        fn change(&mut self, request: &VolumeRequest) -> Result<(), ChangeError> {
            std::thread::sleep(Duration::from_millis(200));
            self.0.change(request)
        }
    }
    let tree = tree(3, 30, 60_000);
    let library = library(&[600 << 10; 8], 100 << 10);
    let options = tape_options(tree.path(), 64 << 10, Compression::None);
    let operator = Operator::of(&library);
    let (drive, slow) = (library.drive().clone(), Slow(operator.clone()));
    let options = on_tape(&options, &TapeOptions::default(), drive, slow);
    let report = backup(&options, &Recorder::default(), &Cancel::new()).unwrap();
    let changes = operator.requests.lock().unwrap().len();
    assert!(changes >= 2);
    let writer = report.run.stages.last().unwrap();
    let tape = report.tape.as_ref().unwrap();
    assert_eq!(writer.kind, StageKind::Write);
    assert_eq!(report.run.change_seconds, tape.change_seconds);
    let apart = tape.change_seconds + report.run.synchronise_seconds;
    assert!(writer.apart_seconds >= 0.2 * changes as f64, "{writer:?}");
    assert!(writer.apart_seconds <= apart, "{writer:?} {tape:?}");
    let rest = report.run.seconds - writer.apart_seconds;
    assert!(writer.working_seconds <= rest, "{writer:?} of {report:?}");
    assert!(writer.occupied_seconds <= rest, "{writer:?} of {report:?}");
    assert!(writer.blocked_seconds <= rest, "{writer:?} of {report:?}");
}

#[test]
fn the_same_medium_is_refused_as_the_next_volume() {
    struct Stubborn(Library, Arc<Mutex<Vec<Option<Refused>>>>);
    impl VolumeChanger for Stubborn {
        fn change(&mut self, request: &VolumeRequest) -> Result<(), ChangeError> {
            self.1.lock().unwrap().push(request.refused.clone());
            let slot = [0, 2, 1][(request.attempt as usize - 1).min(2)];
            match slot {
                2 => drop(self.0.drive().eject()),
                slot => assert!(self.0.load(slot)),
            }
            Ok(())
        }
    }
    let tree = tree(16, 60, 60_000);
    let library = library(&[1 << 20, 64 << 20], 100 << 10);
    let options = tape_options(tree.path(), 4096, Compression::None);
    let told = Arc::default();
    let stubborn = Stubborn(library.clone(), Arc::clone(&told));
    let _watchdog = Watchdog::new("a medium that comes again");
    let options = on_tape(&options, &TapeOptions::default(), library.drive().clone(), stubborn);
    let report = backup(&options, &Recorder::default(), &Cancel::new()).unwrap();
    let expected = [None, Some(Refused::SameSet { volume: 1 }), Some(Refused::NoMedium)];
    assert_eq!(*told.lock().unwrap(), expected);
    let set = check_set(library.cartridges(), set_id(&report), Compression::None);
    assert_restores(&set, tree.path());
}

/// An empty drive is filled as a full one is changed. A medium that somebody chose is not.
#[test]
fn the_first_medium_is_asked_for_where_the_drive_is_empty() {
    let tree = tree(5, 20, 60_000);
    let options = tape_options(tree.path(), 4096, Compression::None);
    let rack = |cartridges: Vec<Cartridge>| {
        let drive = VirtualDrive::new("/dev/nst0", Default::default());
        Library::new(drive, cartridges)
    };
    let used = foreign();
    let before = used.objects().unwrap();
    let racked = rack(vec![used.clone(), Cartridge::of_capacity(64 << 20)]);
    let written = write_well(&options, &TapeOptions::default(), &racked);
    let asked: Vec<_> = written.requests.iter().map(|asked| asked.refused.clone()).collect();
    assert_eq!(asked, [Some(Refused::NoMedium), Some(Refused::Foreign)]);
    let volumes: Vec<_> = written.requests.iter().map(|asked| asked.purpose).collect();
    let set = set_id(&written.report);
    assert!(volumes.iter().all(|it| *it == VolumePurpose::Write { set, volume: 1 }), "{volumes:?}");
    assert_eq!(used.objects().unwrap(), before);
    let tape = written.report.tape.as_ref().unwrap();
    // The wait is no part of the time from the first label on.
    assert!(tape.asked_seconds > 0.0 && tape.change_seconds == 0.0, "{tape:?}");
    assert!(tape.label_seconds <= tape.ready_seconds, "{tape:?}");
    assert_restores(&check_set(racked.cartridges(), set, Compression::None), tree.path());

    // Nobody is there, or nobody has one.
    struct Nobody;
    impl VolumeChanger for Nobody {
        fn change(&mut self, _: &VolumeRequest) -> Result<(), ChangeError> {
            Err(ChangeError::NobodyToAsk)
        }

        fn is_nobody(&self) -> bool {
            true
        }
    }
    let drive = rack(Vec::new()).drive().clone();
    let alone = on_tape(&options, &TapeOptions::default(), drive, Nobody);
    let result = backup(&alone, &Recorder::default(), &Cancel::new());
    let BackupError::Tape(error) = result.unwrap_err() else { panic!("another error") };
    assert!(matches!(error, TapeSetError::Refused { refused: Refused::NoMedium, .. }), "{error}");
    let (result, requests) = write(&options, &TapeOptions::default(), &rack(Vec::new()));
    let BackupError::Tape(error) = result.unwrap_err() else { panic!("another error") };
    assert!(matches!(error, TapeSetError::Change { volume: 1, .. }), "{error}");
    assert_eq!(requests.len(), 1);

    // What may be written over is in the drive when the run begins.
    let over = BackupOptions { existing: Existing::Replace, ..options.clone() };
    let racked = rack(vec![foreign()]);
    let (result, requests) = write(&over, &TapeOptions::default(), &racked);
    assert!(result.is_err() && requests.is_empty());

    // A medium that is there is no question.
    let chosen = rack(vec![foreign(), Cartridge::of_capacity(64 << 20)]);
    assert!(chosen.load(0));
    let (result, requests) = write(&options, &TapeOptions::default(), &chosen);
    assert!(result.is_err());
    assert!(requests.is_empty());
}

fn foreign() -> Cartridge {
    let cartridge = Cartridge::of_capacity(64 << 20);
    let mut tape = VirtualDrive::loaded(cartridge.clone()).open(Access::Write).unwrap();
    tape.set_block_mode(BlockMode::Variable).unwrap();
    tape.write(b"somebody's only copy").unwrap();
    tape.write_filemark(Filemark::Synchronising).unwrap();
    cartridge
}

/// `--overwrite` is said of the medium that is in the drive. Later ones may be anything.
#[test]
fn writing_over_the_first_medium_says_nothing_of_later_ones() {
    let tree = tree(16, 60, 60_000);
    let options = tape_options(tree.path(), 4096, Compression::None);
    let over = BackupOptions { existing: Existing::Replace, ..options };
    let (first, second, third) = (foreign(), foreign(), Cartridge::of_capacity(64 << 20));
    let small = library(&[1 << 20], 100 << 10).cartridges()[0].clone();
    let others = |media: [&Cartridge; 3]| {
        let drive = VirtualDrive::new("/dev/nst0", Default::default());
        let library = Library::new(drive, media.map(Cartridge::clone));
        assert!(library.load(0));
        library
    };
    // The data in the drive are overwritten.
    write_well(&over, &TapeOptions::default(), &others([&first, &second, &third]));
    assert!(first.len() > 2 && second.len() == 2);

    let rack = others([&small, &second, &third]);
    let before = second.objects().unwrap();
    let (result, requests) = write(&over, &TapeOptions::default(), &rack);
    let set = set_id(&result.unwrap());
    assert_eq!(second.objects().unwrap(), before, "it is not the one that was meant");
    assert_eq!(requests[1].refused, Some(Refused::Foreign));
    check_set(rack.cartridges(), set, Compression::None);

    // A later Takeup medium is appended to, and its data are kept.
    let rack = others([&small, &third, &second]);
    let before = third.objects().unwrap();
    let (result, _) = write(&over, &TapeOptions::default(), &rack);
    check_set(rack.cartridges(), set_id(&result.unwrap()), Compression::None);
    assert!(third.objects().unwrap().starts_with(&before));

    // Unless that was said, too.
    let rack = others([&small, &second, &third]);
    let later = TapeOptions { later_volumes: Existing::Replace, ..TapeOptions::default() };
    let (result, requests) = write(&over, &later, &rack);
    assert_eq!(requests.len(), 1);
    check_set(rack.cartridges(), set_id(&result.unwrap()), Compression::None);
    assert!(second.len() > 2);
}
