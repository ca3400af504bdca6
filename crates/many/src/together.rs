//! One cell of an experiment on many hosts.
//!
//! Rank 0 runs an ordinary experiment. Its executor is [`Together`]: it has every host that takes
//! part prepare the cell, lets them begin at an agreed instant, and joins what they measured. Each
//! host runs the executor that it would run alone; [`crate::rank`] is its side.
//!
//! The factor `hosts` says how many take part. Which ones changes from run to run: of single hosts
//! first those whose rate alone tells most, of more the ranks in turn.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use experiment::plan::Stop;
use experiment::record::{Cell, Level, RunRecord};
use experiment::run::gate::{CommonStart, Gate, GateError, StartsTogether};
use experiment::run::neighbours::{Neighbours, Unwatched};
use experiment::run::{Executor, Unfinished};
use flow::cancel::Cancel;
use statistics::histogram::Histogram;

use crate::clock::{self, Drifting, Offset, sleep_until};
use crate::merge::{Part, merged};
use crate::message::{Done, MailError, Message, receive, send, send_to_all, unexpected};
use crate::rank::in_words;
use crate::ranks::{PREPARE_MAX, Ranks, closed};

/// The factor: how many hosts take part.
pub const HOSTS: &str = "hosts";
/// Time between the moment at which all are ready and the common start, so that everybody hears of
/// it first.
const START_AFTER_NS: i64 = 20_000_000;
/// Longest wait until a rank has heard that a run does not begin.
const ABANDON_MAX: Duration = Duration::from_secs(60);
/// Time that a host has after the end of a run of rank 0, beyond what a run may take.
const LATE_SECONDS: f64 = 60.0;

/// Why a run on many hosts failed.
#[derive(Debug, thiserror::Error)]
pub enum TogetherError {
    /// One host failed.
    #[error("{host} (rank {rank}): {why}")]
    Host { host: String, rank: usize, why: String },
    /// The hosts cannot talk to each other.
    #[error(transparent)]
    Mail(#[from] MailError),
}

/// What rank 0 knows of a run that is going on.
#[derive(Default)]
struct Under {
    run: u64,
    /// The ranks that take part.
    ranks: Vec<usize>,
    before: Vec<Offset>,
    /// The agreed start, by the clock of rank 0.
    agreed_ns: i64,
    /// When rank 0 itself passed.
    passed_ns: Option<i64>,
    /// Those that already said that they failed.
    failed: Vec<(usize, String)>,
    /// Rank 0 came to the gate, where those that are ready hear how it goes on.
    at_gate: bool,
}

/// What a rank still had to say of a run that was broken off.
fn is_of_an_earlier_run(message: &Message, now: u64) -> bool {
    match message {
        Message::Ready { run } | Message::Failed { run, .. } => *run < now,
        Message::Done(done) => done.run < now,
        _ => false,
    }
}

/// The gate of rank 0: it waits until all are ready, and says when to begin.
struct FirstGate {
    ranks: Rc<Ranks>,
    under: Rc<RefCell<Under>>,
}

impl FirstGate {
    /// Waits until every other rank that takes part is ready or has failed.
    fn gather(&self, cancel: &Cancel) -> Result<(), MailError> {
        let mut waited_for: Vec<usize> = {
            let under = self.under.borrow();
            under.ranks.iter().copied().filter(|rank| *rank != 0).collect()
        };
        while !waited_for.is_empty() {
            let (from, message) = receive(&*self.ranks.by, PREPARE_MAX, cancel)?;
            match message {
                other if is_of_an_earlier_run(&other, self.under.borrow().run) => continue,
                Message::Ready { .. } => {}
                Message::Failed { why, .. } => self.under.borrow_mut().failed.push((from, why)),
                other => return Err(unexpected(from, &other)),
            }
            waited_for.retain(|rank| *rank != from);
        }
        Ok(())
    }

    /// Lets all begin, or tells those that are ready that it is over.
    fn open(&self, cancel: &Cancel) -> Result<(), GateError> {
        self.under.borrow_mut().at_gate = true;
        let opened = self.gather(cancel).map_err(closed).and_then(|()| self.let_go());
        if let Err(error) = &opened {
            self.abandon(&error.to_string());
        }
        opened
    }

