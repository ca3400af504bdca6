//! Both back ends against a plain copy.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use flow::backend::{Choice, Engine, Memory, TransferRequest};
use flow::cancel::Cancel;
use flow::in_flight::InFlight;
use flow::ring::{Consumer, Producer, RingOptions, ring};
use proptest::prelude::*;

use crate::{account, bytes_at};

/// All back ends that this kernel has; io_uring may be forbidden, threads never are.
pub fn choices() -> Vec<Choice> {
    let mut engines = vec![Engine::Threads];
    if testkit::fully!(IoUring) {
        engines.insert(0, Engine::IoUring);
    }
    engines.into_iter().map(|engine| Choice::new(engine).unwrap()).collect()
}

#[test]
fn what_is_used_is_what_is_shown() {
    let file = tempfile::tempfile().unwrap();
    for choice in choices() {
        let opened = choice.open_for(4, &file).unwrap();
        assert_eq!(opened.backend_name(), choice.name_for(&file));
        assert_eq!(opened.backend_name(), choice.name());
    }
}

fn new_ring(block_bytes: usize) -> (Producer, Consumer) {
    let options = RingOptions { block_bytes, blocks: 16, consumers: 1 };
    let (producer, mut consumers) = ring(options, Cancel::new()).unwrap();
    (producer, consumers.remove(0))
}

/// Reaps the transfers in flight; returns the bytes moved, in the order of `offsets`.
fn complete(in_flight: &mut InFlight, offsets: &[u64]) -> Vec<usize> {
    let mut lengths = vec![0; offsets.len()];
    while let Some(done) = in_flight.wait().unwrap() {
        let start = done.start_bytes();
        lengths[offsets.iter().position(|&offset| offset == start).unwrap()] = done.done_bytes();
        let at_the_end = Some(std::io::ErrorKind::UnexpectedEof);
        assert!(done.result.is_ok() || done.result.err().map(|error| error.kind()) == at_the_end);
        if let Memory::Fill(mut piece) = done.operation.memory {
            // The kernel does not fill bytes after the end of the file.
            piece.bytes_mut()[done.operation.done_bytes..].fill(0);
            piece.commit();
        }
    }
    lengths
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn reads_anywhere_equal_a_plain_read(
        file_bytes in 0usize..100_000,
        places in proptest::collection::hash_set(0u64..120_000, 1..12),
        block_bytes in (1usize..64).prop_map(|units| units * 512),
    ) {
        let content = bytes_at(7, file_bytes);
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&content, 0).unwrap();
        let file: Arc<OwnedFd> = Arc::new(file.into());
        let places: Vec<u64> = places.into_iter().collect();
        for choice in choices() {
            let (producer, consumer) = new_ring(block_bytes);
            let mut in_flight = choice.open(places.len()).unwrap();
            for &offset_bytes in &places {
                let reservation = producer.try_reserve(block_bytes).unwrap();
                let memory = Memory::Fill(reservation.into_pieces().next().unwrap());
                in_flight.begin(TransferRequest::new(&file, offset_bytes, memory)).unwrap();
            }
            let lengths = complete(&mut in_flight, &places);
            producer.finish();
            for (&place, &length) in places.iter().zip(&lengths) {
                let block = consumer.next(&mut account()).unwrap().unwrap();
                let start = (place as usize).min(file_bytes);
                let expected = &content[start..(start + block_bytes).min(file_bytes)];
                prop_assert_eq!(length, expected.len());
                prop_assert_eq!(&block[..length], expected);
            }
        }
    }

    #[test]
    fn writes_anywhere_equal_a_plain_write(
        mut numbers in proptest::collection::hash_set(0u64..40, 1..14),
        block_bytes in (1usize..64).prop_map(|units| units * 512),
        last_bytes in 1usize..512,
    ) {
        for choice in choices() {
            let (producer, consumer) = new_ring(block_bytes);
            let written: File = tempfile::tempfile().unwrap();
            let expected: File = tempfile::tempfile().unwrap();
            let file: Arc<OwnedFd> = Arc::new(written.try_clone().unwrap().into());
            let mut in_flight = choice.open(numbers.len()).unwrap();
            let places: Vec<u64> =
                numbers.drain().map(|number| number * block_bytes as u64).collect();
            numbers.extend(places.iter().map(|place| place / block_bytes as u64));
            for (index, &place) in places.iter().enumerate() {
                let whole = index + 1 < places.len();
                let length = if whole { block_bytes } else { last_bytes };
                let bytes = bytes_at(place + 3, length);
                expected.write_all_at(&bytes, place).unwrap();
                let mut reservation = producer.try_reserve(length).unwrap();
                reservation.filler().put(&bytes);
                reservation.commit();
            }
            producer.finish();
            for &offset_bytes in &places {
                let block = consumer.next(&mut account()).unwrap().unwrap();
                let operation = TransferRequest::new(&file, offset_bytes, Memory::Drain(block));
                in_flight.begin(operation).unwrap();
            }
            let lengths = complete(&mut in_flight, &places);
            let all_bytes = (places.len() - 1) * block_bytes + last_bytes;
            prop_assert_eq!(lengths.iter().sum::<usize>(), all_bytes);
            prop_assert_eq!(content(&written), content(&expected));
        }
    }
}

fn content(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

#[test]
fn an_error_comes_back_with_its_operation() {
    // A descriptor that is open for the other direction.
    let file: Arc<OwnedFd> = Arc::new(File::open("/dev/null").unwrap().into());
    for choice in choices() {
        let (producer, consumer) = new_ring(512);
        producer.try_reserve(512).unwrap().commit();
        producer.finish();
        let memory = Memory::Drain(consumer.next(&mut account()).unwrap().unwrap());
        let mut in_flight = choice.open(1).unwrap();
        in_flight.begin(TransferRequest::new(&file, 0, memory)).unwrap();
        let done = in_flight.wait().unwrap().unwrap();
        assert_eq!(
            done.result.unwrap_err().raw_os_error(),
            Some(rustix::io::Errno::BADF.raw_os_error()),
            "{choice:?}"
        );
        assert!(in_flight.is_empty());
    }
}

#[test]
fn a_back_end_that_is_dropped_waits_for_what_is_in_flight() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    for choice in choices() {
        let (producer, _consumer) = new_ring(512);
        let file: Arc<OwnedFd> = Arc::new(reader.try_clone().unwrap().into());
        let mut in_flight = choice.open(1).unwrap();
        let piece = producer.try_reserve(512).unwrap().into_pieces().next().unwrap();
        let memory = Memory::Fill(piece);
        // pread on a pipe fails at once; io_uring reads it and waits for data.
        in_flight.begin(TransferRequest::new(&file, 0, memory)).unwrap();
        use std::io::Write;
        (&writer).write_all(&[1; 512]).unwrap();
        drop(in_flight);
    }
    drop(writer);
    use std::io::Read;
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert_eq!(rest.len() % 512, 0, "a transfer happens whole or not at all");
}
