//! Runs: what they write, what they tell, and what becomes of them when something goes wrong.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use device::tape::{Access, BlockMode, Compression, DriveCompression, TapeDrive};
use experiment::plan::Stop;
use flow::cancel::Cancel;
use flow::run::StageKind;
use loads::tape::{TapeBenchError, TapeExecutor, TapeOptions};
use sim::tape::pace::{Act, Compression as PaceCompression, Pace};
use sim::tape::{Answers, Cartridge, CompressionSwitch, Faults, Object, Persistence, VirtualDrive};

use crate::{MIB, cell, executor, files, objects, plan, runs};
use experiment::run::Executor;

fn drive(mib: u64) -> VirtualDrive {
    VirtualDrive::loaded(Cartridge::of_capacity(mib * MIB))
}

#[test]
fn a_run_is_a_file_that_ends_on_a_filemark() {
    let drive = drive(64);
    let factors: &[(&str, &[&str])] = &[("ring_bytes", &["0", "1048576"])];
    let mut executor = executor(&drive, factors, TapeOptions::default()).unwrap();
    for ring in ["0", "1048576"] {
        let cell = cell(&[("block_bytes", "65536"), ("ring_bytes", ring)]);
        let run = executor.execute(&cell, &Cancel::new()).unwrap();
        assert_eq!(run.bytes, 3 * MIB);
        let rate = run.bytes_per_second().unwrap();
        let without = run.measures["without_filemark_bytes_per_second"];
        assert!(without >= rate && run.measures["filemark_seconds"] > 0.0, "{run:?}");
        assert_eq!(run.latency.unwrap().count(), 48);
        assert_eq!(run.series.unwrap().bytes.iter().sum::<u64>(), 3 * MIB);
        let stages: Vec<(&str, u64)> =
            run.stages.iter().map(|stage| (stage.kind.name(), stage.bytes)).collect();
        assert_eq!(stages, [("generate", 3 * MIB), ("write", 3 * MIB)]);
        // The filemark is nobody's work, and every moment of it is counted once.
        let apart = run.stages[1].apart_seconds;
        assert!((apart - run.measures["filemark_seconds"]).abs() < 1e-3, "{:?}", run.stages);
        assert_eq!(run.measures["drive_writes"], 48.0);
        assert_eq!(run.environment["medium generation"], "LTO-7");
        assert_eq!(run.environment["drive native bytes per second"], "306000000");
        assert!(run.notes[0].contains("shorter than 3 of the drive's buffers"), "{:?}", run.notes);
    }
    executor.finish().unwrap();
    let cartridge = drive.cartridge().unwrap();
    assert_eq!(files(&cartridge), [1, 48, 48, 0]);
    assert_eq!(objects(&cartridge)[0], 1024);
}

#[test]
fn one_thread_does_one_thing_at_a_time() {
    let drive = drive(64);
    let mut executor = executor(&drive, &[], TapeOptions::default()).unwrap();
    let run = runs(&mut executor, &[], 1).remove(0).unwrap();
    let [generate, write] = &run.stages[..] else { panic!("{:?}", run.stages) };
    let working = generate.working_seconds + write.working_seconds;
    assert!(working <= run.seconds * 1.001, "{working} of {}", run.seconds);
    assert!(write.starved_seconds >= generate.working_seconds * 0.5);
}

#[test]
fn what_comes_back_is_what_was_written() {
    let drive = drive(64);
    let factors: &[(&str, &[&str])] =
        &[("operation", &["read"]), ("data", &["text:3"]), ("framing", &["tar"])];
    let mut executor = executor(&drive, factors, TapeOptions::default()).unwrap();
    for run in runs(&mut executor, factors, 2) {
        let run = run.unwrap();
        assert_eq!(run.bytes, 3 * MIB);
        assert_eq!(run.stages[0].kind.name(), "read");
        assert_eq!(run.measures["drive_reads"], 48.0 + 1.0, "the filemark is met by a read");
    }
    assert_eq!(files(&drive.cartridge().unwrap()), [1, 48, 48, 0]);
    // A drive that gives back less than it was given, and does not say so.
    let shortened = [(52 + 49, 100)].into();
    drive.cartridge().unwrap().set_faults(Faults { shortened, ..Faults::default() });
    let error = runs(&mut executor, factors, 1).remove(0).unwrap_err().to_string();
    assert_eq!(error, "a block of 100 bytes came back where 65536 were written");
}

