//! Events made by hand, of processes that there are not, so that nothing can be looked up.

use std::collections::BTreeSet;

use crate::trace::Event;

use super::calls::{events, events_everywhere};
use super::follower::Follower;
use crate::operation::{
    Asked, Engine, FileNumber, FileOperation, Known, OpenedFile, Recording, SyncCall, Unknown,
};

/// Beyond all numbers of processes (`PID_MAX_LIMIT`).
const PROCESS: u32 = 5_000_000;
const CLONE_THREAD: u64 = 0x1_0000;

#[derive(Default)]
struct Kept {
    files: Vec<OpenedFile>,
    operations: Vec<FileOperation>,
    lost: u64,
    depths: Vec<(FileNumber, Vec<(u32, u64)>)>,
}

impl Recording for Kept {
    fn file(&mut self, number: FileNumber, file: &OpenedFile) {
        assert_eq!(number as usize, self.files.len());
        self.files.push(file.clone());
    }

    fn file_again(&mut self, _: FileNumber, _: &OpenedFile) {}

    fn operation(&mut self, operation: &FileOperation) {
        self.operations.push(*operation);
    }

    fn lost(&mut self, events: u64) {
        self.lost += events;
    }

    fn depths(&mut self, file: FileNumber, counts: &[(u32, u64)]) {
        self.depths.push((file, counts.to_vec()));
    }
}

/// Events one after the other, 10 ns apart.
#[derive(Default)]
struct Story {
    events: Vec<Event>,
}

impl Story {
    /// A process starts, and everything it does is its own.
    fn of_a_process() -> Story {
        let mut story = Story::default();
        story.event(1, "task_newtask", &[PROCESS.into(), 0]);
        story
    }

    fn event(&mut self, thread: u32, name: &str, values: &[u64]) {
        let mut all = events();
        all.extend_from_slice(events_everywhere());
        let kind = all.iter().position(|wanted| wanted.name == name).unwrap();
        let time_ns = 1000 + 10 * self.events.len() as u64;
        self.events.push(Event::made(time_ns, thread, u16::try_from(kind).unwrap(), values));
    }

    fn call(&mut self, thread: u32, name: &str, values: &[u64], answer: i64) {
        self.event(thread, &format!("sys_enter_{name}"), values);
        self.event(thread, &format!("sys_exit_{name}"), &[answer.cast_unsigned()]);
    }

    /// The process ran when the recording began.
    fn told_of_one_that_ran(self) -> Kept {
        let mut follower = Follower::new();
        let mut kept = Kept::default();
        follower.meet(&BTreeSet::from([PROCESS]), &mut kept);
        take(&mut follower, &self.events, &mut kept);
        follower.finish(&mut kept);
        kept
    }

    fn told(self) -> Kept {
        let mut follower = Follower::new();
        let mut kept = Kept::default();
        take(&mut follower, &self.events, &mut kept);
        follower.finish(&mut kept);
        kept
    }
}

/// As a session does: what changes descriptors is looked at first.
fn take(follower: &mut Follower, events: &[Event], kept: &mut Kept) {
    let all = super::calls::events();
    let urgent = |event: &&Event| all.get(usize::from(event.kind)).is_some_and(|it| it.is_urgent);
    events.iter().filter(urgent).for_each(|event| follower.look_ahead(event));
    follower.take(events.to_vec(), kept);
}

fn offsets(kept: &Kept) -> Vec<Known<u64>> {
    kept.operations.iter().map(|operation| operation.offset_bytes).collect()
}

#[test]
fn a_position_goes_on_with_what_is_read_and_where_it_is_set() {
    let mut story = Story::of_a_process();
    story.call(PROCESS, "openat", &[0], 7);
    story.call(PROCESS, "read", &[7, 100], 100);
    story.call(PROCESS, "read", &[7, 100], 40);
    story.call(PROCESS, "pread64", &[7, 8, 5], 8);
    story.call(PROCESS, "lseek", &[7], 4096);
    story.call(PROCESS, "write", &[7, 10], -28);
    story.call(PROCESS, "write", &[7, 10], 10);
    story.call(PROCESS, "readv", &[7], 6);
    let kept = story.told();
    let expected = [0, 100, 5, 4096, 4096, 4106].map(Ok);
    assert_eq!(offsets(&kept), expected);
    let second = &kept.operations[1];
    assert_eq!((second.asked_bytes, second.done_bytes), (Ok(100), Ok(40)));
    assert_eq!((second.engine, second.asked), (Engine::Sync, Asked::Read));
    let failed = &kept.operations[3];
    assert_eq!((failed.error, failed.done_bytes), (28, Ok(0)));
    assert_eq!(kept.operations[2].engine, Engine::Psync);
    assert_eq!(kept.operations[0].duration_ns, Ok(10));
    assert_eq!(kept.files[0].path, Err(Unknown::Closed));
    assert_eq!(kept.files[0].direct, Ok(false));
}

