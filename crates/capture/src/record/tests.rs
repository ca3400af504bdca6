//! A record reads back as it was written, and damage is reported.

use proptest::prelude::*;

use super::*;
use crate::operation::{
    Asked, Engine, FileKind, FileOperation, OpenedFile, Recording as _, SyncCall, Unknown,
};
use crate::profile::Profiler;

/// A log with syncs, and a file of which little is seen, for two seconds.
fn captured() -> Captured {
    let mut profiler = Profiler::new(ProfileLimits::default());
    profiler.begin(1_000);
    let file = |path: &str| OpenedFile {
        path: Ok(path.to_owned()),
        kind: FileKind::Regular,
        deleted: false,
        direct: Ok(false),
        synchronous: Ok(false),
        append: Err(Unknown::NotAllowed),
        size_bytes: Ok(1 << 20),
    };
    profiler.file(0, &file("/srv/pg_wal/000000010000000000000001"));
    profiler.file(1, &file("/srv/seen\nbadly"));
    for number in 0..200 {
        let operation = FileOperation {
            start_ns: 1_000 + number * 10_000_000,
            duration_ns: Ok(1_000_000),
            process: 1,
            thread: 1,
            file: 0,
            engine: Engine::Psync,
            asked: Asked::Write,
            offset_bytes: Ok(number / 3 * 8192),
            asked_bytes: Ok(8192),
            done_bytes: Ok(8192),
            synchronous: false,
            in_flight: Ok(1),
            error: 0,
        };
        profiler.operation(&operation);
        let sync = Asked::Sync(SyncCall::Fdatasync);
        profiler.operation(&FileOperation { asked: sync, ..operation });
        let unknown = Err(Unknown::RequestOfAio);
        let (offset_bytes, asked_bytes) = (unknown, unknown);
        let unseen = FileOperation { offset_bytes, asked_bytes, file: 1, ..operation };
        profiler.operation(&FileOperation { asked: Asked::Read, ..unseen });
    }
    profiler.lost(3);
    profiler.cannot_see("what nobody sees");
    profiler.cost(crate::profile::Cost {
        events_per_second: 250_000.0,
        event_seconds: 3.5e-7,
        recorder_seconds: 0.25,
    });
    profiler.end(2_000_001_000);
    let rows = |reads: u32| {
        let text = format!("8 0 sda {reads} 0 {reads} 1 0 0 0 0 0 1 1");
        machine::counters::disk::rows(text.as_bytes()).unwrap()
    };
    let reading = |number: u32| Reading {
        at_seconds: f64::from(number) * 0.25 - 0.01,
        unix_seconds: 1_795_163_581 + i64::from(number / 4),
        rows: rows(number * 10),
        ..Reading::default()
    };
    Captured {
        heading: Heading {
            began_unix_seconds: 1_795_163_581.123_456_7,
            subject: "fio \"job\"".to_owned(),
            events: 77,
            failed: Some("status 3".to_owned()),
            is_stopped: true,
        },
        profile: profiler.profile(),
        beside: Some((0..9).map(reading).collect()),
        is_cut: false,
    }
}

fn read(text: &str) -> Result<Captured, CaptureRecordError> {
    Captured::of(text.as_bytes(), Path::new("job"))
}

/// The message with its cause.
fn told(text: &str) -> String {
    let error = read(text).err().unwrap();
    let source = std::error::Error::source(&error);
    source.map_or(error.to_string(), |source| format!("{error}: {source}"))
}