/// The same that does not tell what its medium takes.
fn silent_drive(mib: u64) -> VirtualDrive {
    let drive = drive(mib);
    drive.change_settings(|settings| settings.answers = Answers::Refused);
    drive
}

#[test]
fn the_end_of_the_medium_leads_back_to_the_start() {
    let drive = silent_drive(16);
    let mut executor = executor(&drive, &[], TapeOptions::default()).unwrap();
    let results: Vec<_> = runs(&mut executor, &[], 7);
    let repeated: Vec<bool> = results
        .iter()
        .map(|run| {
            let run = run.as_ref().unwrap();
            assert_eq!(run.bytes, 3 * MIB);
            run.notes.iter().any(|note| note.contains("the end of the medium came"))
        })
        .collect();
    // 16 MiB, a sixteenth of which is behind the warning: five runs fit. Once that is known,
    // nobody runs into it again.
    assert_eq!(repeated.iter().filter(|&&repeated| repeated).count(), 1, "{repeated:?}");
    assert_eq!(objects(&drive.cartridge().unwrap()).last(), Some(&0));
}

/// A drive that tells what its medium takes is never led to its end.
#[test]
fn what_the_medium_takes_is_known_beforehand() {
    let drive = drive(16);
    let mut executor = executor(&drive, &[], TapeOptions::default()).unwrap();
    for run in runs(&mut executor, &[], 7) {
        let run = run.unwrap();
        assert!(!run.notes.iter().any(|note| note.contains("the end of the medium")), "{run:?}");
    }
}

#[test]
fn a_run_that_is_longer_than_the_medium_is_refused() {
    let run = |levels: &[(&str, &[&str])], executor: &mut TapeExecutor| {
        executor.foretell(&plan("drive", levels).cells(), &Stop::default()).join("\n")
    };
    let random: &[(&str, &[&str])] = &[("drive_compression", &["on"])];
    let drive = drive(2);
    let error = executor(&drive, random, TapeOptions::default()).err().unwrap();
    assert_eq!(
        error.to_string(),
        "a run of 3.15 MB does not fit on the medium in virtual tape, which takes 2.00 MB"
    );
    assert!(drive.cartridge().unwrap().is_empty(), "nothing was written");
    // What the drive may make less of is tried, and said to be at risk.
    let zeros: &[(&str, &[&str])] = &[("data", &["zeros"]), ("drive_compression", &["on"])];
    let mut tried = executor(&drive, zeros, TapeOptions::default()).unwrap();
    let said = run(zeros, &mut tried);
    assert!(
        said.contains("1 of 1 runs, of up to 3.15 MB, come to the end of the medium"),
        "{said}"
    );
    assert!(said.contains("fail unless the drive compresses the data: --length"), "{said}");
    let off: &[(&str, &[&str])] = &[("data", &["zeros"]), ("drive_compression", &["off"])];
    assert!(executor(&drive, off, TapeOptions::default()).is_err());
}

#[test]
fn a_file_that_does_not_fit_is_told() {
    let drive = silent_drive(2);
    let mut executor = executor(&drive, &[], TapeOptions::default()).unwrap();
    for result in runs(&mut executor, &[], 2) {
        assert!(matches!(result, Err(TapeBenchError::Full { .. })), "{result:?}");
    }
    assert_eq!(objects(&drive.cartridge().unwrap()).last(), Some(&0));
    executor.finish().unwrap();
}

