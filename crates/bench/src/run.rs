//! Runs an experiment: all cells once in a random order, then again, until it is enough.
//!
//! A block is every cell once, in an order of its own; a drift of the system is then the same for
//! all cells, and comparisons within blocks do not see it. After each run its record is appended to
//! the file and on the disk. An experiment that was interrupted goes on in the middle of its block,
//! in the order that it would have had.
//!
//! What a run is, is the [`Executor`]'s; the tests have one that only computes.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{SystemTime, UNIX_EPOCH};

mod limit;

use flow::cancel::Cancel;

use crate::plan::Plan;
use crate::quantities::hard_to_change;
use crate::record::{Cell, Experiment, FORMAT, Header, Level, RecordError, RunFile, RunRecord};
use limit::{Estimates, Watched, watch};

/// Failures in a row after which a cell is not tried again.
const FAILURES_MAX: u32 = 2;

/// Does the runs.
pub trait Executor {
    /// Why a run gave no number, or something was not put back.
    type Error: Error + 'static;

    /// Whether a combination means anything: `false` for direct I/O with four read-aheads.
    fn applies(&self, cell: &Cell) -> bool;

    /// Brings everything into the state in which a run begins, runs, and says what happened.
    ///
    /// # Errors
    /// Where the run gave no number. The record keeps it in words, and the experiment goes on with
    /// the next cell.
    fn execute(&mut self, cell: &Cell, cancel: &Cancel) -> Result<RunRecord, Self::Error>;

    /// Puts back what was changed for the runs.
    ///
    /// # Errors
    /// Where something could not be put back.
    fn finish(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// Hears how the experiment goes on.
pub trait Observer {
    /// A run begins.
    fn begins(&self, progress: &Progress<'_>);
    /// A run has ended, and is in the file.
    fn ended(&self, progress: &Progress<'_>, run: &RunRecord);
}

/// Where an experiment is.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// The cell of the run.
    pub cell: &'a Cell,
    /// Number of the block, from 1.
    pub block: u64,
    /// Runs that have ended, and runs of all cells up to the end of this block.
    pub runs: (u64, u64),
    /// Seconds to the end of the blocks that will be run at least, or of the budget.
    pub seconds_left: Option<f64>,
    /// The widest interval of all cells, half of it as a share, from two repeats on.
    pub widest_interval: Option<f64>,
}

/// Why an experiment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All intervals are as narrow as asked.
    Narrow,
    /// Every cell has as many repeats as allowed.
    Repeats,
    /// No time is left.
    Budget,
    /// No time is left, and a run that did not end was stopped.
    Overrun,
    /// The user stopped it.
    Cancelled,
    /// No cell can be run.
    Failed,
}

impl Ended {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Ended::Narrow => "all intervals are as narrow as asked",
            Ended::Repeats => "every cell has its repeats",
            Ended::Budget => "the time budget is used up",
            Ended::Overrun => {
                "the time budget is used up; a run that went on beyond it was stopped and left out"
            }
            Ended::Cancelled => "stopped; the same command goes on",
            Ended::Failed => "no cell could be run",
        }
    }
}

/// The first line for a plan.
pub fn header(plan: &Plan) -> Header {
    Header {
        format: FORMAT,
        kind: plan.kind.clone(),
        title: plan.title.clone(),
        factors: plan.factors.clone(),
        plan: serde_json::to_value(plan).expect("a plan is made of strings and numbers"),
        seed: plan.seed,
        started_unix_seconds: unix_seconds(),
    }
}

/// Seconds of Unix time.
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Whether an interrupted experiment is the one that this plan means: all but the budget and the
/// repeats, which may be changed to go on for longer, has to be the same.
pub fn is_same(plan: &Plan, header: &Header) -> bool {
    let known: Result<Plan, _> = serde_json::from_value(header.plan.clone());
    known.is_ok_and(|known| Plan { stop: plan.stop, ..known } == *plan)
}

/// What a run of an experiment needs besides its plan.
pub struct Parts<'a, E> {
    /// Does the runs.
    pub executor: &'a mut E,
    /// Takes the records.
    pub file: &'a mut RunFile,
    /// Hears of it.
    pub observer: &'a dyn Observer,
    /// Seconds since any fixed moment.
    pub clock: &'a dyn Fn() -> f64,
    /// Stops it between two runs, and a run that looks at it.
    pub cancel: &'a Cancel,
}

/// Runs a plan, behind what `experiment` holds already, and leaves all runs there.
pub fn run<'a, E: Executor>(
    plan: &'a Plan,
    experiment: &mut Experiment,
    parts: Parts<'a, E>,
) -> Result<Ended, RecordError> {
    let cells: Vec<Cell> =
        plan.cells().into_iter().filter(|cell| parts.executor.applies(cell)).collect();
    let start = (parts.clock)();
    let mut course = Course {
        plan,
        cells,
        parts,
        start,
        estimates: Estimates::of(&experiment.runs),
        failures: BTreeMap::new(),
    };
    for block in 1..=plan.stop.repeats_max {
        if let Some(ended) = course.block(block, &mut experiment.runs)? {
            return Ok(ended);
        }
    }
    Ok(Ended::Repeats)
}

