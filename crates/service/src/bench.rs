//! Experiments: their plans, how they are begun, continued and run, and what they found.
//!
//! [`read`], [`disk`], [`tape`] and [`run`] each make a [`Plan`] of a request, and run it.
//! [`BegunExperiment`] does what they have in common: it opens the file of runs, continues the
//! experiment that the file holds, and judges the runs. [`import`] makes a file of runs from a
//! table, and [`power`] says what an experiment will be able to find.

mod answer;
pub mod disk;
pub mod import;
mod judged;
mod lines;
pub mod power;
pub mod read;
pub mod run;
pub mod tape;

use std::path::{Path, PathBuf};
use std::time::Instant;

use base::escape::escape_path;
use base::format::counted;
use base::quantity::bytes_or_zero;
use experiment::judgement::{Judgement, JudgementOptions, judge};
use experiment::plan::{Plan, Stop};
use experiment::record::{Cell, Experiment, Factor, Level, RecordError, RunFile};
use experiment::run::{Executor, ExperimentEnd, Observer, Parts, header, is_same, not_run};
use flow::cancel::Cancel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, with_causes};
use crate::notify::Notify;
use crate::outcome::Outcome;
use crate::state;

pub use answer::{ExperimentAnswer, PutBackAnswer};
pub use judged::{
    ExperimentComparison, ExperimentPair, JudgedCell, JudgementAnswer, PooledAnswer, RatePair,
    TimePair, TimedCell,
};
pub use lines::{ExperimentLine, MarkedCell, OperationsLine, RunLine, lines};
pub use statistics::curve::PhysicalLimit;

/// What all experiments are asked: repeats, time limits, files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExperimentRequest {
    /// File for the runs; if it holds the same experiment, that is continued. The default is
    /// `takeup-bench-KIND.ndjson`.
    pub output: Option<PathBuf>,
    /// A file with the plan; other fields of the plan are ignored.
    pub plan: Option<PathBuf>,
    /// Minimum number of repeats of every combination.
    pub repeats_min: Option<u64>,
    /// Maximum number of repeats of every combination.
    pub repeats_max: Option<u64>,
    /// Half of the width of a 95 % interval, in percent of the rate, that is narrow enough.
    pub interval_percent: f64,
    /// No run begins that would not end within this time.
    pub budget_seconds: Option<f64>,
    /// A run is stopped after this time.
    pub run_seconds_max: Option<f64>,
    /// Seed of the order of the runs; the default comes from the clock.
    pub seed: Option<u64>,
    /// Title of the experiment.
    pub title: String,
    /// Known limits of the hardware.
    pub limits: Vec<PhysicalLimit>,
}

impl Default for ExperimentRequest {
    fn default() -> ExperimentRequest {
        ExperimentRequest {
            output: None,
            plan: None,
            repeats_min: None,
            repeats_max: None,
            interval_percent: Stop::default().interval_percent,
            budget_seconds: None,
            run_seconds_max: None,
            seed: None,
            title: String::new(),
            limits: Vec::new(),
        }
    }
}

impl ExperimentRequest {
    /// The file for the runs.
    fn output_path(&self, kind: &str) -> PathBuf {
        let usual = || PathBuf::from(format!("takeup-bench-{kind}.ndjson"));
        self.output.clone().unwrap_or_else(usual)
    }

    /// When the experiment ends, for a design with its own defaults.
    fn stop_or(&self, usual: Stop) -> Stop {
        // A default gives way to the other option; two options that exclude each other are refused.
        let most = self.repeats_max.unwrap_or(u64::MAX);
        let repeats_min = self.repeats_min.unwrap_or(usual.repeats_min.min(most));
        Stop {
            repeats_min,
            repeats_max: self.repeats_max.unwrap_or(usual.repeats_max.max(repeats_min)),
            interval_percent: self.interval_percent,
            budget_seconds: self.budget_seconds.unwrap_or(usual.budget_seconds),
            run_seconds_max: self.run_seconds_max,
            difference_percent: None,
        }
    }

    /// The seed, or one from the clock.
    fn seed_or_clock(&self) -> u64 {
        // A TOML integer has 63 bits, and seconds of Unix time fit.
        self.seed.unwrap_or_else(experiment::run::unix_seconds)
    }

    /// A plan of this kind without a path, a length, a command or a factor.
    fn empty_plan(&self, kind: &str, usual: Stop) -> Plan {
        Plan {
            kind: kind.to_owned(),
            title: self.title.clone(),
            paths: Vec::new(),
            length_bytes: 0,
            seed: self.seed_or_clock(),
            stop: self.stop_or(usual),
            random_reads: 0,
            run_seconds: 0.0,
            commands: None,
            factors: Vec::new(),
        }
    }

