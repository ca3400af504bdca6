//! Operations whose profile is known beforehand, and any others against a plain count of all.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::operation::{
    Asked, Engine, FileKind, FileOperation, OpenedFile, Recording, SyncCall, Unknown,
};
use super::{Class, FileProfile, Profile, ProfileLimits, Profiler};

const MS: u64 = 1_000_000;

fn opened(path: &str) -> OpenedFile {
    OpenedFile {
        path: Ok(path.to_owned()),
        kind: FileKind::Regular,
        deleted: false,
        direct: Ok(false),
        synchronous: Ok(false),
        append: Ok(false),
        size_bytes: Ok(1 << 30),
    }
}

fn operation(asked: Asked, start_ns: u64, offset: u64, bytes: u64) -> FileOperation {
    FileOperation {
        start_ns,
        duration_ns: Ok(MS),
        process: 10,
        thread: 10,
        file: 0,
        engine: Engine::Psync,
        asked,
        offset_bytes: Ok(offset),
        asked_bytes: Ok(bytes),
        done_bytes: Ok(bytes),
        synchronous: false,
        in_flight: Ok(1),
        error: 0,
    }
}

fn profile_of(file: &OpenedFile, operations: &[FileOperation]) -> FileProfile {
    let mut profiler = Profiler::new(ProfileLimits::default());
    profiler.begin(0);
    profiler.file(0, file);
    for operation in operations {
        profiler.operation(operation);
    }
    let mut profile = profiler.profile();
    assert_eq!(profile.files.len(), 1);
    profile.files.remove(0)
}

fn assert_near(found: Option<f64>, truth: f64) {
    let found = found.expect("it is known");
    assert!((found - truth).abs() <= truth * 0.017, "{found} for {truth}");
}

/// A log whose last block of 8 KiB is written eight times, each followed by a sync: every 10 ms a
/// write of 1 ms, a sync of 1 ms 10 µs behind it.
fn log() -> Vec<FileOperation> {
    let mut operations = Vec::new();
    for number in 0..800 {
        let at = number * 10 * MS;
        operations.push(operation(Asked::Write, at, number / 8 * 8192, 8192));
        let sync = Asked::Sync(SyncCall::Fdatasync);
        let own = FileOperation { engine: Engine::Sync, ..operation(sync, at + MS + 10_000, 0, 0) };
        operations.push(own);
    }
    operations
}

#[test]
fn a_log_whose_last_block_is_written_again() {
    let file = profile_of(&opened("/srv/x"), &log());
    assert_eq!((file.class, file.engine), (Class::WriteAheadLog, Engine::Psync));
    // However many syncs there are: they are no way to read or write.
    assert_eq!(file.engines, BTreeMap::from([(Engine::Psync, 800)]));
    assert_eq!((file.calls, file.reads, file.writes), (1600, 0, 800));
    assert_eq!((file.read_share, file.block_bytes), (Some(0.0), Some(8192)));
    assert_eq!(file.rewrite_share, Some(700.0 / 800.0));
    assert_eq!(file.sequential_share, Some(99.0 / 800.0));
    assert_eq!(file.reuse_share, Some(700.0 / 800.0));
    assert_eq!((file.sync.call, file.sync.calls), ("fdatasync", 800));
    assert_eq!((file.sync.operations_between, file.depth), (Some(1.0), Some(1.0)));
    assert_near(file.think_seconds, 0.01 - 0.001 - 0.000_01 - 0.001);
    assert_near(file.latency_seconds, 0.001);
    assert_near(file.sync.seconds, 0.001);
    assert_eq!((file.burstiness, file.threads), (Some(0.0), 1));
    assert_eq!(file.written_bytes, Some(800 * 8192));
    assert_eq!((file.unknown, file.known_share), (BTreeMap::new(), BTreeMap::new()));
    let written: u64 = file.series.iter().map(|it| it[1]).sum();
    assert_eq!((file.series.len(), written), (100, 800 * 8192));
}

/// PostgreSQL's log of transactions of more than a block: each write takes the last block of the
/// one before along, and begins where the one before that has ended.
#[test]
fn a_log_of_records_that_cross_blocks_is_written_again_and_not_on() {
    let mut operations = log();
    let writes = operations.iter_mut().filter(|it| it.asked == Asked::Write);
    for (number, operation) in (0_u64..).zip(writes) {
        operation.offset_bytes = Ok(number * 8192);
        (operation.asked_bytes, operation.done_bytes) = (Ok(16_384), Ok(16_384));
    }
    let file = profile_of(&opened("/srv/x"), &operations);
    assert_eq!(file.rewrite_share, Some(799.0 / 800.0));
    assert_eq!(file.sequential_share, Some(0.0));
}