/// What takes a person or an arm to change is changed as seldom as can be: within a block the cells
/// of one such level come one after the other, the levels in the order in which the first cell of
/// each would have come (a split-plot design; comparisons between those levels have fewer degrees
/// of freedom than their runs suggest).
fn keep_together(order: &mut [usize], cells: &[Cell]) {
    let hard: Vec<&str> = hard_to_change().collect();
    let part = |index: usize| -> Vec<Option<&Level>> {
        hard.iter().map(|&name| cells[index].get(name)).collect()
    };
    let mut seen = Vec::new();
    for &index in order.iter() {
        let levels = part(index);
        if !seen.contains(&levels) {
            seen.push(levels);
        }
    }
    order.sort_by_key(|&index| {
        let levels = part(index);
        seen.iter().position(|known| *known == levels)
    });
}

struct Course<'a, E> {
    plan: &'a Plan,
    cells: Vec<Cell>,
    parts: Parts<'a, E>,
    start: f64,
    estimates: Estimates,
    failures: BTreeMap<Cell, u32>,
}

impl<E: Executor> Course<'_, E> {
    fn block(
        &mut self,
        block: u64,
        runs: &mut Vec<RunRecord>,
    ) -> Result<Option<Ended>, RecordError> {
        let mut order = self.plan.order(self.cells.len(), block);
        keep_together(&mut order, &self.cells);
        for index in order {
            let cell = self.cells[index].clone();
            if runs.iter().any(|run| run.repeat == block && run.cell == cell) {
                continue;
            }
            if self.failures.get(&cell).is_some_and(|&failures| failures >= FAILURES_MAX) {
                continue;
            }
            if self.parts.cancel.check().is_err() {
                return Ok(Some(Ended::Cancelled));
            }
            if self.estimates.seconds(&cell) > self.seconds_left() {
                return Ok(Some(Ended::Budget));
            }
            if let Some(ended) = self.one(&cell, block, runs)? {
                return Ok(Some(ended));
            }
        }
        let given_up = self.failures.values().filter(|&&count| count >= FAILURES_MAX).count();
        if given_up == self.cells.len() {
            return Ok(Some(Ended::Failed));
        }
        let enough = self.plan.stop.rule().is_enough(&self.rates(runs), block);
        Ok(enough.then_some(Ended::Narrow))
    }

    /// Runs one cell; how it ended when it was stopped in its middle, which leaves no record.
    fn one(
        &mut self,
        cell: &Cell,
        block: u64,
        runs: &mut Vec<RunRecord>,
    ) -> Result<Option<Ended>, RecordError> {
        self.parts.observer.begins(&self.progress(cell, block, runs));
        let started_unix_seconds = unix_seconds();
        let begun = self.seconds();
        let (left, budget) = (self.seconds_left(), self.plan.stop.budget_seconds);
        let work = |cancel: &Cancel| self.parts.executor.execute(cell, cancel);
        let mut run = match watch(left, budget, self.parts.cancel, work) {
            Watched::Cancelled => return Ok(Some(Ended::Cancelled)),
            Watched::Overrun => return Ok(Some(Ended::Overrun)),
            Watched::Done(Ok(run)) => {
                self.failures.remove(cell);
                run
            }
            Watched::Done(Err(error)) => {
                *self.failures.entry(cell.clone()).or_default() += 1;
                RunRecord { error: Some(in_words(&error)), ..RunRecord::default() }
            }
        };
        run.cell = cell.clone();
        run.repeat = block;
        run.order = runs.len() as u64 + 1;
        run.started_unix_seconds = started_unix_seconds;
        self.parts.file.push(&run)?;
        self.estimates.add(cell, self.seconds() - begun);
        runs.push(run);
        let run = runs.last().expect("it was pushed just now");
        self.parts.observer.ended(&self.progress(cell, block, runs), run);
        Ok(None)
    }

    fn seconds(&self) -> f64 {
        (self.parts.clock)() - self.start
    }

    /// What is left of the budget.
    fn seconds_left(&self) -> f64 {
        (self.plan.stop.budget_seconds - self.seconds()).max(0.0)
    }

    fn progress<'c>(&self, cell: &'c Cell, block: u64, runs: &[RunRecord]) -> Progress<'c> {
        let cells = self.cells.len() as u64;
        let sure = cells * self.plan.stop.repeats_min.max(block);
        let done = runs.len() as u64;
        let left = |mean: f64| sure.saturating_sub(done) as f64 * mean;
        Progress {
            cell,
            block,
            runs: (done, sure),
            seconds_left: (self.estimates.mean_seconds())
                .map(|mean| left(mean).min(self.seconds_left())),
            widest_interval: self.plan.stop.rule().widest(&self.rates(runs), block),
        }
    }

    /// The rates of all cells that can be run, with their repeats.
    fn rates(&self, runs: &[RunRecord]) -> Vec<Vec<(u64, f64)>> {
        let can_run =
            |cell: &&Cell| self.failures.get(*cell).is_none_or(|&count| count < FAILURES_MAX);
        let of = |cell: &Cell| {
            let own = runs.iter().filter(|run| run.cell == *cell);
            own.filter_map(|run| Some((run.repeat, run.bytes_per_second()?))).collect()
        };
        self.cells.iter().filter(can_run).map(of).collect()
    }
}

/// An error and its causes in one line, without the numbers of system errors.
fn in_words(error: &(dyn Error + 'static)) -> String {
    failures::with_causes_as(error, |error| {
        let text = error.to_string();
        text.split(" (os error ").next().unwrap_or_default().to_owned()
    })
}

#[cfg(test)]
mod tests;
