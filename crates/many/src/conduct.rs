//! Rank 0 hands out orders, and every rank, rank 0 as well, carries out one at a time.
//!
//! The engine works on a thread of its own, so that the first thread of each process can go on with
//! the messages: MPI is called from no other (`MPI_THREAD_FUNNELED`). Idle ranks get the next order
//! at once; which rank does what is chance. Where one fails nothing more is handed out, and what
//! others have in hand is awaited. A rank that is lost ends the job.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use flow::cancel::Cancel;
use flow::monitor::{Counter, Monitor, Notice};

use crate::message::{MailError, Message, look_for, send, send_to_all, unexpected};
use crate::ranks::Ranks;

/// Time between two reports of what a rank has moved.
const REPORT: Duration = Duration::from_secs(1);
/// Wait for a message while the own thread works.
const LOOK: Duration = Duration::from_millis(5);

/// Bytes that the run in hand has moved.
#[derive(Debug, Default)]
pub struct Moved(AtomicU64);

impl Moved {
    /// So far.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Monitor for Moved {
    fn count(&self, counter: Counter, amount: u64) {
        if counter == Counter::SourceBytes {
            self.0.fetch_add(amount, Ordering::Relaxed);
        }
    }

    fn notice(&self, _: Notice) {}
}

/// Carries out an order and returns the answer.
pub type Work<'a> = dyn Fn(Message, &Moved, &Cancel) -> Message + Sync + 'a;

/// What rank 0 has to hand out.
pub trait Orders {
    /// Why it ends early.
    type Error: From<MailError>;

    /// The next order for this rank; `None` if there is none at the moment.
    fn next(&mut self, rank: usize) -> Option<Message>;

    /// An answer to an order.
    ///
    /// # Errors
    /// When what the rank did is of no use, and the whole has failed.
    fn answered(&mut self, rank: usize, answer: Message) -> Result<(), Self::Error>;

    /// How far all ranks are: bytes of the orders in hand.
    fn progress(&mut self, in_hand_bytes: u64) {
        let _ = in_hand_bytes;
    }
}

/// The thread of a rank that works.
struct Worker {
    orders: Sender<Message>,
    answers: Receiver<Message>,
}

impl Worker {
    fn start<'scope, 'env>(
        scope: &'scope thread::Scope<'scope, 'env>,
        work: &'env Work<'env>,
        moved: &'env Moved,
        cancel: &'env Cancel,
    ) -> Worker {
        let (orders, taken) = channel::<Message>();
        let (done, answers) = channel();
        scope.spawn(move || {
            for order in taken {
                moved.0.store(0, Ordering::Relaxed);
                if done.send(work(order, moved, cancel)).is_err() {
                    return;
                }
            }
        });
        Worker { orders, answers }
    }

    /// The answer to the order in hand, if it is there.
    fn answer(&self) -> Option<Message> {
        match self.answers.try_recv() {
            Ok(answer) => Some(answer),
            Err(TryRecvError::Empty) => None,
            // The engine's thread broke down, which its own account tells.
            Err(TryRecvError::Disconnected) => {
                let why = "the thread that carried it out broke down".to_owned();
                Some(Message::Failed { run: 0, why })
            }
        }
    }
}

/// Hands out all orders and takes the answers; on rank 0. At most `at_once` ranks work at a time.
///
/// # Errors
/// The first that comes of an answer, after what was in hand is done; or when a rank is lost.
pub fn hand_out<O: Orders>(
    ranks: &Ranks,
    orders: &mut O,
    at_once: usize,
    work: &Work<'_>,
    cancel: &Cancel,
) -> Result<(), O::Error> {
    let moved = Moved::default();
    let part = cancel.part();
    thread::scope(|scope| {
        let worker = Worker::start(scope, work, &moved, &part);
        let mut course = Course {
            ranks,
            worker,
            in_hand: BTreeMap::new(),
            failed: None,
            reported: Instant::now(),
        };
        let ended = course.run(orders, at_once.max(1), &moved, cancel);
        if ended.is_err() {
            // The own run must end, too; the thread is waited for.
            part.cancel();
        }
        ended
    })
}