#[test]
fn a_mix_of_random_reads_and_writes_with_several_in_flight() {
    let mut state = 1_u64;
    let operations: Vec<FileOperation> = (0..4000_u64)
        .map(|number| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let asked = if number % 10 < 7 { Asked::Read } else { Asked::Write };
            let offset = (state >> 33) % 65_536 * 16_384;
            let in_flight = Ok(u32::try_from(number + 1).unwrap().min(8));
            let engine = Engine::IoUring;
            FileOperation { in_flight, engine, ..operation(asked, number * MS, offset, 16_384) }
        })
        .collect();
    let file = profile_of(&OpenedFile { direct: Ok(true), ..opened("/srv/x") }, &operations);
    assert_eq!((file.class, file.engine), (Class::Data, Engine::IoUring));
    assert_eq!((file.read_share, file.depth, file.direct), (Some(0.7), Some(8.0), Some(true)));
    assert!(file.sequential_share.unwrap() < 0.01, "{:?}", file.sequential_share);
    assert_eq!(file.rewrite_share, Some(0.0));
    assert_eq!(file.sync.call, "none");
    assert_eq!(file.block_sizes.read, [(16_384, 2800)]);
    assert_eq!(file.block_sizes.write, [(16_384, 1200)]);
}

#[test]
fn what_is_not_told_is_not_known_and_what_nearly_all_tell_is() {
    let mut operations = log();
    // Where the file stood was not known for the first writes: less than 1 in 10.
    for operation in operations.iter_mut().take(60) {
        operation.offset_bytes = Err(Unknown::Position);
    }
    let file = profile_of(&opened("/srv/x"), &operations);
    assert!(file.sequential_share.is_some());
    assert_eq!(file.known_share["sequential_share"], 770.0 / 800.0);
    for operation in &mut operations {
        operation.offset_bytes = Err(Unknown::OffsetOfRing);
        operation.in_flight = Err(Unknown::DoneAtOnce);
    }
    operations[0].done_bytes = Err(Unknown::Splice);
    let file = profile_of(&opened("/srv/x"), &operations);
    assert_eq!((file.sequential_share, file.rewrite_share, file.reuse_share), (None, None, None));
    assert_eq!((file.depth, file.written_bytes), (None, None));
    for field in ["sequential_share", "rewrite_share", "reuse_share"] {
        assert_eq!(file.unknown[field], Unknown::OffsetOfRing.reason());
    }
    assert_eq!(file.unknown["depth"], Unknown::DoneAtOnce.reason());
    assert_eq!(file.unknown["written_bytes"], Unknown::Splice.reason());
    assert_eq!((file.block_bytes, file.writes), (Some(8192), 800));
}

#[test]
fn a_splice_that_asks_for_all_there_is_has_the_size_of_what_it_moved() {
    // As `cp` asks copy_file_range(2): for SSIZE_MAX, until nothing is left.
    let asked_bytes = Ok(0x7fff_ffff_ffff_ffff);
    let splice = FileOperation {
        engine: Engine::Splice,
        asked_bytes,
        ..operation(Asked::Read, MS, 0, 9000)
    };
    let end = FileOperation { offset_bytes: Ok(9000), done_bytes: Ok(0), ..splice };
    let file = profile_of(&opened("/srv/x"), &[splice, end]);
    assert_eq!((file.block_sizes.read, file.reads), (vec![(9000, 1)], 2));
    // Linux moves 2 GiB in a call of any kind, whatever it asks for.
    let read = FileOperation { engine: Engine::Psync, ..splice };
    assert_eq!(profile_of(&opened("/srv/x"), &[read]).block_bytes, Some(0x7fff_f000));
}