    /// The plan from its file, or the one that `make` makes of the other options, if it can be run.
    fn plan_or(
        &self,
        kind: &str,
        make: impl FnOnce() -> Result<Plan, Failure>,
    ) -> Result<Plan, Failure> {
        let plan = match &self.plan {
            Some(path) => plan_from_file(path)?,
            None => make()?,
        };
        if plan.kind != kind {
            let name = self.plan.as_deref().unwrap_or(Path::new("")).display();
            let what = format!("{name} is a plan for bench {}, not for bench {kind}", plan.kind);
            return Err(Failure::of(what, None));
        }
        plan.check().map_err(|error| Failure::new(&error, None))?;
        Ok(plan)
    }
}

const SHOW_PLAN: &str = "use --print-plan to see how a plan is written";

/// The plan in a file.
fn plan_from_file(path: &Path) -> Result<Plan, Failure> {
    let name = path.display();
    let text = machine::small_file::text(path)
        .map_err(|error| Failure::of(format!("read {name}: {error}"), None))?;
    Plan::from_toml(&text, bytes_or_zero)
        .map_err(|error| Failure::of(format!("{name}: {}", with_causes(&error)), Some(SHOW_PLAN)))
}

/// A factor with its distinct levels; `None` without levels.
fn factor(name: &str, levels: Vec<Level>, present: Option<Level>) -> Option<Factor> {
    let mut distinct: Vec<Level> = Vec::new();
    for level in levels {
        if !distinct.contains(&level) {
            distinct.push(level);
        }
    }
    let present = present.filter(|level| distinct.contains(level));
    (!distinct.is_empty()).then(|| Factor { present, ..Factor::new(name, distinct) })
}

/// Numbers as levels, in their order.
fn numbers(values: &[u64]) -> Vec<Level> {
    let mut values = values.to_vec();
    values.sort_unstable();
    values.into_iter().map(Level::Number).collect()
}

/// Choices as levels: the words that a request has for them in JSON.
fn words(values: &[impl Serialize]) -> Vec<Level> {
    let word = |value: &_| match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => Some(Level::Text(word)),
        _ => None,
    };
    values.iter().filter_map(word).collect()
}

/// An absolute path, so that the experiment can continue from another folder.
fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// What an experiment gets from outside.
pub struct ExperimentSurroundings<'a> {
    /// Receives the progress.
    pub observer: &'a dyn Observer,
    /// Stops the experiment between two runs, and a run that checks it.
    pub cancel: &'a Cancel,
}

/// An experiment whose file is open; nothing has run yet.
#[derive(Debug)]
pub struct BegunExperiment {
    plan: Plan,
    path: PathBuf,
    experiment: Experiment,
    file: RunFile,
    is_new: bool,
    limits: Vec<PhysicalLimit>,
}

impl BegunExperiment {
    /// Opens the file of runs, and continues the experiment that it holds, if it is this one. The
    /// file is there before anything is written elsewhere: it may fail.
    ///
    /// # Errors
    /// When the file cannot be made or read, or holds another experiment.
    pub fn open(
        mut plan: Plan,
        request: &ExperimentRequest,
        notify: &dyn Notify,
    ) -> Result<BegunExperiment, Failure> {
        let path = request.output_path(&plan.kind);
        let limits = request.limits.clone();
        let begun = begun(&mut plan, &path, notify)?;
        let is_new = begun.is_none();
        let failed = |error: RecordError| Failure::new(&error, None);
        let (experiment, file) = match begun {
            Some((file, experiment)) => {
                let file = file.go_on(&experiment).map_err(failed)?;
                (experiment, file)
            }
            None => {
                let header = header(&plan);
                let file = RunFile::create(&path, &header).map_err(failed)?;
                (Experiment { header, runs: Vec::new(), torn_bytes: 0 }, file)
            }
        };
        Ok(BegunExperiment { plan, path, experiment, file, is_new, limits })
    }

    /// What is varied.
    pub fn factors(&self) -> &[Factor] {
        &self.plan.factors
    }

