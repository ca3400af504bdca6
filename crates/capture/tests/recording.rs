//! Recordings of this process by the real kernel: what is called is known, so what is recorded has
//! to be the same.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::mpsc::channel;

use capture::trace::{Event, Recorder, RecorderOptions, TraceError, Tracefs, WantedEvent};

const EVENTS: &[WantedEvent] = &[
    WantedEvent::new("syscalls", "sys_enter_pread64", &["fd", "count", "pos"]),
    WantedEvent::new("syscalls", "sys_exit_pread64", &["ret", "no_such_field"]),
];
const OUR_BUFFERS: u64 = 8 << 20;

fn options(threads: &[u32], buffer_bytes: u64) -> RecorderOptions<'_> {
    RecorderOptions { events: EVENTS, everywhere: &[], threads, buffer_bytes }
}

fn own_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()
}

/// Reads one byte at so many places of a file without holes.
fn read_places(file: &File, places: u64) {
    let mut byte = [0];
    for at in 0..places {
        file.read_exact_at(&mut byte, at).unwrap();
    }
}

fn file_of(bytes: usize) -> File {
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(&vec![7; bytes], 0).unwrap();
    file
}

fn rest(recorder: &mut Recorder) -> Vec<Event> {
    let mut events = Vec::new();
    recorder.stop().unwrap();
    recorder.read_rest(usize::MAX, &mut |event| events.push(event)).unwrap();
    events
}

/// Every call of the thread is there once, in order, with its arguments; those of others are not.
fn check_calls(tracefs: &Tracefs) {
    let file = file_of(1000);
    let mut recorder = Recorder::new(tracefs, &options(&[own_thread()], OUR_BUFFERS)).unwrap();
    recorder.start().unwrap();
    // The answer of the other thread comes by a channel, so that it is ours that waits for it.
    let (tell, told) = channel();
    let other = file.try_clone().unwrap();
    let (go, wait) = channel::<()>();
    let reader = std::thread::spawn(move || {
        wait.recv().unwrap();
        tell.send(own_thread()).unwrap();
        read_places(&other, 10);
    });
    read_places(&file, 1000);
    go.send(()).unwrap();
    let other_thread = told.recv().unwrap();
    reader.join().unwrap();
    let events = rest(&mut recorder);
    let own: Vec<&Event> = events.iter().filter(|event| event.thread == own_thread()).collect();
    assert_eq!(own.len(), 2000);
    for (at, pair) in own.chunks(2).enumerate() {
        let (enter, exit) = (pair[0], pair[1]);
        assert_eq!((enter.kind, exit.kind), (0, 1));
        assert!(enter.time_ns <= exit.time_ns && exit.time_ns < capture::trace::now_ns());
        let descriptor = u64::try_from(file.as_raw_fd()).unwrap();
        let values = [0, 1, 2].map(|field| enter.value(field));
        assert_eq!(values, [Some(descriptor), Some(1), Some(at as u64)]);
        assert_eq!((exit.value(0), exit.value(1)), (Some(1), None));
    }
    // What a recorded thread starts is recorded with it.
    assert_eq!(events.iter().filter(|event| event.thread == other_thread).count(), 20);
    assert_eq!(events.len(), 2020);
    assert!(events.is_sorted_by_key(|event| event.time_ns));
    assert_eq!(recorder.lost().unwrap(), 0);
    assert_eq!(recorder.broken_pages(), 0);
}

#[test]
fn each_call_of_a_thread_is_there_once() {
    testkit::require!(Tracefs);
    check_calls(&Tracefs::open().unwrap());
}

#[test]
fn a_mount_that_nobody_sees_will_do() {
    testkit::require!(Tracefs);
    let before = fs::read_to_string("/proc/self/mounts").unwrap();
    let tracefs = Tracefs::mount().unwrap();
    check_calls(&tracefs);
    assert_eq!(fs::read_to_string("/proc/self/mounts").unwrap(), before);
}

/// Recording takes time, and not so much that a call of some µs becomes one of ms.
#[test]
fn what_it_costs_is_measured() {
    testkit::require!(Tracefs);
    let cost = capture::trace::Cost::measure(&Tracefs::open().unwrap()).unwrap();
    assert!(cost.alone_ns > 0.0 && cost.alone_ns < cost.recorded_ns, "{cost:?}");
    assert!((0.0..1e-3).contains(&cost.event_seconds()), "{cost:?}");
}