struct Course<'a, E> {
    ranks: &'a Ranks,
    worker: Worker,
    /// Ranks that have an order, and bytes that they have moved for it.
    in_hand: BTreeMap<usize, u64>,
    failed: Option<E>,
    reported: Instant,
}

impl<E: From<MailError>> Course<'_, E> {
    fn run<O: Orders<Error = E>>(
        &mut self,
        orders: &mut O,
        at_once: usize,
        moved: &Moved,
        cancel: &Cancel,
    ) -> Result<(), E> {
        loop {
            if self.failed.is_none() && cancel.check().is_ok() {
                self.give(orders, at_once)?;
            }
            if self.in_hand.is_empty() {
                cancel.check().map_err(MailError::from)?;
                return self.failed.take().map_or(Ok(()), Err);
            }
            if self.in_hand.contains_key(&0) {
                if let Some(answer) = self.worker.answer() {
                    self.take(0, answer, orders);
                } else {
                    self.in_hand.insert(0, moved.bytes());
                }
            }
            match look_for(&*self.ranks.by, LOOK)? {
                Some((from, Message::Moved { bytes })) => {
                    self.in_hand.entry(from).and_modify(|known| *known = bytes);
                }
                Some((from, answer)) if self.in_hand.contains_key(&from) => {
                    self.take(from, answer, orders);
                }
                Some((from, other)) => return Err(unexpected(from, &other).into()),
                None => {}
            }
            if self.reported.elapsed() >= REPORT {
                self.reported = Instant::now();
                orders.progress(self.in_hand.values().sum());
            }
        }
    }

    /// Gives every idle rank an order, as long as there are some.
    fn give<O: Orders<Error = E>>(&mut self, orders: &mut O, at_once: usize) -> Result<(), E> {
        for rank in 0..self.ranks.hosts.len() {
            if self.in_hand.len() >= at_once || self.in_hand.contains_key(&rank) {
                continue;
            }
            let Some(order) = orders.next(rank) else { continue };
            if rank == 0 {
                // A thread that broke down is told of by its answer.
                let _ = self.worker.orders.send(order);
            } else {
                send(rank, &order, &*self.ranks.by)?;
            }
            self.in_hand.insert(rank, 0);
        }
        Ok(())
    }

    fn take<O: Orders<Error = E>>(&mut self, rank: usize, answer: Message, orders: &mut O) {
        self.in_hand.remove(&rank);
        if let Err(error) = orders.answered(rank, answer) {
            self.failed.get_or_insert(error);
        }
    }
}

/// Carries out the orders of rank 0 until it says that all is done: the side of all other ranks.
///
/// # Errors
/// When rank 0 cannot be reached.
pub fn attend(ranks: &Ranks, work: &Work<'_>, cancel: &Cancel) -> Result<(), MailError> {
    let moved = Moved::default();
    let part = cancel.part();
    thread::scope(|scope| {
        let worker = Worker::start(scope, work, &moved, &part);
        let ended = serve(ranks, &worker, &moved);
        // What is in hand when all is over is of no use, and the thread is waited for.
        part.cancel();
        ended
    })
}

/// A rank that is stopped by a signal still answers, and goes when rank 0 says so; without rank 0
/// the job ends anyway.
fn serve(ranks: &Ranks, worker: &Worker, moved: &Moved) -> Result<(), MailError> {
    let mut is_working = false;
    let mut reported = Instant::now();
    loop {
        if is_working {
            if let Some(answer) = worker.answer() {
                is_working = false;
                send(0, &answer, &*ranks.by)?;
            } else if reported.elapsed() >= REPORT {
                reported = Instant::now();
                send(0, &Message::Moved { bytes: moved.bytes() }, &*ranks.by)?;
            }
        }
        match look_for(&*ranks.by, LOOK)? {
            None => {}
            Some((_, Message::Quit)) => return Ok(()),
            Some((_, order)) if !is_working => {
                is_working = true;
                let _ = worker.orders.send(order);
            }
            Some((from, other)) => return Err(unexpected(from, &other)),
        }
    }
}

/// Tells all ranks that all is done.
///
/// # Errors
/// When one cannot be reached.
pub fn quit(ranks: &Ranks) -> Result<(), MailError> {
    send_to_all(&Message::Quit, &*ranks.by)
}