    /// Runs the plan to its end with this executor, and judges all runs of the file.
    ///
    /// # Errors
    /// When it cannot begin or be recorded, no run succeeded, or a setting could not be restored.
    pub fn run<E: Executor>(
        self,
        surroundings: &ExperimentSurroundings<'_>,
        make: impl FnOnce(&Plan, &Cancel) -> Result<E, Failure>,
    ) -> Result<ExperimentDone, Failure> {
        let BegunExperiment { plan, path, mut experiment, mut file, is_new, limits } = self;
        let ExperimentSurroundings { observer, cancel } = *surroundings;
        let remove = |file: RunFile| file.remove().map_err(|error| Failure::new(&error, None));
        let mut executor = match make(&plan, cancel) {
            Ok(executor) => executor,
            Err(failure) => {
                // An experiment that cannot begin must leave no file.
                if is_new {
                    remove(file)?;
                }
                return Err(failure);
            }
        };
        let start = Instant::now();
        let parts = Parts {
            executor: &mut executor,
            file: &mut file,
            observer,
            clock: &|| start.elapsed().as_secs_f64(),
            cancel,
        };
        let ended = experiment::run::run(&plan, &mut experiment, parts);
        let sets = ["read", "disk"].contains(&plan.kind.as_str());
        let hint = sets.then(|| state::PUT_BACK.to_owned());
        executor.finish().map_err(|error| Failure::new(&error, hint))?;
        let ended = ended.map_err(|error| Failure::new(&error, None))?;
        if is_new && !experiment.tells_something() {
            // The error is reported now; a file without results would only block the next
            // experiment.
            remove(file)?;
        }
        let not_run = not_run(&plan, &executor, &experiment.runs);
        let judgement = judged(&experiment, limits);
        let done = ExperimentDone { experiment, judgement, ended, not_run, path };
        if done.judgement.cells.is_empty() {
            let why = done.failed().unwrap_or_else(|| ended.words().to_owned());
            return Err(Failure::of(format!("no run succeeded: {why}"), None));
        }
        Ok(done)
    }
}

/// Judges an experiment; these limits of the hardware are known.
pub fn judged(experiment: &Experiment, limits: Vec<PhysicalLimit>) -> Judgement {
    let options = JudgementOptions { limits, ..JudgementOptions::default() };
    let options = options.of(&experiment.header);
    judge(&experiment.header.factors, &experiment.runs, &options)
}

/// What an earlier run of the same command left. A file with another experiment is not touched.
fn begun(
    plan: &mut Plan,
    path: &Path,
    notify: &dyn Notify,
) -> Result<Option<(RunFile, Experiment)>, Failure> {
    let found = RunFile::begun(path).map_err(|error| {
        let hint = matches!(error, RecordError::Untrusted { .. });
        Failure::new(&error, hint.then(|| "use --output NAME for a new file".to_owned()))
    })?;
    let Some((file, experiment)) = found else { return Ok(None) };
    // Continue with the seed of the file: the plan's may come from the clock.
    let seed = plan.seed;
    plan.seed = experiment.header.seed;
    if !is_same(plan, &experiment.header) {
        if !experiment.tells_something() {
            file.remove().map_err(|error| Failure::new(&error, None))?;
            plan.seed = seed;
            return Ok(None);
        }
        return Err(Failure::of(
            format!("{} holds another experiment", path.display()),
            Some("use --output NAME for a new file"),
        ));
    }
    let runs = counted(experiment.runs.len() as u64, "run", "runs");
    notify.notify(&format!("{} holds {runs}: continuing", escape_path(path)));
    Ok(Some((file, experiment)))
}

/// An experiment that has ended.
#[derive(Debug)]
pub struct ExperimentDone {
    /// All runs of the file.
    pub experiment: Experiment,
    /// What follows from them.
    pub judgement: Judgement,
    pub ended: ExperimentEnd,
    /// Combinations that did not run.
    pub not_run: Vec<Cell>,
    /// The file of runs.
    pub path: PathBuf,
}

impl ExperimentDone {
    /// The error of the first run that failed.
    fn failed(&self) -> Option<String> {
        self.experiment.runs.iter().find_map(|run| run.error.clone())
    }

    /// How it ended, as the program reports it after its answer.
    ///
    /// # Errors
    /// When it was stopped.
    pub fn outcome(&self) -> Result<Outcome, Failure> {
        match self.ended {
            ExperimentEnd::Cancelled => Err(Failure::of("stopped", None)),
            _ if self.failed().is_some() || !self.not_run.is_empty() => Ok(Outcome::Warned),
            _ => Ok(Outcome::Done),
        }
    }
}

/// Restores kernel settings that a killed experiment left changed.
///
/// # Errors
/// When the journal of settings cannot be read, or a setting cannot be restored.
pub fn put_back() -> Result<PutBackAnswer, Failure> {
    let settings =
        state::recovered().map_err(|error| Failure::new(&error, state::guard_hint(&error)))?;
    Ok(PutBackAnswer { settings: settings as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_kept_once_and_in_order() {
        let made = factor("depth", numbers(&[8, 1, 8]), Some(Level::Number(2))).unwrap();
        assert_eq!(made.levels, [Level::Number(1), Level::Number(8)]);
        assert_eq!(made.present, None);
        assert!(factor("depth", Vec::new(), None).is_none());
    }
}
