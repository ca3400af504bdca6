//! What a run may take: an estimate before it begins, and an end for one that takes much longer.
//!
//! Cells of one experiment differ by orders of magnitude (a disk without read-ahead, small blocks
//! on a tape), so each has an estimate of its own as soon as it has run. One that has not may turn
//! out to be longer than all others together: it gets its share of the budget, or three times what
//! the others took, whichever is more, and is stopped then. What it would have moved by its time is
//! a bound of its rate, which is kept.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use flow::cancel::{Cancel, POLL};

use crate::record::{Cell, RunRecord};

/// Share of the budget by which a run may exceed it.
const OVERRUN_SHARE: f64 = 0.1;
/// Share of it that the first run of all may take, of which nothing is known.
const FIRST_SHARE: f64 = 0.25;
/// How many times as long as others a run may take, also where that is more than its share.
const LONGER: f64 = 3.0;

/// The time that there is for a run.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// What is left of the budget, and all of it.
    pub left_seconds: f64,
    /// All of it.
    pub budget_seconds: f64,
    /// Runs of this block that wait for their turn, this one included.
    pub waiting: usize,
    /// What the user allows a run.
    pub run_seconds_max: Option<f64>,
}

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

    /// The longest run of the cell so far.
    pub fn known_seconds(&self, cell: &Cell) -> Option<f64> {
        self.longest.get(cell).copied()
    }

    /// How long a run of the cell may take. One that has run may take what is left.
    pub fn allowed_seconds(&self, cell: &Cell, room: Room) -> f64 {
        let most = (room.left_seconds + OVERRUN_SHARE * room.budget_seconds).max(0.0);
        if let Some(given) = room.run_seconds_max {
            return given.min(most);
        }
        if self.longest.contains_key(cell) {
            return most;
        }
        let share = room.left_seconds / room.waiting.max(1) as f64;
        let usual = self.median().map_or(FIRST_SHARE * room.budget_seconds, |one| LONGER * one);
        most.min(share.max(usual))
    }

    /// The median of the longest runs of all cells that have run.
    fn median(&self) -> Option<f64> {
        let mut all: Vec<f64> = self.longest.values().copied().collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied()
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean of the runs that were counted.
    pub fn mean_seconds(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_seconds / self.count as f64)
    }
}

/// How a run ended.
pub enum WatchedRun<T> {
    /// By itself.
    Done(T),
    /// The user stopped it.
    Cancelled,
    /// It took too long, and was told to stop after so many seconds. Stopping may take its time, as
    /// a drive writes what its buffer holds; that is not part of them.
    Cut(f64),
}

/// Runs `work`, which looks at the token it gets, until it ends, the user cancels or time is up.
pub fn watch<T, E>(
    allowed_seconds: f64,
    user: &Cancel,
    work: impl FnOnce(&Cancel) -> Result<T, E>,
) -> WatchedRun<Result<T, E>> {
    let own = Cancel::new();
    let begun = Instant::now();
    // Too long for a Duration is for ever.
    let allowed = Duration::try_from_secs_f64(allowed_seconds).unwrap_or(Duration::MAX);
    let (result, told) = std::thread::scope(|scope| {
        let (done, wait) = channel::<()>();
        let token = &own;
        let watcher = scope.spawn(move || {
            while wait.recv_timeout(POLL) == Err(RecvTimeoutError::Timeout) {
                let taken = begun.elapsed();
                if user.check().is_err() || taken > allowed {
                    token.cancel();
                    return Some(taken);
                }
            }
            None
        });
        let result = work(&own);
        drop(done);
        (result, watcher.join().expect("watching does not panic"))
    });
    match (user.check(), told) {
        (Err(_), _) => WatchedRun::Cancelled,
        // One that ended just then has its number.
        (Ok(()), Some(taken)) if result.is_err() => WatchedRun::Cut(taken.as_secs_f64()),
        (Ok(()), _) => WatchedRun::Done(result),
    }
}
