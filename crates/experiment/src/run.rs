//! Runs an experiment: all cells once in a random order, then again, until the stopping rule ends
//! it.
//!
//! A block is every cell once, in an order of its own; a drift of the system is then the same for
//! all cells, and comparisons within blocks do not see it. After each run its record is appended to
//! the file and flushed to the disk. An interrupted experiment continues in the middle of its
//! block, in the order that it would have had.
//!
//! The [`Executor`] does the runs; the tests have one that only computes.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::time::{SystemTime, UNIX_EPOCH};

pub mod gate;
mod limit;
pub mod neighbours;

use base::format::{counted, duration};
use flow::cancel::Cancel;

use crate::plan::{Plan, Stop};
use crate::quantities::hard_to_change;
use crate::record::{
    Cell, Experiment, FORMAT, Header, Level, RecordError, RunFile, RunRecord, Value,
};
use limit::{Estimates, Room, WatchedRun, watch};
use neighbours::{Foreign, Neighbours, Unwatched};

/// Consecutive failures after which a cell is not tried again.
const FAILURES_MAX: u32 = 2;

/// Does the runs.
pub trait Executor {
    /// Why a run failed, or a setting was not restored.
    type Error: Error + 'static;

    /// Whether a combination makes sense: `false` for direct I/O with four read-aheads.
    fn applies(&self, cell: &Cell) -> bool;

    /// Prepares a run, does it, and returns its record.
    ///
    /// # Errors If the run failed. The record keeps the message, and the experiment continues with
    /// the next cell.
    fn execute(&mut self, cell: &Cell, cancel: &Cancel) -> Result<RunRecord, Self::Error>;

    /// How long the next run may take before it is stopped.
    fn allow(&mut self, _seconds: f64) {}

    /// The progress of the measured part of the last run when it was stopped, if that part had
    /// begun.
    fn unfinished(&self) -> Option<Unfinished> {
        None
    }

    /// Begins to watch the activity of other programs during the next run.
    fn neighbours(&self) -> Box<dyn Neighbours> {
        Box::new(Unwatched)
    }

    /// Forecasts for runs of these cells, before the first one; `stop` is the stopping rule.
    fn foretell(&mut self, _cells: &[Cell], _stop: &Stop) -> Vec<String> {
        Vec::new()
    }

