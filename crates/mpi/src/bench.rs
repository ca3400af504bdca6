//! Experiments on all hosts at once.

use std::rc::Rc;

use ::arguments::bench::options::ExperimentArgs;
use base::format::{duration, rate};
use experiment::plan::Plan;
use experiment::record::{Cell, Factor, Level, RunRecord, shown_cell};
use experiment::run::gate::StartsTogether;
use experiment::run::{Observer, Progress};
use many::message::MailError;
use many::rank::serve;
use many::together::{HOSTS, Together};
use report::table::Style;
use service::bench::{self, BegunExperiment, ExperimentDone, ExperimentSurroundings};
use service::failure::Failure;
use service::many::ManyBenchAnswer;
use service::outcome::Outcome;

use crate::arguments::{HostsArgs, ManyDiskArgs, ManyReadArgs, ManyRunArgs};
use crate::job::Job;
use crate::say::{Notices, draw, erase, is_terminal, to_standard_error, to_standard_output};

/// A command that this rank can begin, once all have met.
pub type Ready<'a> = Box<dyn FnOnce(&Job) -> Result<Outcome, Failure> + 'a>;

/// What is known of a job before its ranks have met.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Whether this is rank 0, which speaks.
    pub is_first: bool,
    /// How many ranks there are.
    pub ranks: usize,
}

/// Streams of files.
///
/// # Errors
/// When it cannot begin on this host.
pub fn read(arguments: &ManyReadArgs, place: Place) -> Result<Ready<'_>, Failure> {
    let request = arguments.own.request()?;
    if request.paths.len() != 1 {
        return Err(Failure::of(
            "many hosts read one path each",
            Some("{rank} or {host} in the path makes it another one on each host"),
        ));
    }
    let plan = bench::read::plan(&request, &Notices { speaks: place.is_first })?;
    let executor = bench::read::executor(&plan)?;
    ready(plan, executor, arguments.own.experiment(), &arguments.hosts, place)
}

/// Block devices and files with fio.
///
/// # Errors
/// When it cannot begin on this host.
pub fn disk(arguments: &ManyDiskArgs, place: Place) -> Result<Ready<'_>, Failure> {
    let request = arguments.own.request();
    let planned = bench::disk::plan(&request, &Notices { speaks: place.is_first })?;
    let plan = planned.plan.clone();
    let executor = planned.executor(&plan)?;
    ready(plan, executor, arguments.own.experiment(), &arguments.hosts, place)
}

/// Commands of the shell.
///
/// # Errors
/// When it cannot begin on this host.
pub fn commands(arguments: &ManyRunArgs, place: Place) -> Result<Ready<'_>, Failure> {
    let request = arguments.own.request();
    let plan = bench::run::plan(&request)?;
    let executor = bench::run::executor(&plan, &request)?;
    ready(plan, executor, arguments.own.experiment(), &arguments.hosts, place)
}

fn ready<'a, E: StartsTogether + 'a>(
    plan: Plan,
    executor: E,
    arguments: &'a ExperimentArgs,
    hosts: &HostsArgs,
    place: Place,
) -> Result<Ready<'a>, Failure> {
    let plan = with_hosts(plan, hosts, place.ranks)?;
    Ok(Box::new(move |job| experiment(plan, executor, arguments, job)))
}

