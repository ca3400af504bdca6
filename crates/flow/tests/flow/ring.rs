//! The ring against a naive model: any order of commits, any number of consumers.

use std::collections::VecDeque;
use std::sync::{Mutex, mpsc};

use flow::cancel::Cancel;
use flow::ring::{Block, Consumer, LastBlock, Piece, Producer, Reuse, RingOptions, ring};
use proptest::prelude::*;

use crate::{account, byte_at, bytes_at};

fn new_ring(blocks: usize, consumers: usize) -> (Producer, Vec<Consumer>) {
    ring(RingOptions { block_bytes: BLOCK, blocks, consumers }, Cancel::new()).unwrap()
}

const BLOCK: usize = 512;

/// One step of a schedule; impossible steps are skipped.
#[derive(Clone, Debug)]
enum Step {
    Reserve { bytes: usize },
    Commit { pick: prop::sample::Index, cut: prop::sample::Index },
    Take { consumer: usize },
    Release { pick: prop::sample::Index },
    Reuse(Reuse),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0usize..4 * BLOCK).prop_map(|bytes| Step::Reserve { bytes }),
        (any::<prop::sample::Index>(), any::<prop::sample::Index>())
            .prop_map(|(pick, cut)| Step::Commit { pick, cut }),
        (0usize..3).prop_map(|consumer| Step::Take { consumer }),
        any::<prop::sample::Index>().prop_map(|pick| Step::Release { pick }),
        prop_oneof![Just(Reuse::Warmest), Just(Reuse::Coldest)].prop_map(Step::Reuse),
    ]
}

/// A ring and a naive model of it, driven by one thread.
struct Driven {
    producer: Option<Producer>,
    consumers: Vec<Consumer>,
    reserved_bytes: u64,
    /// Pieces to be filled, with the place of their first byte.
    open: Vec<(u64, Piece)>,
    /// Bytes seen by each consumer, and the blocks it holds.
    seen_bytes: Vec<u64>,
    held: Vec<VecDeque<Block>>,
}

impl Driven {
    fn new(blocks: usize, consumers: usize) -> Driven {
        let (producer, consumers) = new_ring(blocks, consumers);
        Driven {
            producer: Some(producer),
            seen_bytes: vec![0; consumers.len()],
            held: consumers.iter().map(|_| VecDeque::new()).collect(),
            consumers,
            reserved_bytes: 0,
            open: Vec::new(),
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Reserve { bytes } => self.reserve(*bytes),
            Step::Commit { pick, cut } if !self.open.is_empty() => {
                let (position, mut piece) = self.open.swap_remove(pick.index(self.open.len()));
                let front = piece.split_front(cut.index(piece.len() + 1));
                let middle = position + front.len() as u64;
                // The rear first: bytes of one block may come in any order.
                fill_and_commit(middle, piece);
                fill_and_commit(position, front);
            }
            Step::Take { consumer } => self.take(*consumer),
            Step::Release { pick } => self.release(pick),
            Step::Reuse(reuse) => {
                self.producer.iter().for_each(|producer| producer.set_reuse(*reuse));
            }
            Step::Commit { .. } => {}
        }
    }

    fn reserve(&mut self, bytes: usize) {
        let Some(producer) = &self.producer else { return };
        assert_eq!(producer.position_bytes().bytes(), self.reserved_bytes);
        let Some(reservation) = producer.try_reserve(bytes) else { return };
        let mut position = reservation.start_bytes().bytes();
        assert_eq!(position, self.reserved_bytes);
        for piece in reservation.into_pieces() {
            let length = piece.len() as u64;
            assert_eq!(position / BLOCK as u64, (position + length - 1) / BLOCK as u64);
            self.open.push((position, piece));
            position += length;
        }
        assert_eq!(position, self.reserved_bytes + bytes as u64);
        self.reserved_bytes = position;
    }

    fn take(&mut self, index: usize) {
        let Some(consumer) = self.consumers.get(index) else { return };
        if consumer.fill_blocks() == 0 {
            return;
        }
        let block = consumer.next(&mut account()).unwrap().expect("a block is ready");
        self.check(index, block);
    }

