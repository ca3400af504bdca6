//! Options that all experiments share.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use service::bench::{ExperimentRequest, PhysicalLimit};

use crate::quantity::{Rate, Size, Span};

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
    /// Print the plan and run nothing; what the plan works on need not exist
    #[arg(long, help_heading = "Experiment")]
    pub print_plan: bool,
    /// Minimum number of repeats of every combination [default: 5]
    #[arg(long, value_name = "N", help_heading = "Experiment")]
    pub repeats: Option<u64>,
    /// Maximum number of repeats of every combination [default: 20]
    #[arg(hide_short_help = true, long, value_name = "N", help_heading = "Experiment")]
    pub repeats_max: Option<u64>,
    /// End when every rate is known to within this percentage, which is half of its 95 % interval
    #[arg(
        hide_short_help = true,
        long,
        default_value_t = 5.0,
        value_name = "PERCENT",
        help_heading = "Experiment"
    )]
    pub interval: f64,
    /// Time for all runs: Takeup starts no run that would end later [default: 10m]
    #[arg(long, value_name = "TIME", help_heading = "Experiment")]
    pub budget: Option<Span>,
    /// Stop a run after this time and keep an upper bound on its rate; by default after its share
    /// of the budget, or three times as long as other runs
    #[arg(hide_short_help = true, long, value_name = "TIME", help_heading = "Experiment")]
    pub run_limit: Option<Span>,
    /// Seed of the order of the runs; by default a new one for each experiment
    #[arg(hide_short_help = true, long, value_name = "N", help_heading = "Experiment")]
    pub seed: Option<u64>,
    /// Title of the experiment
    #[arg(
        hide_short_help = true,
        long,
        default_value = "",
        hide_default_value = true,
        value_name = "TEXT",
        help_heading = "Experiment"
    )]
    pub title: String,
    /// A known limit of the hardware, for example 'host interface=1200MB'; may be given again
    #[arg(
        hide_short_help = true,
        long = "limit",
        value_name = "NAME=RATE",
        help_heading = "Experiment"
    )]
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
    #[arg(hide_short_help = true, long, help_heading = "Output")]
    pub no_progress: bool,
}

impl ExperimentArgs {
    /// What is asked for.
    pub fn request(&self) -> ExperimentRequest {
        ExperimentRequest {
            output: self.output.clone(),
            plan: self.plan.clone(),
            repeats_min: self.repeats,
            repeats_max: self.repeats_max,
            interval_percent: self.interval,
            budget_seconds: self.budget.map(|budget| budget.0),
            run_seconds_max: self.run_limit.map(|limit| limit.0),
            seed: self.seed,
            title: self.title.clone(),
            limits: self.limits.iter().map(|limit| limit.0.clone()).collect(),
        }
    }
}

/// Sizes as bytes.
pub(super) fn bytes(sizes: &[Size]) -> Vec<u64> {
    sizes.iter().map(|size| size.0).collect()
}

/// Values as those of a request.
pub(super) fn each<A: Copy + Into<R>, R>(values: &[A]) -> Vec<R> {
    values.iter().map(|value| (*value).into()).collect()
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
}
