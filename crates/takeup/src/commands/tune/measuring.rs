//! The experiments behind a recommendation. Takeup reports their duration before they begin, starts
//! no run that would exceed the budget, and restores all settings afterwards.

mod ending;

use std::path::Path;
use std::time::Instant;

use base::format::{counted, duration};
use base::rounding::Rounding;
use experiment::judgement::{Judgement, JudgementOptions, judge};
use experiment::plan::Plan;
use experiment::power::{Noise, repeats_for, seen_with};
use experiment::record::{Experiment, RecordError, RunFile};
use experiment::run::{Executor, ExperimentEnd, Parts, header};
use flow::cancel::Cancel;

use crate::commands::bench::progress::Progress;
use crate::standard_error::to_standard_error;
use service::failure::Failure;

pub use ending::{MeasureArgs, Recommended};

/// Repeats of the first look.
pub const LOOKS: u64 = 3;
/// Minimum of repeats for a judgement, and maximum that is practical.
const REPEATS: std::ops::RangeInclusive<u64> = 4..=20;

/// Options of a measurement. The budget counts from the creation of this value.
pub struct Measuring<'a> {
    /// The smallest gain that is worth a change, as a share.
    difference: f64,
    /// No run starts that would exceed it.
    budget_seconds: f64,
    /// Whether progress is not printed.
    is_quiet: bool,
    /// Stops the measurement.
    cancel: &'a Cancel,
    begun: Instant,
}

