//! Ranks that are threads of one process: for tests, where ranks must be lost at a known step.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use crate::communicator::{CommunicationError, Communicator, Waiting};

/// What travels between two threads.
enum Letter {
    Message(Vec<u8>),
    Counts(Vec<u64>),
    /// The rank is gone.
    Gone,
}

/// One rank of a group in this process.
pub struct Local {
    rank: usize,
    letters: Receiver<(usize, Letter)>,
    others: Vec<Sender<(usize, Letter)>>,
    /// Messages that came while counts were awaited.
    waiting: RefCell<VecDeque<(usize, Vec<u8>)>>,
    counts: RefCell<Vec<Option<Vec<u64>>>>,
    gone: RefCell<Vec<bool>>,
    all: Arc<Barrier>,
    /// Calls after which this rank is lost.
    calls_left: Cell<Option<u64>>,
}

impl Local {
    /// A group of so many ranks.
    pub fn group(size: usize) -> Vec<Local> {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..size).map(|_| channel()).unzip();
        let all = Arc::new(Barrier::new(size.max(1)));
        let one = |(rank, letters)| Local {
            rank,
            letters,
            others: senders.clone(),
            waiting: RefCell::default(),
            counts: RefCell::new(vec![None; size]),
            gone: RefCell::new(vec![false; size]),
            all: Arc::clone(&all),
            calls_left: Cell::new(None),
        };
        receivers.into_iter().enumerate().map(one).collect()
    }

    /// The same rank, which is lost at its call number `calls`, counted from 0.
    #[must_use]
    pub fn lost_after(self, calls: u64) -> Local {
        self.calls_left.set(Some(calls));
        self
    }

    /// Counts a call; a rank that is lost gets nothing done from here on.
    fn call(&self) -> Result<(), CommunicationError> {
        match self.calls_left.get() {
            Some(0) => Err(CommunicationError::Lost(self.rank)),
            Some(left) => {
                self.calls_left.set(Some(left - 1));
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Takes what has arrived, for at most this time.
    fn take(&self, wait: Duration) -> Result<bool, CommunicationError> {
        match self.letters.recv_timeout(wait) {
            Ok((from, Letter::Message(bytes))) => {
                self.waiting.borrow_mut().push_back((from, bytes))
            }
            Ok((from, Letter::Counts(counts))) => self.counts.borrow_mut()[from] = Some(counts),
            Ok((from, Letter::Gone)) => self.gone.borrow_mut()[from] = true,
            Err(RecvTimeoutError::Timeout) => return Ok(false),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(CommunicationError::Failed("all others are gone".to_owned()));
            }
        }
        Ok(true)
    }

    /// The first rank that is gone: as with MPI, that ends the job.
    fn check(&self) -> Result<(), CommunicationError> {
        let lost = self.gone.borrow().iter().position(|gone| *gone);
        lost.map_or(Ok(()), |rank| Err(CommunicationError::Lost(rank)))
    }

    /// Waits for all ranks.
    pub fn barrier(&self) {
        self.all.wait();
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        if self.calls_left.get() == Some(0) {
            for other in &self.others {
                let _ = other.send((self.rank, Letter::Gone));
            }
        }
    }
}

impl Communicator for Local {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.others.len()
    }

    fn send(&self, to: usize, bytes: &[u8]) -> Result<(), CommunicationError> {
        self.call()?;
        let sent = self.others[to].send((self.rank, Letter::Message(bytes.to_vec())));
        sent.map_err(|_| CommunicationError::Lost(to))
    }

    fn receive(
        &self,
        wait: Duration,
        _waiting: Waiting,
    ) -> Result<Option<(usize, Vec<u8>)>, CommunicationError> {
        self.call()?;
        let end = Instant::now() + wait;
        loop {
            if let Some(message) = self.waiting.borrow_mut().pop_front() {
                return Ok(Some(message));
            }
            self.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if !self.take(left)? {
                return Ok(None);
            }
        }
    }

    fn sum(&self, counts: &[u64]) -> Result<Option<Vec<u64>>, CommunicationError> {
        self.call()?;
        if self.rank != 0 {
            let sent = self.others[0].send((self.rank, Letter::Counts(counts.to_vec())));
            return sent.map(|()| None).map_err(|_| CommunicationError::Lost(0));
        }
        self.counts.borrow_mut()[0] = Some(counts.to_vec());
        while self.counts.borrow().iter().any(Option::is_none) {
            self.check()?;
            self.take(Duration::from_secs(60))?;
        }
        let mut sums = vec![0_u64; counts.len()];
        for own in self.counts.borrow_mut().iter_mut() {
            let own = own.take().unwrap_or_default();
            sums.iter_mut().zip(own).for_each(|(sum, one)| *sum = sum.saturating_add(one));
        }
        Ok(Some(sums))
    }
}