/// dup and fork share the position, a second open does not.
#[test]
fn a_position_is_that_of_the_open_file() {
    let child = PROCESS + 1;
    let mut story = Story::of_a_process();
    story.call(PROCESS, "openat", &[0], 3);
    story.call(PROCESS, "dup", &[3], 4);
    story.call(PROCESS, "openat", &[0], 5);
    story.event(PROCESS, "task_newtask", &[child.into(), 0]);
    story.call(PROCESS, "read", &[3, 10], 10);
    story.call(child, "read", &[4, 10], 10);
    story.call(child, "read", &[5, 10], 10);
    story.call(PROCESS, "close", &[3], 0);
    story.call(PROCESS, "fcntl", &[4, 0, 9], 9);
    story.call(PROCESS, "read", &[9, 10], 10);
    // Closed: whatever has the number now is something else.
    story.call(PROCESS, "read", &[3, 10], 10);
    let kept = story.told();
    let expected = [Ok(0), Ok(10), Ok(0), Ok(20), Err(Unknown::Closed)];
    assert_eq!(offsets(&kept), expected);
    assert_eq!(kept.operations[1].process, child);
}

/// Whoever runs another program keeps what was not to be closed then; that `/proc` does not show it
/// any more when the event is read says nothing of what was written to it before. This process
/// has none of these descriptors.
#[test]
fn a_program_has_what_was_not_to_be_closed() {
    let process = std::process::id();
    let close = u64::from(rustix::fs::OFlags::CLOEXEC.bits());
    let mut story = Story::default();
    for descriptor in [900, 903, 904, 905] {
        story.call(process, "openat", &[0], descriptor);
    }
    story.call(process, "openat", &[close], 901);
    story.call(process, "dup", &[901], 902);
    story.call(process, "fcntl", &[903, 2, 1], 0);
    story.call(process, "dup3", &[904, 906, close], 906);
    story.call(process, "close_range", &[905, 905, 4], 0);
    story.event(process, "sched_process_exec", &[process.into(), process.into()]);
    let all = 900..=906;
    for descriptor in all.clone() {
        story.call(process, "write", &[descriptor, 10], 10);
    }
    let kept = story.told();
    let written = all.zip(kept.operations.iter().map(|it| it.offset_bytes.is_ok()));
    let left: Vec<u64> = written.filter(|it| it.1).map(|it| it.0).collect();
    assert_eq!(left, [900, 902, 904]);
}

#[test]
fn what_is_appended_goes_wherever_the_end_is() {
    let mut story = Story::of_a_process();
    let append = u64::from(rustix::fs::OFlags::APPEND.bits());
    story.call(PROCESS, "openat", &[append], 3);
    story.call(PROCESS, "write", &[3, 10], 10);
    let kept = story.told();
    assert_eq!(offsets(&kept), [Err(Unknown::NotRecorded)]);
    assert_eq!(kept.files[0].append, Ok(true));
}

#[test]
fn threads_are_of_their_process_and_in_flight_together() {
    let second = PROCESS + 7;
    let mut story = Story::of_a_process();
    story.event(PROCESS, "task_newtask", &[second.into(), CLONE_THREAD]);
    story.call(PROCESS, "openat", &[0], 3);
    story.event(PROCESS, "sys_enter_pread64", &[3, 10, 0]);
    story.event(second, "sys_enter_pread64", &[3, 10, 50]);
    story.event(PROCESS, "sys_exit_pread64", &[10]);
    story.call(PROCESS, "fdatasync", &[3], 0);
    story.event(second, "sys_exit_pread64", &[10]);
    story.event(second, "sys_enter_pwrite64", &[3, 10, 70]);
    let kept = story.told();
    let found: Vec<(u32, Known<u32>)> =
        kept.operations.iter().map(|it| (it.thread, it.in_flight)).collect();
    let expected = [(PROCESS, Ok(1)), (PROCESS, Ok(2)), (second, Ok(2)), (second, Ok(1))];
    assert_eq!(found, expected);
    assert_eq!(kept.operations[1].asked, Asked::Sync(SyncCall::Fdatasync));
    assert!(kept.operations.iter().all(|operation| operation.process == PROCESS));
    assert_eq!(kept.operations[3].duration_ns, Err(Unknown::NotEnded));
}

