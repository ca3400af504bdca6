//! Compares transfers in flight with a plain copy, on a back end that follows a script: short,
//! interrupted, refused, failing, and in any order.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use flow::backend::{Backend, Completion, Memory, TransferRequest};
use flow::cancel::Cancel;
use flow::in_flight::{Failure, InFlight};
use flow::ring::{Consumer, Producer, RingOptions, ring};
use proptest::prelude::*;
use rustix::io::Errno;

use crate::{account, bytes_at};

const BLOCK: usize = 512;
const DEPTH: usize = 4;

/// How the next transfer to end does so.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// As the file has it.
    Whole,
    /// After this many bytes at most.
    Short(usize),
    Fails(Errno),
}

/// Transfers when waited for: the operation that the script names, with the result that it names.
/// After the script, all complete, the oldest first.
struct Scripted {
    script: Vec<(usize, Step)>,
    waiting: Vec<TransferRequest>,
    /// These bytes of the file can be neither read nor written.
    bad: Vec<u64>,
}

impl Scripted {
    fn started(script: &[(usize, Step)], bad: &[u64]) -> InFlight {
        let script = script.iter().rev().copied().collect();
        InFlight::new(Box::new(Scripted { script, waiting: Vec::new(), bad: bad.to_vec() }))
    }

    /// Moves up to `most_bytes`, and none that cannot be moved.
    fn transfer(&self, operation: &mut TransferRequest, most_bytes: usize) -> io::Result<usize> {
        let TransferRequest { offset_bytes: start, done_bytes, memory, .. } = operation;
        let length = match memory {
            Memory::Fill(piece) => piece.len(),
            Memory::Drain(block) => block.len(),
        };
        let end = *done_bytes + (length - *done_bytes).min(most_bytes);
        let good = |&moved: &usize| !self.bad.contains(&(*start + moved as u64));
        let end = *done_bytes + (0..end - *done_bytes).take_while(good).count();
        if end == *done_bytes {
            return Err(Errno::IO.into());
        }
        let file = File::from(operation.file.try_clone()?);
        match memory {
            Memory::Fill(piece) => file.read_at(&mut piece.bytes_mut()[*done_bytes..end], *start),
            Memory::Drain(block) => file.write_at(&block[*done_bytes..end], *start),
        }
    }
}

impl Backend for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }
    fn depth(&self) -> usize {
        DEPTH
    }
    fn in_flight(&self) -> usize {
        self.waiting.len()
    }
    fn submit(&mut self, operation: TransferRequest) -> io::Result<()> {
        assert!(self.waiting.len() < DEPTH, "the depth is kept");
        self.waiting.push(operation);
        Ok(())
    }
    fn wait(&mut self) -> io::Result<Completion> {
        let (which, step) = self.script.pop().unwrap_or((0, Step::Whole));
        let mut operation = self.waiting.remove(which % self.waiting.len());
        let result = match step {
            Step::Whole => self.transfer(&mut operation, usize::MAX),
            Step::Short(most_bytes) => self.transfer(&mut operation, most_bytes),
            Step::Fails(error) => Err(error.into()),
        };
        Ok(Completion { operation, result })
    }
}

fn new_ring(blocks: usize) -> (Producer, Consumer) {
    let options = RingOptions { block_bytes: BLOCK, blocks, consumers: 1 };
    let (producer, mut consumers) = ring(options, Cancel::new()).unwrap();
    (producer, consumers.remove(0))
}

fn file_with(bytes: &[u8]) -> Arc<OwnedFd> {
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(bytes, 0).unwrap();
    Arc::new(file.into())
}

