//! Looks that were made up, and one at a real process.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::members::{Member, Members};
use super::*;
use crate::live::files::{Access, Looked, OnExec};
use crate::operation::{OpenedFile, Unknown};
use crate::presentation;
use crate::profile::{ProfileLimits, Profiler};

fn totals(bytes: u64) -> Totals {
    Totals { read_calls: bytes / 10, read_bytes: bytes, ..Totals::default() }
}

fn members(of: &[(u32, Option<u32>, u64)]) -> BTreeMap<u32, Member> {
    let member = |(pid, parent, bytes): &(u32, Option<u32>, u64)| {
        (*pid, Member { start_ticks: u64::from(*pid), parent: *parent, totals: totals(*bytes) })
    };
    of.iter().map(member).collect()
}

/// Whoever waits for a child gets its counts; of one that nobody of these waited for they are kept.
#[test]
fn no_count_is_lost_and_none_is_doubled() {
    let mut all = Members::default();
    all.take(members(&[(1, None, 1000), (2, Some(1), 500)]));
    assert_eq!(all.totals(), Totals::default());
    all.take(members(&[(1, None, 1000), (2, Some(1), 800), (3, Some(1), 70)]));
    assert_eq!(all.totals(), totals(370));
    // The second was waited for by the first, which read 20 more; the third by somebody else.
    all.take(members(&[(1, None, 1820)]));
    assert_eq!(all.totals().read_bytes, 300 + 20 + 70);
    assert_eq!(all.met, 3);
    all.take(BTreeMap::new());
    assert_eq!(all.totals().read_bytes, 390);
}

/// A number that another process has now is another process.
#[test]
fn a_number_that_comes_again_is_another_process() {
    let mut all = Members::default();
    all.take(members(&[(1, None, 1000)]));
    all.take(members(&[(1, None, 1000), (7, Some(1), 40)]));
    let mut again = members(&[(1, None, 1000), (7, Some(1), 5)]);
    again.get_mut(&7).unwrap().start_ticks = 99;
    all.take(again);
    assert_eq!(all.totals().read_bytes, 45);
}

fn looked(path: &str, position: u64, append: bool) -> Looked {
    Looked {
        file: OpenedFile {
            path: Ok(path.to_owned()),
            kind: FileKind::Regular,
            deleted: false,
            direct: Ok(false),
            synchronous: Ok(false),
            append: Ok(append),
            size_bytes: Ok(1000 + position),
        },
        device: 1,
        inode: path.len() as u64,
        position: Ok(position),
        access: Ok(Access { reads: !append, writes: append }),
        on_exec: OnExec::Closes,
        at_ns: 0,
    }
}

fn positions(looks: Vec<Vec<(u32, u32, Looked)>>) -> Vec<SampledFile> {
    let mut sampler = Sampler::begin(&[]);
    for look in looks {
        sampler.take(look.into_iter().map(|(pid, fd, it)| ((pid, fd), it)).collect());
    }
    sampler.finish().files
}

#[test]
fn positions_are_followed_from_look_to_look() {
    let looks = [10, 30, 20, 90].map(|at| vec![(1, 3, looked("/a", at, false))]);
    let files = positions(looks.into());
    let expected = Position { forward_bytes: 10 + 20 + 70, forward: 3, backward: 1 };
    assert_eq!((files.len(), files[0].position), (1, Some(expected)));
    assert_eq!((files[0].grown_bytes, files[0].size_bytes), (Some(80), Some(1090)));
    assert_eq!((files[0].reads, files[0].writes), (true, false));
}

/// A copy of a descriptor, inherited or made, is no other opening; what is appended begins at the
/// end.
#[test]
fn a_copy_moves_nothing_and_an_end_is_no_progress() {
    let of = |at| looked("/a", at, false);
    let files = positions(vec![
        vec![(1, 3, of(10))],
        vec![(1, 3, of(50)), (2, 0, of(52))],
        vec![(1, 3, of(60)), (2, 0, of(61))],
    ]);
    assert_eq!(files[0].forward_bytes(), 61);
    assert_eq!(files[0].processes, 2);
    let files = positions(vec![
        vec![(1, 3, looked("/b", 0, true))],
        vec![(1, 3, looked("/b", 5000, true))],
        vec![(1, 3, looked("/b", 5600, true))],
    ]);
    assert_eq!((files[0].forward_bytes(), files[0].grown_bytes), (600, Some(5600)));
    assert_eq!(files[0].append, Some(true));
}

#[test]
fn what_was_opened_in_two_ways_is_neither() {
    let mut direct = looked("/a", 0, false);
    direct.file.direct = Ok(true);
    let files = positions(vec![vec![(1, 3, looked("/a", 0, false)), (1, 4, direct)]]);
    assert_eq!((files[0].direct, files[0].synchronous), (None, Some(false)));
    let sampled = Sampled { files, ..none() };
    let document = document(&sampled, "why");
    let file = &document["files"][0];
    assert_eq!(file["direct"], Value::Null);
    assert!(file["unknown"]["direct"].as_str().unwrap().contains("with and without"));
}

fn none() -> Sampled {
    Sampled {
        seconds: 1.0,
        looks: 51,
        processes: 1,
        totals: Totals::default(),
        files: Vec::new(),
        files_left_out: 0,
        has_rings: false,
        refused: 0,
    }
}

