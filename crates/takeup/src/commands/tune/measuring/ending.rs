//! Common parts of all commands that measure: their options, the checks before they begin, and the
//! end: apply the recommendation if requested, and print the result.

use std::path::Path;

use clap::Args;
use serde_json::Value;
use storage::layers::Storage;
use storage::settings::SettingKind;

use crate::commands::tune::apply::{Applied, ApplyArgs, acting, apply};
use crate::outcome::to_standard_output;
use arguments::quantity::Span;
use service::failure::Failure;
use service::outcome::Outcome;

/// Options of every command that measures.
#[derive(Args, Debug)]
pub struct MeasureArgs {
    /// Smallest gain that is worth a change, in percent
    #[arg(short, long, default_value_t = 5.0, value_name = "PERCENT")]
    pub difference: f64,
    /// Time limit: start no run that would exceed it
    #[arg(long, default_value = "10m", value_name = "TIME")]
    pub budget: Span,
    /// Set the recommended values
    #[arg(long)]
    pub apply: bool,
    #[command(flatten)]
    pub how: ApplyArgs,
    /// Print a JSON document
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Print nothing but the recommendation, warnings and errors
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}

/// The result of a measurement.
pub trait Recommended {
    /// Values to set, in the kernel's words, where they differ from the present ones.
    fn to_apply(&self) -> Vec<(SettingKind, String)>;
    /// Whether there is a recommendation, possibly the present values.
    fn is_settled(&self) -> bool;
    /// For documents.
    fn document(&self, applied: Option<&Applied>) -> Value;
    /// For people.
    fn text(&self, applied: Option<&Applied>) -> String;
}

impl MeasureArgs {
    /// The smallest gain that is worth a change, as a share.
    pub fn worth(&self) -> f64 {
        self.difference / 100.0
    }

    /// Before the measurement: checks the options, and restores settings that a killed process left
    /// changed.
    ///
    /// # Errors
    /// When an option is invalid, or a setting cannot be restored.
    pub fn begin(&self) -> Result<(), Failure> {
        check_difference(self.difference)?;
        if self.apply { self.how.check() } else { self.how.check_unused() }?;
        crate::commands::tune::recovered()?;
        crate::commands::tune::put_back_overdue()?;
        Ok(())
    }

    /// Applies the recommendation if requested, and prints the result.
    ///
    /// # Errors
    /// When a value cannot be set, or the result cannot be printed.
    pub fn end(
        &self,
        recommended: &impl Recommended,
        storage: &Storage,
        path: &Path,
    ) -> Result<Outcome, Failure> {
        let settings = if self.apply { recommended.to_apply() } else { Vec::new() };
        let mut all = Vec::new();
        for (kind, value) in settings {
            all.extend(acting(kind, &value, storage, path)?);
        }
        let applied = (!all.is_empty()).then(|| apply(path, all, &self.how)).transpose()?;
        let mut text = if self.json {
            format!("{:#}\n", recommended.document(applied.as_ref()))
        } else {
            recommended.text(applied.as_ref())
        };
        let is_unsettled = self.apply && applied.is_none() && !recommended.is_settled();
        if is_unsettled && !self.json {
            text.push_str("nothing was applied: increase --budget to settle more\n");
        }
        to_standard_output(text.as_bytes())?;
        if is_unsettled {
            return Ok(Outcome::Warned);
        }
        Ok(applied.map_or(Outcome::Done, |applied| applied.outcome()))
    }
}

/// Checks the range of `--difference`.
fn check_difference(percent: f64) -> Result<(), Failure> {
    if percent > 0.0 && percent <= 1000.0 {
        return Ok(());
    }
    Err(Failure::of("--difference: use a percentage above 0, up to 1000", None))
}