fn content(file: &OwnedFd) -> Vec<u8> {
    let file = File::from(file.try_clone().unwrap());
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// Asks for a block from each of these places on.
fn begin_reads(in_flight: &mut InFlight, producer: &Producer, file: &Arc<OwnedFd>, at: &[u64]) {
    for &offset_bytes in at {
        let piece = producer.try_reserve(BLOCK).unwrap().into_pieces().next().unwrap();
        in_flight.begin(TransferRequest::new(file, offset_bytes, Memory::Fill(piece))).unwrap();
    }
}

/// Like a read stage: as many reads as allowed, until all blocks are in the ring.
fn read_all(
    in_flight: &mut InFlight,
    producer: &Producer,
    file: &Arc<OwnedFd>,
    blocks: u64,
) -> Result<(), Failure> {
    let mut asked = 0;
    loop {
        while asked < blocks && !in_flight.is_full() {
            begin_reads(in_flight, producer, file, &[asked * BLOCK as u64]);
            asked += 1;
        }
        let Some(done) = in_flight.wait_whole()? else { return Ok(()) };
        assert_eq!(done.done_bytes(), BLOCK);
        done.into_piece().commit();
    }
}

/// Writes the blocks of the ring one after the other.
fn write_all(
    in_flight: &mut InFlight,
    consumer: &Consumer,
    file: &Arc<OwnedFd>,
) -> Result<(), Failure> {
    while let Some(block) = consumer.next(&mut account()).unwrap() {
        let offset_bytes = block.position_bytes().bytes();
        while in_flight.is_full() {
            in_flight.wait_whole()?;
        }
        in_flight.begin(TransferRequest::new(file, offset_bytes, Memory::Drain(block)))?;
    }
    while in_flight.wait_whole()?.is_some() {}
    Ok(())
}

fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let step = prop_oneof![
        Just(Step::Whole),
        (1..2 * BLOCK).prop_map(Step::Short),
        Just(Step::Fails(Errno::INTR)),
    ];
    proptest::collection::vec((0..DEPTH, step), 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn reads_and_writes_arrive_whole_whatever_the_back_end_does(
        blocks in 1u64..24,
        reading in steps(),
        writing in steps(),
    ) {
        let expected = bytes_at(3, blocks as usize * BLOCK);
        let (source, target) = (file_with(&expected), file_with(b""));
        let (producer, consumer) = new_ring(24);
        let mut reads = Scripted::started(&reading, &[]);
        read_all(&mut reads, &producer, &source, blocks).unwrap();
        producer.finish();
        write_all(&mut Scripted::started(&writing, &[]), &consumer, &target).unwrap();
        prop_assert!(content(&target) == expected);
    }

    #[test]
    fn of_all_failures_the_one_that_stands_first_is_told_and_nothing_is_left_under_way(
        blocks in 2u64..24,
        bad in proptest::collection::vec(0..24 * BLOCK as u64, 1..5),
        reading in steps(),
    ) {
        let source = file_with(&bytes_at(3, blocks as usize * BLOCK));
        let (producer, _consumer) = new_ring(24);
        let mut reads = Scripted::started(&reading, &bad);
        let result = read_all(&mut reads, &producer, &source, blocks);
        prop_assert!(reads.is_empty());
        // Reads begin in order: everything before a failure is complete or in flight.
        let first = bad.into_iter().filter(|&bad| bad < blocks * BLOCK as u64).min();
        prop_assert_eq!(result.err().map(|failure| failure.offset_bytes), first);
    }
}

#[test]
fn the_failure_that_stands_first_in_the_file_is_told_though_it_came_last() {
    let source = file_with(&bytes_at(3, DEPTH * BLOCK));
    let (producer, _consumer) = new_ring(8);
    // The last of four is answered first; the second has moved some bytes when it fails.
    let mut reads = Scripted::started(&[(3, Step::Whole)], &[600, 700, 1024, 1536]);
    begin_reads(&mut reads, &producer, &source, &[0, 512, 1024, 1536]);
    let failure = reads.wait_whole().unwrap_err();
    assert_eq!((failure.offset_bytes, failure.source.raw_os_error()), (600, Some(5)));
    assert!(reads.is_empty());
}

#[test]
fn a_read_that_meets_the_end_of_the_file_says_how_far_it_came() {
    let source = file_with(&bytes_at(3, 700));
    let (producer, consumer) = new_ring(8);
    let mut reads = Scripted::started(&[(1, Step::Short(100))], &[]);
    begin_reads(&mut reads, &producer, &source, &[0, 512, 1024]);
    let mut found = Vec::new();
    while let Some(done) = reads.wait().unwrap() {
        let failed = done.result.as_ref().err().map(io::Error::kind);
        found.push((done.start_bytes(), done.done_bytes(), failed));
        done.into_piece().commit();
    }
    found.sort_by_key(|&(start_bytes, ..)| start_bytes);
    let at_the_end = Some(io::ErrorKind::UnexpectedEof);
    assert_eq!(found, [(0, 512, None), (512, 188, at_the_end), (1024, 0, at_the_end)]);
    producer.finish();
    assert_eq!(&consumer.next(&mut account()).unwrap().unwrap()[..], bytes_at(3, 512));
}

#[test]
fn what_is_not_wanted_may_be_missing() {
    let source = file_with(&bytes_at(3, 700));
    let (producer, _consumer) = new_ring(4);
    let mut reads = Scripted::started(&[(0, Step::Short(100))], &[]);
    let piece = producer.try_reserve(BLOCK).unwrap().into_pieces().next().unwrap();
    let operation = TransferRequest::new(&source, 512, Memory::Fill(piece));
    reads.begin(TransferRequest { wanted_bytes: 188, ..operation }).unwrap();
    let done = reads.wait().unwrap().unwrap();
    assert!(done.result.is_ok(), "{done:?}");
    assert_eq!((done.start_bytes(), done.done_bytes()), (512, 188));
    done.into_piece().commit();
}

#[test]
fn what_is_refused_for_the_moment_is_asked_for_again_but_not_for_ever() {
    let source = file_with(&bytes_at(3, BLOCK));
    let refused = (0, Step::Fails(Errno::AGAIN));
    let (producer, _consumer) = new_ring(4);
    let mut reads = Scripted::started(&[refused; 7], &[]);
    begin_reads(&mut reads, &producer, &source, &[0]);
    let done = reads.wait_whole().unwrap().unwrap();
    assert_eq!(done.done_bytes(), BLOCK);
    done.into_piece().commit();
    let mut reads = Scripted::started(&[refused; 1000], &[]);
    begin_reads(&mut reads, &producer, &source, &[0]);
    let failure = reads.wait_whole().unwrap_err();
    assert_eq!(failure.source.kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn a_write_that_moves_nothing_is_a_failure_with_its_place() {
    let target: Arc<OwnedFd> = file_with(b"");
    let (producer, consumer) = new_ring(4);
    let mut reservation = producer.try_reserve(BLOCK).unwrap();
    reservation.filler().put(&bytes_at(0, BLOCK));
    reservation.commit();
    producer.finish();
    let script = [(0, Step::Short(100)), (0, Step::Fails(Errno::NOSPC))];
    let failure = write_all(&mut Scripted::started(&script, &[]), &consumer, &target).unwrap_err();
    assert_eq!(failure.offset_bytes, 100);
    assert_eq!(failure.source.raw_os_error(), Some(Errno::NOSPC.raw_os_error()));
    assert_eq!(content(&target), bytes_at(0, 100));
}