    /// Tells all when to begin, if none has failed.
    fn let_go(&self) -> Result<(), GateError> {
        let mut under = self.under.borrow_mut();
        if let Some((rank, why)) = under.failed.first().cloned() {
            let why = format!("{} (rank {rank}): {why}", self.ranks.hosts[rank]);
            return Err(GateError::Closed(why));
        }
        // The clocks once more: the preparation may have taken long.
        for index in 0..under.ranks.len() {
            let rank = under.ranks[index];
            if rank != 0 {
                let now = under.run;
                let mut failed = None;
                let mut other = |from, message: Message| match message {
                    message if is_of_an_earlier_run(&message, now) => Ok(()),
                    Message::Failed { ref why, .. } => {
                        failed = Some((from, why.clone()));
                        Err(unexpected(from, &message))
                    }
                    message => Err(unexpected(from, &message)),
                };
                let (clock, by) = (&*self.ranks.clock, &*self.ranks.by);
                let found = clock::measure(rank, clock, by, &mut other);
                under.failed.extend(failed);
                under.before[index] = found.map_err(closed)?;
            }
        }
        under.agreed_ns = self.ranks.clock.now_ns() + START_AFTER_NS;
        for (rank, offset) in under.ranks.iter().zip(&under.before) {
            if *rank != 0 {
                let start = Message::Start { at_ns: under.agreed_ns + offset.offset_ns };
                send(*rank, &start, &*self.ranks.by).map_err(closed)?;
            }
        }
        Ok(())
    }

    /// Tells those that are ready that it is over, and waits until they have heard it.
    fn abandon(&self, why: &str) {
        let under = self.under.borrow();
        let failed = |rank: &usize| under.failed.iter().any(|(failed, _)| failed == rank);
        let mut told: Vec<usize> =
            under.ranks.iter().copied().filter(|rank| *rank != 0 && !failed(rank)).collect();
        // Who cannot be reached ends by itself.
        let message = Message::Abandon { why: why.to_owned() };
        told.retain(|rank| send(*rank, &message, &*self.ranks.by).is_ok());
        while !told.is_empty() {
            match receive(&*self.ranks.by, ABANDON_MAX, &Cancel::new()) {
                Ok((from, Message::Failed { run, .. })) if run == under.run => {
                    told.retain(|rank| *rank != from);
                }
                // Those that came to the gate meanwhile hear it there.
                Ok((_, Message::Ready { .. } | Message::Failed { .. } | Message::Done(_))) => {}
                // Its clock was asked for when all was broken off.
                Ok((_, Message::Pong { .. })) => {}
                // What comes later is known by the number of its run.
                Ok(_) | Err(_) => return,
            }
        }
    }
}

impl Gate for FirstGate {
    fn late(&self, seconds: f64) {
        let mut under = self.under.borrow_mut();
        under.passed_ns = under.passed_ns.map(|passed| passed + (seconds * 1e9) as i64);
    }

    fn pass(&self, cancel: &Cancel) -> Result<(), GateError> {
        self.open(cancel)?;
        let agreed_ns = self.under.borrow().agreed_ns;
        sleep_until(agreed_ns, &*self.ranks.clock);
        self.under.borrow_mut().passed_ns = Some(self.ranks.clock.now_ns());
        Ok(())
    }
}

/// What was seen of single hosts, to choose the next one.
#[derive(Default)]
struct Seen {
    /// Runs of each rank alone.
    alone: Vec<u64>,
    /// The last rates of all together.
    together: Vec<f64>,
    /// The last rate of each rank alone.
    alone_rates: Vec<Option<f64>>,
    /// Runs with each number of hosts between one and all.
    some: u64,
}

impl Seen {
    /// The ranks of the next run with so many hosts.
    fn next(&mut self, count: usize, all: usize) -> Vec<usize> {
        self.alone.resize(all, 0);
        self.alone_rates.resize(all, None);
        if count >= all {
            return (0..all).collect();
        }
        if count > 1 {
            let first = self.some as usize;
            self.some += 1;
            let mut ranks: Vec<usize> = (0..count).map(|place| (first + place) % all).collect();
            ranks.sort_unstable();
            return ranks;
        }
        let mut order: Vec<usize> = (0..all).collect();
        let alone: Option<Vec<f64>> = self.alone_rates.iter().copied().collect();
        if let Some(alone) = alone.filter(|alone| alone.len() == all) {
            // Who is slow alone runs once more first, whatever it gets together.
            order.sort_by(|left, right| alone[*left].total_cmp(&alone[*right]));
        } else if self.together.len() == all {
            // The slowest first, then the fastest: what tells them apart.
            order.sort_by(|left, right| self.together[*left].total_cmp(&self.together[*right]));
            if let Some(fastest) = order.pop() {
                order.insert(1.min(order.len()), fastest);
            }
        }
        // A stable choice: the first of those with the fewest runs.
        let next = order.into_iter().min_by_key(|rank| self.alone[*rank]).unwrap_or(0);
        self.alone[next] += 1;
        vec![next]
    }
}

/// Runs the cells of an experiment on many hosts, through the executor of rank 0 and those of
/// [`crate::rank`].
pub struct Together<E> {
    own: E,
    ranks: Rc<Ranks>,
    under: Rc<RefCell<Under>>,
    gate: Rc<FirstGate>,
    seen: Seen,
    runs: u64,
    seconds_max: f64,
    /// What the experiment allows the run in hand.
    allowed_seconds: f64,
    local: Box<dyn Fn(&Cell) -> Cell>,
}

impl<E: StartsTogether> Together<E> {
    /// On these ranks; `own` is what rank 0 runs, `local` makes its cell of the common one, and no
    /// run takes longer than `seconds_max`.
    pub fn new(
        mut own: E,
        ranks: Rc<Ranks>,
        seconds_max: f64,
        local: Box<dyn Fn(&Cell) -> Cell>,
    ) -> Together<E> {
        let under = Rc::new(RefCell::new(Under::default()));
        let gate = Rc::new(FirstGate { ranks: Rc::clone(&ranks), under: Rc::clone(&under) });
        own.start_together(CommonStart::through(gate.clone()));
        Together {
            own,
            ranks,
            under,
            gate,
            seen: Seen::default(),
            runs: 0,
            seconds_max,
            allowed_seconds: f64::INFINITY,
            local,
        }
    }

