//! Findings of profiles that are made here.

use super::super::operation::{Asked, FileOperation, OpenedFile, Recording, SyncCall};
use super::super::profile::{ProfileLimits, Profiler};
use super::*;

fn open(profiler: &mut Profiler, number: u32, path: &str, direct: bool) {
    let file = OpenedFile {
        path: Ok(path.to_owned()),
        kind: FileKind::Regular,
        deleted: false,
        direct: Ok(direct),
        synchronous: Ok(false),
        append: Ok(false),
        size_bytes: Ok(1 << 30),
    };
    profiler.file(number, &file);
}

fn operation(asked: Asked, engine: Engine, at: u64, offset: u64, bytes: u64) -> FileOperation {
    FileOperation {
        start_ns: at,
        duration_ns: Ok(100_000),
        process: 1,
        thread: 1,
        file: 0,
        engine,
        asked,
        offset_bytes: Ok(offset),
        asked_bytes: Ok(bytes),
        done_bytes: Ok(bytes),
        synchronous: false,
        in_flight: Ok(1),
        error: 0,
    }
}

/// A database: its log, two tables that are read at random, and a dump.
fn database() -> Profiler {
    let mut profiler = Profiler::new(ProfileLimits::default());
    open(&mut profiler, 0, "/srv/pg/pg_wal/000000010000000000000001", false);
    open(&mut profiler, 1, "/srv/pg/base/5/16384", true);
    open(&mut profiler, 2, "/srv/pg/base/5/16385", true);
    open(&mut profiler, 3, "/backup/shop.dump", false);
    let mut chance = 7_u64;
    for number in 0..400_u64 {
        let at = number * 1_000_000;
        let (psync, sync) = (Engine::Psync, Asked::Sync(SyncCall::Fdatasync));
        profiler.operation(&operation(Asked::Write, psync, at, number / 8 * 8192, 8192));
        profiler.operation(&operation(sync, psync, at + 100_000, 0, 0));
        for file in [1, 2] {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let offset = (chance >> 40) * 16_384;
            let read = operation(Asked::Read, Engine::IoUring, at, offset, 16_384);
            profiler.operation(&FileOperation { file, in_flight: Ok(8), ..read });
        }
        let (engine, bytes) = (Engine::Sync, 1 << 20);
        let write = operation(Asked::Write, engine, at, number * bytes, bytes);
        profiler.operation(&FileOperation { file: 3, ..write });
        if number % 100 == 99 {
            let sync = Asked::Sync(SyncCall::Fsync);
            let sync = operation(sync, engine, at + 200_000, 0, 0);
            profiler.operation(&FileOperation { file: 3, ..sync });
        }
    }
    profiler
}

#[test]
fn a_database_in_sentences() {
    let said: Vec<String> = findings(&database().profile()).iter().map(Finding::sentence).collect();
    let expected = [
        "pg_wal/000000010000000000000001: written 8 KiB at a time by pwrite, each followed by \
         fdatasync, the last block again and again; one in flight, pauses of less than 1 ms",
        "backup/shop.dump: written front to back, 1 MiB at a time by write; one in flight, \
         pauses of less than 1 ms",
        "backup/shop.dump: data are synced after every 100 writes, by fsync",
        "5/16384 and 1 more: read at random, 16 KiB at a time by io_uring; 8 in flight, \
         direct, pauses of less than 1 ms",
    ];
    assert_eq!(said, expected);
}

/// `cp a/sub/data.bin b/sub/data.bin`: both names end alike.
#[test]
fn files_whose_paths_end_alike_are_told_apart() {
    let mut profiler = Profiler::new(ProfileLimits::default());
    let paths = ["/srv/a/sub/data.bin", "/srv/b/sub/data.bin", "/sub/data.bin", "/srv/other"];
    for (number, path) in (0..).zip(paths) {
        open(&mut profiler, number, path, false);
        let write = operation(Asked::Write, Engine::Sync, u64::from(number), 0, 4096);
        profiler.operation(&FileOperation { file: number, ..write });
    }
    let files = profiler.profile().files;
    let mut names: Vec<String> = files.iter().map(|it| distinct_name(it, &files)).collect();
    names.sort();
    assert_eq!(names, ["/sub/data.bin", "a/sub/data.bin", "b/sub/data.bin", "srv/other"]);
}

