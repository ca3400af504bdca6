//! Options that all experiments share.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use experiment::judgement::JudgementOptions;
use experiment::plan::{Plan, Stop};
use experiment::record::{Factor, Level};
use statistics::curve::PhysicalLimit;

use crate::outcome::Form;
use arguments::quantity::{Rate, Size, Span};
use service::failure::{Failure, with_causes};

/// Options for repeats, time limits, files and output.
#[derive(Args, Clone, Debug)]
pub struct ExperimentArgs {
    /// File for the runs; if it holds the same experiment, Takeup continues that [default:
    /// takeup-bench-KIND.ndjson]
    #[arg(short, long, value_name = "FILE", help_heading = "Experiment")]
    pub output: Option<PathBuf>,
    /// Take the plan from a file, as --print-plan writes it; other options of the plan are ignored
    #[arg(long, value_name = "FILE", help_heading = "Experiment")]
    pub plan: Option<PathBuf>,
    /// Print the plan and run nothing; Takeup does not look at what the plan works on
    #[arg(long, help_heading = "Experiment")]
    pub print_plan: bool,
    /// Minimum number of repeats of every combination [default: 5]
    #[arg(long, value_name = "N", help_heading = "Experiment")]
    pub repeats: Option<u64>,
    /// Maximum number of repeats of every combination [default: 20]
    #[arg(long, value_name = "N", help_heading = "Experiment")]
    pub repeats_max: Option<u64>,
    /// End when half of the width of every 95 % interval is below this share of the rate
    #[arg(long, default_value_t = 5.0, value_name = "PERCENT", help_heading = "Experiment")]
    pub interval: f64,
    /// Begin no run that would not end within this time [default: 10m]
    #[arg(long, value_name = "TIME", help_heading = "Experiment")]
    pub budget: Option<Span>,
    /// Stop a run after this time and keep an upper bound on its rate; by default after its share
    /// of the budget, or three times as long as other runs
    #[arg(long, value_name = "TIME", help_heading = "Experiment")]
    pub run_limit: Option<Span>,
    /// Seed of the order of the runs; by default a new one for each experiment
    #[arg(long, value_name = "N", help_heading = "Experiment")]
    pub seed: Option<u64>,
    /// Title of the experiment
    #[arg(
        long,
        default_value = "",
        hide_default_value = true,
        value_name = "TEXT",
        help_heading = "Experiment"
    )]
    pub title: String,
    /// A known limit of the hardware, for example 'host interface=1200MB'; may be given again
    #[arg(long = "limit", value_name = "NAME=RATE", help_heading = "Experiment")]
    pub limits: Vec<NamedRate>,
    /// Print one JSON document at the end instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Print nothing but warnings and errors
    #[arg(short, long, help_heading = "Output", conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print a line for every run
    #[arg(short, long, help_heading = "Output")]
    pub verbose: bool,
    /// Print no live line, even on a terminal
    #[arg(long, help_heading = "Output")]
    pub no_progress: bool,
}

impl ExperimentArgs {
    /// The form of standard output.
    pub fn form(&self) -> Form {
        if self.json { Form::Json } else { Form::Text }
    }

    /// The file for the runs.
    pub fn output_path(&self, kind: &str) -> PathBuf {
        let usual = || PathBuf::from(format!("takeup-bench-{kind}.ndjson"));
        self.output.clone().unwrap_or_else(usual)
    }

    /// When the experiment ends.
    pub fn stop(&self) -> Stop {
        self.stop_or(Stop::default())
    }

    /// When the experiment ends, for a design with its own defaults.
    pub fn stop_or(&self, usual: Stop) -> Stop {
        // A default gives way to the other option; two options that exclude each other are refused.
        let most = self.repeats_max.unwrap_or(u64::MAX);
        let repeats_min = self.repeats.unwrap_or(usual.repeats_min.min(most));
        Stop {
            repeats_min,
            repeats_max: self.repeats_max.unwrap_or(usual.repeats_max.max(repeats_min)),
            interval_percent: self.interval,
            budget_seconds: self.budget.map_or(usual.budget_seconds, |budget| budget.0),
            run_seconds_max: self.run_limit.map(|limit| limit.0),
            difference_percent: None,
        }
    }

    /// The seed, or one from the clock.
    pub fn seed(&self) -> u64 {
        // A TOML integer has 63 bits, and seconds of Unix time fit.
        self.seed.unwrap_or_else(experiment::run::unix_seconds)
    }

    /// The options of the judgement.
    pub fn judging(&self) -> JudgementOptions {
        let limits = self.limits.iter().map(|limit| limit.0.clone()).collect();
        JudgementOptions { limits, ..JudgementOptions::default() }
    }

    /// The plan from --plan, if given.
    pub fn plan_from_file(&self, kind: &str) -> Result<Option<Plan>, Failure> {
        let Some(path) = &self.plan else { return Ok(None) };
        let name = path.display();
        let text = machine::small_file::text(path)
            .map_err(|error| Failure::of(format!("read {name}: {error}"), None))?;
        let plan = Plan::from_toml(&text, bytes_or_zero).map_err(|error| {
            Failure::of(format!("{name}: {}", with_causes(&error)), Some(SHOW_PLAN))
        })?;
        if plan.kind == kind {
            Ok(Some(plan))
        } else {
            Err(Failure::of(
                format!("{name} is a plan for bench {}, not for bench {kind}", plan.kind),
                None,
            ))
        }
    }
}

const SHOW_PLAN: &str = "use --print-plan to see how a plan is written";

/// A size, or 0.
pub fn bytes_or_zero(text: &str) -> Result<u64, arguments::quantity::QuantityError> {
    if text == "0" { Ok(0) } else { text.parse::<Size>().map(|size| size.0) }
}

/// A factor with its distinct levels; `None` without levels.
pub fn factor(name: &str, levels: Vec<Level>, present: Option<Level>) -> Option<Factor> {
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
pub fn numbers(values: impl IntoIterator<Item = u64>) -> Vec<Level> {
    let mut values: Vec<u64> = values.into_iter().collect();
    values.sort_unstable();
    values.into_iter().map(Level::Number).collect()
}

/// A name and a rate.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedRate(pub PhysicalLimit);

impl FromStr for NamedRate {
    type Err = String;

    fn from_str(text: &str) -> Result<NamedRate, String> {
        let (name, rate) = text.split_once('=').ok_or("expected NAME=RATE")?;
        let rate: Rate = rate.parse().map_err(|error| format!("{error}"))?;
        let name = name.to_owned();
        Ok(NamedRate(PhysicalLimit { name, bytes_per_second: rate.0 as f64 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_as_typed() {
        let limit: NamedRate = "native rate=300MB/s".parse().unwrap();
        assert_eq!((limit.0.name.as_str(), limit.0.bytes_per_second), ("native rate", 3e8));
        assert!("300MB".parse::<NamedRate>().is_err());
    }

    #[test]
    fn levels_are_kept_once_and_in_order() {
        let made = factor("depth", numbers([8, 1, 8]), Some(Level::Number(2))).unwrap();
        assert_eq!(made.levels, [Level::Number(1), Level::Number(8)]);
        assert_eq!(made.present, None);
        assert!(factor("depth", Vec::new(), None).is_none());
    }
}