#[test]
fn a_request_of_a_ring_is_in_flight_from_submission_to_completion() {
    let mut story = Story::of_a_process();
    let direct = u64::from(rustix::fs::OFlags::DIRECT.bits());
    story.call(PROCESS, "openat", &[direct], 3);
    for request in [1, 2] {
        story.event(PROCESS, "io_uring_submit_req", &[9, request, 22, 0]);
        story.event(PROCESS, "io_uring_file_get", &[9, request, 3]);
    }
    story.event(PROCESS, "io_uring_complete", &[9, 2, 4096]);
    story.event(PROCESS, "io_uring_complete", &[9, 1, 4096]);
    // Somebody else's ring, and a file that was registered.
    story.event(PROCESS + 50, "io_uring_submit_req", &[8, 1, 22, 0]);
    story.event(PROCESS + 50, "io_uring_complete", &[8, 1, 4096]);
    story.event(PROCESS, "io_uring_submit_req", &[9, 3, 5, 1]);
    story.event(PROCESS, "io_uring_complete", &[9, 3, (-5_i64).cast_unsigned()]);
    let kept = story.told();
    let [second, first, registered] = kept.operations.as_slice() else {
        panic!("{:?}", kept.operations)
    };
    assert_eq!((second.in_flight, first.in_flight), (Ok(2), Ok(1)));
    assert_eq!((first.asked_bytes, first.offset_bytes), (Ok(4096), Err(Unknown::OffsetOfRing)));
    assert_eq!(first.duration_ns, Ok(50));
    let path = &kept.files[registered.file as usize].path;
    assert_eq!((path, registered.error), (&Err(Unknown::RegisteredFile), 5));
    assert_eq!(registered.in_flight, Err(Unknown::DoneAtOnce));
}

/// One that a thread of the kernel's reads is in flight, and those that the page cache answers
/// meanwhile are not: the program would have kept more.
#[test]
fn what_the_page_cache_answers_beside_others_was_not_in_flight() {
    let mut story = Story::of_a_process();
    story.call(PROCESS, "openat", &[0], 3);
    let submit = |story: &mut Story, request| {
        story.event(PROCESS, "io_uring_submit_req", &[9, request, 22, 0]);
        story.event(PROCESS, "io_uring_file_get", &[9, request, 3]);
    };
    submit(&mut story, 1);
    story.event(PROCESS, "io_uring_queue_async_work", &[9, 1]);
    submit(&mut story, 2);
    story.event(PROCESS, "io_uring_complete", &[9, 2, 4096]);
    // These two wait for their pages, one longer than the other.
    submit(&mut story, 3);
    submit(&mut story, 4);
    story.event(PROCESS, "io_uring_complete", &[9, 3, 4096]);
    story.event(PROCESS, "io_uring_complete", &[9, 4, 4096]);
    story.event(PROCESS, "io_uring_complete", &[9, 1, 4096]);
    let kept = story.told();
    let found: Vec<_> = kept.operations.iter().map(|it| it.in_flight).collect();
    assert_eq!(found, [Err(Unknown::DoneAtOnce), Ok(2), Ok(3), Ok(1)]);
}