/// The first operation of each direction goes on from none.
#[test]
fn what_is_in_order_is_of_what_could_be() {
    let share = |reads, writes, share| {
        let file = FileProfile { reads, writes, ..database().profile().files[0].clone() };
        share_in_order(&file, share)
    };
    assert_eq!(share(0, 2, 0.5), Some(1.0));
    assert_eq!(share(2, 2, 0.25), Some(0.5));
    assert_eq!(share(1, 0, 0.0), None);
    assert_eq!(share(1, 1, 0.0), None);
    assert_eq!(share(0, 5, 0.8), Some(1.0));
    assert_eq!(share(0, 5, 1.0), Some(1.0), "the first may begin where the file does");
}

#[test]
fn a_file_that_is_copied_in_one_piece_is_read_and_written_front_to_back() {
    let mut profiler = Profiler::new(ProfileLimits::default());
    for (file, name, asked) in [(0, "/a", Asked::Read), (1, "/b", Asked::Write)] {
        open(&mut profiler, file, name, false);
        let copied = operation(asked, Engine::Splice, 0, 0, 9 << 20);
        let end = FileOperation { done_bytes: Ok(0), offset_bytes: Ok(9 << 20), ..copied };
        profiler.operation(&FileOperation { file, ..copied });
        profiler.operation(&FileOperation { file, ..end });
    }
    let found = findings(&profiler.profile());
    let said: Vec<&str> = found.iter().map(|it| it.what.as_str()).collect();
    for what in &said {
        assert!(what.contains("front to back, 9 MiB at a time by splice"), "{said:?}");
    }
    assert_eq!(said.len(), 2);
}

/// Half of the syncs have one write in front of them, and the others many: the median says
/// nothing of how many there are.
#[test]
fn syncs_in_bunches_are_told_by_their_number() {
    let said = |bunch: &[u64], rounds: u64| {
        let mut profiler = Profiler::new(ProfileLimits::default());
        open(&mut profiler, 0, "/srv/table", false);
        let mut at = 0;
        for between in bunch.iter().cycle().take(bunch.len() * rounds as usize) {
            for _ in 0..*between {
                at += 1;
                let offset = at * 7919 % 10_000 * 4096;
                let time = at * 1000;
                profiler.operation(&operation(Asked::Write, Engine::Psync, time, offset, 4096));
            }
            let sync = Asked::Sync(SyncCall::Fsync);
            profiler.operation(&operation(sync, Engine::Psync, at * 1000 + 500, 0, 0));
        }
        let found = findings(&profiler.profile());
        let synced = found.iter().find(|it| it.rule == "capture.synced");
        synced.unwrap().sentence()
    };
    assert_eq!(
        said(&[1, 1, 1, 80], 20),
        "srv/table: data are synced by fsync 80 times for 1 660 writes, one for 21 on average, \
         in bunches: half of them with at most one write between"
    );
    assert!(said(&[0, 0, 0, 80], 20).ends_with("half of them with no write between"));
    assert_eq!(said(&[20], 80), "srv/table: data are synced after every 20 writes, by fsync");
}

#[test]
fn what_recording_costs_is_said_where_it_is_much() {
    let mut profiler = database();
    assert!(findings(&profiler.profile()).iter().all(|it| it.rule != "capture.cost"));
    profiler.cost(Cost {
        events_per_second: 1_600_000.0,
        event_seconds: 3.44e-7,
        recorder_seconds: 0.44,
    });
    let said = findings(&profiler.profile());
    let cost = said.iter().find(|it| it.rule == "capture.cost").unwrap();
    assert_eq!(
        cost.sentence(),
        "the recording cost the programs 550 ms of processor time per second: 1 600 000 events \
         a second at 344 ns each: the recorder itself used 440 ms in all"
    );
}

#[test]
fn only_the_end_of_a_name_is_in_a_sentence() {
    let mut profiler = Profiler::new(ProfileLimits::default());
    let paths = ["/srv/pg/base/5/1", "/x", "/dev/st0", "pipe:[12]", ""];
    for (number, path) in (0..).zip(paths) {
        open(&mut profiler, number, path, false);
        let read = operation(Asked::Read, Engine::Sync, 0, 0, u64::from(100 - number));
        profiler.operation(&FileOperation { file: number, ..read });
    }
    let names: Vec<String> = profiler.profile().files.iter().map(short_name).collect();
    assert_eq!(names, ["5/1", "/x", "/dev/st0", "pipe:[12]", ""]);
}