/// Whatever a recording has, this has too, or `null` with a reason.
#[test]
fn every_field_of_a_recording_is_there_or_has_a_reason() {
    let mut profiler = Profiler::new(ProfileLimits::default());
    use crate::operation::Recording as _;
    profiler.file(0, &looked("/a", 0, false).file);
    let operation = crate::operation::FileOperation {
        start_ns: 0,
        duration_ns: Ok(1),
        process: 1,
        thread: 1,
        file: 0,
        engine: crate::operation::Engine::Sync,
        asked: crate::operation::Asked::Read,
        offset_bytes: Err(Unknown::Position),
        asked_bytes: Ok(10),
        done_bytes: Ok(10),
        synchronous: false,
        in_flight: Ok(1),
        error: 0,
    };
    profiler.operation(&operation);
    let profile = profiler.profile();
    let recorded = serde_json::to_value(presentation::document(&profile)).unwrap();
    let files = positions(vec![vec![(1, 3, looked("/a", 7, false))]]);
    let sampled = document(&Sampled { files, ..none() }, "why");
    let check = |recorded: &Value, sampled: &Value| {
        for name in recorded.as_object().unwrap().keys() {
            let value = sampled.get(name).unwrap_or_else(|| panic!("no {name}"));
            let has_reason = sampled["unknown"][name.as_str()].is_string();
            assert!(value.is_null() == has_reason, "{name}: {value}");
        }
    };
    check(&recorded, &sampled);
    check(&recorded["files"][0], &sampled["files"][0]);
    assert_eq!(sampled["files"][0]["calls"], Value::Null);
    assert_eq!(sampled["lost_events"], Value::Null);
}

#[test]
fn sentences_say_what_it_is_and_what_is_in_no_position() {
    let file = |path: &str, position: Position| SampledFile {
        path: path.to_owned(),
        class: None,
        kind: FileKind::Regular,
        reads: true,
        writes: false,
        direct: Some(false),
        synchronous: Some(false),
        append: Some(false),
        size_bytes: Some(1 << 30),
        grown_bytes: Some(0),
        position: Some(position),
        processes: 1,
    };
    let of = |forward_bytes, forward, backward| Position { forward_bytes, forward, backward };
    let sampled = Sampled {
        totals: Totals {
            read_calls: 1000,
            read_bytes: 100 << 20,
            device_read_bytes: 200 << 20,
            ..Totals::default()
        },
        files: vec![
            file("/srv/a/in-order", of(40 << 20, 30, 0)),
            file("/srv/a/at-random", of(10 << 20, 20, 18)),
            file("/srv/a/still", of(0, 0, 0)),
        ],
        has_rings: true,
        refused: 1,
        ..none()
    };
    let text = text(&sampled, "the reason", report::table::Colour::Plain);
    let expected = "\
No calls were recorded: the reason.
Takeup sampled /proc instead: 1 process, 51 samples in 1.00 s, one every 20 ms.

         calls   bytes  a call  devices
read     1 000  105 MB  105 kB   210 MB
written      0     0 B       -      0 B

file              class  opened for    moved  forward  back  grown  direct  synchronous
/srv/a/in-order   ?      reading     41.9 MB       30     0    0 B      no           no
/srv/a/at-random  ?      reading     10.5 MB       20    18    0 B      no           no
/srv/a/still      ?      reading         0 B        0     0    0 B      no           no

- warning: no calls were recorded: the reason: these are samples of /proc
- 1 000 calls have read 105 MB, pipes and sockets included
- a/in-order: open for reading: its position moved forward by 41.9 MB, never back in 30 samples: \
in order, as far as samples show
- a/at-random: open for reading: its position moved forward by 10.5 MB, back in 18 of 38 samples: \
not in order
- 52.4 MB (50 %) of the bytes of calls moved no sampled position: they went through pread and \
pwrite, pipes and sockets, or files that no sample found open
- 105 MB (50 %) of the reads from devices came from no read call: they are read-ahead, or of \
mapped files, io_uring or libaio
- not known: the calls, their sizes, order and depth, pauses and syncs
- pread, pwrite, mapped files, io_uring and libaio move no position: at most the counters of the \
process include them
- files that are open for less than 20 ms may be missing
- a process uses io_uring: its requests are not in the counted calls
- 1 child process belongs to another user, and these numbers leave it out
";
    assert_eq!(text, expected);
}

/// A real process and what it starts: its position is followed, its counts are exact once it was
/// waited for.
#[test]
fn a_real_process_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    std::fs::write(&path, vec![7; 300_000]).unwrap();
    // A line on its standard input lets it go on.
    let script = "read go; head -c 100000 <&3; read go; head -c 100000 <&3; read go";
    let shell = format!("exec 3<{}; {script}", path.display());
    let mut child = Command::new("sh")
        .args(["-c", &shell])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut sampler = Sampler::begin(&[child.id()]);
    let mut read = vec![0; 100_000];
    for _ in 0..2 {
        use std::io::{Read as _, Write as _};
        input.write_all(b"\n").unwrap();
        output.read_exact(&mut read).unwrap();
        sampler.look();
    }
    drop(input);
    let (sampled, status) = sampler.finish_with(child.id(), || child.wait().unwrap());
    // The third line never came.
    assert_eq!(status.code(), Some(1));
    let data = sampled.files.iter().find(|it| it.path.ends_with("/data")).unwrap();
    let position = data.position.unwrap();
    assert_eq!((position.forward_bytes, position.backward), (200_000, 0));
    assert_eq!((data.reads, data.writes, data.size_bytes), (true, false, Some(300_000)));
    assert_eq!(sampled.totals.written_bytes, 200_000);
    assert!(sampled.totals.read_bytes >= 200_000 && sampled.totals.write_calls >= 2, "{sampled:?}");
}
