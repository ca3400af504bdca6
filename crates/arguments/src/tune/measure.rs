//! The options of every command that measures.

use clap::Args;
use service::tune::measuring::MeasureRequest;

use super::ApplyArgs;
use crate::quantity::Span;

/// Options of every command that measures.
#[derive(Args, Debug)]
pub struct TuneMeasureArgs {
    /// Smallest gain that is worth a change, in percent
    #[arg(short, long, default_value_t = 5.0, value_name = "PERCENT")]
    difference: f64,
    /// Time limit: start no run that would exceed it
    #[arg(long, default_value = "10m", value_name = "TIME")]
    budget: Span,
    /// Set the recommended values
    #[arg(long)]
    apply: bool,
    #[command(flatten)]
    how: ApplyArgs,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Print nothing but the recommendation, warnings and errors
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}

impl TuneMeasureArgs {
    /// What is asked for.
    pub(super) fn request(&self) -> MeasureRequest {
        MeasureRequest {
            difference_percent: self.difference,
            budget_seconds: self.budget.0,
            apply: self.apply,
            how: self.how.request(),
        }
    }
}