    /// Restores what was changed for the runs.
    ///
    /// # Errors If something could not be restored.
    fn finish(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// The measured part of a stopped run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unfinished {
    /// Bytes that it should have moved; 0 if unknown.
    pub bytes: u64,
    /// Seconds for which it was measured.
    pub seconds: f64,
}

impl Unfinished {
    /// Upper bound on its rate: at a higher rate it would have ended.
    pub fn bound_bytes_per_second(&self) -> Option<f64> {
        (self.seconds > 0.0 && self.bytes > 0).then(|| self.bytes as f64 / self.seconds)
    }
}

/// Receives the progress of an experiment.
pub trait Observer {
    /// There is a forecast.
    fn foretold(&self, _what: &str) {}
    /// A run begins.
    fn begins(&self, progress: &Progress<'_>);
    /// A run has ended, and is in the file.
    fn ended(&self, progress: &Progress<'_>, run: &RunRecord);
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn begins(&self, _: &Progress<'_>) {}
    fn ended(&self, _: &Progress<'_>, _: &RunRecord) {}
}

/// The progress of an experiment.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// The cell of the run.
    pub cell: &'a Cell,
    /// Number of the block, from 1.
    pub block: u64,
    /// Runs that have ended, and runs of all cells to the end of the blocks that are certain.
    pub runs: (u64, u64),
    /// Seconds to the end of the blocks that are certain, or of the budget.
    pub seconds_left: Option<f64>,
    /// Half the width of the widest interval of all cells, as a share, from two repeats on.
    pub widest_interval: Option<f64>,
}

/// Why an experiment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExperimentEnd {
    /// All intervals are as narrow as requested.
    Narrow,
    /// Every cell has as many repeats as allowed.
    Repeats,
    /// No time is left.
    Budget,
    /// Every cell that did not fail took too long.
    Cut,
    /// The user stopped it.
    Cancelled,
    /// No cell can be run.
    Failed,
}

impl ExperimentEnd {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            ExperimentEnd::Narrow => "all intervals are as narrow as asked",
            ExperimentEnd::Repeats => {
                "every combination has as many repeats as --repeats-max allows"
            }
            ExperimentEnd::Budget => "the time budget is used up",
            ExperimentEnd::Cut => "every run exceeded its time limit and was stopped",
            ExperimentEnd::Cancelled => "stopped; run the same command to continue",
            ExperimentEnd::Failed => "no combination could be run",
        }
    }
}

/// The first line for a plan.
pub fn header(plan: &Plan) -> Header {
    Header {
        format: FORMAT,
        kind: plan.kind.clone(),
        title: plan.title.clone(),
        value: plan.value(),
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

/// Whether an interrupted experiment has this plan. Everything must be the same but the budget and
/// the repeats, which may be changed to continue for longer.
pub fn is_same(plan: &Plan, header: &Header) -> bool {
    let known: Result<Plan, _> = serde_json::from_value(header.plan.clone());
    known.is_ok_and(|known| Plan { stop: plan.stop, ..known } == *plan)
}

/// The cells of a plan that make sense but have no run at all.
pub fn not_run(plan: &Plan, executor: &impl Executor, runs: &[RunRecord]) -> Vec<Cell> {
    let has_run = |cell: &Cell| runs.iter().any(|run| run.cell == *cell);
    let missing = |cell: &Cell| executor.applies(cell) && !has_run(cell);
    plan.cells().into_iter().filter(missing).collect()
}

/// What a run of an experiment needs besides its plan.
pub struct Parts<'a, E> {
    /// Does the runs.
    pub executor: &'a mut E,
    /// The file for the records.
    pub file: &'a mut RunFile,
    /// Receives the progress.
    pub observer: &'a dyn Observer,
    /// Seconds since any fixed moment.
    pub clock: &'a dyn Fn() -> f64,
    /// Stops the experiment between two runs, and a run that checks it.
    pub cancel: &'a Cancel,
}

/// Runs a plan, after the runs that `experiment` holds already, and adds all runs to it.
pub fn run<'a, E: Executor>(
    plan: &'a Plan,
    experiment: &mut Experiment,
    parts: Parts<'a, E>,
) -> Result<ExperimentEnd, RecordError> {
    let cells: Vec<Cell> =
        plan.cells().into_iter().filter(|cell| parts.executor.applies(cell)).collect();
    let start = (parts.clock)();
    for what in parts.executor.foretell(&cells, &plan.stop) {
        parts.observer.foretold(&what);
    }
    let cut = experiment.runs.iter().filter(|run| run.cut_after_seconds.is_some());
    let cut = cut.map(|run| run.cell.clone()).collect();
    let mut course = Course {
        plan,
        cells,
        parts,
        start,
        estimates: Estimates::of(&experiment.runs),
        failures: BTreeMap::new(),
        cut,
        run_again: 0,
        early: Early::Waiting,
    };
    for block in 1..=plan.stop.repeats_max {
        if let Some(ended) = course.block(block, &mut experiment.runs)? {
            return Ok(ended);
        }
    }
    Ok(ExperimentEnd::Repeats)
}

/// Changes as rarely as possible what a person or a robot has to change: within a block the cells
/// of one such level are consecutive, and the levels are in the order of their first cells (a
/// split-plot design; comparisons between those levels have fewer degrees of freedom than their
/// runs suggest).
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
    /// Cells with a stopped run. Another run would take as long and show nothing new.
    cut: BTreeSet<Cell>,
    /// Number of runs that were repeated because other programs disturbed them.
    run_again: u64,
    early: Early,
}

/// Whether the forecast from the first runs was made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Early {
    Waiting,
    Told,
}

/// Runs after which the time of a run, with its preparation, is known.
const EARLY_RUNS: u64 = 3;
/// Shorter experiments get no forecast.
const FORECAST_WORTH_SECONDS: f64 = 30.0;
/// Largest share of the planned runs that may be repeated.
const AGAIN_SHARE: f64 = 0.25;

