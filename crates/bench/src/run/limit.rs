//! What a run may take: an estimate before it begins, and an end for one that takes much longer.
//!
//! Cells of one experiment differ by orders of magnitude (a disk without read-ahead, small blocks
//! on a tape), so each has an estimate of its own as soon as it has run. One that has not may turn
//! out to be longer than what is left of the budget; it is stopped when it exceeds that by a tenth
//! of the whole.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use flow::cancel::{Cancel, POLL};

use crate::record::{Cell, RunRecord};

/// Share of the budget by which a run may exceed it.
const OVERRUN_SHARE: f64 = 0.1;

/// Time that runs took with all that belongs to them.
#[derive(Debug, Default)]
pub struct Estimates {
    longest: BTreeMap<Cell, f64>,
    sum_seconds: f64,
    count: u64,
}

impl Estimates {
    /// From the runs of an earlier part of an experiment, of which only the measured time is known.
    pub fn of(runs: &[RunRecord]) -> Estimates {
        let mut estimates = Estimates::default();
        runs.iter().for_each(|run| estimates.raise(&run.cell, run.seconds));
        estimates
    }

    /// Counts a run.
    pub fn add(&mut self, cell: &Cell, seconds: f64) {
        self.raise(cell, seconds);
        self.sum_seconds += seconds;
        self.count += 1;
    }

    fn raise(&mut self, cell: &Cell, seconds: f64) {
        let known = self.longest.entry(cell.clone()).or_default();
        *known = known.max(seconds);
    }

    /// The longest run of the cell so far, or the mean of all where it has not run.
    pub fn seconds(&self, cell: &Cell) -> f64 {
        self.longest.get(cell).copied().unwrap_or_else(|| self.mean_seconds().unwrap_or(0.0))
    }

    /// Mean of the runs that were counted.
    pub fn mean_seconds(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_seconds / self.count as f64)
    }
}

/// How a run ended.
pub enum Watched<T> {
    /// By itself.
    Done(T),
    /// The user stopped it.
    Cancelled,
    /// It took too long.
    Overrun,
}

/// Runs `work`, which looks at the token it gets, until it ends, the user cancels or time is up.
pub fn watch<T>(
    seconds_left: f64,
    budget_seconds: f64,
    user: &Cancel,
    work: impl FnOnce(&Cancel) -> T,
) -> Watched<T> {
    let own = Cancel::new();
    let allowed = (seconds_left + OVERRUN_SHARE * budget_seconds).max(0.0);
    let begun = Instant::now();
    // Too long for a Duration is for ever.
    let allowed = Duration::try_from_secs_f64(allowed).unwrap_or(Duration::MAX);
    let result = std::thread::scope(|scope| {
        let (done, wait) = channel::<()>();
        let token = &own;
        scope.spawn(move || {
            while wait.recv_timeout(POLL) == Err(RecvTimeoutError::Timeout) {
                if user.check().is_err() || begun.elapsed() > allowed {
                    return token.cancel();
                }
            }
        });
        let result = work(&own);
        drop(done);
        result
    });
    match (user.check(), own.check()) {
        (Err(_), _) => Watched::Cancelled,
        (Ok(()), Err(_)) => Watched::Overrun,
        (Ok(()), Ok(())) => Watched::Done(result),
    }
}