    fn check(&mut self, index: usize, block: Block) {
        assert_eq!(block.position_bytes().bytes(), self.seen_bytes[index]);
        assert_eq!(block.to_vec(), bytes_at(self.seen_bytes[index], block.len()));
        self.seen_bytes[index] += block.len() as u64;
        self.held[index].push_back(block);
    }

    fn release(&mut self, pick: &prop::sample::Index) {
        let index = pick.index(self.held.len());
        let held = &mut self.held[index];
        if held.is_empty() {
            return;
        }
        drop(held.remove(pick.index(held.len())));
    }

    fn finish(mut self) {
        for (position, piece) in std::mem::take(&mut self.open) {
            fill_and_commit(position, piece);
        }
        self.producer.take().expect("finished once").finish();
        for index in 0..self.consumers.len() {
            while let Some(block) = self.consumers[index].next(&mut account()).unwrap() {
                self.check(index, block);
                self.held[index].clear();
            }
            self.held[index].clear();
            assert_eq!(self.seen_bytes[index], self.reserved_bytes);
        }
    }
}

fn fill_and_commit(position: u64, mut piece: Piece) {
    let bytes = bytes_at(position, piece.len());
    piece.bytes_mut().copy_from_slice(&bytes);
    piece.commit();
}

proptest! {
    #[test]
    fn every_consumer_sees_the_stream(
        blocks in 2usize..8, consumers in 1usize..4,
        steps in proptest::collection::vec(any_step(), 0..300),
    ) {
        let mut driven = Driven::new(blocks, consumers);
        steps.iter().for_each(|step| driven.step(step));
        driven.finish();
    }

    #[test]
    fn threads_that_fill_in_any_order_make_the_stream(
        sizes in proptest::collection::vec(0usize..3 * BLOCK, 1..200),
        consumers in 1usize..4,
        start_fill_blocks in 1usize..8,
    ) {
        let total: u64 = sizes.iter().map(|&bytes| bytes as u64).sum();
        let (producer, consumers) = new_ring(7, consumers);
        let seen: Vec<u64> = std::thread::scope(|scope| {
            let readers: Vec<_> = consumers
                .iter()
                .map(|consumer| scope.spawn(move || drain(consumer, start_fill_blocks)))
                .collect();
            fill_with_threads(scope, producer, &sizes);
            readers.into_iter().map(|reader| reader.join().unwrap()).collect()
        });
        prop_assert!(seen.iter().all(|&bytes| bytes == total), "{:?} of {}", seen, total);
    }

    #[test]
    fn a_padded_stream_ends_with_zeros(bytes in 0usize..5 * BLOCK, cut in any::<bool>()) {
        let (mut producer, consumers) = new_ring(8, 1);
        producer.set_last_block(LastBlock::Padded);
        let whole = bytes / BLOCK * BLOCK;
        let mut reservation = producer.try_reserve(whole).unwrap();
        reservation.filler().put(&bytes_at(0, whole));
        reservation.commit();
        let rest = bytes_at(whole as u64, bytes - whole);
        if cut {
            let mut last = producer.try_reserve(BLOCK).unwrap();
            last.filler().put(&[0xff; BLOCK]);
            last.slices_mut().next().unwrap()[..rest.len()].copy_from_slice(&rest);
            producer.finish_with(last, rest.len());
        } else {
            let mut last = producer.try_reserve(rest.len()).unwrap();
            last.filler().put(&rest);
            last.commit();
            producer.finish();
        }
        let mut seen = Vec::new();
        while let Some(block) = consumers[0].next(&mut account()).unwrap() {
            seen.extend_from_slice(&block);
        }
        let mut expected = bytes_at(0, bytes);
        expected.resize(bytes.next_multiple_of(BLOCK), 0);
        prop_assert_eq!(seen, expected);
    }
}