#[test]
fn openings_of_one_path_are_one_file_and_names_may_come_late() {
    let mut profiler = Profiler::new(ProfileLimits::default());
    profiler.begin(0);
    profiler.file(0, &opened("/srv/a"));
    profiler.file(1, &OpenedFile { direct: Ok(true), ..opened("/srv/a") });
    let nameless = OpenedFile { path: Err(Unknown::Closed), ..opened("") };
    profiler.file(2, &nameless);
    profiler.file(3, &nameless);
    profiler.file_again(2, &opened("/srv/b"));
    for file in [0, 1, 1, 2, 3] {
        profiler.operation(&FileOperation { file, ..operation(Asked::Read, MS, 0, 100) });
    }
    // A number that nobody has said anything of.
    profiler.operation(&FileOperation { file: 9, ..operation(Asked::Read, MS, 0, 100) });
    profiler.lost(3);
    let profile = profiler.profile();
    let files: Vec<_> = profile.files.iter().map(|it| (it.path.as_deref(), it.calls)).collect();
    assert_eq!(files, [(Some("/srv/a"), 3), (None, 1), (Some("/srv/b"), 1)]);
    assert_eq!(profile.files[0].direct, Some(true), "2 of 3 operations");
    assert_eq!(profile.files[1].unknown["path"], Unknown::Closed.reason());
    assert_eq!((profile.operations_left_out, profile.lost_events), (1, 3));
}

/// They are several files, each read from its beginning.
#[test]
fn files_without_a_name_have_no_order() {
    let mut profiler = Profiler::new(ProfileLimits::default());
    profiler.begin(0);
    profiler.file(0, &OpenedFile { path: Err(Unknown::Closed), ..opened("") });
    for number in 0..20 {
        profiler.operation(&operation(Asked::Read, number * MS, 0, 4096));
    }
    let profile = profiler.profile();
    let file = &profile.files[0];
    assert_eq!((file.reads, file.read_bytes), (20, Some(20 * 4096)));
    assert_eq!((file.sequential_share, file.reuse_share), (None, None));
    assert_eq!(file.unknown["sequential_share"], Unknown::Closed.reason());
    let said = crate::words::findings(&profile);
    let expected = "files closed before their names were seen: read in an unknown order, 4 KiB";
    assert!(said[0].sentence().starts_with(expected), "{}", said[0].sentence());
}

#[test]
fn nothing_grows_beyond_its_limit() {
    let limits = ProfileLimits { files: 10, openings: 20, sizes: 4, threads: 3, words: 100 };
    let mut profiler = Profiler::new(limits);
    for number in 0..30 {
        profiler.file(number, &opened(&format!("/srv/{number}")));
    }
    for number in 0..30_000_u64 {
        let file = u32::try_from(number % 30).unwrap();
        let thread = u32::try_from(number % 7).unwrap();
        let begin = operation(Asked::Write, number * MS, number << 20, number);
        profiler.operation(&FileOperation { file, thread, ..begin });
    }
    let profile = profiler.profile();
    assert_eq!((profile.files.len(), profile.files_left_out), (10, 20));
    assert_eq!(profile.operations_left_out, 20_000);
    for file in &profile.files {
        assert_eq!((file.block_sizes.write.len(), file.block_sizes.others), (4, 996));
        assert_eq!((file.threads, file.sequential_share), (3, Some(0.0)));
        assert_near(file.block_bytes.map(|it| it as f64), 15_000.0);
    }
}