#[test]
fn a_stopped_run_leaves_a_filemark() {
    let drive = drive(64);
    let mut executor = executor(&drive, &[], TapeOptions::default()).unwrap();
    runs(&mut executor, &[], 1).remove(0).unwrap();
    let long = cell(&[("block_bytes", "65536"), ("file_bytes", "50331648")]);
    // The run may be faster than the one who stops it.
    let stopped = (0..100).any(|_| {
        let cancel = Cancel::new();
        let begun = drive.position();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while drive.position() <= begun + 2 && !over.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                cancel.cancel();
            });
            let stopped = executor.execute(&long, &cancel).is_err();
            over.store(true, Ordering::Release);
            stopped
        })
    });
    assert!(stopped);
    let cartridge = drive.cartridge().unwrap();
    let ends = files(&cartridge);
    assert_eq!(ends.last(), Some(&0), "the file is closed, while the drive is still open");
    let part = ends[ends.len() - 2];
    assert!((1..768).contains(&part), "{ends:?}");
    runs(&mut executor, &[], 1).remove(0).unwrap();
    executor.finish().unwrap();
    let after = files(&cartridge);
    assert!(after.ends_with(&[48, 0]), "{after:?}");
}

#[test]
fn settings_are_put_back() {
    let factors: &[(&str, &[&str])] = &[("drive_compression", &["off"])];
    let set = |drive: &VirtualDrive| {
        let mut tape = drive.open(Access::Write).unwrap();
        tape.set_block_mode(BlockMode::Fixed(10_240)).unwrap();
        tape.set_drive_compression(DriveCompression::On).unwrap();
    };
    let check = |drive: &VirtualDrive| {
        let mut tape = drive.open(Access::Look).unwrap();
        assert_eq!(tape.status().unwrap().block_mode, BlockMode::Fixed(10_240));
        assert_eq!(tape.drive_compression().unwrap(), Compression::On);
    };
    let drive = drive(64);
    set(&drive);
    let mut on_it = executor(&drive, factors, TapeOptions::default()).unwrap();
    let run = runs(&mut on_it, factors, 1).remove(0).unwrap();
    assert_eq!(run.environment["drive compression"], "off");
    assert!(!drive.glance().compression);
    on_it.finish().unwrap();
    drop(on_it);
    check(&drive);
    // On the way out through an error.
    let mut on_it = executor(&drive, factors, TapeOptions::default()).unwrap();
    runs(&mut on_it, factors, 1).remove(0).unwrap();
    drop(on_it);
    check(&drive);
    // Nothing was written, and nothing is changed.
    let refused: &[(&str, &[&str])] = &[("block_bytes", &["33554432"])];
    assert!(executor(&drive, refused, TapeOptions::default()).is_err());
    check(&drive);
}

#[test]
fn compression_that_does_not_obey_is_told() {
    let factors: &[(&str, &[&str])] = &[("drive_compression", &["off"])];
    let drive = drive(64);
    drive.change_settings(|settings| settings.answers = Answers::Unreachable);
    let mut on_it = executor(&drive, factors, TapeOptions::default()).unwrap();
    let run = runs(&mut on_it, factors, 1).remove(0).unwrap();
    assert!(run.notes[0].contains("the drive cannot report the result"), "{:?}", run.notes);
    assert!(!drive.glance().compression);
    drop(on_it);
    drive.change_settings(|settings| {
        settings.answers = Answers::Proper;
        settings.compression_switch = CompressionSwitch::Ignored;
    });
    drive.set_compression(sim::tape::pace::Compression::On);
    let mut on_it = executor(&drive, factors, TapeOptions::default()).unwrap();
    let error = runs(&mut on_it, factors, 1).remove(0).unwrap_err().to_string();
    assert!(error.contains("still has it on"), "{error}");
}

