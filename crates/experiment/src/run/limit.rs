//! The time limit of a run: an estimate before it begins, and a stop for a run that takes much
//! longer.
//!
//! Cells of one experiment differ by orders of magnitude (a disk without read-ahead, small blocks
//! on a tape), so each has an estimate of its own as soon as it has run. A cell that has not run
//! yet may take longer than all others together: it gets its share of the budget, or three times as
//! long as the others took, whichever is more, and is stopped then. Its planned bytes divided by
//! its time are an upper bound on its rate, which the record keeps.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use flow::cancel::{Cancel, POLL};

use crate::record::{Cell, RunRecord};

/// Share of the budget by which a run may exceed it.
const OVERRUN_SHARE: f64 = 0.1;
/// Share of the budget that the very first run may take, since nothing is known yet.
const FIRST_SHARE: f64 = 0.25;
/// How many times as long as others a run may take, even if that is more than its share.
const LONGER: f64 = 3.0;

/// The time available for a run.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// The rest of the budget.
    pub left_seconds: f64,
    /// The whole budget.
    pub budget_seconds: f64,
    /// Runs of this block that wait for their turn, this one included.
    pub waiting: usize,
    /// The user's limit for a run.
    pub run_seconds_max: Option<f64>,
}

/// Times of runs, with their preparation.
#[derive(Debug, Default)]
pub struct Estimates {
    longest: BTreeMap<Cell, f64>,
    sum_seconds: f64,
    count: u64,
}

impl Estimates {
    /// From the runs of an earlier part of an experiment, where only the measured time is known.
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

    /// How long a run of the cell may take. A cell that has run may take the rest of the budget.
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

    /// Number of runs counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean time of the counted runs.
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
    /// It took too long and was stopped after this many seconds. The time of stopping is not
    /// included, because a drive may first have to write out its buffer.
    Cut(f64),
}

/// Runs `work`, which checks its token, until it ends, the user cancels or the time is over.
pub fn watch<T, E>(
    allowed_seconds: f64,
    user: &Cancel,
    work: impl FnOnce(&Cancel) -> Result<T, E>,
) -> WatchedRun<Result<T, E>> {
    let own = Cancel::new();
    let begun = Instant::now();
    // A time too long for a `Duration` means no limit.
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
        // A run that completed just then keeps its result.
        (Ok(()), Some(taken)) if result.is_err() => WatchedRun::Cut(taken.as_secs_f64()),
        (Ok(()), _) => WatchedRun::Done(result),
    }
}