    /// Has the ranks of a run prepare, and returns what rank 0 measured, if it takes part.
    fn begin(&mut self, cell: &Cell, cancel: &Cancel) -> Result<Option<RunRecord>, TogetherError> {
        let ranks = self.under.borrow().ranks.clone();
        let run = self.under.borrow().run;
        for rank in ranks.iter().filter(|rank| **rank != 0) {
            let cell = without_hosts(cell);
            let message = Message::Prepare {
                run,
                cell,
                seconds_max: self.seconds_max.min(self.allowed_seconds),
            };
            send(*rank, &message, &*self.ranks.by)?;
        }
        if !ranks.contains(&0) {
            return match self.gate.open(cancel) {
                Ok(()) => Ok(None),
                Err(error) => Err(self.failed_at_the_gate(error)),
            };
        }
        let own = self.own.execute(&(self.local)(&without_hosts(cell)), cancel);
        let passed = self.under.borrow().passed_ns.is_some();
        match own {
            Ok(record) if passed => Ok(Some(record)),
            Ok(_) => {
                let why = "it did not wait for the others".to_owned();
                self.gate.abandon(&why);
                Err(self.host_failed(0, why))
            }
            Err(error) => {
                let why = in_words(&error);
                if passed {
                    // The others run: what they measured is of no use, and must still be taken.
                    let _ = self.collect();
                } else if !self.under.borrow().at_gate {
                    // Who is ready must hear of it.
                    self.gate.abandon(&why);
                }
                let failed = self.under.borrow().failed.first().cloned();
                Err(match failed {
                    Some((rank, why)) => self.host_failed(rank, why),
                    None => self.host_failed(0, why),
                })
            }
        }
    }

    fn failed_at_the_gate(&self, error: GateError) -> TogetherError {
        let failed = self.under.borrow().failed.first().cloned();
        match (failed, error) {
            (Some((rank, why)), _) => self.host_failed(rank, why),
            (None, GateError::Stopped(stopped)) => TogetherError::Mail(stopped.into()),
            (None, GateError::Closed(why)) => self.host_failed(0, why),
        }
    }

    fn host_failed(&self, rank: usize, why: String) -> TogetherError {
        let host = self.ranks.hosts.get(rank).cloned().unwrap_or_default();
        TogetherError::Host { host, rank, why }
    }

    /// Takes what the other ranks measured.
    fn collect(&self) -> Result<Vec<(usize, Done)>, TogetherError> {
        let mut waited_for: Vec<usize> =
            self.under.borrow().ranks.iter().copied().filter(|rank| *rank != 0).collect();
        let run = self.under.borrow().run;
        let most = Duration::from_secs_f64((self.seconds_max + LATE_SECONDS).min(1e9));
        for rank in &waited_for {
            send(*rank, &Message::Report, &*self.ranks.by)?;
        }
        let (mut done, mut failed) = (Vec::new(), None);
        while !waited_for.is_empty() {
            // Also of a run that is being stopped: the others stop as well, and answer.
            let (from, message) = receive(&*self.ranks.by, most, &Cancel::new())?;
            match message {
                other if is_of_an_earlier_run(&other, run) => continue,
                Message::Done(one) if one.run == run => done.push((from, *one)),
                Message::Failed { run: its, why } if its == run => {
                    failed.get_or_insert((from, why));
                }
                other => return Err(unexpected(from, &other).into()),
            }
            waited_for.retain(|rank| *rank != from);
        }
        match failed {
            Some((rank, why)) => Err(self.host_failed(rank, why)),
            None => Ok(done),
        }
    }

