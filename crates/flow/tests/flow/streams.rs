//! The reading and writing stages from end to end: streams and files, whole and broken.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Instant;

use flow::account::Stage;
use flow::backend::Choice;
use flow::cancel::{Cancel, Stopped};
use flow::restart::Restart;
use flow::ring::{RingOptions, ring};
use flow::run::{StageKind, StageReport};
use flow::sink::{FileSink, Sink, StreamSink, WriteError, WriteOptions, write_all};
use flow::source::{ReadError, read_file, read_stream};
use proptest::prelude::*;

use crate::backends::choices;
use crate::bytes_at;

/// From where, with which back end.
enum From {
    Stream(OwnedFd),
    File(Arc<OwnedFd>, u64, Choice),
}

type Results = (Result<u64, ReadError>, Result<u64, WriteError>, [StageReport; 2]);

/// A copy through a ring of `blocks` blocks of `block_bytes`.
fn copy(
    from: From,
    mut sink: Box<dyn Sink<Error = WriteError>>,
    cancel: &Cancel,
    block_bytes: usize,
) -> Results {
    let options = RingOptions { block_bytes, blocks: 5, consumers: 1 };
    let (producer, mut consumers) = ring(options, cancel.clone()).unwrap();
    let consumer = consumers.remove(0);
    let (read, write) = (Stage::new(StageKind::Read), Stage::new(StageKind::Write));
    let (read_result, write_result) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut account = read.open();
            let result = match &from {
                From::Stream(file) => read_stream(file, producer, &mut account, cancel),
                From::File(file, length, choice) => {
                    let mut in_flight = choice.open(3).unwrap();
                    read_file(file, 0, *length, producer, &mut in_flight, &mut account)
                }
            };
            result.inspect_err(|_| cancel.fail())
        });
        let mut account = write.open();
        let options = WriteOptions {
            start_fill_blocks: 1,
            restart: Restart::AtFill { blocks: 1 },
            rate_limit: None,
        };
        let written = write_all(&consumer, &mut *sink, options, &mut account, cancel, |_| {})
            .inspect_err(|_| cancel.fail());
        drop(account);
        (reader.join().unwrap(), written)
    });
    (read_result, write_result, [read.report(), write.report()])
}

fn file_with(bytes: &[u8]) -> File {
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_stream_that_comes_in_crumbs_arrives_whole(
        crumbs in proptest::collection::vec(0usize..3000, 0..40),
        block_bytes in (1usize..16).prop_map(|units| units * 512),
    ) {
        let expected = bytes_at(0, crumbs.iter().sum());
        let (input, mut feed) = std::io::pipe().unwrap();
        let (mut drain, output) = std::io::pipe().unwrap();
        let cancel = Cancel::new();
        let sink = Box::new(StreamSink::new(Arc::new(output.into()), cancel.clone()));
        let (results, seen) = std::thread::scope(|scope| {
            let expected = &expected;
            scope.spawn(move || {
                let mut rest = &expected[..];
                for crumb in crumbs {
                    let (now, later) = rest.split_at(crumb);
                    feed.write_all(now).unwrap();
                    rest = later;
                }
            });
            let reader = scope.spawn(move || {
                let mut seen = Vec::new();
                drain.read_to_end(&mut seen).unwrap();
                seen
            });
            let results = copy(From::Stream(input.into()), sink, &cancel, block_bytes);
            (results, reader.join().unwrap())
        });
        prop_assert!(seen == expected);
        prop_assert_eq!(results.0.unwrap(), expected.len() as u64);
        prop_assert_eq!(results.1.unwrap(), expected.len() as u64);
        prop_assert!(results.2.iter().all(|stage| stage.bytes == expected.len() as u64));
    }

    #[test]
    fn a_file_is_copied_as_it_is(
        bytes in 0usize..200_000,
        block_bytes in (1usize..64).prop_map(|units| units * 512),
    ) {
        let expected = bytes_at(0, bytes);
        for choice in choices() {
            let source: Arc<OwnedFd> = Arc::new(file_with(&expected).into());
            let target = tempfile::tempfile().unwrap();
            let output = Arc::new(target.try_clone().unwrap().into());
            let sink = Box::new(FileSink::new(output, choice.open(2).unwrap()));
            let from = From::File(source, bytes as u64, choice);
            let (read, written, _) = copy(from, sink, &Cancel::new(), block_bytes);
            prop_assert_eq!(read.unwrap(), bytes as u64);
            prop_assert_eq!(written.unwrap(), bytes as u64);
            let mut seen = vec![0; target.metadata().unwrap().len() as usize];
            target.read_exact_at(&mut seen, 0).unwrap();
            prop_assert!(seen == expected);
        }
    }
}

#[test]
fn the_accounts_of_a_run_add_up() {
    let before = Instant::now();
    let (input, mut feed) = std::io::pipe().unwrap();
    let cancel = Cancel::new();
    let null = File::options().write(true).open("/dev/null").unwrap();
    let sink = Box::new(StreamSink::new(Arc::new(null.into()), cancel.clone()));
    let writer = std::thread::spawn(move || {
        (0..200).for_each(|_| feed.write_all(&[7; 4096]).unwrap());
    });
    let (_, _, stages) = copy(From::Stream(input.into()), sink, &cancel, 4096);
    writer.join().unwrap();
    let wall = before.elapsed().as_secs_f64();
    for stage in stages {
        let sum = stage.working_seconds + stage.starved_seconds + stage.blocked_seconds;
        assert!(sum > 0.0 && sum <= wall, "{stage:?} in {wall} s");
        assert!(stage.processor_seconds <= sum + 1e-3, "{stage:?}");
        assert_eq!((stage.threads, stage.bytes), (1, 200 * 4096));
    }
}