#[test]
fn a_drive_that_fails_goes_on_at_a_known_place() {
    let drive = drive(64);
    let mut executor = executor(&drive, &[], TapeOptions::default()).unwrap();
    runs(&mut executor, &[], 1).remove(0).unwrap();
    let cartridge = drive.cartridge().unwrap();
    // In the middle of the second run.
    cartridge.set_faults(Faults { reset_before: Some(60), ..Faults::default() });
    let error = runs(&mut executor, &[], 1).remove(0).unwrap_err().to_string();
    assert!(error.contains("cannot write"), "{error}");
    cartridge.set_faults(Faults::default());
    runs(&mut executor, &[], 1).remove(0).unwrap();
    assert_eq!(files(&cartridge), [1, 48, 0], "from the start of the test area");
    // A medium error is no reason to stop either.
    let unreadable = [(70, Persistence::Always)].into();
    cartridge.set_faults(Faults { unreadable, ..Faults::default() });
    let reading: &[(&str, &[&str])] = &[("operation", &["read"])];
    assert!(runs(&mut executor, reading, 1).remove(0).is_err());
    runs(&mut executor, &[], 1).remove(0).unwrap();
}

#[test]
fn a_run_of_several_files_has_a_filemark_behind_each() {
    let drive = drive(64);
    let factors: &[(&str, &[&str])] = &[("files", &["4"]), ("operation", &["write", "read"])];
    let mut executor = executor(&drive, factors, TapeOptions::default()).unwrap();
    let four = |operation: &str| {
        cell(&[("files", "4"), ("block_bytes", "65536"), ("operation", operation)])
    };
    let run = executor.execute(&four("write"), &Cancel::new()).unwrap();
    assert_eq!((run.bytes, run.measures["filemarks"]), (3 * MIB, 4.0));
    assert_eq!(run.measures["written_file_bytes"], (3 * MIB) as f64 / 4.0);
    let without = run.bytes as f64 / run.measures["without_filemark_bytes_per_second"];
    let filemarks = run.measures["filemark_seconds"] * 4.0;
    assert!((without + filemarks - run.seconds).abs() < 1e-6 * run.seconds, "{run:?}");
    // Read back with the filemarks in between, from behind the files of the run before.
    let read = executor.execute(&four("read"), &Cancel::new()).unwrap();
    assert_eq!(read.bytes, 3 * MIB);
    executor.finish().unwrap();
    let expected = [1, 12, 12, 12, 12, 12, 12, 12, 12, 0];
    assert_eq!(files(&drive.cartridge().unwrap()), expected);
}

/// A drive of which only filemarks that are waited for take time.
struct SlowFilemarks;

const FILEMARK: Duration = Duration::from_millis(50);

impl Pace for SlowFilemarks {
    fn native_bytes(&mut self, block: &[u8], _: PaceCompression) -> u32 {
        block.len() as u32
    }

    fn take(&mut self, act: Act) {
        if act == Act::Synchronise {
            std::thread::sleep(FILEMARK);
        }
    }
}

/// The time of filemarks is no work of the writer's, and known apart: what reads data is held
/// against the rest.
#[test]
fn filemarks_are_time_of_no_stage() {
    let drive = drive(64);
    drive.set_pace(Box::new(SlowFilemarks));
    let mut executor = executor(&drive, &[], TapeOptions::default()).unwrap();
    let four = cell(&[("files", "4"), ("ring_bytes", "1048576"), ("block_bytes", "65536")]);
    let run = executor.execute(&four, &Cancel::new()).unwrap();
    let write = run.stages.iter().find(|stage| stage.kind == StageKind::Write).unwrap();
    assert!(write.apart_seconds >= 4.0 * FILEMARK.as_secs_f64(), "{write:?}");
    assert!(run.measures["filemark_seconds"] >= FILEMARK.as_secs_f64(), "{run:?}");
}

