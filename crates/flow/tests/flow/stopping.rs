//! What ends a run early: the user, a failed stage, a piece that was lost.

use flow::account::{Stage, ThreadState};
use flow::cancel::{Cancel, Stopped};
use flow::queue::Queue;
use flow::ring::{Consumer, Producer, RingOptions, ring};
use flow::run::StageKind;
use flow::turnstile::Turnstile;

use crate::account;

fn new_ring(cancel: &Cancel) -> (Producer, Consumer) {
    let options = RingOptions { block_bytes: 512, blocks: 4, consumers: 1 };
    let (producer, mut consumers) = ring(options, cancel.clone()).unwrap();
    (producer, consumers.remove(0))
}

/// Runs a wait on a thread, and cancels once the wait has begun.
fn cancelled(cancel: &Cancel, wait: impl FnOnce(&mut flow::account::Account) -> Stopped + Send) {
    let stage = Stage::new(StageKind::Read);
    let stopped = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut account = stage.open();
            wait(&mut account)
        });
        while !waiter.is_finished() {
            cancel.cancel();
            std::thread::yield_now();
        }
        waiter.join().unwrap()
    });
    assert_eq!(stopped, Stopped::Cancelled);
}

#[test]
fn a_consumer_that_starves_notices_a_cancel() {
    let cancel = Cancel::new();
    let (_producer, consumer) = new_ring(&cancel);
    cancelled(&cancel, |account| consumer.next(account).unwrap_err());
}

#[test]
fn a_producer_that_is_blocked_notices_a_cancel() {
    let cancel = Cancel::new();
    let (producer, _consumer) = new_ring(&cancel);
    let mut account = account();
    producer.reserve(3 * 512, &mut account).unwrap().commit();
    producer.reserve(512, &mut account).unwrap().commit();
    cancelled(&cancel, |account| producer.reserve(512, account).unwrap_err());
}

#[test]
fn queues_and_turnstiles_notice_a_cancel() {
    let cancel = Cancel::new();
    let queue = Queue::<u8>::new(1, cancel.clone());
    cancelled(&cancel, |account| queue.pop(account).unwrap_err());
    let cancel = Cancel::new();
    let queue = Queue::new(1, cancel.clone());
    queue.push(1, &mut account()).unwrap();
    cancelled(&cancel, |account| queue.push(2, account).unwrap_err());
    let cancel = Cancel::new();
    let turnstile = Turnstile::new(cancel.clone());
    cancelled(&cancel, |account| turnstile.enter(1, account, ThreadState::Blocked).unwrap_err());
}

/// One that is not woken waits for [`flow::cancel::POLL`]: then this takes minutes.
#[test]
fn a_turn_wakes_the_next_one() {
    const TICKETS: u64 = 8000;
    let turnstile = Turnstile::new(Cancel::new());
    let passed = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for first in [0, 1] {
            let (turnstile, passed) = (&turnstile, &passed);
            scope.spawn(move || {
                for ticket in (first..TICKETS).step_by(2) {
                    let turn =
                        turnstile.enter(ticket, &mut account(), ThreadState::Starved).unwrap();
                    passed.lock().unwrap().push(ticket);
                    turn.pass();
                }
            });
        }
    });
    assert!(passed.into_inner().unwrap().into_iter().eq(0..TICKETS));
}

/// What a panic left half done is not gone on with, and stops whoever waits for it.
#[test]
fn a_turn_that_broke_down_is_not_passed_on() {
    let cancel = Cancel::new();
    let turnstile = Turnstile::new(cancel.clone());
    std::thread::scope(|scope| {
        let turn = turnstile.enter(0, &mut account(), ThreadState::Blocked).unwrap();
        let next = scope.spawn(|| {
            turnstile.enter(1, &mut account(), ThreadState::Blocked).map(|_| ()).unwrap_err()
        });
        let broken = scope.spawn(move || {
            let _turn = turn;
            std::panic::resume_unwind(Box::new("half done"));
        });
        assert!(broken.join().is_err());
        assert_eq!(next.join().unwrap(), Stopped::Failed);
    });
    assert_eq!(cancel.check(), Err(Stopped::Failed));
}

#[test]
fn a_lost_piece_stops_the_run() {
    let cancel = Cancel::new();
    let (producer, consumer) = new_ring(&cancel);
    let mut account = account();
    let first = producer.reserve(512, &mut account).unwrap();
    let second = producer.reserve(512, &mut account).unwrap();
    first.commit();
    drop(second);
    assert_eq!(cancel.check(), Err(Stopped::Failed));
    producer.finish();
    assert_eq!(consumer.next(&mut account).unwrap_err(), Stopped::Failed);
}

#[test]
fn the_first_cause_is_kept() {
    let cancel = Cancel::new();
    cancel.cancel();
    cancel.fail();
    assert_eq!(cancel.check(), Err(Stopped::Cancelled));
    let cancel = Cancel::new();
    cancel.fail();
    cancel.cancel();
    assert_eq!(cancel.check(), Err(Stopped::Failed));
}