/// The same by keeping all and counting.
fn naive(operations: &[FileOperation], end_ns: u64) -> BTreeMap<&'static str, f64> {
    let mut found = BTreeMap::new();
    let median = |mut values: Vec<u64>, share: f64| {
        values.sort_unstable();
        let at = (values.len() as f64 * share).ceil() as usize;
        values.get(at.max(1) - 1).map(|it| *it as f64)
    };
    let is_data = |it: &&FileOperation| FileProfile::counts(it.asked) && it.error == 0;
    let data: Vec<&FileOperation> = operations.iter().filter(is_data).collect();
    let of = |asked: Asked| data.iter().filter(move |it| it.asked == asked);
    let mut tell = |name, value: Option<f64>| found.extend(value.map(|it| (name, it)));
    let (reads, writes) = (of(Asked::Read).count(), of(Asked::Write).count());
    if data.is_empty() {
        return found;
    }
    tell("read_share", Some(reads as f64 / (reads + writes) as f64));
    let read = of(Asked::Read).map(|it| it.done_bytes.unwrap()).sum::<u64>();
    tell("read_bytes", Some(read as f64));
    tell("depth", median(data.iter().map(|it| it.in_flight.unwrap().into()).collect(), 0.9));
    tell("block", median(data.iter().map(|it| it.asked_bytes.unwrap()).collect(), 0.5));
    tell("rate", Some(data.len() as f64 / (end_ns as f64 / 1e9)));
    let (mut last, mut rewrites) = (None, 0);
    for write in of(Asked::Write) {
        let from = write.offset_bytes.unwrap();
        rewrites += u64::from(last.is_some_and(|(a, b)| a <= from && from < b));
        last = Some((from, from + write.done_bytes.unwrap()));
    }
    tell("rewrite", (writes > 0).then_some(rewrites as f64 / writes as f64));
    let (mut bytes, mut end, mut again) = (BTreeSet::new(), 0, 0);
    for it in &data {
        let from = it.offset_bytes.unwrap();
        again += u64::from(from < end && bytes.contains(&(from / 512)));
        let to = from + it.done_bytes.unwrap();
        end = end.max(if to > from { to } else { 0 });
        bytes.extend((from..to).map(|it| it / 512));
    }
    tell("reuse", Some(again as f64 / data.len() as f64));
    let (mut between, mut since, mut pauses, mut answers) =
        (Vec::new(), None, Vec::new(), BTreeMap::new());
    for it in operations {
        if is_data(&it)
            && let Some(answer) = answers.get(&it.thread)
        {
            pauses.push(it.start_ns.saturating_sub(*answer));
        }
        answers.insert(it.thread, it.start_ns + it.duration_ns.unwrap());
        match it.asked {
            _ if it.error != 0 => {}
            Asked::Write => since = since.map(|it: u64| it + 1),
            Asked::Sync(_) => between.extend(since.replace(0)),
            _ => {}
        }
    }
    tell("between", median(between, 0.5));
    tell("think", median(pauses, 0.5).map(|it| it / 1e9));
    found
}

fn any_operation() -> impl Strategy<Value = FileOperation> {
    let asked = prop_oneof![
        3 => Just(Asked::Read),
        3 => Just(Asked::Write),
        1 => Just(Asked::Sync(SyncCall::Fsync)),
        1 => Just(Asked::Allocate),
    ];
    let numbers = (0_u64..40, 0_u64..5000, 1_u32..70, 0_u32..4, 0_u64..3000);
    (asked, numbers, 0_u64..500_000, prop_oneof![9 => Just(0), 1 => Just(5)]).prop_map(
        |(asked, (block, bytes, in_flight, thread, late), duration, error)| FileOperation {
            duration_ns: Ok(duration),
            thread,
            in_flight: Ok(in_flight),
            done_bytes: Ok(bytes - bytes.min(late) / 8),
            error,
            ..operation(asked, 0, block * 500, bytes)
        },
    )
}

proptest! {
    #[test]
    fn a_profile_is_what_a_plain_count_of_all_says(
        mut operations in prop::collection::vec((any_operation(), 0_u64..2_000_000), 1..200),
    ) {
        let mut at = 0;
        for (operation, later) in &mut operations {
            at += *later;
            operation.start_ns = at;
        }
        let operations: Vec<FileOperation> = operations.into_iter().map(|(it, _)| it).collect();
        let ends = operations.iter().map(|it| it.start_ns + it.duration_ns.unwrap());
        let truth = naive(&operations, ends.max().unwrap());
        let file = profile_of(&opened("/srv/x"), &operations);
        let has_data = file.reads + file.writes > 0;
        let found = [
            ("read_share", file.read_share),
            ("read_bytes", file.read_bytes.filter(|_| has_data).map(|it| it as f64)),
            ("depth", file.depth),
            ("block", file.block_bytes.map(|it| it as f64)),
            ("rate", has_data.then_some(file.operations_per_second)),
            ("rewrite", file.rewrite_share),
            ("reuse", file.reuse_share),
            ("between", file.sync.operations_between.filter(|_| has_data)),
            ("think", file.think_seconds),
        ];
        for (name, found) in found {
            let truth = truth.get(name).copied();
            let (found, truth) = (found.unwrap_or(-1.0), truth.unwrap_or(-1.0));
            let near = truth.abs() * 0.017 + 1e-9;
            prop_assert!((found - truth).abs() <= near, "{name}: {found} for {truth}");
        }
        prop_assert_eq!(file.errors, operations.iter().filter(|it| it.error != 0).count() as u64);
    }
}

#[test]
fn an_empty_recording_has_an_empty_profile() {
    assert_eq!(Profiler::new(ProfileLimits::default()).profile(), Profile::default());
}