#[test]
fn a_file_that_is_shorter_than_promised_is_an_error() {
    for choice in choices() {
        let source: Arc<OwnedFd> = Arc::new(file_with(&bytes_at(0, 5000)).into());
        let cancel = Cancel::new();
        let null = File::options().write(true).open("/dev/null").unwrap();
        let sink = Box::new(StreamSink::new(Arc::new(null.into()), cancel.clone()));
        let (read, written, _) = copy(From::File(source, 9000, choice), sink, &cancel, 1024);
        let Err(ReadError::Read { offset_bytes, source }) = read else { panic!("{read:?}") };
        assert_eq!(source.kind(), std::io::ErrorKind::UnexpectedEof);
        assert_eq!(offset_bytes, 5000);
        assert!(matches!(written, Err(WriteError::Stopped(Stopped::Failed))), "{written:?}");
    }
}

fn write_error(sink: Box<dyn Sink<Error = WriteError>>, cancel: &Cancel) -> (u64, std::io::Error) {
    let input = File::open("/dev/zero").unwrap();
    let (read, written, _) = copy(From::Stream(input.into()), sink, cancel, 4096);
    assert!(matches!(read, Err(ReadError::Stopped(Stopped::Failed))), "{read:?}");
    match written {
        Err(WriteError::Write { offset_bytes, source }) => (offset_bytes, source),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_full_device_stops_the_reader_too() {
    let cancel = Cancel::new();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let sink = Box::new(StreamSink::new(Arc::new(full.into()), cancel.clone()));
    let (offset_bytes, source) = write_error(sink, &cancel);
    assert_eq!(
        (offset_bytes, source.raw_os_error()),
        (0, Some(rustix::io::Errno::NOSPC.raw_os_error()))
    );
}

#[test]
fn a_file_that_can_not_be_written_stops_the_reader_too() {
    for choice in choices() {
        let cancel = Cancel::new();
        let read_only = File::open("/proc/self/exe").unwrap();
        let in_flight = choice.open(2).unwrap();
        let sink = Box::new(FileSink::new(Arc::new(read_only.into()), in_flight));
        let (_, source) = write_error(sink, &cancel);
        assert_eq!(
            source.raw_os_error(),
            Some(rustix::io::Errno::BADF.raw_os_error()),
            "{choice:?}"
        );
    }
}

#[test]
fn a_pipe_without_reader_is_told() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let cancel = Cancel::new();
    let sink = Box::new(StreamSink::new(Arc::new(writer.into()), cancel.clone()));
    let (offset_bytes, source) = write_error(sink, &cancel);
    assert_eq!((offset_bytes, source.kind()), (0, std::io::ErrorKind::BrokenPipe));
}

#[test]
fn a_source_that_can_not_be_read_is_told_with_its_place() {
    let directory = File::open("/").unwrap();
    let cancel = Cancel::new();
    let null = File::options().write(true).open("/dev/null").unwrap();
    let sink = Box::new(StreamSink::new(Arc::new(null.into()), cancel.clone()));
    let (read, _, _) = copy(From::Stream(directory.into()), sink, &cancel, 512);
    let Err(ReadError::Read { offset_bytes: 0, source }) = read else { panic!("{read:?}") };
    assert_eq!(source.raw_os_error(), Some(rustix::io::Errno::ISDIR.raw_os_error()));
}

#[test]
fn a_run_between_two_silent_pipes_can_be_cancelled() {
    let (input, _silent) = std::io::pipe().unwrap();
    let (_unread, output) = std::io::pipe().unwrap();
    let cancel = Cancel::new();
    let sink = Box::new(StreamSink::new(Arc::new(output.into()), cancel.clone()));
    std::thread::scope(|scope| {
        let run = scope.spawn(|| copy(From::Stream(input.into()), sink, &cancel, 512));
        cancel.cancel();
        let (read, written, _) = run.join().unwrap();
        assert!(matches!(read, Err(ReadError::Stopped(Stopped::Cancelled))), "{read:?}");
        assert!(matches!(written, Err(WriteError::Stopped(Stopped::Cancelled))), "{written:?}");
    });
}

#[test]
fn a_writer_before_a_sleeping_reader_can_be_cancelled() {
    let (_unread, output) = std::io::pipe().unwrap();
    let cancel = Cancel::new();
    let sink = Box::new(StreamSink::new(Arc::new(output.into()), cancel.clone()));
    let zeros = File::open("/dev/zero").unwrap();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| copy(From::Stream(zeros.into()), sink, &cancel, 1 << 20));
        while !run.is_finished() {
            cancel.cancel();
            std::thread::yield_now();
        }
        let (_, written, stages) = run.join().unwrap();
        assert!(matches!(written, Err(WriteError::Stopped(Stopped::Cancelled))), "{written:?}");
        assert_eq!(stages[1].bytes, 0, "a block that is half written does not count");
    });
}