#[test]
fn requests_of_libaio_are_seen_where_the_device_is_given_them() {
    let device = 254 << 20 | 1;
    let write = u64::from_ne_bytes(*b"WS\0\0\0\0\0\0");
    let read = u64::from_ne_bytes(*b"R\0\0\0\0\0\0\0");
    let mut story = Story::of_a_process();
    let direct = u64::from(rustix::fs::OFlags::DIRECT.bits());
    story.call(PROCESS, "openat", &[direct], 3);
    story.event(PROCESS, "sys_enter_io_submit", &[77]);
    story.event(PROCESS, "block_bio_queue", &[device, 8, write]);
    story.event(PROCESS, "block_bio_queue", &[device, 16, read]);
    story.event(PROCESS, "sys_exit_io_submit", &[2]);
    story.call(PROCESS, "io_submit", &[77], 1);
    story.call(PROCESS, "io_getevents", &[77], 2);
    let mut follower = Follower::new();
    let mut kept = Kept::default();
    take(&mut follower, &story.events, &mut kept);
    follower.finish(&mut kept);
    let found: Vec<_> =
        kept.operations.iter().map(|it| (it.asked, it.asked_bytes, it.in_flight)).collect();
    assert_eq!(found, [(Asked::Write, Ok(4096), Ok(1)), (Asked::Read, Ok(8192), Ok(2))]);
    // Of the third nothing was given to a device while it was submitted.
    assert!(follower.unseen()[0].starts_with("1 request"), "{:?}", follower.unseen());
    assert!(kept.operations.iter().all(|it| it.duration_ns == Err(Unknown::RequestOfAio)));
}

/// An end without its beginning, and a beginning whose end is lost, are no operations.
#[test]
fn what_had_begun_when_events_were_lost_is_forgotten() {
    let mut follower = Follower::new();
    let mut kept = Kept::default();
    let mut story = Story::of_a_process();
    story.call(PROCESS, "openat", &[0], 3);
    story.event(PROCESS, "sys_enter_read", &[3, 10]);
    take(&mut follower, &story.events, &mut kept);
    follower.take(Vec::new(), &mut kept);
    follower.lose(5, &mut kept);
    let mut story = Story::default();
    story.event(PROCESS, "sys_exit_read", &[10]);
    story.call(PROCESS, "read", &[3, 10], 10);
    take(&mut follower, &story.events, &mut kept);
    follower.finish(&mut kept);
    assert_eq!(kept.lost, 5);
    assert_eq!(kept.operations.len(), 1);
    assert_eq!(kept.operations[0].offset_bytes, Err(Unknown::Position));
    assert_eq!(kept.operations[0].in_flight, Ok(1));
}

/// What was submitted before the recording began is in flight, and how much that is is not seen.
#[test]
fn requests_of_libaio_of_before_the_recording_have_no_known_depth() {
    let mut story = Story::default();
    for _ in 0..4 {
        story.call(PROCESS, "io_getevents", &[9], 1);
        story.event(PROCESS, "sys_enter_io_submit", &[9]);
        story.event(PROCESS, "block_bio_queue", &[0x80_0001, 8, u64::from(b'R')]);
        story.event(PROCESS, "sys_exit_io_submit", &[1]);
    }
    let kept = story.told_of_one_that_ran();
    assert_eq!(kept.operations.len(), 4);
    for operation in &kept.operations {
        let reason = operation.in_flight.unwrap_err().reason();
        assert!(reason.contains("when the recording began"), "{reason}");
    }
}

/// All of them were fetched when the process ends, so that it is known then.
#[test]
fn how_many_were_in_flight_before_the_recording_is_known_at_the_end() {
    let mut story = Story::default();
    let submit = |story: &mut Story, sector: u64| {
        story.event(PROCESS, "sys_enter_io_submit", &[9]);
        story.event(PROCESS, "block_bio_queue", &[0x80_0001, 8, u64::from(b'W'), sector]);
        story.event(PROCESS, "sys_exit_io_submit", &[1]);
    };
    for number in 0..3 {
        story.call(PROCESS, "io_getevents", &[9], 1);
        submit(&mut story, 800 * number);
    }
    story.call(PROCESS, "io_getevents", &[9], 5);
    story.event(PROCESS, "sys_enter_exit_group", &[]);
    let kept = story.told_of_one_that_ran();
    // Five were in flight whenever one more was asked for, that one included.
    assert_eq!(kept.depths, [(kept.operations[0].file, vec![(5, 3)])]);
    assert_eq!(offsets(&kept), [Ok(0), Ok(800 * 512), Ok(1600 * 512)]);
}

