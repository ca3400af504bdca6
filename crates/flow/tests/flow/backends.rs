//! Both back ends against a plain copy.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use flow::backend::{Backend, Choice, Engine, Memory, Operation};
use flow::cancel::Cancel;
use flow::ring::{Consumer, Producer, RingOptions, ring};
use proptest::prelude::*;

use crate::{account, bytes_at};

/// All back ends that this kernel has; io_uring may be forbidden, threads never are.
pub fn choices() -> Vec<Choice> {
    let mut engines = vec![Engine::Threads];
    if needs::fully!(IoUring) {
        engines.insert(0, Engine::IoUring);
    }
    engines.into_iter().map(|engine| Choice::new(engine).unwrap()).collect()
}

fn new_ring(block_bytes: usize) -> (Producer, Consumer) {
    let options = RingOptions { block_bytes, blocks: 16, consumers: 1 };
    let (producer, mut consumers) = ring(options, Cancel::new()).unwrap();
    (producer, consumers.remove(0))
}

/// Transfers until the memory is full or drained, or the file ends; returns the bytes moved.
fn complete(backend: &mut dyn Backend, lengths: &mut [usize], offsets: &[u64]) {
    while backend.in_flight() > 0 {
        let mut operation = backend.wait().map(|done| (done.operation, done.result)).unwrap();
        let moved = operation.1.unwrap();
        let length = match &operation.0.memory {
            Memory::Fill(piece) => piece.len(),
            Memory::Drain(block) => block.len(),
        };
        let start = operation.0.offset_bytes - operation.0.done_bytes as u64;
        let index = offsets.iter().position(|&offset| offset == start).unwrap();
        operation.0.done_bytes += moved;
        operation.0.offset_bytes += moved as u64;
        lengths[index] += moved;
        if moved > 0 && operation.0.done_bytes < length {
            backend.submit(operation.0).unwrap();
        } else if let Memory::Fill(mut piece) = operation.0.memory {
            // What lies behind the end of the file is not the kernel's.
            piece.bytes_mut()[operation.0.done_bytes..].fill(0);
            piece.commit();
        }
    }
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
            let mut backend = choice.open(places.len()).unwrap();
            for &offset_bytes in &places {
                let reservation = producer.try_reserve(block_bytes).unwrap();
                let memory = Memory::Fill(reservation.into_pieces().next().unwrap());
                let file = Arc::clone(&file);
                backend.submit(Operation { file, offset_bytes, done_bytes: 0, memory }).unwrap();
            }
            let mut lengths = vec![0; places.len()];
            complete(&mut *backend, &mut lengths, &places);
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
            let mut backend = choice.open(numbers.len()).unwrap();
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
                let (file, memory) = (Arc::clone(&file), Memory::Drain(block));
                backend.submit(Operation { file, offset_bytes, done_bytes: 0, memory }).unwrap();
            }
            let mut lengths = vec![0; places.len()];
            complete(&mut *backend, &mut lengths, &places);
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
        let mut backend = choice.open(1).unwrap();
        let file = Arc::clone(&file);
        backend.submit(Operation { file, offset_bytes: 0, done_bytes: 0, memory }).unwrap();
        let done = backend.wait().unwrap();
        assert_eq!(
            done.result.unwrap_err().raw_os_error(),
            Some(rustix::io::Errno::BADF.raw_os_error()),
            "{choice:?}"
        );
        assert_eq!(backend.in_flight(), 0);
    }
}

#[test]
fn a_back_end_that_is_dropped_waits_for_what_is_in_flight() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    for choice in choices() {
        let (producer, _consumer) = new_ring(512);
        let file: Arc<OwnedFd> = Arc::new(reader.try_clone().unwrap().into());
        let mut backend = choice.open(1).unwrap();
        let piece = producer.try_reserve(512).unwrap().into_pieces().next().unwrap();
        let memory = Memory::Fill(piece);
        let offset_bytes = 0;
        // pread on a pipe fails at once; io_uring reads it and waits for data.
        let started =
            backend.submit(Operation { file, offset_bytes, done_bytes: 0, memory }).is_ok();
        assert!(started);
        use std::io::Write;
        (&writer).write_all(&[1; 512]).unwrap();
        drop(backend);
    }
    drop(writer);
    use std::io::Read;
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert_eq!(rest.len() % 512, 0, "a transfer happens whole or not at all");
}