/// Runs a plan on all hosts: rank 0 conducts, the others serve.
fn experiment<E: StartsTogether>(
    plan: Plan,
    mut own: E,
    arguments: &ExperimentArgs,
    job: &Job,
) -> Result<Outcome, Failure> {
    if !job.is_first() {
        serve(&job.ranks, &mut own, Cell::clone, &job.cancel).map_err(|error| mail(&error))?;
        own.finish().map_err(|error| Failure::new(&error, None))?;
        return Ok(Outcome::Done);
    }
    let all = job.ranks.hosts.len();
    let seconds_max = plan.stop.run_seconds_max.unwrap_or(plan.stop.budget_seconds * 1.1);
    for difference in job.differences.iter().filter(|_| !arguments.quiet) {
        to_standard_error(&format!("takeup-mpi: {difference}\n"));
    }
    let begun =
        BegunExperiment::open(plan, &arguments.request(), &Notices { speaks: !arguments.quiet })?;
    let factors = begun.factors().to_vec();
    let progress = Shown { factors: &factors, arguments };
    let around = ExperimentSurroundings { observer: &progress, cancel: &job.cancel };
    let ranks = Rc::clone(&job.ranks);
    let done = begun
        .run(&around, |_, _| Ok(Together::new(own, ranks, seconds_max, Box::new(Cell::clone))));
    progress.close();
    let done = done?;
    show(&done, all, arguments, job)?;
    done.outcome()
}

/// The plan with the number of hosts as a factor.
fn with_hosts(mut plan: Plan, hosts: &HostsArgs, all: usize) -> Result<Plan, Failure> {
    let most = all as u64;
    let mut levels = hosts.hosts.clone();
    if levels.is_empty() {
        levels = std::iter::successors(Some(1_u64), |level| Some(level * 2))
            .take_while(|level| *level < most)
            .collect();
        levels.push(most);
    }
    levels.sort_unstable();
    levels.dedup();
    if let Some(wrong) = levels.iter().find(|level| !(1..=most).contains(*level)) {
        return Err(Failure::of(
            format!("--hosts {wrong}: the job has {most}"),
            Some("start more ranks, or ask for fewer hosts"),
        ));
    }
    let levels = levels.into_iter().map(Level::Number).collect();
    plan.factors.insert(0, Factor::new(HOSTS, levels));
    Ok(plan)
}

fn show(
    done: &ExperimentDone,
    ranks: usize,
    arguments: &ExperimentArgs,
    job: &Job,
) -> Result<(), Failure> {
    let answer = ManyBenchAnswer::of(done, ranks, job.differences.clone());
    let text = match (arguments.json, arguments.quiet) {
        (true, _) => format!("{:#}\n", service::document(&answer)),
        (false, true) => String::new(),
        (false, false) => {
            report::many::bench(&answer, Style::PLAIN) + &report::bench::ended(done, Style::PLAIN)
        }
    };
    to_standard_output(&text)
}

/// The failure of ranks that cannot talk to each other.
pub fn mail(error: &MailError) -> Failure {
    Failure::new(error, None)
}

/// The progress of an experiment.
struct Shown<'a> {
    factors: &'a [Factor],
    arguments: &'a ExperimentArgs,
}

impl Shown<'_> {
    fn is_live(&self) -> bool {
        !self.arguments.quiet && !self.arguments.no_progress && is_terminal()
    }

    fn close(&self) {
        if self.is_live() {
            erase();
        }
    }
}

impl Observer for Shown<'_> {
    fn foretold(&self, what: &str) {
        if !self.arguments.quiet {
            to_standard_error(&format!("takeup-mpi: {what}\n"));
        }
    }

    fn begins(&self, progress: &Progress<'_>) {
        if self.is_live() {
            let (done, sure) = progress.runs;
            let left = progress.seconds_left.map(|left| format!(", {} left", duration(left)));
            let what = shown_cell(progress.cell, self.factors);
            draw(&format!("run {done} of {sure}{}  {what}", left.unwrap_or_default()));
        }
    }

    fn ended(&self, progress: &Progress<'_>, run: &RunRecord) {
        if self.arguments.verbose {
            let what = match (run.bytes_per_second(), &run.error) {
                (Some(speed), _) => rate(speed),
                (None, Some(error)) => error.clone(),
                (None, None) => duration(run.seconds),
            };
            let cell = shown_cell(progress.cell, self.factors);
            to_standard_error(&format!("takeup-mpi: {cell}: {what}\n"));
        }
    }
}