/// The size of a measurement.
#[derive(Clone, Copy, Debug)]
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
    pub fn new(arguments: &MeasureArgs, cancel: &'a Cancel) -> Measuring<'a> {
        Measuring {
            difference: arguments.worth(),
            budget_seconds: arguments.budget.0,
            is_quiet: arguments.quiet,
            cancel,
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

    /// The number of repeats, after the first look. Prints how long they will take.
    pub fn repeats(&self, noise: Option<&Noise>, extent: MeasuringExtent) -> u64 {
        let look_seconds = self.passed_seconds();
        let foretold = foretell(
            noise,
            extent,
            self.difference,
            Budget { seconds: self.budget_seconds, look_seconds },
        );
        if !self.is_quiet {
            to_standard_error(&format!("takeup: {}\n", foretold.text));
        }
        foretold.repeats
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
        let progress = if self.is_quiet {
            Progress::silent(&plan.factors)
        } else {
            Progress::live(&plan.factors)
        };
        let start = std::time::Instant::now();
        let ended = experiment::run::run(
            plan,
            experiment,
            Parts {
                executor,
                file,
                observer: &progress,
                clock: &|| start.elapsed().as_secs_f64(),
                cancel: self.cancel,
            },
        );
        progress.close();
        let hint = || Some(service::state::PUT_BACK.to_owned());
        executor.finish().map_err(|error| Failure::new(&error, hint()))?;
        ended.map_err(|error| Failure::new(&error, None))
    }
}

/// The judgement of an experiment.
///
/// # Errors
/// When none of its runs has a result.
pub fn judged(experiment: &Experiment) -> Result<(Judgement, JudgementOptions), Failure> {
    let options = JudgementOptions::default().of(&experiment.header);
    let judgement = judge(&experiment.header.factors, &experiment.runs, &options);
    if judgement.cells.is_empty() {
        return Err(no_number(experiment));
    }
    Ok((judgement, options))
}

/// The failure of an experiment in which no run has a result.
pub fn no_number(experiment: &Experiment) -> Failure {
    let why = experiment.runs.iter().find_map(|run| run.error.clone());
    let is_cut = experiment.runs.iter().all(|run| run.cut_after_seconds.is_some());
    Failure::of(
        format!("no run has a result: {}", why.as_deref().unwrap_or("no time was left")),
        is_cut.then_some("increase --budget"),
    )
}

/// The forecast that is printed before the experiment.
#[derive(Debug, PartialEq)]
struct Foretold {
    repeats: u64,
    text: String,
}

/// The available time.
#[derive(Clone, Copy, Debug)]
struct Budget {
    seconds: f64,
    /// The part of it that the first look has used, and uses each time.
    look_seconds: f64,
}

fn foretell(
    noise: Option<&Noise>,
    extent: MeasuringExtent,
    difference: f64,
    budget: Budget,
) -> Foretold {
    let MeasuringExtent { settings, compared, round_seconds } = extent;
    let round_seconds = round_seconds.max(1e-3);
    let needed = noise.and_then(|noise| repeats_for(difference, noise.scatter, compared));
    let wanted = needed.unwrap_or(*REPEATS.end()).clamp(*REPEATS.start(), *REPEATS.end());
    let left_seconds = (budget.seconds - budget.look_seconds).max(0.0);
    let possible = ((left_seconds / round_seconds) as u64).max(1);
    let repeats = wanted.min(possible);
    let digits = Rounding::digits(2);
    let worth = digits.percent(difference);
    let scatter =
        noise.map_or("an unknown amount".to_owned(), |noise| digits.percent(noise.scatter));
    let is_enough = needed.is_some_and(|needed| needed <= repeats);
    let sees = match noise.and_then(|noise| seen_with(noise.scatter, compared, repeats)) {
        Some(_) if is_enough => format!(", enough to show a difference of {worth}"),
        Some(seen) => format!(", enough to show a difference of {}", digits.percent(seen)),
        None => ", too few to show anything".to_owned(),
    };
    let seconds = |repeats: u64| repeats as f64 * round_seconds;
    let takes = |repeats: u64| duration(seconds(repeats));
    let budget_for = |repeats: u64| duration(budget.look_seconds + seconds(repeats + 1));
    // Name a sufficient budget, so that the user need not try several.
    let more = match needed {
        _ if is_enough => String::new(),
        Some(needed) if REPEATS.contains(&needed) => {
            format!("; {worth} needs a --budget of {}", budget_for(needed))
        }
        Some(needed) if needed > *REPEATS.end() => format!(
            "; {worth} would need {} repeats, {}, but the maximum is {}",
            base::format::count(needed),
            takes(needed),
            REPEATS.end()
        ),
        Some(_) => format!("; a result needs a --budget of {}", budget_for(*REPEATS.start())),
        None => "; a smaller difference would need too many repeats".to_owned(),
    };
    let text = format!(
        "runs differ by {scatter} in a first look: {} of {} take about {}{sees}{more}",
        counted(repeats, "repeat", "repeats"),
        counted(settings as u64, "setting", "settings"),
        takes(repeats),
    );
    Foretold { repeats, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(scatter: f64, difference: f64, budget_seconds: f64) -> Foretold {
        behind_a_look(scatter, difference, budget_seconds, 0.0)
    }

    fn behind_a_look(
        scatter: f64,
        difference: f64,
        budget_seconds: f64,
        look_seconds: f64,
    ) -> Foretold {
        let noise = Noise { scatter, degrees: 4.0, run_seconds: 1.0 };
        let extent = MeasuringExtent { settings: 10, compared: 4, round_seconds: 10.0 };
        foretell(Some(&noise), extent, difference, Budget { seconds: budget_seconds, look_seconds })
    }

    #[test]
    fn what_it_takes_is_said_and_what_more_would_take() {
        let quiet = told(0.01, 0.05, 600.0);
        assert_eq!(quiet.repeats, 4);
        assert!(
            quiet.text.ends_with("take about 40.0 s, enough to show a difference of 5.0 %"),
            "{quiet:?}"
        );
        let cut = told(0.03, 0.05, 60.0);
        let needed = repeats_for(0.05, 0.03, 4).unwrap();
        assert!(cut.repeats == 6 && (7..=20).contains(&needed), "{needed}");
        let budget = duration((needed + 1) as f64 * 10.0);
        assert!(cut.text.ends_with(&format!("; 5.0 % needs a --budget of {budget}")), "{cut:?}");
        // With that it is enough.
        assert_eq!(told(0.03, 0.05, (needed + 1) as f64 * 10.0).repeats, needed);
        let never = told(0.3, 0.05, 6000.0).text;
        assert!(never.ends_with("; a smaller difference would need too many repeats"));
        let loud = told(0.075, 0.05, 6000.0);
        assert_eq!(loud.repeats, 20);
        assert!(loud.text.ends_with(", but the maximum is 20"), "{loud:?}");
        let one = told(0.01, 0.05, 1.0);
        assert!(one.repeats == 1 && one.text.contains("too few to show anything"), "{one:?}");
        assert!(one.text.ends_with("needs a --budget of 50.0 s"), "{one:?}");
    }
    /// The first look counts against --budget, so a budget that Takeup suggests includes it.
    #[test]
    fn the_budget_that_is_named_has_room_for_the_first_look() {
        let needed = repeats_for(0.05, 0.03, 4).unwrap();
        let cut = behind_a_look(0.03, 0.05, 60.0, 15.0);
        assert_eq!(cut.repeats, 4, "45 s are left for rounds of 10 s");
        let seconds = (needed + 1) as f64 * 10.0 + 15.0;
        let budget = duration(seconds);
        assert!(cut.text.ends_with(&format!("; 5.0 % needs a --budget of {budget}")), "{cut:?}");
        assert_eq!(behind_a_look(0.03, 0.05, seconds, 15.0).repeats, needed);
        assert_eq!(behind_a_look(0.03, 0.05, 5.0, 15.0).repeats, 1);
    }
}