/// Who is killed has not fetched what was in flight.
#[test]
fn a_process_that_is_killed_leaves_the_depth_unknown() {
    let mut story = Story::default();
    for number in 0..3 {
        story.call(PROCESS, "io_getevents", &[9], 2);
        for at in 0..2 {
            story.event(PROCESS, "sys_enter_io_submit", &[9]);
            let sector = 8 * (number + at);
            story.event(PROCESS, "block_bio_queue", &[0x80_0001, 8, u64::from(b'R'), sector]);
            story.event(PROCESS, "sys_exit_io_submit", &[1]);
        }
    }
    story.event(PROCESS, "sys_enter_exit_group", &[]);
    assert_eq!(story.told_of_one_that_ran().depths, []);
}

/// After a loss the same holds: how many were submitted meanwhile is not known.
#[test]
fn requests_of_libaio_have_no_known_depth_after_a_loss() {
    let mut story = Story::of_a_process();
    story.call(PROCESS, "io_getevents", &[9], 1);
    story.event(PROCESS, "sys_enter_io_submit", &[9]);
    story.event(PROCESS, "block_bio_queue", &[0x80_0001, 8, u64::from(b'R'), 8]);
    story.event(PROCESS, "sys_exit_io_submit", &[1]);
    let (first, rest) = story.events.split_at(1);
    let mut follower = Follower::new();
    let mut kept = Kept::default();
    take(&mut follower, first, &mut kept);
    follower.take(Vec::new(), &mut kept);
    follower.lose(7, &mut kept);
    take(&mut follower, rest, &mut kept);
    follower.finish(&mut kept);
    assert_eq!(kept.operations[0].in_flight, Err(Unknown::BegunBefore));
}

/// While a direct request is submitted to a ring the block layer is asked for its place.
#[test]
fn direct_requests_of_a_ring_have_a_place_on_the_device() {
    let mut story = Story::of_a_process();
    story.call(PROCESS, "openat", &[u64::from(libc::O_DIRECT.cast_unsigned())], 3);
    for (number, sector) in [(1, 4096), (2, 88)] {
        story.event(PROCESS, "io_uring_submit_req", &[1, number, 22, 0]);
        story.event(PROCESS, "io_uring_file_get", &[1, number, 3]);
        story.event(PROCESS, "block_bio_queue", &[0x80_0001, 0, u64::from(b'W'), 5]);
        story.event(PROCESS, "block_bio_queue", &[0x80_0001, 8, u64::from(b'R'), sector]);
        story.event(PROCESS, "block_bio_queue", &[0x80_0001, 8, u64::from(b'R'), sector + 8]);
    }
    story.event(PROCESS, "io_uring_complete", &[1, 2, 8192]);
    story.event(PROCESS, "io_uring_complete", &[1, 1, 8192]);
    assert_eq!(offsets(&story.told()), [Ok(88 * 512), Ok(4096 * 512)]);
}

/// `cp -r` of small files closes each before it can be looked up; copy_file_range(2) takes files
/// only, sendfile(2) reads one, and of splice(2) nobody can know.
#[test]
fn what_is_moved_within_the_kernel_counts_also_where_no_name_is_known() {
    let mut story = Story::of_a_process();
    for _ in 0..3 {
        story.call(PROCESS, "openat", &[0], 3);
        story.call(PROCESS, "openat", &[1], 4);
        story.call(PROCESS, "copy_file_range", &[3, 4, 1 << 40, 0, 0], 700);
        story.call(PROCESS, "copy_file_range", &[3, 4, 1 << 40, 0, 0], 0);
        story.call(PROCESS, "close", &[4], 0);
        story.call(PROCESS, "close", &[3], 0);
    }
    story.call(PROCESS, "sendfile64", &[8, 9, 50, 0], 50);
    story.call(PROCESS, "splice", &[10, 11, 60, 0, 0], 60);
    let mut follower = Follower::new();
    let mut kept = Kept::default();
    take(&mut follower, &story.events, &mut kept);
    follower.finish(&mut kept);
    let moved = |asked| {
        let of = kept.operations.iter().filter(move |it| it.asked == asked);
        of.map(|it| it.done_bytes.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(moved(Asked::Read), [700, 0, 700, 0, 700, 0, 50]);
    assert_eq!(moved(Asked::Write), [700, 0, 700, 0, 700, 0]);
    assert!(kept.operations.iter().all(|it| it.engine == Engine::Splice));
    let unseen = follower.unseen();
    assert!(unseen.len() == 1 && unseen[0].starts_with("2 calls of splice"), "{unseen:?}");
}