#[test]
fn what_is_written_is_read() {
    let captured = captured();
    let log = &captured.profile.files[0];
    assert_eq!(captured.profile.files.len(), 2);
    assert_eq!(log.sync.call, "fdatasync");
    assert!(captured.profile.files.iter().any(|it| it.unknown.len() > 2));
    let timeline = &captured.profile.timeline;
    let sum = |of: fn(&crate::profile::timeline::Interval) -> u64| -> u64 {
        timeline.classes.iter().flat_map(|it| &it.intervals).map(of).sum()
    };
    assert_eq!((sum(|it| it.writes), sum(|it| it.reads), sum(|it| it.syncs)), (200, 200, 200));
    assert_eq!(sum(|it| it.written_bytes), 200 * 8192);
    let text = captured.to_lines();
    assert_eq!(read(&text).unwrap(), captured);
    let alone = Captured { beside: None, ..captured };
    assert_eq!(read(&alone.to_lines()).unwrap(), alone);
}

#[test]
fn what_is_missing_or_wrong_is_told_with_its_line() {
    let text = captured().to_lines();
    let lines: Vec<&str> = text.lines().collect();
    let until =
        |count: usize| lines[..count].iter().map(|it| format!("{it}\n")).collect::<String>();
    // Cut off anywhere after the profile, it is read as far as it goes.
    let cut = read(&text[..text.len() - 4]).unwrap();
    assert!(cut.is_cut && cut.profile.files.len() == 2);
    let cut = read(&until(3)).unwrap();
    assert!(cut.is_cut && cut.profile.files.len() == 1 && cut.beside == Some(Vec::new()));
    assert_eq!(told(&until(1)), "job was cut off before the profile");
    assert_eq!(told(""), "job is not a `takeup capture` record");
    assert_eq!(told("{\"takeup_watch\":1}\n"), "job is not a `takeup capture` record");
    let newer = "job has format 2, but takeup reads only format 1";
    assert_eq!(told("{\"takeup_capture\":2}\n"), newer);
    let line =
        |number: u32| format!("job, line {number}: not a line of a `takeup capture` record: ");
    let check = |text: String, expected: String| {
        let told = told(&text);
        assert!(told.starts_with(&expected), "{told}");
    };
    check(text.replacen("\"calls\":", "\"calls\":-", 1), line(3) + "it cannot be parsed");
    let cost = text.replacen("\"event_seconds\":", "\"event_seconds\":-", 1);
    check(cost, line(2) + "the cost of recording is out of range");
    let much = text.replacen("\"writes\":", "\"writes\":9000000000000000", 1);
    check(much, line(3) + "a count of a file is out of range");
    let share = text.replacen("\"sequential_share\":", "\"sequential_share\":7", 1);
    check(share, line(3) + "a share of a file is out of range");
    check(text.replacen("fdatasync", "fdatasink", 1), line(3) + "it cannot be parsed");
    let twice = until(2) + lines[1] + "\n";
    check(twice, line(3) + "it is out of order");
    check(until(1) + lines[2] + "\n", line(2) + "it is out of order");
    let without = text.replacen(&format!("{}\n", lines[4]), "", 1);
    let last = lines.len() as u32 - 1;
    check(without, line(last) + "14 lines precede it, 15 were recorded: the file was cut");
    check(text.clone() + lines[2] + "\n", line(last + 2) + "it is out of order");
    let readings: Vec<&&str> = lines.iter().filter(|it| it.starts_with("{\"reading\"")).collect();
    let back = text.replacen(*readings[1], readings[0], 1).replacen(*readings[0], readings[1], 1);
    check(back, line(8) + "its time is 0.250 s before the previous reading");
    check(text.replacen("8 0 sda", "x 0 sda", 1), line(7) + "a row is malformed");
}

proptest! {
    /// Whatever a file holds: an answer, no panic, and nothing that cannot be shown.
    #[test]
    fn damage_is_an_error_or_can_be_shown(at in 0_usize..1 << 16, byte: u8, cut in 0_usize..4) {
        let mut bytes = captured().to_lines().into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        if cut == 0 {
            bytes.truncate(at);
        }
        if let Ok(captured) = Captured::of(&bytes[..], Path::new("job")) {
            for found in crate::words::findings(&captured.profile) {
                prop_assert!(!found.sentence().is_empty());
            }
            prop_assert!(!captured.to_lines().is_empty());
        }
    }
}
