//! The arguments of `takeup bench power`.

use std::path::PathBuf;

use clap::Args;
use service::bench::power::BenchPowerRequest;

/// Compute how many repeats a difference needs, from the scatter of earlier runs
///
/// The scatter comes from RECORDs that `takeup bench` wrote earlier; name records that resemble the
/// planned experiment. Without any, Takeup uses takeup-bench-*.ndjson in this folder. A difference
/// counts as found when four of five experiments show it, as one of all combinations that are
/// compared.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  takeup bench power
  takeup bench power yesterday.ndjson --difference 3
  takeup bench read big.img --print-plan >plan.toml
  takeup bench power --plan plan.toml --difference 2

Nothing is run, and nothing is written.")]
pub struct BenchPowerArgs {
    /// Files of earlier experiments on this machine
    #[arg(value_name = "RECORD")]
    records: Vec<PathBuf>,
    /// The difference to find, in percent
    #[arg(short, long, default_value_t = 5.0, value_name = "PERCENT")]
    difference: f64,
    /// Combinations that are compared; by default those of the plan, or of the first record
    #[arg(long, value_name = "N", conflicts_with = "plan")]
    combinations: Option<usize>,
    /// A plan, as --print-plan writes it; Takeup also reports which difference it can find
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

impl BenchPowerArgs {
    /// What is asked for.
    pub fn request(&self) -> BenchPowerRequest {
        BenchPowerRequest {
            records: self.records.clone(),
            difference_percent: self.difference,
            combinations: self.combinations,
            plan: self.plan.clone(),
        }
    }
}