#[test]
fn a_stop_among_several_files_leaves_a_known_place() {
    let drive = drive(64);
    let mut executor = executor(&drive, &[], TapeOptions::default()).unwrap();
    let many = cell(&[("block_bytes", "65536"), ("file_bytes", "50331648"), ("files", "768")]);
    let cancel = Cancel::new();
    let begun = drive.position();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while drive.position() <= begun + 20 && !over.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            cancel.cancel();
        });
        // It may end before it is stopped; what follows has to hold in either case.
        let _ = executor.execute(&many, &cancel);
        over.store(true, Ordering::Release);
    });
    let reading = cell(&[("block_bytes", "65536"), ("operation", "read")]);
    let run = executor.execute(&reading, &Cancel::new()).unwrap();
    assert_eq!(run.bytes, 3 * MIB, "the file that was written is found again");
}

#[test]
fn a_tree_is_written_once_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("below")).unwrap();
    std::fs::write(folder.path().join("a"), vec![1; 300_000]).unwrap();
    std::fs::write(folder.path().join("below/b"), vec![2; 700_000]).unwrap();
    let path = folder.path().to_str().unwrap();
    for (framing, blocks) in [("raw", 16), ("tar", 16), ("bacula", 16)] {
        let drive = drive(64);
        let factors: &[(&str, &[&str])] =
            &[("data", &[path]), ("framing", &[framing]), ("operation", &["read"])];
        let mut executor = executor(&drive, factors, TapeOptions::default()).unwrap();
        let run = runs(&mut executor, factors, 1).remove(0).unwrap();
        // The tree ends before the length of the run does; the last block is filled up.
        assert_eq!(run.bytes, blocks * 65_536, "{framing}");
        let written: &[(&str, &[&str])] = &[("data", &[path]), ("framing", &[framing])];
        let run = runs(&mut executor, written, 1).remove(0).unwrap();
        assert_eq!((run.measures["tree_files"], run.measures["tree_bytes"]), (2.0, 1e6));
        assert_eq!(run.measures.contains_key("sealing_seconds"), framing == "bacula");
        assert_eq!(files(&drive.cartridge().unwrap()), [1, blocks as usize, blocks as usize, 0]);
    }
}

#[test]
fn a_tree_that_is_missing_costs_nothing() {
    let drive = drive(64);
    let factors: &[(&str, &[&str])] = &[("data", &["/nowhere"])];
    assert!(executor(&drive, factors, TapeOptions::default()).is_err());
    let empty = tempfile::tempdir().unwrap();
    let factors: &[(&str, &[&str])] = &[("data", &[empty.path().to_str().unwrap()])];
    let error = executor(&drive, factors, TapeOptions::default()).err().unwrap().to_string();
    assert!(error.ends_with("all files in it are empty"), "{error}");
    assert_eq!(files(&drive.cartridge().unwrap()), [0]);
}

#[test]
fn baculas_blocks_are_sealed_where_they_are_written() {
    let drive = drive(64);
    let factors: &[(&str, &[&str])] = &[("framing", &["bacula"])];
    let mut executor = executor(&drive, factors, TapeOptions::default()).unwrap();
    let run = runs(&mut executor, factors, 1).remove(0).unwrap();
    // Part of the writing thread's time, and no part of the calls' own.
    let sealing = run.measures["sealing_seconds"];
    let write = run.stages.iter().find(|stage| stage.kind.name() == "write").unwrap();
    assert!(sealing > 0.0 && sealing <= write.working_seconds * 1.01, "{run:?}");
    let cartridge = drive.cartridge().unwrap();
    let objects = cartridge.objects().unwrap();
    let blocks = objects.iter().filter_map(|object| match object {
        Object::Block(block) if block.len() == 65_536 => Some(block),
        _ => None,
    });
    let mut count = 0;
    for (number, block) in blocks.enumerate() {
        assert_eq!(&block[12..16], b"BB02");
        assert_eq!(&block[8..12], (number as u32).to_be_bytes());
        assert_ne!(block[..4], [0; 4], "a block without its sum");
        count += 1;
    }
    assert_eq!(count, 48);
}
