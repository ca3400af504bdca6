//! The experiments behind a recommendation. Takeup reports their duration before they begin, starts
//! no run that would exceed the budget, and restores all settings afterwards.

mod ending;

use std::path::Path;
use std::time::Instant;

use experiment::judgement::{Judgement, JudgementOptions, judge};
use experiment::plan::Plan;
use experiment::power::{Noise, repeats_for};
use experiment::record::{Experiment, RecordError, RunFile};
use experiment::run::{Executor, ExperimentEnd, Parts, header};

use super::{MeasuringHost, TuneNotice};
use crate::failure::Failure;

pub use ending::{BUDGET_SECONDS, DIFFERENCE_PERCENT, MeasureEnding, MeasureRequest, Recommended};

/// Repeats of the first look.
pub const LOOKS: u64 = 3;
/// Minimum of repeats for a judgement, and maximum that is practical.
pub const REPEATS: std::ops::RangeInclusive<u64> = 4..=20;

/// Options of a measurement. The budget counts from the creation of this value.
pub(super) struct Measuring<'a> {
    /// The smallest gain that is worth a change, as a share.
    difference: f64,
    /// No run starts that would exceed it.
    budget_seconds: f64,
    host: &'a dyn MeasuringHost,
    begun: Instant,
}

/// The size of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuringExtent {
    /// Total number of values.
    pub settings: usize,
    /// Largest number of values that are compared with each other.
    pub compared: usize,
    /// Time of one run of each value.
    pub round_seconds: f64,
}

impl<'a> Measuring<'a> {
    /// With the options of the command; the budget starts now.
    pub fn new(request: &MeasureRequest, host: &'a dyn MeasuringHost) -> Measuring<'a> {
        Measuring {
            difference: request.worth(),
            budget_seconds: request.budget_seconds,
            host,
            begun: Instant::now(),
        }
    }

    /// Time since the start.
    pub fn passed_seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// The rest of the budget.
    pub fn left_seconds(&self) -> f64 {
        (self.budget_seconds - self.passed_seconds()).max(0.0)
    }

    /// The number of repeats, after the first look. Reports how long they will take.
    pub fn repeats(&self, noise: Option<&Noise>, extent: MeasuringExtent) -> u64 {
        let look_seconds = self.passed_seconds();
        let budget = TimeBudget { seconds: self.budget_seconds, look_seconds };
        let forecast = Forecast::of(noise, extent, self.difference, budget);
        let repeats = forecast.repeats;
        self.host.notice(&TuneNotice::Forecast(forecast));
        repeats
    }

    /// Runs a plan; keeps its runs in a file if requested.
    ///
    /// # Errors
    /// When it cannot be run, or was stopped.
    pub fn experiment<E: Executor>(
        &self,
        plan: &Plan,
        kept: Option<&Path>,
        make: impl FnOnce(&Plan) -> Result<E, Failure>,
    ) -> Result<Experiment, Failure> {
        plan.check().map_err(|error| Failure::new(&error, None))?;
        let mut executor = make(plan)?;
        let failed = |error: RecordError| Failure::new(&error, None);
        let own = || {
            let name = format!("takeup-tune-{}.ndjson", std::process::id());
            std::env::temp_dir().join(name)
        };
        let path = kept.map_or_else(own, Path::to_path_buf);
        let header = header(plan);
        let mut file = RunFile::create(&path, &header).map_err(failed)?;
        let mut experiment = Experiment { header, runs: Vec::new(), torn_bytes: 0 };
        let ended = self.run(plan, &mut executor, &mut experiment, &mut file);
        if kept.is_none() || experiment.runs.is_empty() {
            file.remove().map_err(failed)?;
        }
        match ended? {
            ExperimentEnd::Cancelled => {
                Err(Failure::of("stopped; all settings were restored", None))
            }
            _ => Ok(experiment),
        }
    }

    fn run<E: Executor>(
        &self,
        plan: &Plan,
        executor: &mut E,
        experiment: &mut Experiment,
        file: &mut RunFile,
    ) -> Result<ExperimentEnd, Failure> {
        let observer = self.host.observer(&plan.factors);
        let start = std::time::Instant::now();
        let ended = experiment::run::run(
            plan,
            experiment,
            Parts {
                executor,
                file,
                observer: &*observer,
                clock: &|| start.elapsed().as_secs_f64(),
                cancel: self.host.cancel(),
            },
        );
        drop(observer);
        let hint = || Some(crate::state::PUT_BACK.to_owned());
        executor.finish().map_err(|error| Failure::new(&error, hint()))?;
        ended.map_err(|error| Failure::new(&error, None))
    }
}

/// The judgement of an experiment.
///
/// # Errors
/// When none of its runs has a result.
pub(super) fn judged(experiment: &Experiment) -> Result<(Judgement, JudgementOptions), Failure> {
    let options = JudgementOptions::default().of(&experiment.header);
    let judgement = judge(&experiment.header.factors, &experiment.runs, &options);
    if judgement.cells.is_empty() {
        return Err(no_number(experiment));
    }
    Ok((judgement, options))
}

/// The failure of an experiment in which no run has a result.
pub(super) fn no_number(experiment: &Experiment) -> Failure {
    let why = experiment.runs.iter().find_map(|run| run.error.clone());
    let is_cut = experiment.runs.iter().all(|run| run.cut_after_seconds.is_some());
    Failure::of(
        format!("no run has a result: {}", why.as_deref().unwrap_or("no time was left")),
        is_cut.then_some("increase --budget"),
    )
}

/// How long a measurement takes, and what it can show.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// The repeats of each value.
    pub repeats: u64,
    /// The repeats that show the wanted difference; `None` if they are not known, or too many.
    pub needed: Option<u64>,
    /// By what share runs differ, if the first look shows it.
    pub scatter: Option<f64>,
    /// The size of the measurement.
    pub extent: MeasuringExtent,
    /// The smallest gain that is worth a change, as a share.
    pub difference: f64,
    /// The available time.
    pub budget: TimeBudget,
}

/// The available time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeBudget {
    pub seconds: f64,
    /// The part of it that the first look has used, and uses each time.
    pub look_seconds: f64,
}

impl Forecast {
    /// From the noise of the first look.
    pub fn of(
        noise: Option<&Noise>,
        extent: MeasuringExtent,
        difference: f64,
        budget: TimeBudget,
    ) -> Forecast {
        let extent = MeasuringExtent { round_seconds: extent.round_seconds.max(1e-3), ..extent };
        let needed =
            noise.and_then(|noise| repeats_for(difference, noise.scatter, extent.compared));
        let wanted = needed.unwrap_or(*REPEATS.end()).clamp(*REPEATS.start(), *REPEATS.end());
        let left_seconds = (budget.seconds - budget.look_seconds).max(0.0);
        let possible = ((left_seconds / extent.round_seconds) as u64).max(1);
        let repeats = wanted.min(possible);
        let scatter = noise.map(|noise| noise.scatter);
        Forecast { repeats, needed, scatter, extent, difference, budget }
    }

    /// Whether the repeats show the wanted difference.
    pub fn is_enough(&self) -> bool {
        self.needed.is_some_and(|needed| needed <= self.repeats)
    }

    /// The time of so many repeats.
    pub fn repeats_seconds(&self, repeats: u64) -> f64 {
        repeats as f64 * self.extent.round_seconds
    }

    /// A budget that has room for so many repeats.
    pub fn budget_seconds_for(&self, repeats: u64) -> f64 {
        self.budget.look_seconds + self.repeats_seconds(repeats + 1)
    }
}