impl<E: Executor> Course<'_, E> {
    fn block(
        &mut self,
        block: u64,
        runs: &mut Vec<RunRecord>,
    ) -> Result<Option<ExperimentEnd>, RecordError> {
        let mut order = self.plan.order(self.cells.len(), block);
        keep_together(&mut order, &self.cells);
        let has_run = |cell: &Cell| runs.iter().any(|run| run.repeat == block && run.cell == *cell);
        order
            .retain(|&index| !has_run(&self.cells[index]) && !self.is_given_up(&self.cells[index]));
        for (done, &index) in order.iter().enumerate() {
            let cell = self.cells[index].clone();
            if self.parts.cancel.check().is_err() {
                return Ok(Some(ExperimentEnd::Cancelled));
            }
            let known = self.estimates.known_seconds(&cell).unwrap_or(0.0);
            if self.seconds_left() <= 0.0 || known > self.seconds_left() {
                return Ok(Some(ExperimentEnd::Budget));
            }
            let waiting = order.len() - done;
            if let Some(ended) = self.one(&cell, block, waiting, runs)? {
                return Ok(Some(ended));
            }
        }
        self.tell_repeats(block);
        if self.cells.iter().all(|cell| self.is_given_up(cell)) {
            return Ok(Some(if self.cut.is_empty() {
                ExperimentEnd::Failed
            } else {
                ExperimentEnd::Cut
            }));
        }
        let enough = self.plan.stop.rule().is_enough(&self.rates(runs), block);
        Ok(enough.then_some(ExperimentEnd::Narrow))
    }

    /// Whether a cell is no longer run.
    fn is_given_up(&self, cell: &Cell) -> bool {
        let failures = self.failures.get(cell).copied().unwrap_or(0);
        failures >= FAILURES_MAX || self.cut.contains(cell)
    }

    /// Forecasts the time of all runs from the first ones. It is more than bytes divided by a rate,
    /// since a run also starts, positions and waits for what it wrote.
    fn tell_early(&mut self, block: u64) {
        let counted_runs = self.estimates.count();
        let is_due = block == 1 && counted_runs >= EARLY_RUNS.min(self.cells.len() as u64);
        let Some(mean) = self.estimates.mean_seconds().filter(|_| is_due) else { return };
        if self.early == Early::Told {
            return;
        }
        self.early = Early::Told;
        let stop = self.plan.stop;
        let round = mean * self.cells.len() as f64;
        let all = round * stop.repeats_min as f64;
        if all < FORECAST_WORTH_SECONDS {
            return;
        }
        let fits = (stop.budget_seconds / round).floor();
        let enough = if fits < stop.repeats_min as f64 {
            format!(
                "; the budget of {} is too small: raise --budget",
                duration(stop.budget_seconds)
            )
        } else {
            String::new()
        };
        self.parts.observer.foretold(&format!(
            "the first {} took {} each, preparation included: {} of {} take about {}{enough}",
            counted(counted_runs, "run", "runs"),
            duration(mean),
            counted(stop.repeats_min, "repeat", "repeats"),
            counted(self.cells.len() as u64, "combination", "combinations"),
            duration(all),
        ));
    }

    /// After the first block the number of blocks is known; warns if there will be too few.
    fn tell_repeats(&self, block: u64) {
        let (took, stop) = (self.seconds(), self.plan.stop);
        let repeats = (stop.budget_seconds / took.max(1e-9)).floor();
        if block != 1 || repeats >= stop.repeats_min as f64 {
            return;
        }
        let (took, budget) = (duration(took), duration(stop.budget_seconds));
        let (repeats, wanted) = (counted(repeats as u64, "repeat", "repeats"), stop.repeats_min);
        self.parts.observer.foretold(&format!(
            "a round took {took}: the budget of {budget} allows {repeats}, not {wanted}; raise \
             --budget"
        ));
    }

    /// Runs one cell. Returns an end if the user stopped the run, which leaves no record.
    fn one(
        &mut self,
        cell: &Cell,
        block: u64,
        waiting: usize,
        runs: &mut Vec<RunRecord>,
    ) -> Result<Option<ExperimentEnd>, RecordError> {
        self.parts.observer.begins(&self.progress(cell, block, runs));
        let Some((mut run, foreign)) = self.attempt(cell, waiting) else {
            return Ok(Some(ExperimentEnd::Cancelled));
        };
        let mut others = foreign;
        if self.is_worth_another(cell, &run, foreign) {
            self.run_again += 1;
            let Some((second, again)) = self.attempt(cell, waiting) else {
                return Ok(Some(ExperimentEnd::Cancelled));
            };
            if second.error.is_none() && again.weight(&second) <= foreign.weight(&run) {
                (run, others) = (second, again);
            }
            run.measures.insert(neighbours::AGAIN.to_owned(), 1.0);
        }
        if others.has_hit(&run) {
            others.keep(&mut run);
        }
        run.repeat = block;
        run.order = runs.len() as u64 + 1;
        self.parts.file.push(&run)?;
        runs.push(run);
        let run = runs.last().expect("it was pushed just now");
        self.parts.observer.ended(&self.progress(cell, block, runs), run);
        self.tell_early(block);
        Ok(None)
    }

    /// Whether to repeat a disturbed run: there is time, and not too many were repeated.
    fn is_worth_another(&self, cell: &Cell, run: &RunRecord, foreign: Foreign) -> bool {
        let asked = self.cells.len() as f64 * self.plan.stop.repeats_min as f64;
        let known = self.estimates.known_seconds(cell).unwrap_or(0.0);
        run.error.is_none()
            && foreign.has_hit(run)
            && (self.run_again + 1) as f64 <= AGAIN_SHARE * asked
            && known < self.seconds_left()
    }

    /// Runs one cell once, and watches other programs meanwhile; `None` if the user stopped it.
    fn attempt(&mut self, cell: &Cell, waiting: usize) -> Option<(RunRecord, Foreign)> {
        let neighbours = self.parts.executor.neighbours();
        let started_unix_seconds = unix_seconds();
        let begun = self.seconds();
        let room = Room {
            left_seconds: self.seconds_left(),
            budget_seconds: self.plan.stop.budget_seconds,
            waiting,
            run_seconds_max: self.plan.stop.run_seconds_max,
        };
        let allowed = self.estimates.allowed_seconds(cell, room);
        self.parts.executor.allow(allowed);
        let work = |cancel: &Cancel| self.parts.executor.execute(cell, cancel);
        let mut run = match watch(allowed, self.parts.cancel, work) {
            WatchedRun::Cancelled => return None,
            WatchedRun::Cut(seconds) => match self.parts.executor.unfinished() {
                Some(late) if late.seconds < seconds / 2.0 => {
                    *self.failures.entry(cell.clone()).or_default() += 1;
                    late_run(seconds, late.seconds, self.plan.value())
                }
                unfinished => {
                    self.cut.insert(cell.clone());
                    cut_run(seconds, unfinished, self.plan.value())
                }
            },
            WatchedRun::Done(Ok(run)) => {
                self.failures.remove(cell);
                run
            }
            WatchedRun::Done(Err(error)) => {
                *self.failures.entry(cell.clone()).or_default() += 1;
                RunRecord {
                    error: Some(in_words(&error)),
                    value: self.plan.value(),
                    ..RunRecord::default()
                }
            }
        };
        if run.error.is_none() && run.speed().is_none() {
            run.error = Some("no bytes were moved".to_owned());
        }
        run.cell = cell.clone();
        run.started_unix_seconds = started_unix_seconds;
        self.estimates.add(cell, self.seconds() - begun);
        let foreign = neighbours.since(&run);
        Some((run, foreign))
    }

    fn seconds(&self) -> f64 {
        (self.parts.clock)() - self.start
    }

    /// The rest of the budget.
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
        let of = |cell: &Cell| {
            let own = runs.iter().filter(|run| run.cell == *cell);
            own.filter_map(|run| Some((run.repeat, run.speed()?))).collect()
        };
        self.cells.iter().filter(|cell| !self.is_given_up(cell)).map(of).collect()
    }
}

