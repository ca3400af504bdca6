//! What all commands that measure have in common: their options, what is looked after before they
//! begin, and how they end: what is recommended is set where that is asked for, and all is told.

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
    /// The difference that is worth having, in percent
    #[arg(short, long, default_value_t = 5.0, value_name = "PERCENT")]
    pub difference: f64,
    /// Begin no run that would not end within this time
    #[arg(long, default_value = "10m", value_name = "TIME")]
    pub budget: Span,
    /// Set what is recommended
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

/// What measurements came to.
pub trait Recommended {
    /// What to set, in the kernel's words: what is other than in force.
    fn to_apply(&self) -> Vec<(SettingKind, String)>;
    /// Whether it is known what to set, which may be what is in force.
    fn is_settled(&self) -> bool;
    /// For documents.
    fn document(&self, applied: Option<&Applied>) -> Value;
    /// For people.
    fn text(&self, applied: Option<&Applied>) -> String;
}

impl MeasureArgs {
    /// The difference that is worth having, as a share.
    pub fn worth(&self) -> f64 {
        self.difference / 100.0
    }

    /// Before anything is measured: what cannot be meant is refused, and what others have left is
    /// put back.
    ///
    /// # Errors
    /// When it is refused, or cannot be put back.
    pub fn begin(&self) -> Result<(), Failure> {
        check_difference(self.difference)?;
        if self.apply { self.how.check() } else { self.how.check_unused() }?;
        crate::commands::tune::recovered()?;
        crate::commands::tune::put_back_overdue()?;
        Ok(())
    }

    /// Sets what is recommended, where that is asked for, and tells all of it.
    ///
    /// # Errors
    /// When it cannot be set or told.
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
            text.push_str("nothing was applied: more --budget settles more\n");
        }
        to_standard_output(text.as_bytes())?;
        if is_unsettled {
            return Ok(Outcome::Warned);
        }
        Ok(applied.map_or(Outcome::Done, |applied| applied.outcome()))
    }
}

/// A difference that can be meant.
fn check_difference(percent: f64) -> Result<(), Failure> {
    if percent > 0.0 && percent <= 1000.0 {
        return Ok(());
    }
    Err(Failure::of("--difference is a percentage above 0, up to 1000", None))
}