/// The last reservation begins and ends inside of a block.
#[test]
fn what_is_cut_inside_of_a_block_is_padded() {
    for (before, reserved, filled) in [(128, 256, 128), (1, 510, 3), (256, 256, 0), (0, 8, 8)] {
        let (mut producer, consumers) = new_ring(8, 1);
        producer.set_last_block(LastBlock::Padded);
        let mut first = producer.try_reserve(before).unwrap();
        first.filler().put(&bytes_at(0, before));
        first.commit();
        let mut last = producer.try_reserve(reserved).unwrap();
        last.filler().put(&bytes_at(before as u64, reserved));
        producer.finish_with(last, filled);
        let seen = consumers[0].next(&mut account()).unwrap().unwrap().to_vec();
        let mut expected = bytes_at(0, before + filled);
        expected.resize(BLOCK, 0);
        assert_eq!(seen, expected, "{before} {reserved} {filled}");
    }
}

/// How many places in memory 64 blocks take that are freed before the next one begins.
fn places_used(blocks: usize, reuse: Reuse) -> usize {
    let (producer, consumers) = new_ring(blocks, 1);
    producer.set_reuse(reuse);
    let mut places = std::collections::HashSet::new();
    for _ in 0..64 {
        producer.try_reserve(BLOCK).unwrap().commit();
        places.insert(consumers[0].next(&mut account()).unwrap().unwrap().as_ptr());
    }
    places.len()
}

#[test]
fn warm_blocks_stay_in_one_place_and_cold_ones_go_round() {
    assert_eq!(places_used(8, Reuse::Warmest), 1);
    assert_eq!(places_used(8, Reuse::Coldest), 8);
}

fn drain(consumer: &Consumer, start_fill_blocks: usize) -> u64 {
    let mut account = account();
    let mut position = 0;
    while let Some(block) = consumer.next_filled(start_fill_blocks, &mut account).unwrap() {
        assert_eq!(block.position_bytes().bytes(), position);
        assert!(block.iter().zip(position..).all(|(&byte, at)| byte == byte_at(at)));
        position += block.len() as u64;
    }
    position
}

fn fill_with_threads<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    producer: Producer,
    sizes: &[usize],
) {
    let fillers: Vec<_> = (0..3)
        .map(|_| {
            let (sender, receiver) = mpsc::channel::<(u64, Piece)>();
            scope.spawn(move || {
                receiver.iter().for_each(|(position, piece)| fill_and_commit(position, piece));
            });
            sender
        })
        .collect();
    for (number, &bytes) in sizes.iter().enumerate() {
        let reservation = producer.reserve(bytes, &mut account()).unwrap();
        let mut position = reservation.start_bytes().bytes();
        for piece in reservation.into_pieces() {
            let length = piece.len() as u64;
            fillers[(number + position as usize) % 3].send((position, piece)).unwrap();
            position += length;
        }
    }
    producer.finish();
}

#[test]
fn a_writer_that_ran_empty_starts_again_at_the_start_fill() {
    const START: usize = 4;
    let (producer, consumers) = new_ring(8, 1);
    let consumer = &consumers[0];
    let starts = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut account = account();
            let mut fills_at_start = Vec::new();
            // As a sink does before its first block. Later the ring counts when it was empty: a
            // block may arrive between two looks from here.
            consumer.wait_filled(START, &mut account).unwrap();
            let mut starts = None;
            while let Some(block) = consumer.next_filled(START, &mut account).unwrap() {
                let left = consumer.fill_blocks();
                let now = Some(consumer.times_ran_empty());
                if starts != now {
                    fills_at_start.push((block.number(), left + 1));
                }
                starts = now;
            }
            fills_at_start
        });
        for number in 0..64u64 {
            let mut reservation = producer.reserve(BLOCK, &mut account()).unwrap();
            reservation.filler().put(&bytes_at(number * BLOCK as u64, BLOCK));
            reservation.commit();
            if number % 8 == 7 {
                // Let the writer run empty, without telling how long that takes.
                while consumer.fill_blocks() >= START {
                    std::thread::yield_now();
                }
            }
        }
        producer.finish();
        writer.join().unwrap()
    });
    assert!(!starts.is_empty());
    for (block, fill) in starts {
        let rest = 64 - block as usize;
        assert!(fill >= START.min(rest), "started at block {block} with a fill of {fill}");
    }
}