    /// Joins what all measured, in the time of rank 0.
    fn join(
        &mut self,
        own: Option<RunRecord>,
        done: Vec<(usize, Done)>,
    ) -> Result<RunRecord, TogetherError> {
        let (by, clock) = (&*self.ranks.by, &*self.ranks.clock);
        let under = self.under.borrow();
        let mut parts = Vec::new();
        let mut doubt_ns = 0;
        let mut latency = Histogram::default();
        if let (Some(mut record), Some(begun_ns)) = (own, under.passed_ns) {
            latency = record.latency.take().unwrap_or_default();
            let ended_ns = begun_ns + (record.seconds * 1e9) as i64;
            let host = self.ranks.hosts[0].clone();
            parts.push(Part { rank: 0, host, begun_ns, ended_ns, record });
        }
        for (rank, done) in done {
            let place = under.ranks.iter().position(|one| *one == rank).unwrap_or_default();
            let now = under.run;
            let mut other = |from, message: Message| {
                let is_old = is_of_an_earlier_run(&message, now);
                if is_old { Ok(()) } else { Err(unexpected(from, &message)) }
            };
            let after = clock::measure(rank, clock, by, &mut other)?;
            let theirs = Drifting { before: under.before[place], after };
            doubt_ns = doubt_ns.max(theirs.doubt_ns());
            parts.push(Part {
                rank,
                host: self.ranks.hosts[rank].clone(),
                begun_ns: theirs.to_first(done.begun_ns),
                ended_ns: theirs.to_first(done.ended_ns),
                record: done.record,
            });
        }
        parts.sort_by_key(|part| part.rank);
        send_to_all(&Message::Sum { run: under.run }, by)?;
        let sums = by.sum(latency.counts()).map_err(MailError::from)?;
        let latency = sums.and_then(Histogram::of_counts);
        Ok(merged(&parts, latency, under.agreed_ns, doubt_ns))
    }
}

/// The cell that each host gets.
fn without_hosts(cell: &Cell) -> Cell {
    let mut cell = cell.clone();
    cell.remove(HOSTS);
    cell
}

impl<E: StartsTogether> Executor for Together<E> {
    type Error = TogetherError;

    fn applies(&self, cell: &Cell) -> bool {
        let fits = match cell.get(HOSTS) {
            Some(Level::Number(hosts)) => (1..=self.ranks.hosts.len() as u64).contains(hosts),
            Some(Level::Text(_)) => false,
            None => true,
        };
        fits && self.own.applies(&(self.local)(&without_hosts(cell)))
    }

    fn execute(&mut self, cell: &Cell, cancel: &Cancel) -> Result<RunRecord, TogetherError> {
        let all = self.ranks.hosts.len();
        let count = match cell.get(HOSTS) {
            Some(Level::Number(hosts)) => usize::try_from(*hosts).unwrap_or(all),
            _ => all,
        };
        let ranks = self.seen.next(count, all);
        self.runs += 1;
        let before = vec![Offset::default(); ranks.len()];
        *self.under.borrow_mut() = Under { run: self.runs, ranks, before, ..Under::default() };
        let own = self.begin(cell, cancel)?;
        let done = self.collect()?;
        cancel.check().map_err(MailError::from)?;
        let run = self.join(own, done)?;
        let rate = |part: &experiment::record::HostPart| part.window_bytes_per_second;
        if run.hosts.len() == all {
            self.seen.together = run.hosts.iter().filter_map(rate).collect();
        }
        if let [host] = &run.hosts[..]
            && let Some(known) = self.seen.alone_rates.get_mut(host.rank as usize)
        {
            *known = rate(host);
        }
        Ok(run)
    }

    fn unfinished(&self) -> Option<Unfinished> {
        // Of several hosts the slowest bounds the run, and of another host nothing is known here.
        (self.under.borrow().ranks == [0]).then(|| self.own.unfinished()).flatten()
    }

    fn allow(&mut self, seconds: f64) {
        self.allowed_seconds = seconds;
    }

    fn neighbours(&self) -> Box<dyn Neighbours> {
        // Other ranks on the host of rank 0 are no foreign programs.
        let first = self.ranks.hosts.first();
        if self.ranks.hosts.iter().skip(1).any(|host| Some(host) == first) {
            return Box::new(Unwatched);
        }
        self.own.neighbours()
    }

    fn foretell(&mut self, cells: &[Cell], stop: &Stop) -> Vec<String> {
        let cells: Vec<Cell> = cells.iter().map(without_hosts).collect();
        self.own.foretell(&cells, stop)
    }

    fn finish(&mut self) -> Result<(), TogetherError> {
        let sent = send_to_all(&Message::Quit, &*self.ranks.by);
        let own = self.own.finish();
        if let Err(error) = own {
            return Err(self.host_failed(0, in_words(&error)));
        }
        Ok(sent?)
    }
}