/// The record of a run that was stopped because it took too long.
fn cut_run(seconds: f64, unfinished: Option<Unfinished>, value: Value) -> RunRecord {
    let bound = unfinished.and_then(|unfinished| unfinished.bound_bytes_per_second());
    let longer = unfinished.filter(|_| value == Value::Time).map(|it| it.seconds);
    let took = duration(seconds);
    let error = match (bound, longer) {
        (Some(bound), _) => {
            format!("slower than {}: stopped after {took}", value.shown(bound))
        }
        (None, Some(longer)) => {
            format!("longer than {}: stopped after {took}", duration(longer))
        }
        (None, None) => format!("stopped after {took}, longer than a run may take"),
    };
    RunRecord {
        error: Some(error),
        cut_after_seconds: Some(seconds),
        slower_than_bytes_per_second: bound,
        longer_than_seconds: longer,
        value,
        ..RunRecord::default()
    }
}

/// The record of a run that was stopped after spending most of its time on preparation, such as
/// winding a tape back. That says nothing about its rate, and it may be tried again.
fn late_run(seconds: f64, measured_seconds: f64, value: Value) -> RunRecord {
    let (took, measured) = (duration(seconds), duration(measured_seconds));
    let error = format!(
        "stopped after {took}, of which {measured} were measured: preparing the run took the rest; \
         raise --run-limit"
    );
    RunRecord { error: Some(error), value, ..RunRecord::default() }
}

/// An error and its causes in one line, without the numbers of system errors.
fn in_words(error: &(dyn Error + 'static)) -> String {
    base::failures::with_causes_as(error, |error| {
        let text = error.to_string();
        text.split(" (os error ").next().unwrap_or_default().to_owned()
    })
}

#[cfg(test)]
mod tests;