/// It is the writer, at the end, that stops a drive.
#[test]
fn only_the_last_consumer_is_told_to_have_run_empty() {
    let (producer, consumers) = new_ring(8, 2);
    std::thread::scope(|scope| {
        let hasher = scope.spawn(|| drain(&consumers[0], 1));
        for number in 0..6 {
            let mut reservation = producer.try_reserve(BLOCK).unwrap();
            reservation.filler().put(&bytes_at(number * BLOCK as u64, BLOCK));
            reservation.commit();
            while consumers[0].fill_blocks() > 0 && !hasher.is_finished() {
                std::thread::yield_now();
            }
        }
        producer.finish();
        assert_eq!(hasher.join().unwrap(), 6 * BLOCK as u64);
    });
    assert_eq!(drain(&consumers[1], 1), 6 * BLOCK as u64);
    assert_eq!(consumers[1].times_ran_empty(), 0);
}

#[test]
fn a_start_fill_that_can_not_be_reached_does_not_stop_the_run() {
    // Three blocks are reserved at once in a ring of four: it is never fuller than three.
    let (producer, consumers) = new_ring(4, 1);
    let bytes = std::thread::scope(|scope| {
        let writer = scope.spawn(|| drain(&consumers[0], 4));
        for number in 0..30u64 {
            let mut reservation = producer.reserve(3 * BLOCK, &mut account()).unwrap();
            reservation.filler().put(&bytes_at(number * 3 * BLOCK as u64, 3 * BLOCK));
            reservation.commit();
        }
        producer.finish();
        writer.join().unwrap()
    });
    assert_eq!(bytes, 90 * BLOCK as u64);
}

/// Threads that fill, some of which pass on ready blocks as the first consumer does, and threads
/// that wait for blocks: every block goes through every consumer once, whichever thread was woken.
#[test]
fn blocks_that_are_committed_unheard_are_seen_once_with_rings_of_every_small_size() {
    const BYTES: u64 = 300 * BLOCK as u64 + 77;
    for (blocks, fillers, hashers) in [(2, 2, 1), (2, 5, 3), (3, 3, 2), (4, 4, 4), (7, 2, 3)] {
        let (producer, consumers) = new_ring(blocks, 2);
        let (first, second) = (&consumers[0], &consumers[1]);
        let turn = Mutex::new(());
        let seen = Mutex::new(vec![0; BYTES.div_ceil(BLOCK as u64) as usize]);
        let pass = |block: Block| {
            assert_eq!(block.to_vec(), bytes_at(block.position_bytes().bytes(), block.len()));
            seen.lock().unwrap()[block.number() as usize] += 1;
        };
        let fill = &|number: usize| {
            let mut account = account();
            loop {
                let turn = turn.lock().unwrap();
                let at = producer.position_bytes().bytes();
                // Of lengths that leave parts of blocks to two threads.
                let bytes = (BYTES - at).min(if at % 3 == 0 { BLOCK as u64 } else { 200 });
                if bytes == 0 {
                    break;
                }
                producer.wait_a_while_for_room(bytes as usize, &mut account).unwrap();
                let mut reservation = producer.reserve(bytes as usize, &mut account).unwrap();
                drop(turn);
                reservation.filler().put(&bytes_at(at, bytes as usize));
                if number.is_multiple_of(2) {
                    reservation.commit();
                } else {
                    reservation.commit_unheard();
                    while let Some(block) = first.try_next().unwrap() {
                        pass(block);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            let filling: Vec<_> = (0..fillers).map(|it| scope.spawn(move || fill(it))).collect();
            for _ in 0..hashers {
                scope.spawn(|| {
                    let mut account = account();
                    while let Some(block) = first.next(&mut account).unwrap() {
                        pass(block);
                    }
                });
            }
            let writing = scope.spawn(|| {
                let (mut account, mut at) = (account(), 0);
                while let Some(block) = second.next(&mut account).unwrap() {
                    assert_eq!(block.position_bytes().bytes(), at);
                    assert_eq!(block.to_vec(), bytes_at(at, block.len()));
                    at += block.len() as u64;
                }
                at
            });
            filling.into_iter().for_each(|thread| thread.join().unwrap());
            producer.finish();
            assert_eq!(writing.join().unwrap(), BYTES);
        });
        assert!(seen.into_inner().unwrap().iter().all(|times| *times == 1), "{blocks} blocks");
    }
}
