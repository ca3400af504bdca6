//! Common parts of all commands that measure: what is asked for, the checks before they begin, and
//! the end: apply the recommendation if requested.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use storage::layers::Storage;
use storage::settings::SettingKind;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::tune::TuneHost;
use crate::tune::apply::{Applied, AppliedSettingAnswer, ApplyRequest, acting, apply};
use crate::tune::changes::{put_back_overdue, recovered};

/// What every command that measures is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MeasureRequest {
    /// Smallest gain that is worth a change, in percent.
    pub difference_percent: f64,
    /// Starts no run that would exceed this time.
    pub budget_seconds: f64,
    /// Whether the recommended values are set.
    pub apply: bool,
    /// How they are set.
    pub how: ApplyRequest,
}

/// Smallest gain that is worth a change, unless it is asked for another.
pub const DIFFERENCE_PERCENT: f64 = 5.0;
/// Time of a measurement, unless it is asked for another.
pub const BUDGET_SECONDS: f64 = 600.0;

impl Default for MeasureRequest {
    fn default() -> MeasureRequest {
        MeasureRequest {
            difference_percent: DIFFERENCE_PERCENT,
            budget_seconds: BUDGET_SECONDS,
            apply: false,
            how: ApplyRequest::default(),
        }
    }
}

/// The result of a measurement.
pub trait Recommended {
    /// Values to set, in the kernel's words, where they differ from the present ones.
    fn to_apply(&self) -> Vec<(SettingKind, String)>;
    /// Whether there is a recommendation, possibly the present values.
    fn is_settled(&self) -> bool;
}

/// What became of a recommendation.
#[derive(Debug)]
pub struct MeasureEnding {
    /// The values that were set.
    pub applied: Option<Applied>,
    /// Whether nothing was set, although it was asked for, because nothing is settled.
    pub is_unsettled: bool,
}

impl MeasureEnding {
    /// With a warning where nothing could be set, or something does not hold.
    pub fn outcome(&self) -> Outcome {
        if self.is_unsettled {
            return Outcome::Warned;
        }
        self.applied.as_ref().map_or(Outcome::Done, Applied::outcome)
    }

    /// As a part of an answer.
    pub fn answer(&self) -> Option<Vec<AppliedSettingAnswer>> {
        self.applied.as_ref().map(Applied::answer)
    }
}

impl MeasureRequest {
    /// The smallest gain that is worth a change, as a share.
    pub fn worth(&self) -> f64 {
        self.difference_percent / 100.0
    }

    /// Before the measurement: checks the options, and restores settings that a killed process left
    /// changed.
    pub(in crate::tune) fn begin(&self, host: &dyn TuneHost) -> Result<(), Failure> {
        check_difference(self.difference_percent)?;
        if self.apply { self.how.check() } else { self.how.check_unused() }?;
        recovered(host)?;
        put_back_overdue(host)?;
        Ok(())
    }

    /// Applies the recommendation if requested.
    pub(in crate::tune) fn end(
        &self,
        recommended: &impl Recommended,
        storage: &Storage,
        path: &Path,
        host: &dyn TuneHost,
    ) -> Result<MeasureEnding, Failure> {
        let settings = if self.apply { recommended.to_apply() } else { Vec::new() };
        let mut all = Vec::new();
        for (kind, value) in settings {
            all.extend(acting(kind, &value, storage, path)?);
        }
        let applied = (!all.is_empty()).then(|| apply(path, all, &self.how, host)).transpose()?;
        let is_unsettled = self.apply && applied.is_none() && !recommended.is_settled();
        Ok(MeasureEnding { applied, is_unsettled })
    }
}

/// Checks the range of `--difference`.
fn check_difference(percent: f64) -> Result<(), Failure> {
    if percent > 0.0 && percent <= 1000.0 {
        return Ok(());
    }
    Err(Failure::of("--difference: use a percentage above 0, up to 1000", None))
}
