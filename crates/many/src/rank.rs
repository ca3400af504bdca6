//! The side of a rank that is not the first, in an experiment on many hosts.
//!
//! It runs the executor that its host would run alone. While that measures, the rank neither sends
//! nor looks for messages.

use std::cell::Cell as Shared;
use std::error::Error;
use std::rc::Rc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use experiment::record::{Cell, RunRecord};
use experiment::run::gate::{CommonStart, Gate, GateError, StartsTogether};
use flow::cancel::Cancel;
use statistics::histogram::Histogram;

use crate::clock::{self, Clock, sleep_until};
use crate::communicator::Communicator;
use crate::message::{Done, MailError, Message, look, receive, send, unexpected};
use crate::ranks::{PREPARE_MAX, Ranks, closed};

/// The gate of a rank that is not the first.
struct RankGate {
    by: Rc<dyn Communicator>,
    clock: Rc<dyn Clock>,
    run: Shared<u64>,
    passed_ns: Shared<Option<i64>>,
    /// Rank 0 has ended meanwhile.
    is_over: Shared<bool>,
}

impl Gate for RankGate {
    fn late(&self, seconds: f64) {
        let passed = self.passed_ns.get();
        self.passed_ns.set(passed.map(|passed| passed + (seconds * 1e9) as i64));
    }

    fn pass(&self, cancel: &Cancel) -> Result<(), GateError> {
        send(0, &Message::Ready { run: self.run.get() }, &*self.by).map_err(closed)?;
        let mut next = None;
        loop {
            let message = match next.take() {
                Some(message) => message,
                None => receive(&*self.by, PREPARE_MAX, cancel).map_err(closed)?,
            };
            match message {
                // All are ready; the clocks are measured once more.
                (from, Message::Ping) => {
                    next = clock::answer(from, &*self.clock, &*self.by).map_err(closed)?;
                }
                (_, Message::Start { at_ns }) => {
                    sleep_until(at_ns, &*self.clock);
                    self.passed_ns.set(Some(self.clock.now_ns()));
                    return Ok(());
                }
                (_, Message::Abandon { why }) => return Err(GateError::Closed(why)),
                (_, Message::Quit) => {
                    self.is_over.set(true);
                    return Err(GateError::Closed("rank 0 has ended".to_owned()));
                }
                (from, other) => return Err(closed(unexpected(from, &other))),
            }
        }
    }
}

/// Serves rank 0 until it says that all is done: the side of all other ranks. `local` makes this
/// rank's cell of the common one.
///
/// # Errors
/// When rank 0 cannot be reached, or says what does not belong here.
pub fn serve<E: StartsTogether>(
    ranks: &Ranks,
    executor: &mut E,
    local: impl Fn(&Cell) -> Cell,
    cancel: &Cancel,
) -> Result<(), MailError> {
    let by = &ranks.by;
    let gate = Rc::new(RankGate {
        by: Rc::clone(by),
        clock: Rc::clone(&ranks.clock),
        run: Shared::new(0),
        passed_ns: Shared::new(None),
        is_over: Shared::new(false),
    });
    executor.start_together(CommonStart::through(gate.clone()));
    let mut latency = (0, Histogram::default());
    let mut measured: Option<Message> = None;
    let mut next = None;
    loop {
        let found = match next.take() {
            Some(message) => Some(message),
            None => look(&**by)?,
        };
        let Some((from, message)) = found else {
            // Rank 0 is stopped by the same signal, and says when all is put back. Without it the
            // job ends anyway.
            continue;
        };
        match message {
            Message::Ping => next = clock::answer(from, &*ranks.clock, &**by)?,
            Message::Prepare { run, cell, seconds_max } => {
                gate.run.set(run);
                gate.passed_ns.set(None);
                let outcome =
                    limited(seconds_max, cancel, |cancel| executor.execute(&local(&cell), cancel));
                let (answer, its) = answer_of(run, outcome, gate.passed_ns.get());
                latency = (run, its);
                if gate.is_over.get() {
                    return Ok(());
                }
                // Who has begun answers when rank 0 is done itself: it may measure still.
                if gate.passed_ns.get().is_some() {
                    measured = Some(answer);
                } else {
                    send(from, &answer, &**by)?;
                }
            }
            Message::Report => {
                if let Some(answer) = measured.take() {
                    send(from, &answer, &**by)?;
                }
            }
            // For a run that this rank has left, which rank 0 hears of.
            Message::Abandon { .. } | Message::Start { .. } => {}
            Message::Sum { run } => {
                // Who did not take part, or measured for a run that failed, adds nothing.
                let own = if latency.0 == run { &latency.1 } else { &Histogram::default() };
                by.sum(own.counts())?;
            }
            Message::Quit => return Ok(()),
            other => return Err(unexpected(from, &other)),
        }
    }
}

/// What a rank says of a run that it has done, and its latencies, which are summed.
fn answer_of<E: Error + 'static>(
    run: u64,
    outcome: Result<RunRecord, E>,
    passed_ns: Option<i64>,
) -> (Message, Histogram) {
    match (outcome, passed_ns) {
        (Ok(mut record), Some(begun_ns)) => {
            let latency = record.latency.take().unwrap_or_default();
            record.operations.clear();
            let ended_ns = begun_ns + (record.seconds * 1e9) as i64;
            (Message::Done(Box::new(Done { run, begun_ns, ended_ns, record })), latency)
        }
        (Ok(_), None) => {
            let why = "it did not wait for the others".to_owned();
            (Message::Failed { run, why }, Histogram::default())
        }
        (Err(error), _) => (Message::Failed { run, why: in_words(&error) }, Histogram::default()),
    }
}

/// An error with its causes, in one line.
pub(crate) fn in_words(error: &(dyn Error + 'static)) -> String {
    base::failures::with_causes(error)
}

/// Runs `work` with a token that stops it after this time.
fn limited<T>(seconds_max: f64, cancel: &Cancel, work: impl FnOnce(&Cancel) -> T) -> T {
    let own = cancel.part();
    let (ended, wait) = channel::<()>();
    thread::scope(|scope| {
        let stop = own.clone();
        scope.spawn(move || {
            let most = Duration::from_secs_f64(seconds_max.clamp(0.0, 1e9));
            if wait.recv_timeout(most) == Err(RecvTimeoutError::Timeout) {
                stop.cancel();
            }
        });
        let done = work(&own);
        drop(ended);
        done
    })
}