/// What was read and what was lost are together what was called.
#[test]
fn what_a_small_buffer_has_no_room_for_is_counted() {
    testkit::require!(Tracefs);
    let tracefs = Tracefs::open().unwrap();
    let file = file_of(100_000);
    let mut recorder = Recorder::new(&tracefs, &options(&[own_thread()], 128 << 10)).unwrap();
    recorder.start().unwrap();
    read_places(&file, 100_000);
    let events = rest(&mut recorder);
    let lost = recorder.lost().unwrap();
    assert!(lost > 0 && !events.is_empty(), "{lost} lost, {} read", events.len());
    assert_eq!(events.len() as u64 + lost, 200_000);
    assert!(recorder.has_missed() || events.last().is_some_and(|it| it.kind == 1));
    assert_eq!(recorder.lost().unwrap(), 0);
}

/// However many calls were recorded before it, an urgent one is told at once, and has its turn
/// afterwards.
#[test]
fn an_urgent_event_is_told_before_its_turn() {
    testkit::require!(Tracefs);
    let wanted = |name, fields| WantedEvent::new("syscalls", name, fields);
    let events = [EVENTS[0], EVENTS[1], wanted("sys_enter_dup", &["fildes"]).urgent()];
    let threads = [own_thread()];
    let options = RecorderOptions {
        events: &events,
        everywhere: &[],
        threads: &threads,
        buffer_bytes: 16 << 20,
    };
    let tracefs = Tracefs::open().unwrap();
    let mut recorder = Recorder::new(&tracefs, &options).unwrap();
    let file = file_of(10_000);
    recorder.start().unwrap();
    read_places(&file, 5000);
    let second = file.try_clone().unwrap();
    let third = rustix::io::dup(&second).unwrap();
    read_places(&file, 100);
    recorder.stop().unwrap();
    let mut told = Vec::new();
    recorder.look_ahead_at_rest(&mut |event| told.push(*event)).unwrap();
    let descriptor = u64::try_from(second.as_raw_fd()).unwrap();
    assert_eq!(
        told.iter().map(|it| (it.kind, it.value(0))).collect::<Vec<_>>(),
        [(2, Some(descriptor))]
    );
    drop(third);
    let mut all = Vec::new();
    recorder.read_rest(1000, &mut |event| all.push(event)).unwrap();
    assert!((1000..10_000).contains(&all.len()), "{}", all.len());
    recorder.look_ahead_at_rest(&mut |event| panic!("told twice: {event:?}")).unwrap();
    recorder.read_rest(usize::MAX, &mut |event| all.push(event)).unwrap();
    assert_eq!(all.len(), 10_201);
    assert_eq!(all[10_000], told[0]);
    assert!(all.is_sorted_by_key(|event| event.time_ns));
}

#[test]
fn what_this_kernel_lacks_is_told() {
    testkit::require!(Tracefs);
    let tracefs = Tracefs::open().unwrap();
    let lacking = WantedEvent::new("syscalls", "sys_enter_nothing", &[]);
    let events = [EVENTS[0], lacking];
    let threads = [own_thread()];
    let of = |events| RecorderOptions {
        events,
        everywhere: &[],
        threads: &threads,
        buffer_bytes: 1 << 20,
    };
    let recorder = Recorder::new(&tracefs, &of(&events)).unwrap();
    assert_eq!(recorder.missing(), ["syscalls:sys_enter_nothing"]);
    let error = Recorder::new(&tracefs, &of(&events[1..])).unwrap_err();
    assert!(matches!(error, TraceError::NoEvents), "{error}");
}

/// Whoever was killed leaves an instance, which the next one removes; its own goes by itself.
#[test]
fn nothing_is_left_behind() {
    testkit::require!(Tracefs);
    let instances = Path::new("/sys/kernel/tracing/instances");
    if !instances.exists() {
        testkit::does_not_apply!("tracefs is not mounted where it usually is");
    }
    let left = instances.join("takeup-4194304-1-0");
    fs::create_dir(&left).unwrap();
    let of_others = instances.join("takeup-4194304-mine");
    fs::create_dir(&of_others).unwrap();
    let mine = format!("takeup-{}-", std::process::id());
    let own = || {
        let all = fs::read_dir(instances).unwrap().flatten();
        let names = all.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| name.starts_with(&mine)).count()
    };
    let tracefs = Tracefs::open().unwrap();
    let threads = [own_thread()];
    let recorder = Recorder::new(&tracefs, &options(&threads, 1 << 20)).unwrap();
    let was_there = (left.exists(), of_others.exists(), own() > 0);
    drop(recorder);
    fs::remove_dir(&of_others).unwrap();
    assert_eq!(was_there, (false, true, true));
}
